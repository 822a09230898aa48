package delta_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
)

var all = &planv1.Scope{Kind: &planv1.Scope_All{All: true}}

var written = &planv1.Scope{Kind: &planv1.Scope_Partitions{Partitions: true}}

func where(op planv1.CompareOp, id int32, v *planv1.Value) *planv1.Scope {
	return &planv1.Scope{Kind: &planv1.Scope_Filter{Filter: compares(op, id, v)}}
}

func compares(op planv1.CompareOp, id int32, v ...*planv1.Value) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: &planv1.Comparison{FieldId: id, Op: op, Values: v}}}
}

func (b *bench) refusedCommit(spec *planv1.WriteSpec, says string, units ...*sinkv1.Unit) {
	b.Helper()
	before := b.host.Objects()
	r := b.commit(spec, units...)
	require.Equal(b, sinkv1.Outcome_OUTCOME_PERMANENT, r.GetOutcome(), r.GetMessage())
	require.Contains(b, r.GetMessage(), says)
	require.Equal(b, before, b.host.Objects())
}

func TestAppend(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	r := b.add(file("j/a b.parquet", 0, str("x:y")), file("j/c.parquet", 10, &planv1.Value{}), file("j/d.parquet", 20, str("")))
	require.Equal(t, "1", r.GetVersion())
	require.EqualValues(t, 3, r.GetMetrics().GetAddedFiles())
	require.EqualValues(t, 2, r.GetMetrics().GetPartitions(), "NULL and the empty text are one")
	actions := b.actions(1)
	info := actions[0].CommitInfo
	require.NotNil(t, info, "commitInfo is the first action")
	require.True(t, *info.IsBlindAppend)
	require.Equal(t, "WRITE", info.Operation)
	require.NotEmpty(t, *info.TxnID)
	require.Equal(t, "30", info.OperationMetrics["numOutputRows"])
	require.EqualValues(t, 1, actions[1].Txn.Version)
	add := actions[2].Add
	require.Equal(t, "j/a b.parquet", add.Path)
	require.Equal(t, "x:y", *add.PartitionValues["p"])
	require.Nil(t, actions[3].Add.PartitionValues["p"]) // E1
	require.Nil(t, actions[4].Add.PartitionValues["p"]) // E2
	require.JSONEq(t, `{"numRecords":10,"minValues":{"id":0},"maxValues":{"id":9},"nullCount":{"id":0}}`, *add.Stats)
	require.Contains(t, string(b.host.Body(location+"/"+log.CommitName(1))), `"path":"j/a%20b.parquet"`)

	b.restart()
	first, files, err := b.scan(&sinkv1.PlanScanRequest{Partitions: true})
	require.NoError(t, err)
	require.True(t, first.GetByName())
	require.Equal(t, []int32{2}, first.GetConstantIds())
	require.Len(t, files, 3)
	require.Equal(t, "x:y", files["j/a b.parquet"].GetConstants()[0].GetString_())
	require.Nil(t, files["j/d.parquet"].GetConstants()[0].GetKind())
	require.Equal(t, files["j/c.parquet"].GetPartition(), files["j/d.parquet"].GetPartition())
	require.NotEqual(t, files["j/c.parquet"].GetPartition(), files["j/a b.parquet"].GetPartition())
}

// D7, D14: a commit that is made twice lands once; an append without files is none.
func TestD14EmptyAppend(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	spec := b.prepare(appending())
	r := b.land(spec, b.unit(spec, nil))
	require.Equal(t, "0", r.GetVersion())
	require.Empty(t, b.host.Commits())
	u := b.unit(spec, []*planv1.DataFile{file("a", 0)})
	require.Equal(t, "1", b.land(spec, u).GetVersion())
	again := b.commit(spec, u)
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, again.GetOutcome())
	require.Equal(t, "1", again.GetVersion())
}

// D14: an overwrite without files removes all rows.
func TestD14OverwriteWithoutFiles(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0), file("b", 10))
	spec := b.prepare(overwriting(all))
	u := b.unit(spec, nil)
	b.add(file("later", 20)) // what only deletes takes the rows that are there when it commits
	r := b.land(spec, u)
	require.EqualValues(t, 3, r.GetMetrics().GetRemovedFiles())
	require.EqualValues(t, 30, r.GetMetrics().GetRemovedRows())
	require.Empty(t, b.names())
}

// D9: of two overwrites of one version the second is refused, and says by what.
func TestD9TwoOverwrites(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0))
	one, two := b.prepare(overwriting(all)), b.prepare(overwriting(all))
	first, second := b.unit(one, []*planv1.DataFile{file("one", 0)}), b.unit(two, []*planv1.DataFile{file("two", 0)})
	b.land(one, first)
	require.Equal(t, []string{"one"}, b.names())
	b.refusedCommit(two, "version 2, which another writer has committed since version 1 was read", second)
	b.restart()
	b.refusedCommit(two, "run the statement again", second)
}

// D10, and group commit: appends never conflict, and several go into one version.
func TestD10Appends(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	spec := b.prepare(appending())
	var units []*sinkv1.Unit
	for i := range 5 {
		units = append(units, b.unit(spec, []*planv1.DataFile{file(fmt.Sprint("f", i), 0)}))
	}
	r := b.land(spec, units[:3]...)
	require.Equal(t, "1", r.GetVersion())
	require.EqualValues(t, 3, r.GetMetrics().GetAddedFiles())
	b.land(spec, units[3])
	require.Len(t, b.names(), 4)
	b.refusedCommit(spec, "1 of 2 jobs of this commit have been committed before", units[3], units[4])
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, b.commit(spec, units[:3]...).GetOutcome())
}

// D12: an overwrite of a filter removes the files that the filter covers, and refuses those that it covers in part.
func TestD12OverwriteWhere(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	b.add(file("a", 0, str("x")), file("b", 10, str("y")))
	spec := b.prepare(overwriting(where(planv1.CompareOp_COMPARE_OP_EQ, 2, str("x"))))
	u := b.unit(spec, []*planv1.DataFile{file("c", 0, str("x"))})
	b.add(file("d", 10, str("y"))) // elsewhere
	b.land(spec, u)
	require.ElementsMatch(t, []string{"b", "c", "d"}, b.names())
	require.Equal(t, "p = 'x'", b.actions(3)[0].CommitInfo.OperationParameters["predicate"])

	spec = b.prepare(overwriting(where(planv1.CompareOp_COMPARE_OP_LT, 1, integer(15))))
	b.refusedCommit(spec, "may hold rows that the condition covers and rows that it does not", b.unit(spec, []*planv1.DataFile{file("e", 0, str("x"))}))
	spec = b.prepare(overwriting(where(planv1.CompareOp_COMPARE_OP_LT, 1, integer(10))))
	u = b.unit(spec, []*planv1.DataFile{file("e", 0, str("x"))})
	b.add(file("f", 5, str("z")))
	b.refusedCommit(spec, "added data file f", u)
}

// D13: a dynamic overwrite removes the partitions that it writes to, NULL being one.
func TestD13OverwritePartitions(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	b.add(file("a", 0, str("x")), file("b", 0, str("y y")), file("c", 0, &planv1.Value{}))
	spec := b.prepare(overwriting(written))
	b.land(spec, b.unit(spec, []*planv1.DataFile{file("d", 0, str("y y")), file("e", 0, str(""))})) // E4
	require.ElementsMatch(t, []string{"a", "d", "e"}, b.names())
	spec = b.prepare(overwriting(written))
	require.Equal(t, "2", b.land(spec, b.unit(spec, nil)).GetVersion(), "nothing was written to")
}

func TestRowLevel(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0), file("b", 10))
	request := func(op string) *sinkv1.PrepareWriteRequest {
		return &sinkv1.PrepareWriteRequest{
			Mode: sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, Operation: op,
			Scope: where(planv1.CompareOp_COMPARE_OP_LT, 1, integer(10)),
		}
	}
	replacing := func(rows, deleted, updated int64) *planv1.ReplacedFile {
		return &planv1.ReplacedFile{Path: location + "/a", RecordCount: rows, DeletedRows: deleted, UpdatedRows: updated}
	}
	spec := b.prepare(request("DELETE"))
	require.Equal(t, planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE, spec.GetRowChanges())
	kept := file("a2", 0)
	kept.RecordCount = 7
	kept.Columns = nil
	b.refusedCommit(spec, "has 10 rows by the table's statistics", b.unit(spec, []*planv1.DataFile{kept}, replacing(9, 2, 0)))
	u := b.unit(spec, []*planv1.DataFile{kept}, replacing(10, 3, 0))
	b.add(file("elsewhere", 50))
	b.land(spec, u)
	require.ElementsMatch(t, []string{"a2", "b", "elsewhere"}, b.names())
	info := b.actions(3)[0].CommitInfo
	require.Equal(t, "DELETE", info.Operation)
	require.Equal(t, "3", info.OperationMetrics["numDeletedRows"])
	require.Equal(t, "7", info.OperationMetrics["numCopiedRows"])

	spec = b.prepare(request("UPDATE"))
	b.refusedCommit(spec, "is not part of the table", b.unit(spec, nil, replacing(10, 0, 1)))
	u = b.unit(spec, nil, &planv1.ReplacedFile{Path: location + "/a2", RecordCount: 7, DeletedRows: 7})
	b.add(file("within", 5))
	b.refusedCommit(spec, "added data file within", u)
}

// A rewrite changes no row: what others append is no matter, what they remove is.
func TestRewrite(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0), file("b", 10))
	both := []*planv1.ReplacedFile{{Path: location + "/a", RecordCount: 10}, {Path: location + "/b", RecordCount: 10}}
	spec := b.prepare(&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_REWRITE})
	big := file("big", 0)
	big.RecordCount = 20
	u := b.unit(spec, []*planv1.DataFile{big}, both...)
	other := b.unit(spec, []*planv1.DataFile{file("other", 0)}, both[0])
	b.add(file("c", 20))
	b.land(spec, u)
	require.ElementsMatch(t, []string{"big", "c"}, b.names())
	for _, a := range b.actions(3) {
		require.False(t, a.Add != nil && a.Add.DataChange || a.Remove != nil && a.Remove.DataChange)
	}
	b.refusedCommit(spec, "removed data file a", other)
}

func TestReplace(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	b.add(file("a", 0, str("x")))
	old := b.prepare(appending())
	stale := b.unit(old, []*planv1.DataFile{file("stale", 0, str("x"))})
	d := definition(false)
	d.Schema.Fields = append(d.Schema.Fields, field("at", planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS))
	spec := b.prepare(&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_REPLACE, Definition: d})
	require.Equal(t, old.GetTableUuid(), spec.GetTableUuid())
	b.land(spec, b.unit(spec, []*planv1.DataFile{file("b", 0)}))
	require.Equal(t, []string{"b"}, b.names())
	resp, err := b.sink.DescribeTable(t.Context(), &sinkv1.DescribeTableRequest{Lease: b.host.Lease, Table: b.ref})
	require.NoError(t, err)
	require.Empty(t, resp.GetPartition())
	require.Equal(t, "supported", resp.GetProperties()["delta.feature.timestampNtz"]) // E15
	require.Equal(t, "3", resp.GetProperties()["delta.minReaderVersion"])
	b.refusedCommit(old, "the files were written for", stale)
	_, files, err := b.scan(&sinkv1.PlanScanRequest{Version: "1"})
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestCreateAsSelect(t *testing.T) {
	b := newBench(t)
	spec := b.prepare(&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_CREATE, Definition: definition(true)})
	require.True(t, spec.GetCreatesTable())
	require.Empty(t, b.host.Objects())
	u := b.unit(spec, []*planv1.DataFile{file("a", 0, str("x"))})
	r := b.land(spec, u)
	require.Equal(t, "0", r.GetVersion())
	require.Equal(t, []string{"a"}, b.names())
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, b.commit(spec, u).GetOutcome())
	_, err := b.tryPrepare(&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_CREATE, Definition: definition(true)})
	require.ErrorIs(t, err, sdk.ErrExists)
	require.True(t, slices.ContainsFunc(b.actions(0), func(a log.Action) bool { return a.Protocol != nil }))
}

// A table that was dropped and created again in its old place is another table, whatever versions it has.
func TestRecreatedTableIsSeen(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0))
	spec := b.prepare(appending())
	u := b.unit(spec, []*planv1.DataFile{file("b", 0)})
	other := newBench(t)
	other.create(definition(false))
	other.add(file("x", 0))
	other.add(file("y", 0))
	for v := range int64(3) {
		name := location + "/" + log.CommitName(v)
		b.host.Put(name, other.host.Body(name))
	}
	require.ElementsMatch(t, []string{"x", "y"}, b.names())
	b.refusedCommit(spec, "was dropped and created again", u)
}

func TestCheckpoints(t *testing.T) {
	b := newBench(t)
	d := definition(true)
	d.Properties = map[string]string{"delta.checkpointInterval": "3"}
	b.create(d)
	for i := range 7 {
		b.add(file(fmt.Sprint("f", i), 0, str("x")))
	}
	require.Contains(t, b.host.Objects(), location+"/_delta_log/00000000000000000006.checkpoint.parquet")
	require.Contains(t, string(b.host.Body(location+"/"+log.Hint)), `"version":6`)
	b.restart()
	require.Len(t, b.names(), 7)
}

// A commit of very many files is read as any other, by the sink that made it and by one that remembers nothing; so is the checkpoint after it.
func TestCommitOfManyFiles(t *testing.T) {
	const many = 5001
	b := newBench(t)
	b.create(definition(true))
	for v := range int64(8) {
		b.add(file(fmt.Sprint("before", v), v, str("x")))
	}
	files := make([]*planv1.DataFile, many)
	for i := range files {
		files[i] = file(fmt.Sprint("many/", i), int64(i), str(fmt.Sprint("p ", i%7)))
	}
	for v := int64(9); v <= 10; v++ { // the second one with a checkpoint
		r := b.add(files...)
		require.Equal(t, fmt.Sprint(v), r.GetVersion())
		require.EqualValues(t, many, r.GetMetrics().GetAddedFiles())
		require.EqualValues(t, 7, r.GetMetrics().GetPartitions())
		info := b.actions(v)[0].CommitInfo
		require.Equal(t, fmt.Sprint(many), info.OperationMetrics["numFiles"])
		require.Equal(t, fmt.Sprint(many*10), info.OperationMetrics["numOutputRows"])
		require.Len(t, b.names(), int(v-8)*many+8)
		spec := b.prepare(appending())
		b.refusedCommit(spec, files[7].GetPath()[len(location)+1:]+" is part of the table already", b.unit(spec, files[7:8]))
		for _, f := range files {
			f.Path += "b"
		}
	}
	require.Contains(t, b.host.Objects(), location+"/_delta_log/00000000000000000010.checkpoint.parquet")
	b.restart()
	_, scanned, err := b.scan(&sinkv1.PlanScanRequest{Filter: compares(planv1.CompareOp_COMPARE_OP_EQ, 1, integer(5))})
	require.NoError(t, err)
	require.Contains(t, scanned, "many/3")
	require.NotContains(t, scanned, "many/6", "its statistics say that it has larger ids")
}
