package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// C11: files of a job that has not ended are no orphans, however young an age is asked for.
func TestOrphans_OfAJobThatRuns(t *testing.T) {
	t.Parallel()
	h := newHeld(t, "scheduler.root.before-commit=1*pause(${gate})")
	id := h.submit("")
	h.awaitPhase(id, "root")
	harness.Eventually(t, "its rows are written", func() bool { return len(h.Table("h", "t").DataOrphans()) == 1 })
	r := h.Run("sql", "-q", "CALL system.remove_orphan_files('h.t', older_than => TIMESTAMP '2999-01-01', force => true)")
	require.Len(t, h.Table("h", "t").DataOrphans(), 1, "%s%s", r.Out, r.Err)
	h.open()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState())
	h.requireOnce()
	require.Equal(t, "5", h.Value("SELECT count(*) FROM lake.h.t"))
}
