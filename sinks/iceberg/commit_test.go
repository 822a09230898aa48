package iceberg

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

func TestCommit_AppendsOneFile(t *testing.T) {
	h := newHost(t, "one")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	j := newJob(t, h, c)
	resp := j.land([]*planv1.DataFile{j.plainFile(0, 3)})
	require.EqualValues(t, 1, resp.GetAttempts())
	snap := h.table().CurrentSnapshot()
	require.Equal(t, resp.GetVersion(), versionOf(snap.SnapshotID))
	require.Equal(t, "3", snap.Summary.Properties["total-records"])

	again := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, again.GetOutcome())
	require.Equal(t, resp.GetVersion(), again.GetVersion())
	require.Len(t, h.table().Metadata().Snapshots(), 1)
}
