package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Options of a cluster.
type Options struct {
	Executors     int      // separate processes, started with the cluster
	Config        string   // more YAML, appended
	CatalogConfig string   // more YAML below catalogs.lake or catalogs, indented by four or two
	SchedulerEnv  []string // of the first scheduler
	ExecutorArgs  []string
	ClientArgs    []string // of every command that is run against the cluster
}

// Cluster is a scheduler and its executors, each a process of its own.
type Cluster struct {
	Dir       string
	Address   string
	Scheduler *Process
	Executors []*Process

	t     testing.TB // of the test that uses the cluster now
	owner testing.TB // of the test that made it: its end is the cluster's
	opts  Options
	port  int
}

// New starts a cluster in a directory of its own. At the test's end it is stopped, and nothing of it may be left.
func New(t testing.TB, opts Options) *Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "signet-e2e-") //nolint:usetesting // t.TempDir is too long for the sockets below it
	require.NoError(t, err)
	c := &Cluster{Dir: dir, t: t, owner: t, opts: opts, port: FreePort(t)}
	t.Cleanup(func() {
		if t.Failed() {
			c.showLogs()
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	t.Cleanup(func() { c.Stop() })
	c.writeConfig()
	c.StartScheduler(opts.SchedulerEnv...)
	for range opts.Executors {
		c.StartExecutor()
	}
	c.AwaitExecutors(opts.Executors)
	return c
}

func (c *Cluster) writeConfig() {
	text := fmt.Sprintf(`data_dir: %[1]s/data
listen: 127.0.0.1:%[2]d
catalogs:
  lake:
    type: sql
    uri: sqlite://%[1]s/catalog.db
    warehouse: file://%[1]s/warehouse
%[3]sexecutors:
  local: 0
timeouts:
  executor_loss: 3s
%[4]s`, c.Dir, c.port, c.opts.CatalogConfig, c.opts.Config)
	require.NoError(c.t, os.WriteFile(filepath.Join(c.Dir, "signet.yaml"), []byte(text), 0o600))
}

// launchScheduler starts the process. Its standard output comes through the channel.
func (c *Cluster) launchScheduler(env []string) <-chan string {
	c.t.Helper()
	lines := make(chan string, 16)
	c.Scheduler = start(c.owner, "scheduler", c.SchedulerLog(), lines, env, Path("signet"), "scheduler", "--config", filepath.Join(c.Dir, "signet.yaml"))
	return lines
}

// StartScheduler starts the scheduler, always at the same address.
func (c *Cluster) StartScheduler(env ...string) {
	c.t.Helper()
	lines := c.launchScheduler(env)
	select {
	case line, ok := <-lines:
		require.True(c.t, ok, "the scheduler ended at its start:\n%s", tail(c.SchedulerLog()))
		var found bool
		c.Address, found = strings.CutPrefix(line, "listening on ")
		require.True(c.t, found, line)
	case <-time.After(Patience):
		c.t.Fatalf("the scheduler does not start:\n%s", tail(c.SchedulerLog()))
	}
}

// SchedulerLog is the file with what all schedulers of the cluster logged.
func (c *Cluster) SchedulerLog() string { return filepath.Join(c.Dir, "scheduler.log") }

// StartExecutor adds an executor process.
func (c *Cluster) StartExecutor(env ...string) *Process {
	c.t.Helper()
	p := c.startExecutor(len(c.Executors), env)
	c.Executors = append(c.Executors, p)
	return p
}

func (c *Cluster) startExecutor(n int, env []string) *Process {
	c.t.Helper()
	args := append([]string{"--scheduler", c.Address, "--scratch", filepath.Join(c.Dir, fmt.Sprintf("scratch-%d", n)), "--memory", "1GiB", "--slots", "2", "--threads", "1"}, c.opts.ExecutorArgs...)
	return start(c.owner, fmt.Sprintf("executor %d", n), filepath.Join(c.Dir, fmt.Sprintf("executor-%d.log", n)), nil, env, Path("signet-executor"), args...)
}

// AwaitExecutors waits until the scheduler knows of at least n.
func (c *Cluster) AwaitExecutors(n int) {
	c.t.Helper()
	Eventually(c.t, fmt.Sprintf("%d executors joined", n), func() bool {
		return c.Registered() >= n
	})
}

// Registered counts the executors of the cluster that the scheduler knows of.
func (c *Cluster) Registered() int {
	c.t.Helper()
	n, info := 0, c.Run("info").Out
	for _, p := range c.Executors {
		if strings.Contains(info, fmt.Sprintf("process %d,", p.PID())) {
			n++
		}
	}
	return n
}

// Stop ends everything and checks that nothing is left. It is called again at the test's end.
func (c *Cluster) Stop() {
	c.t.Helper()
	for _, p := range c.Executors {
		p.Terminate(c.t)
	}
	if c.Scheduler != nil {
		c.Scheduler.Terminate(c.t)
	}
	c.NothingLeft()
}

// NothingLeft waits for the processes of the cluster to be gone.
func (c *Cluster) NothingLeft() {
	c.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		left := About(c.Dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Errorf("left over: %+v", left)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *Cluster) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(c.Dir, "*.log")) // the pattern is valid
	for _, l := range logs {
		c.t.Logf("%s ends:\n%s", filepath.Base(l), tail(l))
	}
}

func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}
