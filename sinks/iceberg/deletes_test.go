package iceberg

import (
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func mergeOnRead(h *testHost, c sinkv1.SinkClient, operation string) *job {
	h.setProperties("write."+operation+".mode", "merge-on-read")
	return newRowLevel(h, c, operation)
}

// deletesOf is a delete file of some rows of a data file, of the kind that the table has.
func (j *job) deletesOf(f *planv1.DataFile, rows int64) *planv1.DataFile {
	d := &planv1.DataFile{
		Path: j.spec.GetDataLocation() + "/" + uuid.NewString(), Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: rows, SizeBytes: 300,
		Content: planv1.FileContent_FILE_CONTENT_POSITION_DELETES, ReferencedDataFile: f.GetPath(), Partition: f.GetPartition(),
	}
	if j.spec.GetRowChanges() == planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS {
		d.Content, d.Format = planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, planv1.FileFormat_FILE_FORMAT_UNSPECIFIED
		d.ContentOffset, d.ContentSize = 4, 44
	}
	return d
}

// deletesNow counts the live delete files by the data file that they are about.
func (h *testHost) deletesNow() map[string]int {
	h.t.Helper()
	tasks, err := h.table().Scan().PlanFiles(h.t.Context())
	require.NoError(h.t, err)
	out := map[string]int{}
	for _, f := range tasks {
		if n := len(f.DeleteFiles) + len(f.DeletionVectorFiles); n > 0 {
			out[f.File.FilePath()] = n
		}
	}
	return out
}

func TestDeletes_AreAddedInThePartitionOfTheirDataFile(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := partitioned(t, "mor", version)
		j := newJob(t, h, c)
		old := []*planv1.DataFile{j.in("a", 0, 10), j.in("b", 1, 20), j.in("", 2, 30)}
		j.land(old)
		del := mergeOnRead(h, c, "delete")
		want := planv1.RowChanges_ROW_CHANGES_POSITION_DELETES
		if version == "3" {
			want = planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS
		}
		require.Equal(t, want, del.spec.GetRowChanges())
		resp := del.land([]*planv1.DataFile{del.deletesOf(old[0], 2), del.deletesOf(old[2], 3)})
		require.Equal(t, pathsOf(old), h.livePaths())
		require.Equal(t, map[string]int{old[0].GetPath(): 1, old[2].GetPath(): 1}, h.deletesNow())
		sum := map[string]string{
			"operation": "delete", "added-delete-files": "2", "added-position-deletes": "5", "total-delete-files": "2", "total-position-deletes": "5", "total-records": "60",
			"changed-partition-count": "2",
		}
		if version == "3" {
			sum["added-dvs"], sum["added-files-size"] = "2", "88"
		} else {
			sum["added-position-delete-files"], sum["added-files-size"] = "2", "600"
		}
		h.wantSummary(sum, "deleted-data-files", "added-records-x")
		list := h.readList(h.table().CurrentSnapshot().ManifestList)
		require.EqualValues(t, 1, list[0].Content)
		require.Nil(t, list[0].FirstRowID)
		require.True(t, list[0].Partitions[0].ContainsNull)
		require.Equal(t, "a", string(list[0].Partitions[0].Lower))
		require.NotEmpty(t, resp.GetVersion())

		// An update writes the new rows beside.
		up := mergeOnRead(h, c, "update")
		fresh := up.in("b", 0, 4)
		up.land([]*planv1.DataFile{fresh, up.deletesOf(old[1], 4)})
		h.wantSummary(map[string]string{"operation": "overwrite", "added-data-files": "1", "added-delete-files": "1", "total-delete-files": "3", "total-records": "64"})
		require.Len(t, h.deletesNow(), 3)

		// Copy-on-write of a file takes its delete files along.
		h.setProperties("write.delete.mode", "copy-on-write")
		cow := newRowLevel(h, c, "delete")
		cow.replaced = replacedFiles(old[0])
		cow.land([]*planv1.DataFile{cow.in("a", 0, 8)})
		h.wantSummary(map[string]string{"removed-delete-files": "1", "removed-position-deletes": "2", "total-delete-files": "2", "deleted-data-files": "1", "deleted-records": "10"})
		require.Len(t, h.deletesNow(), 2)
		// And so does an overwrite.
		over := newOverwrite(h, c, scopePartitions())
		over.land([]*planv1.DataFile{over.in("b", 0, 1)})
		h.wantSummary(map[string]string{"removed-delete-files": "1", "total-delete-files": "1", "deleted-data-files": "2"})
		all := newOverwrite(h, c, scopeAll())
		all.land()
		h.wantSummary(map[string]string{"total-delete-files": "0", "total-position-deletes": "0", "total-records": "0", "total-files-size": "0"})
	})
}

// A second deletion vector of a data file takes the place of the first: there may be one only.
func TestDeletes_ANewVectorReplacesTheOldOne(t *testing.T) {
	h, c := versioned(t, "vectors", "3")
	j := newJob(t, h, c)
	f := j.plainFile(0, 100)
	j.land([]*planv1.DataFile{f})
	one := mergeOnRead(h, c, "delete")
	first := one.deletesOf(f, 2)
	one.land([]*planv1.DataFile{first})
	two := newRowLevel(h, c, "delete")
	second := two.deletesOf(f, 5)
	two.land([]*planv1.DataFile{second})
	require.Equal(t, map[string]int{f.GetPath(): 1}, h.deletesNow())
	h.wantSummary(map[string]string{"added-dvs": "1", "removed-dvs": "1", "total-delete-files": "1", "total-position-deletes": "5"})
	h.wantEntry(first.GetPath(), icebergo.EntryStatusDELETED, 2, h.table().CurrentSnapshot().SnapshotID)

	twice := newRowLevel(h, c, "delete")
	a, b := twice.deletesOf(f, 6), twice.deletesOf(f, 7)
	require.NoError(t, twice.stage([]*planv1.DataFile{a, b}))
	twice.refused("two deletion vectors")
}

func TestDeletes_Conflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		version, operation string
		meantime           func(h *testHost, c sinkv1.SinkClient, f *planv1.DataFile)
		word               string // empty: it lands
	}{
		"v2: both delete":           {"2", "delete", otherDeletes, ""},
		"v2: delete, and an update": {"2", "update", otherDeletes, "deleted rows of data file"},
		"v3: both delete":           {"3", "delete", otherDeletes, "deleted rows of data file"},
		"v2: the file is replaced": {"2", "delete", func(h *testHost, c sinkv1.SinkClient, f *planv1.DataFile) {
			h.setProperties("write.delete.mode", "copy-on-write")
			replaceOne(h, c, f)
		}, "is not in the table any more"},
		"v3: the file is replaced": {"3", "delete", func(h *testHost, c sinkv1.SinkClient, f *planv1.DataFile) {
			h.setProperties("write.delete.mode", "copy-on-write")
			replaceOne(h, c, f)
		}, "is not in the table any more"},
		"v3: rows are added": {"3", "delete", func(h *testHost, c sinkv1.SinkClient, _ *planv1.DataFile) { appendOne(h, c, nil) }, "added data file"},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := versioned(t, "dvconflict", tc.version)
			if tc.word != "added data file" {
				h.setProperties("write.delete.isolation-level", "snapshot", "write.update.isolation-level", "snapshot")
			}
			j := newJob(t, h, c)
			f := j.plainFile(0, 100)
			j.land([]*planv1.DataFile{f})
			del := mergeOnRead(h, c, tc.operation)
			tc.meantime(h, c, f)
			require.NoError(t, del.stage([]*planv1.DataFile{del.deletesOf(f, 3)}))
			if tc.word != "" {
				del.refused(tc.word)
				return
			}
			require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, del.commit().GetOutcome())
			require.Equal(t, map[string]int{f.GetPath(): 2}, h.deletesNow())
		})
	}
}

func otherDeletes(h *testHost, c sinkv1.SinkClient, f *planv1.DataFile) {
	del := mergeOnRead(h, c, "delete")
	del.land([]*planv1.DataFile{del.deletesOf(f, 1)})
}

// Copy-on-write and compaction bring rows back that others have deleted meanwhile, unless that is a conflict.
func TestDeletes_OfReplacedFilesAreAConflict(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := versioned(t, "back", version)
		h.setProperties("write.update.isolation-level", "snapshot")
		j := newJob(t, h, c)
		f := j.plainFile(0, 100)
		j.land([]*planv1.DataFile{f})
		for mode, operation := range map[sinkv1.WriteMode]string{sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL: "update", sinkv1.WriteMode_WRITE_MODE_REWRITE: ""} {
			w := h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: mode, Operation: operation})
			otherDeletes(h, c, f)
			w.replaced = replacedFiles(f)
			require.NoError(t, w.stage([]*planv1.DataFile{w.plainFile(0, 100)}))
			w.refused("deleted rows of data file "+f.GetPath(), "run the statement again")
		}
	})
}

func TestStage_RefusesDeleteFilesThatDoNotFit(t *testing.T) {
	h, c := versioned(t, "misfit", "3")
	j := newJob(t, h, c)
	f := j.plainFile(0, 100)
	j.land([]*planv1.DataFile{f})
	for name, edit := range map[string]func(*planv1.DataFile){
		"position deletes in version 3": func(d *planv1.DataFile) { d.Content = planv1.FileContent_FILE_CONTENT_POSITION_DELETES },
		"equality deletes":              func(d *planv1.DataFile) { d.Content = planv1.FileContent_FILE_CONTENT_EQUALITY_DELETES },
		"of no file":                    func(d *planv1.DataFile) { d.ReferencedDataFile = "" },
		"of no rows":                    func(d *planv1.DataFile) { d.RecordCount = 0 },
		"outside of its file":           func(d *planv1.DataFile) { d.ContentOffset = 290 },
	} {
		t.Run(name, func(t *testing.T) {
			del := mergeOnRead(h, c, "delete")
			d := del.deletesOf(f, 3)
			edit(d)
			refused(t, del.stage([]*planv1.DataFile{d}), sdk.Permanent, d.GetPath())
		})
	}
	app := newJob(t, h, c)
	d := mergeOnRead(h, c, "delete").deletesOf(f, 1)
	refused(t, app.stage([]*planv1.DataFile{d}), sdk.Permanent, "changed rows are stored as")
}

// A table of version 2 that becomes one of version 3: a new deletion vector takes the place of the position delete files of its data file, and of no other.
func TestDeletes_AVectorReplacesPositionDeleteFiles(t *testing.T) {
	h, c := partitioned(t, "upgraded", "2")
	j := newJob(t, h, c)
	a, b := j.in("a", 0, 10), j.in("a", 1, 10)
	j.land([]*planv1.DataFile{a, b})
	for range 2 {
		old := mergeOnRead(h, c, "delete")
		old.land([]*planv1.DataFile{old.deletesOf(a, 1), old.deletesOf(b, 1)})
	}
	planned := newRowLevel(h, c, "delete")
	h.alter(map[string]any{"action": "upgrade-format-version", "format-version": 3})
	require.NoError(t, planned.stage([]*planv1.DataFile{planned.deletesOf(a, 1)}))
	planned.refused("its format version was 2 when the job was planned and is 3 now", "run the job again")

	del := newRowLevel(h, c, "delete")
	v := del.deletesOf(a, 3)
	v.CarriedRows = 2
	del.land([]*planv1.DataFile{v})
	require.Equal(t, map[string]int{a.GetPath(): 1, b.GetPath(): 2}, h.deletesNow())
	h.wantSummary(map[string]string{
		"operation": "delete", "added-dvs": "1", "added-position-deletes": "3", "removed-position-delete-files": "2", "removed-position-deletes": "2", "removed-delete-files": "2",
		"total-position-deletes": "5", "total-delete-files": "3",
	})
}

// What a statement deletes and changes is told apart, and what was deleted before counts as neither.
func TestDeletes_CountTheRowsOfTheStatement(t *testing.T) {
	h, c := versioned(t, "counted", "3")
	j := newJob(t, h, c)
	f := j.plainFile(0, 100)
	j.land([]*planv1.DataFile{f})
	up := mergeOnRead(h, c, "update")
	d := up.deletesOf(f, 10)
	d.CarriedRows, d.UpdatedRows = 3, 5
	up.land([]*planv1.DataFile{up.plainFile(1, 5), d})
	require.EqualValues(t, []int64{2, 5, 5, 44 + 1005}, []int64{up.totals.GetDeletedRows(), up.totals.GetUpdatedRows(), up.totals.GetRows(), up.totals.GetBytes()})
	h.wantSummary(map[string]string{"operation": "overwrite", "added-position-deletes": "10", "added-records": "5"})
}

// A file of which nothing is left goes, and its deletes with it, beside deletes of other files.
func TestDeletes_BesideAFileThatGoesWhole(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := versioned(t, "whole", version)
		j := newJob(t, h, c)
		a, b := j.plainFile(0, 100), j.plainFile(1, 100)
		j.land([]*planv1.DataFile{a, b})
		otherDeletes(h, c, a)
		del := newRowLevel(h, c, "delete")
		del.replaced = []*planv1.ReplacedFile{{Path: a.GetPath(), RecordCount: 99, DeletedRows: 99}}
		del.land([]*planv1.DataFile{del.deletesOf(b, 4)})
		require.Equal(t, []string{b.GetPath()}, h.livePaths())
		require.Equal(t, map[string]int{b.GetPath(): 1}, h.deletesNow())
		h.wantSummary(map[string]string{"operation": "delete", "deleted-data-files": "1", "deleted-records": "100", "removed-delete-files": "1", "added-delete-files": "1", "total-delete-files": "1", "total-records": "100"})
	})
}

// A position delete file takes the place of those that it names, of its data file alone; one that another writer has added meanwhile stays.
func TestDeletes_AMergedFileReplacesTheOldOnes(t *testing.T) {
	h, c := versioned(t, "merged", "2")
	h.setProperties("write.delete.isolation-level", "snapshot")
	j := newJob(t, h, c)
	a, b := j.plainFile(0, 100), j.plainFile(1, 100)
	j.land([]*planv1.DataFile{a, b})
	one := mergeOnRead(h, c, "delete")
	ofA, ofB := one.deletesOf(a, 2), one.deletesOf(b, 2)
	one.land([]*planv1.DataFile{ofA, ofB})
	two := newRowLevel(h, c, "delete")
	next := two.deletesOf(a, 5)
	next.CarriedRows, next.Merged = 2, []string{ofA.GetPath(), ofB.GetPath()} // the second is about another data file
	otherDeletes(h, c, a)
	two.land([]*planv1.DataFile{next})
	require.Equal(t, map[string]int{a.GetPath(): 2, b.GetPath(): 1}, h.deletesNow())
	h.wantSummary(map[string]string{
		"added-position-delete-files": "1", "removed-position-delete-files": "1", "removed-position-deletes": "2", "total-delete-files": "3", "total-position-deletes": "8",
	})
	h.wantEntry(ofA.GetPath(), icebergo.EntryStatusDELETED, 2, h.table().CurrentSnapshot().SnapshotID)
	require.EqualValues(t, 3, two.totals.GetDeletedRows())

	// Another one has merged it as well: there is nothing left to remove.
	three, four := newRowLevel(h, c, "delete"), newRowLevel(h, c, "delete")
	for _, j := range []*job{three, four} {
		d := j.deletesOf(a, 6)
		d.CarriedRows, d.Merged = 5, []string{next.GetPath()}
		j.land([]*planv1.DataFile{d})
	}
	require.Equal(t, map[string]int{a.GetPath(): 3, b.GetPath(): 1}, h.deletesNow())
}
