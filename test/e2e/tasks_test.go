package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// A job's tasks are shown with their executor, and none as running after the job's end.
func TestTasks_AreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	h := newHeld(t, "scheduler.manifest.before-journal=pause(${gate})")
	task := func(id string) *schedulerv1.TaskInfo {
		t.Helper()
		r, err := h.Client().Job(harness.Context(t), id)
		require.NoError(t, err)
		if len(r.GetTasks()) == 0 {
			return nil
		}
		return r.GetTasks()[0]
	}
	id := h.submit("")
	harness.Eventually(t, "an executor has the task", func() bool { return task(id).GetExecutor() != "" })
	require.Equal(t, "running", task(id).GetState())
	executor := task(id).GetExecutor()
	require.Contains(t, h.Run("info").Out, executor)
	cancelled, message, err := h.Client().Cancel(harness.Context(t), id)
	require.NoError(t, err)
	require.True(t, cancelled, message)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, h.end(id).GetState())
	require.Equal(t, "cancelled", task(id).GetState())
	h.open()

	id = h.submit("")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState())
	require.Equal(t, "done", task(id).GetState())
	require.Equal(t, executor, task(id).GetExecutor())
	require.Contains(t, h.Run("job", id).Out, executor)

	h.Fail(1, "INSERT INTO lake.h.t SELECT CAST('x' || i AS BIGINT) FROM range(3) r(i)")
	id = h.JobsAbout("'x' || i")[0].GetJobId()
	require.Equal(t, "failed", task(id).GetState())
	require.Equal(t, executor, task(id).GetExecutor())
}
