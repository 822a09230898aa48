package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client/clienttest"
	"github.com/signet-io/signet/internal/cli"
)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written *sync.Cond
}

func (b *buffer) cond() *sync.Cond {
	if b.written == nil {
		b.written = sync.NewCond(&b.mu)
	}
	return b.written
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cond().Broadcast()
	return b.b.Write(p)
}

// await blocks until the text was written.
func (b *buffer) await(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !strings.Contains(b.b.String(), text) {
		b.cond().Wait()
	}
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// command is one run of the command line.
type command struct {
	stdin    string
	terminal bool
	signals  chan os.Signal
	out, err buffer
}

func (c *command) run(t *testing.T, args ...string) int {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	if c.signals == nil {
		c.signals = make(chan os.Signal, 4)
	}
	s := cli.Streams{
		In: strings.NewReader(c.stdin), Out: &c.out, Err: &c.err, InTerminal: c.stdin == "", ErrTerminal: c.terminal,
		Width: func() int { return 80 },
	}
	return cli.Run(context.Background(), args, s, c.signals)
}

// at runs against a scheduler.
func (c *command) at(t *testing.T, addr string, args ...string) int {
	t.Helper()
	return c.run(t, append(args, "--scheduler", addr)...)
}

type watchStream = grpc.ServerStreamingServer[schedulerv1.WatchResponse]

func send(s watchStream, j *schedulerv1.Job) error { return s.Send(&schedulerv1.WatchResponse{Job: j}) }

// answering ends every statement with these rows.
func answering(t *testing.T, texts ...string) *clienttest.Scheduler {
	data := clienttest.ArrowStream(t, texts...)
	return &clienttest.Scheduler{OnWatch: func(_ int, s watchStream) error {
		j := clienttest.Succeeded()
		j.InlineResult = data
		return send(s, j)
	}}
}

func TestSQL_PrintsEachFormat(t *testing.T) {
	addr := answering(t, "a,b").Start(t)
	for output, want := range map[string]string{
		"table": "┌─────┬───┐\n│ s   │ n │\n├─────┼───┤\n│ a,b │ 0 │\n└─────┴───┘\n(1 row)\n",
		"json":  "{\"s\":\"a,b\",\"n\":0}\n",
		"csv":   "s,n\r\n\"a,b\",0\r\n",
	} {
		var c command
		require.Equal(t, cli.ExitOK, c.at(t, addr, "sql", "SELECT 1", "-o", output), c.err.String())
		require.Equal(t, want, c.out.String())
		require.NotContains(t, c.err.String(), "error")
	}
}

func TestSQL_ExplainIsPlainText(t *testing.T) {
	data := clienttest.ArrowStream(t, "Commit t\n  Stage 0\x1b[2J\n")
	addr := (&clienttest.Scheduler{OnWatch: func(_ int, s watchStream) error {
		j := clienttest.Succeeded()
		j.Kind, j.InlineResult = "explain", data
		return send(s, j)
	}}).Start(t)
	var c command
	require.Equal(t, cli.ExitOK, c.at(t, addr, "sql", "EXPLAIN INSERT INTO t SELECT 1"))
	require.Equal(t, "Commit t\n  Stage 0\\x1B[2J\n", c.out.String())
}

func TestSQL_PassesWhatTheSchedulerNeeds(t *testing.T) {
	f := answering(t)
	var c command
	require.Equal(t, cli.ExitOK, c.at(t, f.Start(t), "sql", "SELECT 1", "--catalog", "lake", "--schema", "demo", "--idempotency-key", "k", "--set", "signet.planner=adaptive", "--set", "a = b=c "))
	r := f.Seen().Submits[0]
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, "SELECT 1", r.GetSql())
	require.Equal(t, "lake", r.GetDefaultCatalog())
	require.Equal(t, "demo", r.GetDefaultSchema())
	require.Equal(t, wd, r.GetBaseDir())
	require.Equal(t, "k", r.GetIdempotencyKey())
	require.Equal(t, map[string]string{"signet.planner": "adaptive", "a": "b=c"}, r.GetSettings())
}

func TestSQL_ReadsScripts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.sql")
	require.NoError(t, os.WriteFile(file, []byte("\ufeff-- comment; not a statement\nSELECT ';';\n\nSELECT 2;\n"), 0o600))
	cases := map[string]struct {
		stdin string
		args  []string
		want  []string
	}{
		"file":              {"", []string{"-f", file}, []string{"SELECT ';'", "SELECT 2"}},
		"file and argument": {"", []string{"-f", file, "SELECT 3"}, []string{"SELECT ';'", "SELECT 2", "SELECT 3"}},
		"dash":              {"SELECT 1; SELECT 2", []string{"-"}, []string{"SELECT 1", "SELECT 2"}},
		"file is dash":      {"SELECT 1", []string{"-f", "-"}, []string{"SELECT 1"}},
		"a pipe":            {"SELECT 1", nil, []string{"SELECT 1"}},
		"comment in front":  {"", []string{"-- hi\nSELECT 1"}, []string{"SELECT 1"}},
		"two arguments":     {"", []string{"SELECT 1;", "SELECT 2"}, []string{"SELECT 1", "SELECT 2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := answering(t)
			c := command{stdin: tc.stdin}
			require.Equal(t, cli.ExitOK, c.at(t, f.Start(t), append([]string{"sql", "--idempotency-key", "k"}, tc.args...)...), c.err.String())
			seen := f.Seen()
			got, keys := make([]string, len(seen.Submits)), map[string]bool{}
			for i, r := range seen.Submits {
				got[i] = r.GetSql()
				keys[r.GetIdempotencyKey()] = true
			}
			require.Equal(t, tc.want, got)
			require.Len(t, keys, len(tc.want), "each statement has a key of its own")
		})
	}
}

func TestSQL_FailureStopsTheScriptAndNamesPlaceAndFix(t *testing.T) {
	f := &clienttest.Scheduler{OnWatch: func(n int, s watchStream) error {
		if n == 1 {
			return send(s, clienttest.Succeeded())
		}
		return send(s, &schedulerv1.Job{JobId: "j", State: schedulerv1.JobState_JOB_STATE_FAILED, Error: &schedulerv1.JobError{Code: "user", Message: "no column x", Hint: "did you mean y?"}})
	}}
	c := command{stdin: "SELECT 1;\nSELECT x;\nSELECT 3"}
	require.Equal(t, cli.ExitFailed, c.at(t, f.Start(t), "sql", "-"))
	require.Contains(t, c.err.String(), "error: stdin:2: no column x\nhint: did you mean y?\n")
	require.Len(t, f.Seen().Submits, 2)
}

// The scheduler knows a statement's own lines; the user has the script before them.
func TestSQL_SyntaxErrorsHaveOnePlace(t *testing.T) {
	f := &clienttest.Scheduler{OnWatch: func(_ int, s watchStream) error {
		return send(s, &schedulerv1.Job{JobId: "j", State: schedulerv1.JobState_JOB_STATE_FAILED, Error: &schedulerv1.JobError{Code: "user", Message: "line 1, column 8: wrong\n  SELECT x"}})
	}}
	addr := f.Start(t)
	file := filepath.Join(t.TempDir(), "e.sql")
	require.NoError(t, os.WriteFile(file, []byte("-- two\n\n  SELECT x"), 0o600))
	for want, args := range map[string][]string{
		"error: " + file + ":3:10: wrong\n": {"sql", "-f", file},
		"error: line 1, column 8: wrong\n":  {"sql", "SELECT x"},
		"error: line 2, column 8: wrong\n":  {"sql", "\nSELECT x; SELECT 2"},
	} {
		var c command
		require.Equal(t, cli.ExitFailed, c.at(t, addr, args...))
		require.Contains(t, c.err.String(), want)
	}
}

// A running task has written bytes before it has counted its rows.
func TestSQL_ProgressCountsWhatIsKnown(t *testing.T) {
	f := &clienttest.Scheduler{OnWatch: func(_ int, s watchStream) error {
		j := clienttest.Running("stages")
		j.Progress = &schedulerv1.Progress{Stages: 1, Tasks: 1, Running: 1, Bytes: 5_000_000}
		if err := send(s, j); err != nil {
			return err
		}
		return send(s, clienttest.Succeeded())
	}}
	var c command
	require.Equal(t, cli.ExitOK, c.at(t, f.Start(t), "sql", "SELECT 1"), c.err.String())
	require.Contains(t, c.err.String(), "1 running, 5.0 MB")
	require.NotContains(t, c.err.String(), "0 rows")
}

func TestVersion_IsAFlagToo(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"version"}} {
		var c command
		require.Equal(t, cli.ExitOK, c.run(t, args...))
		require.Regexp(t, `^signet \S+`, c.out.String())
	}
}

func TestUsageErrors(t *testing.T) {
	addr := answering(t).Start(t)
	for name, args := range map[string][]string{
		"unknown command":       {"nonsense"},
		"unknown flag":          {"sql", "--nonsense"},
		"unknown output":        {"sql", "SELECT 1", "-o", "xml", "--scheduler", addr},
		"no statement":          {"sql", "--scheduler", addr},
		"setting without value": {"sql", "SELECT 1", "--set", "signet.planner", "--scheduler", addr},
		"setting twice":         {"sql", "SELECT 1", "--set", "a=1", "--set", "a=2", "--scheduler", addr},
		"only comments":         {"sql", "-- x", "--scheduler", addr},
		"missing file":          {"sql", "-f", "/does/not/exist", "--scheduler", addr},
		"no id":                 {"job", "--scheduler", addr},
		"two ids":               {"cancel", "a", "b", "--scheduler", addr},
		"bad address":           {"jobs", "--scheduler", "nonsense"},
		"no TLS off the host":   {"jobs", "--scheduler", "192.0.2.1:7070"},
		"both kinds of cluster": {"sql", "SELECT 1", "--scheduler", addr, "--data-dir", "/x"},
		"empty key":             {"sql", "--idempotency-key", "", "SELECT 1", "--scheduler", addr},
		"long key":              {"sql", "--idempotency-key", strings.Repeat("k", 257), "SELECT 1", "--scheduler", addr},
		"long key with /n":      {"sql", "--idempotency-key", strings.Repeat("k", 255), "SELECT 1; SELECT 2", "--scheduler", addr},
		"unknown shell":         {"completion", "nosuch"},
		"missing token file":    {"jobs", "--scheduler", addr, "--token-file", "/does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			var c command
			require.Equal(t, cli.ExitUsage, c.run(t, args...), c.err.String())
			require.Contains(t, c.err.String(), "error: ")
			require.Empty(t, c.out.String())
		})
	}
}

func TestUnreachable_SaysHowToStartOne(t *testing.T) {
	for _, args := range [][]string{{"sql", "SELECT 1"}, {"jobs"}, {"job", "x"}, {"cancel", "x"}} {
		var c command
		require.Equal(t, cli.ExitUnreachable, c.at(t, "127.0.0.1:1", args...), args)
		require.Contains(t, c.err.String(), "signet scheduler --config")
	}
}

// running blocks in phase until the job is asked to end; then the answer decides.
func blocking(answer *schedulerv1.CancelJobResponse, end *schedulerv1.Job, started chan<- struct{}) *clienttest.Scheduler {
	asked := make(chan struct{})
	return &clienttest.Scheduler{OnWatch: func(_ int, s watchStream) error {
		if err := send(s, clienttest.Running("root")); err != nil {
			return err
		}
		close(started)
		select {
		case <-asked:
		case <-s.Context().Done():
			return s.Context().Err()
		}
		if end == nil {
			<-s.Context().Done()
			return s.Context().Err()
		}
		return send(s, end)
	}, OnCancel: func(string) (*schedulerv1.CancelJobResponse, error) {
		close(asked)
		return answer, nil
	}}
}

// X17: the first Ctrl-C cancels and says so.
func TestSQL_CtrlCCancels(t *testing.T) {
	started := make(chan struct{})
	f := blocking(&schedulerv1.CancelJobResponse{Cancelled: true}, &schedulerv1.Job{JobId: "j", State: schedulerv1.JobState_JOB_STATE_CANCELLED}, started)
	c := command{signals: make(chan os.Signal, 1)}
	go func() { <-started; c.signals <- os.Interrupt }()
	require.Equal(t, cli.ExitCancelled, c.at(t, f.Start(t), "sql", "INSERT INTO t SELECT 1; SELECT 2"))
	require.Contains(t, c.err.String(), "cancelling")
	require.Contains(t, c.err.String(), "nothing of the statement is visible")
	require.Len(t, f.Seen().Submits, 1)
}

// X17: a cancel that comes too late says what happened; the statement succeeded, and no further one runs.
func TestSQL_CtrlCAfterTheCommit(t *testing.T) {
	for script, want := range map[string]int{"INSERT INTO t SELECT 1": cli.ExitOK, "INSERT INTO t SELECT 1; SELECT 2": cli.ExitCancelled} {
		started := make(chan struct{})
		f := blocking(&schedulerv1.CancelJobResponse{Message: "the job has committed as snapshot 7"}, clienttest.Succeeded(), started)
		c := command{signals: make(chan os.Signal, 1)}
		go func() { <-started; c.signals <- os.Interrupt }()
		require.Equal(t, want, c.at(t, f.Start(t), "sql", script), c.err.String())
		require.Contains(t, c.err.String(), "not cancelled: the job has committed as snapshot 7")
		require.Len(t, f.Seen().Submits, 1)
	}
}

// X17: the second Ctrl-C leaves at once, and admits that the end is not known.
func TestSQL_SecondCtrlCForces(t *testing.T) {
	started := make(chan struct{})
	f := blocking(&schedulerv1.CancelJobResponse{Message: "sealed"}, nil, started)
	c := command{signals: make(chan os.Signal, 2)}
	go func() { <-started; c.signals <- os.Interrupt; c.signals <- os.Interrupt }()
	require.Equal(t, cli.ExitUnknown, c.at(t, f.Start(t), "sql", "INSERT INTO t SELECT 1"))
	require.Contains(t, c.err.String(), "signet job job-")
	require.Contains(t, c.err.String(), "may still commit")
}

func TestSQL_PlainProgressAndWarnings(t *testing.T) {
	f := &clienttest.Scheduler{OnWatch: func(_ int, s watchStream) error {
		j := clienttest.Running("stages")
		j.Progress = &schedulerv1.Progress{Stages: 1, Tasks: 4, TasksDone: 1, Rows: 1234567, Bytes: 45600000, Running: 3}
		_ = send(s, j)
		end := clienttest.Succeeded()
		end.Warnings = []string{"write.delete.mode cannot be honoured"}
		return send(s, end)
	}}
	addr := f.Start(t)
	var c command
	require.Equal(t, cli.ExitOK, c.at(t, addr, "sql", "INSERT INTO t SELECT 1"))
	require.Contains(t, c.err.String(), "running, stage 0/1, tasks 1/4, 3 running, 1,234,567 rows, 45.6 MB")
	require.Contains(t, c.err.String(), "warning: write.delete.mode cannot be honoured\n")
	require.NotContains(t, c.err.String(), "\x1b")
	require.Empty(t, c.out.String())

	var quiet command
	require.Equal(t, cli.ExitOK, quiet.at(t, addr, "sql", "-q", "INSERT INTO t SELECT 1"))
	require.NotContains(t, quiet.err.String(), "running")
}

func TestSQL_TerminalProgressIsWipedBeforeTheResult(t *testing.T) {
	data := clienttest.ArrowStream(t, "x")
	painted := make(chan struct{})
	f := &clienttest.Scheduler{OnWatch: func(_ int, s watchStream) error {
		j := clienttest.Running("stages")
		j.Message = strings.Repeat("waiting for an executor ", 10)
		_ = send(s, j)
		<-painted
		end := clienttest.Succeeded()
		end.InlineResult = data
		return send(s, end)
	}}
	c := command{terminal: true}
	go func() {
		c.err.await("waiting for")
		close(painted)
	}()
	require.Equal(t, cli.ExitOK, c.at(t, f.Start(t), "sql", "SELECT 1"))
	last := c.err.String()
	require.True(t, strings.HasSuffix(last, "\r\x1b[K"), "%q", last)
	for _, paint := range strings.Split(last, "\r\x1b[K") {
		require.LessOrEqual(t, len([]rune(paint)), 80)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// `signet sql … | head -1` is no failure.
func TestSQL_ReaderThatLeavesEarly(t *testing.T) {
	addr := answering(t, "a").Start(t)
	var stderr buffer
	s := cli.Streams{In: strings.NewReader(""), Out: closedPipe{}, Err: &stderr, InTerminal: true}
	require.Equal(t, cli.ExitOK, cli.Run(context.Background(), []string{"sql", "SELECT 1", "--scheduler", addr}, s, make(chan os.Signal)))
	require.NotContains(t, stderr.String(), "error")
}

func TestSQL_RepeatedKeySaysSo(t *testing.T) {
	f := answering(t)
	addr := f.Start(t)
	var first, second command
	require.Equal(t, cli.ExitOK, first.at(t, addr, "sql", "SELECT 1", "--idempotency-key", "k"))
	require.NotContains(t, first.err.String(), "ran under this key before")
	require.Equal(t, cli.ExitOK, second.at(t, addr, "sql", "SELECT 1", "--idempotency-key", "k"))
	require.Contains(t, second.err.String(), "ran under this key before")
}

func TestJobs_JobAndCancel(t *testing.T) {
	job := &schedulerv1.Job{
		JobId: "0190", State: schedulerv1.JobState_JOB_STATE_RUNNING, Phase: "resolving", Kind: "insert", Statement: "INSERT INTO t\n  SELECT 1", SubmittedMillis: 1700000000000, Principal: "local",
		Progress: &schedulerv1.Progress{Stages: 1, StagesDone: 1, Tasks: 2, TasksDone: 2, Rows: 5}, TimingsMicros: map[string]int64{"plan": 1500, "commit": 20000},
	}
	f := &clienttest.Scheduler{
		OnList: func() []*schedulerv1.Job { return []*schedulerv1.Job{job} },
		OnJob:  func(int) (*schedulerv1.Job, error) { return job, nil },
		OnCancel: func(id string) (*schedulerv1.CancelJobResponse, error) {
			return &schedulerv1.CancelJobResponse{Cancelled: id == "0190", Message: "it has committed"}, nil
		},
	}
	addr := f.Start(t)
	var jobs, one, asJSON, cancelled, late command
	require.Equal(t, cli.ExitOK, jobs.at(t, addr, "jobs"), jobs.err.String())
	require.Contains(t, jobs.out.String(), "│ 0190   │ Running (resolving) │ insert │ 2023-11-14 22:13:20+00 │   NULL │ INSERT INTO t SELECT 1 │")
	require.Equal(t, cli.ExitOK, one.at(t, addr, "job", "0190"))
	require.Contains(t, one.out.String(), "state      Running (resolving)\n")
	require.Contains(t, one.out.String(), "timings    commit 20.0 ms, plan 1.5 ms\n")
	require.Equal(t, cli.ExitOK, asJSON.at(t, addr, "job", "0190", "-o", "json"))
	require.Contains(t, asJSON.out.String(), `"job_id":`)
	require.Equal(t, cli.ExitOK, cancelled.at(t, addr, "cancel", "0190"))
	require.Equal(t, "cancelled 0190\n", cancelled.out.String())
	require.Equal(t, cli.ExitFailed, late.at(t, addr, "cancel", "other"))
	require.Contains(t, late.err.String(), "not cancelled: it has committed")
}

func TestVersionHelpAndCompletion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--help"}, {}, {"sql", "--help"}, {"completion", "bash"}, {"sink", "--help"}} {
		var c command
		require.Equal(t, cli.ExitOK, c.run(t, args...), args)
		require.Contains(t, c.out.String(), "signet", args)
	}
}

var errClosed = errors.New("closed")

type deadReader struct{}

func (deadReader) Read([]byte) (int, error) { return 0, errClosed }

func TestSQL_UnreadableStandardInput(t *testing.T) {
	var out, stderr buffer
	s := cli.Streams{In: deadReader{}, Out: &out, Err: &stderr}
	require.Equal(t, cli.ExitFailed, cli.Run(context.Background(), []string{"sql", "-", "--scheduler", "127.0.0.1:1"}, s, make(chan os.Signal)))
	require.Contains(t, stderr.String(), "closed")
}
