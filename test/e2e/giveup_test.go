package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// A report whose check is under way when its executor dies. Whether the attempt is given up before the check ends or after it, one attempt wins,
// and the rows are there once (S13, S60, S71).
func TestGiveUp_WhileAReportIsChecked(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"the report", "the loss", "the next attempt"} {
		t.Run(first+" comes first", func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h := &held{t: t, gate: filepath.Join(dir, "gate")}
			h.Cluster = harness.New(t, harness.Options{SchedulerEnv: []string{fault.Env + "=" + replaceGate("scheduler.manifest.before-journal=1*pause(${gate})", h.gate)}})
			t.Cleanup(func() { h.open() })
			reports := filepath.Join(dir, "reports")
			h.StartExecutor()
			h.AwaitExecutors(1)
			h.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")
			id := h.submit("")
			harness.Eventually(t, "the files are at their place", func() bool { return len(h.Table("h", "t").DataOrphans()) == 1 })
			harness.Eventually(t, "the executor has the task", func() bool { return h.tasks(id)[0].GetExecutor() != "" })

			env := fault.Env + "=" // the next attempt reports at once
			if first == "the loss" {
				env = fault.Env + "=executor.report.before=pause(" + reports + ")"
			}
			h.StartExecutor(env)
			h.AwaitExecutors(2)
			h.Executors[0].Kill()
			switch first {
			case "the report":
				h.open() // the scheduler takes the executor for lost a few seconds later
			case "the loss":
				harness.Eventually(t, "the task runs again", func() bool { return h.tasks(id)[0].GetAttempts() == 2 })
				h.open()
				harness.Eventually(t, "the next attempt has its files", func() bool { return len(h.Table("h", "t").DataOrphans()) > 0 })
				require.NoError(t, touch(reports))
			case "the next attempt":
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState())
				h.open()
			}
			j := h.end(id)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
			want := int32(2)
			if first == "the report" {
				want = 1
			}
			require.Equal(t, want, h.tasks(id)[0].GetAttempts())
			h.requireSwept()
			h.requireOnce()
		})
	}
}

func (h *held) tasks(id string) []*schedulerv1.TaskInfo {
	h.t.Helper()
	r, err := h.Client(client.WithPolling()).Job(harness.Context(h.t), id)
	require.NoError(h.t, err)
	if len(r.GetTasks()) == 0 {
		return []*schedulerv1.TaskInfo{nil}
	}
	return r.GetTasks()
}
