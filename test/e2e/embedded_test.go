package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// embedded is a data directory with the commands that use it.
type embedded struct {
	t   *testing.T
	dir string
}

func newEmbedded(t *testing.T) embedded {
	e := embedded{t, t.TempDir()}
	t.Cleanup(func() { e.nothingLeft() })
	return e
}

// run runs `signet sql`, as a user would.
func (e embedded) run(args ...string) harness.Result {
	return harness.RunCommand(e.t, "", []string{"SIGNET_DATA_DIR=" + e.dir}, append([]string{"sql", "--output", "csv"}, args...)...)
}

func (e embedded) value(query string) string {
	e.t.Helper()
	r := e.run("-q", query)
	require.Equal(e.t, 0, r.Code, r.Err)
	lines := strings.Split(strings.TrimSpace(r.Out), "\r\n")
	require.Len(e.t, lines, 2, r.Out)
	return lines[1]
}

func (e embedded) nothingLeft() {
	e.t.Helper()
	harness.Eventually(e.t, "no process of the embedded cluster is left", func() bool { return len(harness.About(e.dir)) == 0 })
}

// command is a `signet sql` that can be signalled.
type command struct {
	*exec.Cmd
	out, err syncBuffer
	done     chan error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (e embedded) start(env []string, args ...string) *command {
	e.t.Helper()
	c := &command{Cmd: exec.Command(harness.Path("signet"), append([]string{"sql", "--output", "csv"}, args...)...), done: make(chan error, 1)}
	c.Env = append(os.Environ(), append(env, "SIGNET_DATA_DIR="+e.dir)...)
	c.Stdout, c.Stderr = &c.out, &c.err
	require.NoError(e.t, harness.Start(c.Cmd))
	go func() { c.done <- c.Wait() }()
	e.t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

func (c *command) code(t *testing.T) int {
	t.Helper()
	select {
	case <-c.done:
		return c.ProcessState.ExitCode()
	case <-time.After(harness.Patience):
		t.Fatalf("signet sql does not end; it said:\n%s", c.err.String())
		return 0
	}
}

func TestEmbedded_KeepsItsTablesAndLeavesNothing(t *testing.T) {
	e := newEmbedded(t)
	r := e.run("CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t AS SELECT i FROM range(10) r(i)")
	require.Equal(t, 0, r.Code, r.Err)
	e.nothingLeft()
	require.Equal(t, "10", e.value("SELECT count(*) FROM lake.demo.t"))
	r = e.run("SELECT * FROM lake.demo.nothing")
	require.Equal(t, 1, r.Code)
	e.nothingLeft()
}

func TestEmbedded_SecondCommandWaitsForTheFirst(t *testing.T) {
	e := newEmbedded(t)
	require.Equal(t, 0, e.run("CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (i BIGINT)").Code)
	results := make(chan harness.Result)
	for range 3 {
		go func() { results <- e.run("INSERT INTO lake.demo.t SELECT 1") }()
	}
	waited := 0
	for range 3 {
		r := <-results
		require.Equal(t, 0, r.Code, r.Err)
		if strings.Contains(r.Err, "waiting: data directory in use") {
			waited++
		}
	}
	require.Positive(t, waited)
	require.Equal(t, "3", e.value("SELECT count(*) FROM lake.demo.t"))
}

// paused runs an INSERT up to a fault point and holds it there until release is called.
func (e embedded) paused(point string) (c *command, release func()) {
	e.t.Helper()
	require.Equal(e.t, 0, e.run("CREATE SCHEMA IF NOT EXISTS lake.demo; CREATE TABLE IF NOT EXISTS lake.demo.t (i BIGINT)").Code)
	gate := filepath.Join(e.t.TempDir(), "gate")
	c = e.start([]string{"SIGNET_FAILPOINTS=" + point + "=pause(" + gate + ")"}, "INSERT INTO lake.demo.t SELECT i FROM range(5) r(i)")
	harness.Eventually(e.t, "the job runs", func() bool {
		return strings.Contains(c.err.String(), "running") || strings.Contains(c.err.String(), "root")
	})
	return c, func() { require.NoError(e.t, os.WriteFile(gate, nil, 0o600)) }
}

func TestEmbedded_SigkillLeavesNoProcessAndNoHalfStatement(t *testing.T) {
	e := newEmbedded(t)
	c, _ := e.paused("executor.copy.before")
	require.NotEmpty(t, harness.Below(c.Process.Pid))
	require.NoError(t, c.Process.Kill())
	c.code(t)
	e.nothingLeft()
	// The statement had been accepted: the next command finishes it before its own.
	r := e.run("SELECT count(*) FROM lake.demo.t")
	require.Equal(t, 0, r.Code, r.Err)
	require.Contains(t, r.Err, "of an earlier command: INSERT INTO lake.demo.t")
	require.Contains(t, r.Out, "\r\n5\r\n")
}

// X17: Ctrl-C goes to everybody in the terminal. Executors and plugins ignore it; before the seal the job is cancelled, and the table is as before.
func TestEmbedded_CtrlCBeforeTheSealCancels(t *testing.T) {
	e := newEmbedded(t)
	c, release := e.paused("executor.copy.before")
	children := harness.Below(c.Process.Pid)
	require.NotEmpty(t, children)
	for _, p := range children {
		require.NoError(t, syscall.Kill(p.PID, syscall.SIGINT))
	}
	require.NoError(t, syscall.Kill(-c.Process.Pid, syscall.SIGINT))
	harness.Eventually(t, "it says that it cancels", func() bool { return strings.Contains(c.err.String(), "cancelling") })
	release()
	require.Equal(t, 4, c.code(t), c.err.String())
	require.Contains(t, c.err.String(), "nothing of the statement is visible")
	e.nothingLeft()
	require.Equal(t, "0", e.value("SELECT count(*) FROM lake.demo.t"))
}

// X17: after the seal a cancel is refused, the commit lands, and the command says so: outcome equals table.
func TestEmbedded_CtrlCAfterTheSealCommits(t *testing.T) {
	e := newEmbedded(t)
	c, release := e.paused("broker.commit.after-send")
	harness.Eventually(t, "the job is at its root", func() bool { return strings.Contains(c.err.String(), "root") })
	sealed(t, e)
	for _, p := range harness.Below(c.Process.Pid) {
		require.NoError(t, syscall.Kill(p.PID, syscall.SIGINT))
	}
	require.NoError(t, syscall.Kill(-c.Process.Pid, syscall.SIGINT))
	harness.Eventually(t, "it says that it cannot cancel", func() bool { return strings.Contains(c.err.String(), "not cancelled") })
	release()
	require.Equal(t, 0, c.code(t), c.err.String())
	e.nothingLeft()
	require.Equal(t, "5", e.value("SELECT count(*) FROM lake.demo.t"))
}

// sealed waits until the commit request has reached the catalog: its metadata file is the table's current one.
func sealed(t *testing.T, e embedded) {
	harness.Eventually(t, "the commit has landed", func() bool {
		files, err := filepath.Glob(filepath.Join(e.dir, "warehouse/demo/t/metadata/*.metadata.json"))
		require.NoError(t, err)
		return len(files) >= 2
	})
}

// X17: the second Ctrl-C leaves at once and admits that it does not know.
func TestEmbedded_SecondCtrlCForces(t *testing.T) {
	e := newEmbedded(t)
	c, _ := e.paused("broker.commit.after-send")
	sealed(t, e)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	harness.Eventually(t, "the first is taken", func() bool { return strings.Contains(c.err.String(), "cancelling") })
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Equal(t, 5, c.code(t), c.err.String())
	require.Contains(t, c.err.String(), "may still commit")
	e.nothingLeft()
	require.Equal(t, "5", e.value("SELECT count(*) FROM lake.demo.t"), "the next command resolves it")
}

func TestEmbedded_NamesAMissingExecutor(t *testing.T) {
	e := newEmbedded(t)
	r := harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + e.dir, "SIGNET_EXECUTORS_BINARY=/does/not/exist"}, "sql", "SELECT 1")
	require.Equal(t, 3, r.Code)
	require.Contains(t, r.Err, "/does/not/exist")
	require.Contains(t, r.Err, "SIGNET_EXECUTORS_BINARY")
}

func TestEmbedded_NamesAnExecutorThatCannotRun(t *testing.T) {
	e := newEmbedded(t)
	script := filepath.Join(t.TempDir(), "signet-executor")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho libduckdb is missing >&2\nexit 127\n"), 0o700))
	r := harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + e.dir, "SIGNET_EXECUTORS_BINARY=" + script}, "sql", "SELECT 1")
	require.Equal(t, 3, r.Code, r.Err)
	require.Contains(t, r.Err, "libduckdb is missing")
}

// An embedded cluster's executors live as long as a signet sql.
func TestEmbedded_InfoSaysWhereItsExecutorsAre(t *testing.T) {
	t.Parallel()
	r := harness.RunCommand(t, "", nil, "info", "--data-dir", t.TempDir())
	require.Equal(t, 0, r.Code, r.Err)
	require.Contains(t, r.Out, "executor   none now; signet sql starts")
}
