package iceberg

import (
	"fmt"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

func newRecluster(h *testHost, c sinkv1.SinkClient) *job {
	return h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_REWRITE, Operation: "manifests"})
}

// lists are the manifests of the head.
func (h *testHost) manifestList() []icefile.Manifest {
	h.t.Helper()
	return h.readList(h.table().CurrentSnapshot().ManifestList)
}

// The files of many appends to the same partitions come into one manifest; each keeps its age, its snapshot and its rows' ids.
func TestRecluster_OneManifestOfMany(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := partitioned(t, "one", version)
		type was struct {
			sequence, snapshot int64
			row                *int64
		}
		ages := map[string]was{}
		for i := range 6 {
			j := newJob(t, h, c)
			j.land([]*planv1.DataFile{j.in("b", 0, 10), j.in("", 1, 3), j.in(fmt.Sprint("a", i%2), 2, 5)})
		}
		for _, path := range h.livePaths() {
			e := h.entry(path)
			ages[path] = was{e.SequenceNum(), e.SnapshotID(), e.DataFile().FirstRowID()}
		}
		before, next := h.summary(), h.table().Metadata().NextRowID()
		require.Len(t, h.manifestList(), 6)

		j := newRecluster(h, c)
		resp := j.commit()
		require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
		h.wantSummary(map[string]string{
			"operation": "replace", "manifests-created": "1", "manifests-replaced": "6", "manifests-kept": "0", "entries-processed": "18", "added-data-files": "0",
			"total-data-files": before["total-data-files"], "total-records": before["total-records"], "total-files-size": before["total-files-size"],
		}, "deleted-data-files", "deleted-records")
		list := h.manifestList()
		require.Len(t, list, 1)
		require.EqualValues(t, 18, *list[0].Files.Existing)
		require.EqualValues(t, 108, *list[0].Rows.Existing)
		require.EqualValues(t, 1, list[0].MinSequenceNumber)
		require.EqualValues(t, 7, list[0].SequenceNumber)
		require.Equal(t, []icefile.FieldSummary{{ContainsNull: true, ContainsNaN: new(bool), Lower: []byte("a0"), Upper: []byte("b")}}, list[0].Partitions)
		require.Len(t, h.livePaths(), 18)
		for path, want := range ages {
			h.wantEntry(path, icebergo.EntryStatusEXISTING, want.sequence, want.snapshot)
			require.Equal(t, want.row, h.entry(path).DataFile().FirstRowID(), path)
		}
		require.Equal(t, next, h.table().Metadata().NextRowID(), "no row gets another id")

		again := j.commit() // after a crash
		require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, again.GetOutcome())
		require.Equal(t, resp.GetVersion(), again.GetVersion())

		nothing := newRecluster(h, c).commit()
		require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, nothing.GetOutcome())
		require.Equal(t, resp.GetVersion(), nothing.GetVersion(), "the table is as it would leave it")
		require.Len(t, h.table().Metadata().Snapshots(), 7)
	})
}

// With a small target size there are several, and each partition is in as few as can be.
func TestRecluster_ManifestsOfOnePartitionEach(t *testing.T) {
	h, c := partitioned(t, "several", "2")
	for range 4 {
		j := newJob(t, h, c)
		var files []*planv1.DataFile
		for n := range 40 {
			files = append(files, j.in(fmt.Sprint("p", n%4), n, 1))
		}
		j.land(files)
	}
	bytes := int64(0)
	for _, m := range h.manifestList() {
		bytes += m.Length
	}
	h.setProperties("commit.manifest.target-size-bytes", fmt.Sprint(bytes/4+1))
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, newRecluster(h, c).commit().GetOutcome())
	list := h.manifestList()
	require.Len(t, list, 4)
	seen := map[string]bool{}
	for _, m := range list {
		require.Equal(t, m.Partitions[0].Lower, m.Partitions[0].Upper)
		seen[string(m.Partitions[0].Lower)] = true
		require.EqualValues(t, 40, *m.Files.Existing)
	}
	require.Len(t, seen, 4)
	require.Len(t, h.livePaths(), 160)
	require.Equal(t, h.table().CurrentSnapshot().SnapshotID, func() int64 {
		newRecluster(h, c).commit()
		return h.table().CurrentSnapshot().SnapshotID
	}(), "and nothing more is to be done")
}

// Files that were removed are gone from the new manifests; manifests of other specs stay by themselves; others may append meanwhile.
func TestRecluster_BesideOthers(t *testing.T) {
	h, c := partitioned(t, "beside", "2")
	var first *planv1.DataFile
	for i := range 3 {
		j := newJob(t, h, c)
		f := j.in("a", i, 10)
		if first == nil {
			first = f
		}
		j.land([]*planv1.DataFile{f, j.in("b", 10+i, 1)})
	}
	del := newRowLevel(h, c, "delete")
	del.replaced = replacedFiles(first)
	require.NoError(t, del.stage())
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, del.commit().GetOutcome())

	re, late := newRecluster(h, c), newJob(t, h, c)
	theirs := late.in("c", 0, 7)
	require.NoError(t, late.stage([]*planv1.DataFile{theirs}))
	once := true
	h.before = func(_, _ []byte) error {
		if once {
			once = false
			h.mu.Lock()
			h.before = nil
			h.mu.Unlock()
			require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, late.commit().GetOutcome())
		}
		return nil
	}
	resp := re.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	require.EqualValues(t, 2, resp.GetAttempts())
	paths := h.livePaths()
	require.Len(t, paths, 6)
	require.Contains(t, paths, theirs.GetPath())
	require.NotContains(t, paths, first.GetPath())
	require.Len(t, h.manifestList(), 1)
	h.wantSummary(map[string]string{"total-data-files": "6", "total-records": "30"})
}

func TestRecluster_OfAnEmptyTableIsNothing(t *testing.T) {
	h, c := versioned(t, "empty", "2")
	resp := newRecluster(h, c).commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome())
	require.Nil(t, h.table().CurrentSnapshot())
	_, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_REWRITE, Operation: "indexes"})
	refused(t, err, sdk.Permanent, `rewrite of "indexes"`)
}
