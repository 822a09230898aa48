package e2e_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// The sink dies after its commit has landed and been recorded, and before the one who recorded it shows the job's end: whoever ends the job, it is
// the recorded end, with its result.
func TestSettle_SinkDiesBeforeTheEndIsShown(t *testing.T) {
	t.Parallel()
	h := newHeld(t, "scheduler.settle.after-journal=pause(${gate})")
	id := h.submit("")
	harness.Eventually(t, "the commit has landed", func() bool { return h.Table("h", "t").Snapshots == 1 })
	for _, p := range h.Plugins() {
		require.NoError(t, syscall.Kill(p.PID, syscall.SIGKILL))
	}
	j := h.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
	require.NotEmpty(t, j.GetInlineResult())
	h.open()
	h.Scheduler.Kill()
	h.StartScheduler()
	j = h.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
	require.NotEmpty(t, j.GetInlineResult())
	h.requireOnce()
}
