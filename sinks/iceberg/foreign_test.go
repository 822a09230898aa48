package iceberg

import (
	"bytes"
	"os"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// Tables in states that other writers leave behind.

func (h *testHost) readList(uri string) []icefile.Manifest {
	h.t.Helper()
	raw, err := os.ReadFile(h.path(uri))
	require.NoError(h.t, err)
	list, err := icefile.ReadList(raw)
	require.NoError(h.t, err)
	return list
}

func TestForeign_ListWithoutFormatVersion(t *testing.T) { // X9
	h, c := simpleTable(t, "duck", New())
	j := newJob(t, h, c)
	j.land(j.write(row{vInt(1), vStr("a")}))
	uri := h.table().CurrentSnapshot().ManifestList
	raw, err := os.ReadFile(h.path(uri))
	require.NoError(t, err)
	// The key is made another one of the same length, which nobody knows.
	cut := bytes.Replace(raw, []byte("format-version"), []byte("x-unknown-key-"), 1)
	require.NotEqual(t, raw, cut)
	require.NoError(t, os.WriteFile(h.path(uri), cut, 0o600))

	c = h.client(New()) // nothing cached
	next := newJob(t, h, c)
	next.land(next.write(row{vInt(2), vStr("b")}))
	list := h.readList(h.table().CurrentSnapshot().ManifestList)
	require.Len(t, list, 2)
	require.EqualValues(t, 2, list[0].SequenceNumber)
	require.EqualValues(t, 1, list[1].SequenceNumber, "kept")
	readBack(t, h, 2)
	resp, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Len(t, resp.GetFiles(), 2)
}

func TestForeign_Version1(t *testing.T) { // X12
	s := New()
	h := newHost(t, "v1")
	createTable(t, h, h.client(s), &sinkv1.TableDefinition{Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("name", tIdentity)}, Properties: map[string]string{"format-version": "1"}})
	c := h.client(s)
	j := newJob(t, h, c)
	j.land(j.write(row{vInt(1), vStr("a")}, row{vInt(2), null}))
	tx := h.table().NewTransaction()
	require.NoError(t, tx.Delete(t.Context(), icebergo.EqualTo(icebergo.Reference("id"), int64(1)), nil))
	_, err := tx.Commit(t.Context())
	require.NoError(t, err)
	j = newJob(t, h, c)
	resp := j.land(j.write(row{vInt(3), vStr("c")}))
	require.Equal(t, resp.GetVersion(), versionOf(snapshotOfJob(j.spec.GetTableUuid(), j.id)))
	require.Equal(t, 1, h.table().Metadata().Version())
	readBack(t, h, 2)
	list := h.readList(h.table().CurrentSnapshot().ManifestList)
	require.Equal(t, resp.GetVersion(), versionOf(*list[0].SnapshotID))
	raw, err := os.ReadFile(h.path(list[0].Path))
	require.NoError(t, err)
	mf := icebergo.NewManifestFile(1, list[0].Path, list[0].Length, 0, 5).AddedFiles(1).Build()
	entries, err := icebergo.ReadManifest(mf, bytes.NewReader(raw), false)
	require.NoError(t, err)
	require.Equal(t, resp.GetVersion(), versionOf(entries[0].SnapshotID()), "in the entry itself")

	a, b := newJob(t, h, c), newJob(t, h, c)
	require.NoError(t, a.stage(a.write(row{vInt(4), vStr("d")})))
	require.NoError(t, b.stage(b.write(row{vInt(5), vStr("e")})))
	both, err := c.Commit(t.Context(), a.request(a.unit(), b.unit()))
	require.NoError(t, err)
	require.Contains(t, both.GetMessage(), "one job per commit")
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, a.commit().GetOutcome())
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, a.commit().GetOutcome())
}

func TestForeign_OldListWithoutCounts(t *testing.T) {
	s := New()
	h := newHost(t, "counts")
	c := h.client(s)
	createTable(t, h, c, simple(map[string]string{"format-version": "1"}))
	j := newJob(t, h, c)
	j.land(j.write(row{vInt(1), vStr("a")}, row{vInt(2), vStr("b")}))
	uri := h.table().CurrentSnapshot().ManifestList
	list := h.readList(uri)
	list[0].Files, list[0].Rows = icefile.Counts{}, icefile.Counts{}
	raw, _, err := icefile.WriteList(icefile.ListHeader{Version: 1, SnapshotID: *list[0].SnapshotID}, list)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.path(uri), raw, 0o600))
	h.alter(map[string]any{"action": "upgrade-format-version", "format-version": 2})

	c = h.client(New())
	next := newJob(t, h, c)
	next.land(next.write(row{vInt(3), vStr("c")}))
	list = h.readList(h.table().CurrentSnapshot().ManifestList)
	require.EqualValues(t, 1, *list[1].Files.Added)
	require.EqualValues(t, 2, *list[1].Rows.Added)
	readBack(t, h, 3)
}

func TestForeign_SnapshotWithoutAList(t *testing.T) {
	s := New()
	h := newHost(t, "inline")
	c := h.client(s)
	createTable(t, h, c, simple(map[string]string{"format-version": "1"}))
	j := newJob(t, h, c)
	j.land(j.write(row{vInt(1), vStr("a")}))
	h.rewriteMetadata(func(m map[string]any) {
		snap := m["snapshots"].([]any)[0].(map[string]any)
		delete(snap, "manifest-list")
		snap["manifests"] = []string{"file:///m.avro"}
	})
	_, err := s.prepare(t.Context(), &rawHost{t: t, h: h}, &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
	refused(t, err, sdk.Permanent, "no manifest list")
	err = s.planScan(t.Context(), &rawHost{t: t, h: h}, &sinkv1.PlanScanRequest{Table: h.ref()}, nil)
	refused(t, err, sdk.Permanent, "no manifest list")
}

func TestCaches_SaveTheLoadAndTheList(t *testing.T) {
	h, c := simpleTable(t, "cached", New())
	for i := range 3 {
		j := newJob(t, h, c)
		j.land(j.write(row{vInt(int64(i)), vStr("a")}))
	}
	require.Empty(t, h.gets, "this process wrote every list it needs")
	other := h.client(New())
	j := newJob(t, h, other)
	require.NoError(t, j.stage(j.write(row{vInt(9), vStr("b")})))
	require.Len(t, h.gets, 1, "the list is read while tasks run")
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, j.commit().GetOutcome())
	require.Len(t, h.gets, 1)
	readBack(t, h, 4)
}

func TestCache_DropsTheOldest(t *testing.T) {
	c := newCache[int](2)
	c.put("a", "1", 1)
	c.put("b", "1", 2)
	c.put("a", "2", 3)
	c.put("c", "1", 4)
	_, _, ok := c.latest("b")
	require.False(t, ok)
	object, v, ok := c.latest("a")
	require.True(t, ok)
	require.Equal(t, "2", object)
	require.Equal(t, 3, v)
	c.drop("a")
	_, _, ok = c.latest("a")
	require.False(t, ok)
}
