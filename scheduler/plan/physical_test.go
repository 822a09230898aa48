package plan

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/stretchr/testify/require"
)

func writeRequest(t *testing.T) Request {
	t.Helper()
	s := schema(t, "id BIGINT NOT NULL, ts TIMESTAMP, carrier VARCHAR, note VARCHAR, s STRUCT(a INT, b VARCHAR)")
	query := columns("n=INTEGER", "ts=TIMESTAMP", "Carrier=VARCHAR", "s=STRUCT(a INTEGER, b VARCHAR)")
	out, err := MapColumns(Target{Table: "lake.demo.t", Schema: s, List: []string{"id", "ts", "carrier", "s"}}, query)
	require.NoError(t, err)
	in := fileInput([]*planv1.PinnedFile{
		{Path: "/d/a.parquet", Name: "a.parquet", SizeBytes: 64 << 20},
		{Path: "/d/b.parquet", Name: "b's.parquet", SizeBytes: 64 << 20},
		{Path: "/d/c.parquet", SizeBytes: 64 << 20},
		{Path: "/d/d.parquet", SizeBytes: 64 << 20},
	}, []*executorv1.FileStats{{Path: "/d/a.parquet", RowGroupRows: []int64{100, 100}, Rows: 200}})
	return Request{
		SQL: "SELECT n, ts, Carrier, s\nFROM v0", Columns: query, Input: in, Limits: Limits{Executors: 2}, Table: "lake.demo.t", Output: out,
		Spec: &planv1.WriteSpec{
			Schema: s, BaseVersion: "42", SinkState: []byte("opaque"), Warnings: []string{"write.x is not honoured"},
			Partition: []*planv1.PartitionField{{SourceId: 2, Transform: planv1.TransformKind_TRANSFORM_KIND_DAY}, {SourceId: 1, Transform: planv1.TransformKind_TRANSFORM_KIND_BUCKET, Param: 4}},
		},
	}
}

func TestBuild_Write(t *testing.T) {
	p, err := Build(writeRequest(t))
	require.NoError(t, err)
	require.Equal(t, OpCommit, p.Root.Op)
	require.Len(t, p.Stages, 1)
	require.Equal(t, 2, p.Stages[0].Tasks())
	for i := range 2 {
		task := p.Stages[0].Task(i)
		require.Equal(t, int32(i), task.GetTask())
		require.Len(t, task.GetWrite().GetColumns(), 5)
		require.Nil(t, task.GetWrite().GetSpec().GetSinkState())
		require.True(t, task.GetWrite().GetSortForPartitions())
		require.Len(t, filesOf(task.GetSources()[0]), 2)
		task.GetWrite().Prefix = "x"
	}
	require.Empty(t, p.Stages[0].Task(0).GetWrite().GetPrefix(), "tasks do not share what attempts fill in")
}

func TestBuild_Select(t *testing.T) {
	r := writeRequest(t)
	r.Spec, r.Output, r.MaxResultBytes = nil, nil, 99
	p, err := Build(r)
	require.NoError(t, err)
	require.Nil(t, p.Root)
	require.Equal(t, 1, p.Stages[0].Tasks())
	require.Equal(t, int64(99), p.Stages[0].Task(0).GetResult().GetMaxBytes())
	require.Equal(t, r.Input.Sources, p.Stages[0].Task(0).GetSources())

	r.Root, err = RootByName("Result")
	require.NoError(t, err)
	p, err = Build(r)
	require.NoError(t, err)
	require.Equal(t, OpResult, p.Root.Op)
	require.Len(t, p.Stages, 1)
	require.True(t, p.Stages[0].Stored, "the root fetches the rows")
	require.Equal(t, planv1.ExchangeKind_EXCHANGE_KIND_GATHER, p.Stages[0].Task(0).GetExchange().GetKind())
}

// TestExplain runs testdata/explain.txt; -rewrite writes what is now the output.
func TestExplain_S45_S57(t *testing.T) {
	datadriven.RunTest(t, "testdata/explain.txt", func(t *testing.T, d *datadriven.TestData) string {
		r := writeRequest(t)
		switch d.Cmd {
		case "insert":
		case "create":
			r.Create, r.Spec.BaseVersion, r.Spec.Partition, r.Spec.Warnings = true, "", nil, nil
			r.Spec.Sort = []*planv1.SortField{{SourceId: 1, Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY, NullsFirst: true}, {SourceId: 3, Transform: planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, Param: 2, Descending: true}}
			r.Input.RowWise, r.Input.NotRowWise = false, "it has a GROUP BY"
			r.EngineText = "┌──┐\n│ORDER│\n└──┘\n"
		case "table":
			r.Spec.Partition, r.Spec.Warnings = r.Spec.Partition[:0], nil
			r.Input.Sources = []*planv1.Source{{View: "v", Kind: &planv1.Source_Table{Table: &planv1.TableScan{Table: "lake.demo.src", Version: "7", Files: []*planv1.PinnedFile{{SizeBytes: 5}}}}}}
			r.Input.Stats = nil
			r.SQL = "SELECT 1"
		case "select":
			r.Spec, r.Output = nil, nil
		case "split-select":
			r.Spec, r.Output, r.Columns = nil, nil, typed("n", "n")
		case "root":
			r.Spec, r.Output, r.Columns = nil, nil, typed("n", "s")
			r.Root = func(n *Node) bool { return n.Op == OpResult }
		case "join", "adaptive-join":
			r = joinRequest(64<<20, 64<<20)
		case "broadcast":
			r = joinRequest(64<<20, 1<<20)
		case "aggregate-insert":
			r = aggregateInsert(t)
		}
		if d.Cmd == "adaptive-join" {
			return explainAdaptive(t, r)
		}
		p, err := Build(r)
		require.NoError(t, err)
		return p.Explain()
	})
}

func TestSortForPartitions(t *testing.T) {
	s := schema(t, "b BOOLEAN, s STRUCT(x INT), id BIGINT")
	s.Fields[1].Type.Fields[0].Id = 9
	field := func(source int32, k planv1.TransformKind, param int32) *planv1.PartitionField {
		return &planv1.PartitionField{SourceId: source, Transform: k, Param: param}
	}
	for _, c := range []struct {
		want  bool
		terms []*planv1.PartitionField
	}{
		{false, nil},
		{false, []*planv1.PartitionField{field(1, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0), field(3, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 16)}},
		{true, []*planv1.PartitionField{field(3, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 16), field(9, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 16)}},
		{true, []*planv1.PartitionField{field(3, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0)}},
		{false, []*planv1.PartitionField{field(3, planv1.TransformKind_TRANSFORM_KIND_MONTH, 0), field(3, planv1.TransformKind_TRANSFORM_KIND_VOID, 0)}},
		{true, []*planv1.PartitionField{field(3, planv1.TransformKind_TRANSFORM_KIND_DAY, 0)}},
	} {
		require.Equal(t, c.want, SortForPartitions(&planv1.WriteSpec{Schema: s, Partition: c.terms}))
	}
	require.Equal(t, "x", FieldByID(s.GetFields(), 9).GetName())
	require.Nil(t, FieldByID(s.GetFields(), 10))
}

func TestByteText(t *testing.T) {
	var got []string
	for _, n := range []int64{0, 1023, 1024, 1536, 5 << 30, 1<<63 - 1} {
		got = append(got, ByteText(n))
	}
	require.Equal(t, "0 B, 1023 B, 1.0 KiB, 1.5 KiB, 5.0 GiB, 8192.0 PiB", strings.Join(got, ", "))
}
