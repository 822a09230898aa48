package harness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
)

// Use lends the cluster to a subtest: failures of what follows are the subtest's.
func (c *Cluster) Use(t testing.TB) {
	before := c.t
	c.t = t
	t.Cleanup(func() { c.t = before })
}

// Faults arms fault points of the processes of a cluster while they run. A point that is not armed does nothing.
type Faults struct{ dir string }

// NewFaults keeps its files in a directory of its own.
func NewFaults(t testing.TB) Faults { return Faults{t.TempDir()} }

// Env is the variable that a process is started with. Every process that is started with it, again or not, can be killed at the points.
func (f Faults) Env(points ...string) string {
	var items []string
	for _, p := range points {
		items = append(items, p+"=kill("+f.file(p)+")")
	}
	return fault.Env + "=" + strings.Join(items, ";")
}

// Arm kills the process that hits the point next, after some hits have passed. Processes started afterwards are safe.
func (f Faults) Arm(t testing.TB, point string, passing int) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.file(point), make([]byte, passing), 0o600))
}

// ArmAhead kills also processes that are started afterwards, until Disarm.
func (f Faults) ArmAhead(t testing.TB, point string) {
	t.Helper()
	f.Arm(t, point, 0)
	require.NoError(t, os.Chtimes(f.file(point), time.Time{}, time.Now().Add(time.Hour)))
}

// Disarm spares everybody.
func (f Faults) Disarm(t testing.TB, point string) {
	t.Helper()
	if err := os.Remove(f.file(point)); !os.IsNotExist(err) {
		require.NoError(t, err)
	}
}

func (f Faults) file(point string) string { return filepath.Join(f.dir, point) }

// StartSchedulerToDie starts a scheduler that kills itself at a fault point that is armed ahead, and waits for that.
func (c *Cluster) StartSchedulerToDie(env ...string) {
	c.t.Helper()
	c.launchScheduler(env)
	c.Scheduler.Wait(c.t)
	require.True(c.t, c.Scheduler.Killed(), "the scheduler ended by itself:\n%s", tail(c.SchedulerLog()))
}

// RestartExecutor starts an executor in the place, and with the scratch directory, of one that has ended.
func (c *Cluster) RestartExecutor(n int, env ...string) {
	c.t.Helper()
	require.True(c.t, c.Executors[n].Ended())
	c.Executors[n] = c.startExecutor(n, env)
}

// Plugins are the sink processes of the scheduler.
func (c *Cluster) Plugins() []Proc {
	var out []Proc
	for _, p := range Below(c.Scheduler.PID()) {
		if strings.Contains(p.Cmdline, "signet-sink-") {
			out = append(out, p)
		}
	}
	return out
}

// Client dials the scheduler. It is closed at the test's end, and bears with a scheduler that is away.
func (c *Cluster) Client(opts ...client.Option) *client.Client {
	c.t.Helper()
	cl, err := client.Dial(c.Address, append([]client.Option{client.WithRetry(Patience)}, opts...)...)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = cl.Close() })
	return cl
}

// Context ends when patience does.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
	t.Cleanup(cancel)
	return ctx
}

// Soon polls like Eventually, but says whether it happened, within a time.
func Soon(within time.Duration, f func() bool) bool {
	for deadline := time.Now().Add(within); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
