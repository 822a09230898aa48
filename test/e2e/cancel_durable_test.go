package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// Who was told that a job is cancelled may rely on it, also when the scheduler dies right after it said so (S21, T3).
func TestCancel_OutlivesTheScheduler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ point, sql string }{
		"before the plan":      {"plugins.preparewrite.after", "INSERT INTO lake.h.t SELECT 1 AS id"},
		"while it is planned":  {"scheduler.plan.before-journal", "INSERT INTO lake.h.t SELECT 1 AS id"},
		"while it is launched": {"scheduler.launch.before", "INSERT INTO lake.h.t SELECT 1 AS id"},
		"a query":              {"scheduler.launch.before", "SELECT 1 AS id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHeld(t, c.point+"=pause(${gate})")
			r, err := h.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: c.sql})
			require.NoError(t, err)
			id := r.GetJobId()
			harness.Eventually(t, "the job has begun", func() bool { return h.job(id).GetState() != schedulerv1.JobState_JOB_STATE_QUEUED })
			yes, message, err := h.Client().Cancel(harness.Context(t), id)
			require.NoError(t, err)
			require.True(t, yes, message)
			h.Scheduler.Kill()
			h.StartScheduler()
			require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, h.end(id).GetState())
			h.requireNothing()
		})
	}
}

// The rows of a query do not outlive its scheduler. Who asks for them hears that they are lost, not that there are none.
func TestSelect_RowsLostWithTheSchedulerAreAnError(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	res, err := c.Client().Exec(harness.Context(t), "SELECT i FROM range(10) r(i)")
	require.NoError(t, err)
	c.Scheduler.Kill()
	c.StartScheduler()
	j, err := c.Client().Wait(harness.Context(t), res.Job.GetJobId(), nil)
	require.NoError(t, err)
	_, err = c.Client().Rows(harness.Context(t), j)
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Message, "lost with a restart")
}
