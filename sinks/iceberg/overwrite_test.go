package iceberg

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func scopeAll() *planv1.Scope { return &planv1.Scope{Kind: &planv1.Scope_All{All: true}} }

func scopePartitions() *planv1.Scope {
	return &planv1.Scope{Kind: &planv1.Scope_Partitions{Partitions: true}}
}

func scopeFilter(id int32, op planv1.CompareOp, values ...*planv1.Value) *planv1.Scope {
	c := &planv1.Comparison{FieldId: id, Op: op, Values: values}
	return &planv1.Scope{Kind: &planv1.Scope_Filter{Filter: &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: c}}}}
}

func (h *testHost) prepared(c sinkv1.SinkClient, req *sinkv1.PrepareWriteRequest) *job {
	h.t.Helper()
	req.Table = h.ref()
	resp, err := c.PrepareWrite(h.t.Context(), req)
	require.NoError(h.t, err)
	return &job{t: h.t, h: h, c: c, id: uuid.NewString(), spec: resp.GetSpec(), mode: req.GetMode()}
}

func newOverwrite(h *testHost, c sinkv1.SinkClient, scope *planv1.Scope) *job {
	return h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, Scope: scope})
}

func newRowLevel(h *testHost, c sinkv1.SinkClient, operation string) *job {
	return h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, Operation: operation})
}

// head is the summary of the current snapshot.
func (h *testHost) summary() map[string]string {
	s := h.table().CurrentSnapshot()
	require.NotNil(h.t, s)
	out := map[string]string{"operation": string(s.Summary.Operation)}
	for k, v := range s.Summary.Properties {
		out[k] = v
	}
	return out
}

func (h *testHost) wantSummary(want map[string]string, absent ...string) {
	h.t.Helper()
	got := h.summary()
	for k, v := range want {
		require.Equal(h.t, v, got[k], "%s of %v", k, got)
	}
	for _, k := range absent {
		require.NotContains(h.t, got, k)
	}
}

// livePaths are the data files that iceberg-go finds in the table.
func (h *testHost) livePaths() []string {
	h.t.Helper()
	tasks, err := h.table().Scan().PlanFiles(h.t.Context())
	require.NoError(h.t, err)
	var out []string
	for _, f := range tasks {
		out = append(out, f.File.FilePath())
	}
	slices.Sort(out)
	return out
}

func pathsOf(groups ...[]*planv1.DataFile) []string {
	var out []string
	for _, g := range groups {
		for _, f := range g {
			out = append(out, f.GetPath())
		}
	}
	slices.Sort(out)
	return out
}

func replacedFiles(files ...*planv1.DataFile) []*planv1.ReplacedFile {
	var out []*planv1.ReplacedFile
	for _, f := range files {
		out = append(out, &planv1.ReplacedFile{Path: f.GetPath(), RecordCount: f.GetRecordCount(), DeletedRows: 1})
	}
	return out
}

func eachVersion(t *testing.T, f func(t *testing.T, version string)) {
	for _, v := range []string{"2", "3"} {
		t.Run("v"+v, func(t *testing.T) { f(t, v) })
	}
}

func versioned(t testing.TB, name, version string) (*testHost, sinkv1.SinkClient) {
	h := newHost(t, name)
	c := h.client(impatient())
	createTable(t, h, c, simple(map[string]string{"format-version": version}))
	return h, c
}

// partitioned is a table by the column name.
func partitioned(t testing.TB, name, version string) (*testHost, sinkv1.SinkClient) {
	h := newHost(t, name)
	c := h.client(impatient())
	def := simple(map[string]string{"format-version": version})
	def.Partition = []*sinkv1.PartitionClause{clause("name", planv1.TransformKind_TRANSFORM_KIND_IDENTITY)}
	createTable(t, h, c, def)
	return h, c
}

func (j *job) in(partition string, n int, rows int64) *planv1.DataFile {
	f := j.plainFile(n, rows)
	f.Partition = []*planv1.Value{vStr(partition)}
	if partition == "" {
		f.Partition = []*planv1.Value{{}}
	}
	return f
}

func TestOverwrite_AllReplacesEveryFile(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := versioned(t, "all", version)
		for i := range 3 {
			j := newJob(t, h, c)
			j.land([]*planv1.DataFile{j.plainFile(i, 10)})
		}
		over := newOverwrite(h, c, scopeAll())
		files := []*planv1.DataFile{over.plainFile(0, 4), over.plainFile(1, 5)}
		resp := over.land(files)
		require.Equal(t, pathsOf(files), h.livePaths())
		h.wantSummary(map[string]string{
			"operation": "overwrite", "added-data-files": "2", "deleted-data-files": "3", "added-records": "9", "deleted-records": "30",
			"total-records": "9", "total-data-files": "2", "removed-files-size": "3030", "total-files-size": "2009", "total-delete-files": "0", "changed-partition-count": "1",
		}, "replace-partitions")
		require.EqualValues(t, resp.GetVersion(), versionOf(h.table().CurrentSnapshot().SnapshotID))
		m := resp.GetMetrics()
		require.EqualValues(t, []int64{4, 2, 3, 9, 30, 1, 0, 0}, []int64{
			m.GetSequenceNumber(), m.GetAddedFiles(), m.GetRemovedFiles(), m.GetAddedRows(), m.GetRemovedRows(), m.GetPartitions(), m.GetAddedDeleteFiles(), m.GetRemovedDeleteFiles(),
		})
		if version == "3" {
			s := h.table().CurrentSnapshot()
			require.EqualValues(t, []int64{30, 9}, []int64{*s.FirstRowID, *s.AddedRows})
		}
		// What is dead is not carried on, and time travel still finds the old files.
		j := newJob(t, h, c)
		j.land([]*planv1.DataFile{j.plainFile(7, 1)})
		for _, m := range h.readList(h.table().CurrentSnapshot().ManifestList) {
			require.Positive(t, m.Files.Live(), m.Path)
		}
		old := h.table().Metadata().Snapshots()[2]
		tasks, err := h.table().Scan(icetable.WithSnapshotID(old.SnapshotID)).PlanFiles(t.Context())
		require.NoError(t, err)
		require.Len(t, tasks, 3)
	})
}

func TestOverwrite_NothingIsATruncation(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := versioned(t, "truncate", version)
		j := newJob(t, h, c)
		j.land([]*planv1.DataFile{j.plainFile(0, 10)})
		over := newOverwrite(h, c, scopeAll())
		// Files that come meanwhile go too: nothing was read.
		late := newJob(t, h, c)
		late.land([]*planv1.DataFile{late.plainFile(0, 10)})
		over.land()
		require.Empty(t, h.livePaths())
		h.wantSummary(map[string]string{"operation": "delete", "deleted-data-files": "2", "deleted-records": "20", "total-records": "0", "total-data-files": "0"})
		again := newOverwrite(h, c, scopeAll())
		again.land()
		h.wantSummary(map[string]string{"operation": "delete", "total-records": "0"}, "deleted-data-files")
	})
}

func TestOverwrite_DynamicReplacesWrittenPartitionsOnly(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := partitioned(t, "dynamic", version)
		j := newJob(t, h, c)
		old := []*planv1.DataFile{j.in("a", 0, 1), j.in("b", 1, 2), j.in("a", 2, 3), j.in("", 3, 4), j.in("null", 4, 5)}
		j.land(old)
		over := newOverwrite(h, c, scopePartitions())
		files := []*planv1.DataFile{over.in("a", 0, 7), over.in("", 1, 8), over.in("new", 2, 9)}
		over.land(files)
		require.Equal(t, pathsOf(files, []*planv1.DataFile{old[1], old[4]}), h.livePaths(), "NULL and 'null' are two partitions (V10)")
		h.wantSummary(map[string]string{
			"operation": "overwrite", "replace-partitions": "true", "deleted-data-files": "3", "deleted-records": "8", "total-records": "31", "changed-partition-count": "3",
		})
		none := newOverwrite(h, c, scopePartitions())
		before := h.table().CurrentSnapshot().SnapshotID
		require.NoError(t, none.stage())
		require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, none.commit().GetOutcome())
		require.Equal(t, before, h.table().CurrentSnapshot().SnapshotID, "no rows, no partitions, no snapshot")
	})
}

func TestOverwrite_FilterRemovesWholeFiles(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := partitioned(t, "filter", version)
		j := newJob(t, h, c)
		old := []*planv1.DataFile{j.in("a", 0, 1), j.in("b", 1, 2), j.in("c", 2, 3), j.in("", 3, 4)}
		j.land(old)
		name := j.spec.GetSchema().GetFields()[1].GetId()
		over := newOverwrite(h, c, scopeFilter(name, planv1.CompareOp_COMPARE_OP_GE, vStr("b")))
		files := []*planv1.DataFile{over.in("b", 0, 7)}
		over.land(files)
		require.Equal(t, pathsOf(files, []*planv1.DataFile{old[0], old[3]}), h.livePaths())

		partial := newOverwrite(h, c, scopeFilter(j.spec.GetSchema().GetFields()[0].GetId(), planv1.CompareOp_COMPARE_OP_GE, vInt(5)))
		require.NoError(t, partial.stage([]*planv1.DataFile{partial.in("b", 0, 7)}))
		partial.refused("some of its rows only", ".parquet")
	})
}

func TestOverwrite_ConflictsAreRefusedByName(t *testing.T) { // D9
	eachVersion(t, func(t *testing.T, version string) {
		for name, tc := range map[string]struct {
			scope    *planv1.Scope
			meantime string // partition that another writer appends to
			conflict bool
		}{
			"all":                        {scopeAll(), "z", true},
			"the same partition":         {scopePartitions(), "a", true},
			"another partition":          {scopePartitions(), "z", false},
			"where the condition holds":  {scopeFilter(2, planv1.CompareOp_COMPARE_OP_EQ, vStr("a")), "a", true},
			"where the condition is not": {scopeFilter(2, planv1.CompareOp_COMPARE_OP_EQ, vStr("a")), "z", false},
		} {
			t.Run(name, func(t *testing.T) {
				h, c := partitioned(t, "conflict", version)
				j := newJob(t, h, c)
				j.land([]*planv1.DataFile{j.in("a", 0, 1)})
				over := newOverwrite(h, c, tc.scope)
				other := newJob(t, h, c)
				theirs := other.in(tc.meantime, 0, 3)
				resp := other.land([]*planv1.DataFile{theirs})
				require.NoError(t, over.stage([]*planv1.DataFile{over.in("a", 0, 5)}))
				if tc.conflict {
					over.refused(resp.GetVersion(), theirs.GetPath(), "run the statement again")
					require.Contains(t, h.livePaths(), theirs.GetPath())
					return
				}
				got := over.commit()
				require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, got.GetOutcome(), got.GetMessage())
				require.Len(t, h.livePaths(), 2)
			})
		}
	})
}

func TestRowLevel_ReplacesNamedFiles(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := versioned(t, "rows", version)
		var old []*planv1.DataFile
		for i := range 3 {
			j := newJob(t, h, c)
			files := []*planv1.DataFile{j.plainFile(2*i, 10), j.plainFile(2*i+1, 20)}
			old = append(old, files...)
			j.land(files)
		}
		lists := h.readList(h.table().CurrentSnapshot().ManifestList)
		del := newRowLevel(h, c, "delete")
		require.Equal(t, planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE, del.spec.GetRowChanges())
		kept := []*planv1.DataFile{del.plainFile(0, 9)}
		del.replaced = replacedFiles(old[2])
		del.land(kept)
		require.Equal(t, pathsOf(kept, old[:2], old[3:]), h.livePaths())
		h.wantSummary(map[string]string{
			"operation": "overwrite", "added-data-files": "1", "deleted-data-files": "1", "added-records": "9", "deleted-records": "10", "total-records": "89", "total-data-files": "6",
		})
		// Manifests without removed files are kept as they are; the others keep what they say of files that stay.
		now := h.readList(h.table().CurrentSnapshot().ManifestList)
		require.Len(t, now, 4)
		require.Equal(t, lists[0].Path, now[1].Path)
		require.Equal(t, lists[2].Path, now[3].Path)
		require.NotEqual(t, lists[1].Path, now[2].Path)
		require.EqualValues(t, []int64{0, 1, 1}, []int64{*now[2].Files.Added, *now[2].Files.Existing, *now[2].Files.Deleted})
		require.Equal(t, lists[1].SequenceNumber, now[2].MinSequenceNumber)
		require.EqualValues(t, 4, now[2].SequenceNumber)
		h.wantEntry(old[3].GetPath(), icebergo.EntryStatusEXISTING, lists[1].SequenceNumber, *lists[1].SnapshotID)
		h.wantEntry(old[2].GetPath(), icebergo.EntryStatusDELETED, lists[1].SequenceNumber, h.table().CurrentSnapshot().SnapshotID)
		if version == "3" {
			require.EqualValues(t, 30, *lists[1].FirstRowID)
			require.EqualValues(t, 40, h.firstRowID(old[3].GetPath()), "the second file of a manifest that began at row 30")
			require.EqualValues(t, 90, h.firstRowID(kept[0].GetPath()))
			require.EqualValues(t, 99, h.table().Metadata().NextRowID(), "rewritten manifests take no row ids")
		}

		whole := newRowLevel(h, c, "delete")
		whole.replaced = replacedFiles(old[0], old[1])
		whole.land()
		require.Equal(t, pathsOf(kept, old[3:]), h.livePaths())
		h.wantSummary(map[string]string{"operation": "delete", "deleted-data-files": "2", "deleted-records": "30", "total-data-files": "4"})
	})
}

func TestRowLevel_ConflictTable(t *testing.T) {
	for name, tc := range map[string]struct {
		isolation string
		meantime  func(h *testHost, c sinkv1.SinkClient, old []*planv1.DataFile)
		words     []string // none: it lands
	}{
		"nothing":                    {"serializable", func(*testHost, sinkv1.SinkClient, []*planv1.DataFile) {}, nil},
		"append, serializable":       {"serializable", appendOne, []string{"added data file", "isolation-level=snapshot"}},
		"append, snapshot isolation": {"snapshot", appendOne, nil},
		"another file replaced, snapshot isolation": {"snapshot", func(h *testHost, c sinkv1.SinkClient, old []*planv1.DataFile) {
			replaceOne(h, c, old[1])
		}, nil},
		"the same file replaced": {"snapshot", func(h *testHost, c sinkv1.SinkClient, old []*planv1.DataFile) {
			replaceOne(h, c, old[0])
		}, []string{"is not in the table any more", "snapshot HEAD", "run the statement again"}},
		"truncated": {"snapshot", func(h *testHost, c sinkv1.SinkClient, _ []*planv1.DataFile) {
			newOverwrite(h, c, scopeAll()).land()
		}, []string{"is not in the table any more"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := versioned(t, "conflicts", "2")
			h.setProperties("write.update.isolation-level", tc.isolation)
			j := newJob(t, h, c)
			old := []*planv1.DataFile{j.plainFile(0, 10), j.plainFile(1, 20)}
			j.land(old)
			up := newRowLevel(h, c, "update")
			tc.meantime(h, c, old)
			before := h.livePaths()
			up.replaced = replacedFiles(old[0])
			require.NoError(t, up.stage([]*planv1.DataFile{up.plainFile(0, 10)}))
			if tc.words != nil {
				for i := range tc.words {
					tc.words[i] = strings.ReplaceAll(tc.words[i], "HEAD", versionOf(h.table().CurrentSnapshot().SnapshotID))
				}
				up.refused(tc.words...)
				require.Equal(t, before, h.livePaths())
				return
			}
			resp := up.commit()
			require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
			require.NotContains(t, h.livePaths(), old[0].GetPath())
		})
	}
}

func appendOne(h *testHost, c sinkv1.SinkClient, _ []*planv1.DataFile) {
	j := newJob(h.t, h, c)
	j.land([]*planv1.DataFile{j.plainFile(0, 3)})
}

func replaceOne(h *testHost, c sinkv1.SinkClient, f *planv1.DataFile) {
	j := newRowLevel(h, c, "delete")
	j.replaced = replacedFiles(f)
	j.land([]*planv1.DataFile{j.plainFile(0, 3)})
}

// A head that only moved is no conflict: the commit is built anew on it.
func TestRowLevel_AMovedHeadIsBuiltOnAgain(t *testing.T) {
	h, c := versioned(t, "moved", "2")
	h.setProperties("write.update.isolation-level", "snapshot")
	j := newJob(t, h, c)
	old := j.plainFile(0, 10)
	j.land([]*planv1.DataFile{old})
	up := newRowLevel(h, c, "update")
	up.replaced = replacedFiles(old)
	files := []*planv1.DataFile{up.plainFile(0, 10)}
	require.NoError(t, up.stage(files))
	other := newJob(t, h, c)
	theirs := []*planv1.DataFile{other.plainFile(0, 3)}
	require.NoError(t, other.stage(theirs))
	once := true
	h.before = func(_, _ []byte) error {
		if once {
			once = false
			h.mu.Lock()
			h.before = nil
			h.mu.Unlock()
			require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, other.commit().GetOutcome())
		}
		return nil
	}
	resp := up.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	require.EqualValues(t, 2, resp.GetAttempts())
	require.Equal(t, pathsOf(files, theirs), h.livePaths())
}

func TestRewrite_KeepsTheSequenceNumberItWasReadAt(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := versioned(t, "rewrite", version)
		var old []*planv1.DataFile
		for i := range 4 {
			j := newJob(t, h, c)
			files := []*planv1.DataFile{j.plainFile(i, 10)}
			old = append(old, files...)
			j.land(files)
		}
		re := h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_REWRITE})
		late := newJob(t, h, c)
		theirs := []*planv1.DataFile{late.plainFile(0, 3)}
		late.land(theirs)
		files := []*planv1.DataFile{re.plainFile(0, 40)}
		re.replaced = replacedFiles(old...)
		re.land(files)
		require.Equal(t, pathsOf(files, theirs), h.livePaths())
		h.wantSummary(map[string]string{"operation": "replace", "total-records": "43", "total-data-files": "2", "deleted-records": "40"})
		h.wantEntry(files[0].GetPath(), icebergo.EntryStatusADDED, 4, h.table().CurrentSnapshot().SnapshotID)
		newest := h.readList(h.table().CurrentSnapshot().ManifestList)[0]
		require.EqualValues(t, 4, newest.MinSequenceNumber)
		require.EqualValues(t, 6, newest.SequenceNumber)
	})
}

// Thousands of replaced files do not fit into a reference.
func TestRowLevel_LargeListsOfReplacedFilesAreObjects(t *testing.T) {
	h, c := versioned(t, "large", "2")
	j := newJob(t, h, c)
	old := j.manyFiles(3000)
	j.land(old)
	del := newRowLevel(h, c, "delete")
	del.replaced = replacedFiles(old...)
	require.NoError(t, del.stage())
	require.Len(t, del.refs, 1)
	require.Len(t, del.refs[0].GetObjects(), 1)
	require.Less(t, len(del.refs[0].GetData()), 4096)
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, del.commit().GetOutcome())
	require.Empty(t, h.livePaths())
}

func TestStage_AppendReplacesNothing(t *testing.T) {
	h, c := versioned(t, "append", "2")
	j := newJob(t, h, c)
	j.replaced = []*planv1.ReplacedFile{{Path: "x"}}
	refused(t, j.stage(), sdk.Permanent, "replaces none")
}

func TestPrepare_ModesAndTheirConditions(t *testing.T) {
	h, c := versioned(t, "modes", "2")
	for name, tc := range map[string]struct {
		req  *sinkv1.PrepareWriteRequest
		word string
	}{
		"overwrite of nothing":     {&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE}, "does not say what it removes"},
		"false scope":              {&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, Scope: &planv1.Scope{Kind: &planv1.Scope_All{}}}, "does not say"},
		"filter of no column":      {&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, Scope: scopeFilter(99, planv1.CompareOp_COMPARE_OP_EQ, vInt(1))}, "field id 99"},
		"filter of another type":   {&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, Scope: scopeFilter(1, planv1.CompareOp_COMPARE_OP_EQ, vStr("x"))}, "id"},
		"row level without a word": {&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL}, "delete, update or merge"},
		"no mode":                  {&sinkv1.PrepareWriteRequest{}, "not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.req.Table = h.ref()
			_, err := c.PrepareWrite(t.Context(), tc.req)
			refused(t, err, sdk.Permanent, tc.word)
		})
	}
	h.setProperties("write.delete.isolation-level", "read-committed")
	j := newRowLevel(h, c, "DELETE")
	require.Contains(t, fmt.Sprint(j.spec.GetWarnings()), "write.delete.isolation-level=read-committed")
}

// refused commits and wants a final refusal that says so.
func (j *job) refused(words ...string) {
	j.t.Helper()
	resp := j.commit()
	require.Equal(j.t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome(), resp.GetMessage())
	for _, w := range words {
		require.Contains(j.t, resp.GetMessage(), w)
	}
}

// entry finds a file in the manifests of the head, deleted ones too.
func (h *testHost) entry(path string) icebergo.ManifestEntry {
	h.t.Helper()
	fs, err := h.table().FS(h.t.Context())
	require.NoError(h.t, err)
	manifests, err := h.table().CurrentSnapshot().Manifests(fs)
	require.NoError(h.t, err)
	for _, m := range manifests {
		for e, err := range m.Entries(fs, false) {
			require.NoError(h.t, err)
			if e.DataFile().FilePath() == path {
				return e
			}
		}
	}
	h.t.Fatalf("no entry of %s", path)
	return nil
}

func (h *testHost) wantEntry(path string, status icebergo.ManifestEntryStatus, sequence, snapshot int64) {
	h.t.Helper()
	e := h.entry(path)
	require.Equal(h.t, status, e.Status())
	require.Equal(h.t, sequence, e.SequenceNum())
	require.Equal(h.t, snapshot, e.SnapshotID())
}

func (h *testHost) firstRowID(path string) int64 {
	h.t.Helper()
	id := h.entry(path).DataFile().FirstRowID()
	require.NotNil(h.t, id)
	return *id
}
