package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

func touch(path string) error { return os.WriteFile(path, nil, 0o600) }

// The partitions of its second stage depend on floating-point sums, so that they need not come out the same twice.
const unrepeatableInsert = "INSERT INTO lake.e.sums SELECT CAST(round(x) AS BIGINT) AS k FROM (SELECT k, min(k) + sum(d / 1e300) AS x FROM lake.e.facts GROUP BY k) q GROUP BY x"

// holdWrites has all executors wait, before they write what a job is to commit, until the gate is opened.
func (e *engine) holdWrites() {
	for i, p := range e.Executors {
		p.Terminate(e.t)
		e.RestartExecutor(i, fault.Env+"=executor.copy.before=pause("+e.gate+")")
	}
	e.t.Cleanup(func() { e.open() })
	e.AwaitExecutors(len(e.Executors))
}

// holder is the number of an executor that keeps an output of a stage.
func (e *engine) holder(id string, stage int32) int {
	for _, task := range e.job(id).GetTasks() {
		if task.GetStage() != stage {
			continue
		}
		found, err := filepath.Glob(filepath.Join(e.Dir, "scratch-*", "signet-"+task.GetExecutor()))
		require.NoError(e.t, err)
		require.Len(e.t, found, 1)
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(found[0])), "scratch-"))
		require.NoError(e.t, err)
		return n
	}
	e.t.Fatalf("no executor keeps an output of stage %d", stage)
	return 0
}

// An output that cannot be made again the same is lost while the scheduler is away: everything that was made from it is made again (S73), what was
// under way under the earlier scheduler included.
func TestUnrepeatable_LostWhileTheSchedulerIsAway_S73(t *testing.T) {
	t.Parallel()
	for _, planner := range planners {
		t.Run(planner, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, "")
			e.SQL("CREATE TABLE lake.e.sums (k BIGINT)")
			e.holdWrites()
			id := e.submit(unrepeatableInsert, settings(planner, "signet.partitions", "3"))
			tasks := map[string]int{"static": 3, "adaptive": 1}[planner] // few rows are one partition
			harness.Eventually(t, "the last stage runs", func() bool { return attempts(e.job(id), 2) >= tasks })
			before := attempts(e.job(id), 1)
			holder := e.holder(id, 1)
			e.Scheduler.Kill()
			e.Executors[holder].Kill()
			e.StartScheduler()
			e.AwaitExecutors(2)
			harness.Eventually(t, "what was lost is made again", func() bool { return attempts(e.job(id), 1) > before && attempts(e.job(id), 2) >= 2*tasks })
			e.open()
			j := e.end(id)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
			for _, task := range e.job(id).GetTasks() {
				if task.GetStage() == 2 {
					require.Greater(t, task.GetAttempts(), int32(1), "task %d of the last stage had read what was lost", task.GetTask())
				}
			}
			tab := e.Table("e", "sums")
			require.Equal(t, 1, tab.Snapshots)
			require.Equal(t, [][]string{{"97", "4656"}}, e.SQL("SELECT count(*), sum(k) FROM lake.e.sums"))
			e.NoOrphans("e", "sums")
			e.freed()
		})
	}
}

// The same where a task of the last stage was accepted before: its rows cannot be taken back and cannot be completed. The job fails, and nothing
// of it lands.
func TestUnrepeatable_LostAfterATaskWasAccepted_S73(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "")
	e.SQL("CREATE TABLE lake.e.sums (k BIGINT)")
	e.holdWrites()
	e.addExecutor("")
	e.AwaitExecutors(4)
	id := e.submit(unrepeatableInsert, settings("static", "signet.partitions", "8"))
	harness.Eventually(t, "the last stage runs", func() bool { return attempts(e.job(id), 2) >= 8 })
	e.awaitDone(id, 2, 1)
	e.Scheduler.Kill()
	e.Executors[0].Kill()
	e.Executors[1].Kill()
	e.StartScheduler()
	j := e.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
	require.Contains(t, j.GetError().GetMessage(), "would not come out the same again")
	e.open()
	require.Zero(t, e.Table("e", "sums").Snapshots)
	e.NoOrphans("e", "sums")
	e.freed()
}
