package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// Eight clients write 25 rows each, one by one, into one table: all succeed, every row is there once, every job is in one snapshot, with its
// marker (C19, C25).
func TestConcurrency_EightClientsOneTable(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 25
	c := harness.New(t, harness.Options{Executors: 2})
	c.SQL("CREATE SCHEMA lake.c; CREATE TABLE lake.c.t (id BIGINT)")
	began := time.Now()
	errs := make(chan error)
	for n := range clients {
		go func() {
			cl, err := client.Dial(c.Address)
			if err != nil {
				errs <- err
				return
			}
			defer cl.Close()
			for i := range each {
				if _, err = cl.Exec(harness.Context(t), fmt.Sprintf("INSERT INTO lake.c.t VALUES (%d)", n*each+i)); err != nil {
					break
				}
			}
			errs <- err
		}()
	}
	for range clients {
		require.NoError(t, <-errs)
	}
	t.Logf("%d appends in %s", clients*each, time.Since(began).Round(time.Millisecond))
	tab := c.Table("c", "t")
	require.Len(t, idsOf(t, tab), clients*each)
	require.LessOrEqual(t, tab.Snapshots, clients*each)
	require.Len(t, tab.Markers, clients*each)
	jobs := c.JobsAbout("INSERT INTO lake.c.t")
	require.Len(t, jobs, clients*each)
	for _, j := range jobs {
		requireLanded(t, tab, j.GetJobId(), 1)
	}
	(&held{Cluster: c, t: t}).requireSweptOf("c", "t")
}

// An executor that was taken for lost comes back and goes on writing: its manifest is refused, its files are removed, and it takes the next
// task (S65, S72, C14).
func TestExecutor_TakenForLostComesBack(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{})
	h := &held{Cluster: c, t: t, gate: filepath.Join(t.TempDir(), "gate")}
	frozen := c.StartExecutor(fault.Env + "=executor.upload.before-fsync=1*pause(" + h.gate + ")")
	c.AwaitExecutors(1)
	c.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")
	id := h.submit("")
	harness.Eventually(t, "its rows are in scratch", func() bool {
		files, err := filepath.Glob(filepath.Join(c.Dir, "scratch-0/signet-*/*/files/*.parquet"))
		require.NoError(t, err)
		shared, err := filepath.Glob(filepath.Join(c.Dir, "scratch-0/signet-*/*/*/files/*.parquet"))
		require.NoError(t, err)
		return len(files)+len(shared) == 1
	})
	require.NoError(t, syscall.Kill(frozen.PID(), syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(frozen.PID(), syscall.SIGCONT) }) // it may have ended
	other := c.StartExecutor()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState(), "another executor does its work")
	h.requireOnce()

	h.open()
	require.NoError(t, syscall.Kill(frozen.PID(), syscall.SIGCONT))
	harness.Eventually(t, "its work has ended", func() bool {
		log, err := os.ReadFile(filepath.Join(c.Dir, "executor-0.log"))
		require.NoError(t, err)
		return strings.Contains(string(log), "manifest refused") || strings.Contains(string(log), "attempt failed")
	})
	h.requireSwept()
	h.requireOnce()
	other.Terminate(t)
	harness.Eventually(t, "it is back", func() bool { return c.Registered() == 1 })
	c.SQL("INSERT INTO lake.h.t VALUES (100)")
	require.Len(t, idsOf(t, c.Table("h", "t")), 6)
}

// A second scheduler cannot use the data directory of one that lives: it says so and ends.
func TestScheduler_SecondOneIsRefused(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{})
	r := harness.RunCommand(t, "", nil, "scheduler", "--config", filepath.Join(c.Dir, "signet.yaml"), "--listen", "127.0.0.1:0")
	require.Equal(t, 3, r.Code, r.Err)
	require.Contains(t, r.Err, "in use")
}
