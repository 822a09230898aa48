package iceberg

import (
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// setRef makes a branch or a tag of the head.
func (h *testHost) setRef(name, kind string) {
	h.t.Helper()
	h.alter(map[string]any{"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": h.table().CurrentSnapshot().SnapshotID})
}

func (h *testHost) onBranch(c sinkv1.SinkClient, mode sinkv1.WriteMode, branch string) *job {
	req := &sinkv1.PrepareWriteRequest{Mode: mode, Branch: branch, Scope: scopeAll(), Operation: "update"}
	if mode != sinkv1.WriteMode_WRITE_MODE_OVERWRITE {
		req.Scope = nil
	}
	return h.prepared(c, req)
}

func (h *testHost) branchPaths(branch string) []string {
	h.t.Helper()
	s := h.table().SnapshotByName(branch)
	require.NotNil(h.t, s)
	tasks, err := h.table().Scan(icetable.WithSnapshotID(s.SnapshotID)).PlanFiles(h.t.Context())
	require.NoError(h.t, err)
	var out []*planv1.DataFile
	for _, f := range tasks {
		out = append(out, &planv1.DataFile{Path: f.File.FilePath()})
	}
	return pathsOf(out)
}

func TestBranch_WritesGoToItAndNowhereElse(t *testing.T) {
	h, c := versioned(t, "branches", "2")
	j := newJob(t, h, c)
	base := j.plainFile(0, 10)
	j.land([]*planv1.DataFile{base})
	h.setRef("audit", "branch")
	h.alter(map[string]any{"action": "set-snapshot-ref", "ref-name": "audit", "type": "branch", "snapshot-id": h.table().CurrentSnapshot().SnapshotID, "max-snapshot-age-ms": 777})

	app := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_APPEND, "audit")
	require.Equal(t, "audit", app.spec.GetBranch())
	first := app.plainFile(0, 5)
	app.land([]*planv1.DataFile{first})
	require.Equal(t, pathsOf([]*planv1.DataFile{base}), h.branchPaths("main"))
	require.Equal(t, pathsOf([]*planv1.DataFile{base, first}), h.branchPaths("audit"))

	// Main moves on: neither sees the other, and the totals are the branch's own.
	onMain := newJob(t, h, c)
	theirs := onMain.plainFile(0, 100)
	onMain.land([]*planv1.DataFile{theirs})
	up := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, "audit")
	up.replaced = replacedFiles(base)
	second := up.plainFile(0, 10)
	up.land([]*planv1.DataFile{second})
	require.Equal(t, pathsOf([]*planv1.DataFile{second, first}), h.branchPaths("audit"))
	require.Equal(t, pathsOf([]*planv1.DataFile{base, theirs}), h.branchPaths("main"))
	require.Equal(t, "15", h.table().SnapshotByName("audit").Summary.Properties["total-records"])
	require.Equal(t, "110", h.table().CurrentSnapshot().Summary.Properties["total-records"])

	over := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_OVERWRITE, "audit")
	over.land()
	require.Empty(t, h.branchPaths("audit"))
	require.Len(t, h.branchPaths("main"), 2)
	for name, ref := range h.table().Metadata().Refs() {
		if name == "audit" {
			require.EqualValues(t, 777, *ref.MaxSnapshotAgeMs, "the branch keeps its retention")
		}
	}
	resp := app.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, resp.GetOutcome(), "the marker is found wherever it landed")
}

func TestBranch_MustBeThereAndBeABranch(t *testing.T) {
	h, c := versioned(t, "norefs", "2")
	j := newJob(t, h, c)
	j.land([]*planv1.DataFile{j.plainFile(0, 10)})
	h.setRef("v1", "tag")
	h.setRef("gone", "branch")
	for branch, words := range map[string]string{"audit": "CREATE BRANCH", "v1": "only branches are written to"} {
		_, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, Branch: branch})
		refused(t, err, sdk.Permanent, branch, words)
	}
	late := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_APPEND, "gone")
	require.NoError(t, late.stage([]*planv1.DataFile{late.plainFile(0, 1)}))
	h.alter(map[string]any{"action": "remove-snapshot-ref", "ref-name": "gone"})
	late.refused(`branch "gone" does not exist`)
	main := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_APPEND, "main")
	require.Empty(t, main.spec.GetBranch())
}

// A branch that was set to another history while a statement ran: what is new to it cannot be told.
func TestBranch_SetToAnotherHistory(t *testing.T) {
	h, c := versioned(t, "moved", "2")
	j := newJob(t, h, c)
	base := j.plainFile(0, 10)
	j.land([]*planv1.DataFile{base})
	first := h.table().CurrentSnapshot().SnapshotID
	h.setRef("b", "branch")
	app := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_APPEND, "b")
	app.land([]*planv1.DataFile{app.plainFile(0, 1)})
	up := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, "b")
	up.replaced = replacedFiles(base)
	require.NoError(t, up.stage([]*planv1.DataFile{up.plainFile(0, 10)}))
	h.alter(map[string]any{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": first})
	up.refused("branch b", "does not descend from it", "run the statement again")
}
