package write_test

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// types by short names, for tests only.
var kinds = map[string]planv1.TypeKind{
	"boolean": planv1.TypeKind_TYPE_KIND_BOOLEAN, "int": planv1.TypeKind_TYPE_KIND_INT32, "long": planv1.TypeKind_TYPE_KIND_INT64,
	"float": planv1.TypeKind_TYPE_KIND_FLOAT32, "double": planv1.TypeKind_TYPE_KIND_FLOAT64, "date": planv1.TypeKind_TYPE_KIND_DATE,
	"time": planv1.TypeKind_TYPE_KIND_TIME_MICROS, "timestamp": planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS,
	"timestamptz": planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, "timestamp_ns": planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS,
	"string": planv1.TypeKind_TYPE_KIND_STRING, "uuid": planv1.TypeKind_TYPE_KIND_UUID, "binary": planv1.TypeKind_TYPE_KIND_BINARY,
}

func typ(name string) *planv1.Type {
	if k, ok := kinds[name]; ok {
		return &planv1.Type{Kind: k}
	}
	var p, s int32
	if n, _ := fmt.Sscanf(name, "decimal(%d,%d)", &p, &s); n == 2 {
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: p, Scale: s}
	}
	if n, _ := fmt.Sscanf(name, "fixed(%d)", &p); n == 1 {
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: p}
	}
	panic("type " + name)
}

func field(id int32, name, t string) *planv1.Field {
	return &planv1.Field{Id: id, Name: name, Type: typ(t)}
}

func required(f *planv1.Field) *planv1.Field {
	f.Required = true
	return f
}

func structOf(id int32, name string, fields ...*planv1.Field) *planv1.Field {
	return &planv1.Field{Id: id, Name: name, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: fields}}
}

func listOf(id int32, name string, elem *planv1.Field) *planv1.Field {
	elem.Name = "element"
	return &planv1.Field{Id: id, Name: name, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{elem}}}
}

func mapOf(id int32, name string, key, value *planv1.Field) *planv1.Field {
	key.Name, value.Name, key.Required = "key", "value", true
	return &planv1.Field{Id: id, Name: name, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{key, value}}}
}

// table is what a test writes into.
type table struct {
	*planv1.WriteSpec
	task *planv1.Task
}

// full asks for every statistic of every leaf.
func full(fields []*planv1.Field, out map[int32]*planv1.MetricsMode) map[int32]*planv1.MetricsMode {
	for _, f := range fields {
		if len(f.GetType().GetFields()) > 0 {
			full(f.GetType().GetFields(), out)
			continue
		}
		out[f.GetId()] = &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_FULL}
	}
	return out
}

func newTable(t testing.TB, fields ...*planv1.Field) *table {
	t.Helper()
	root := t.TempDir()
	spec := &planv1.WriteSpec{
		TableUuid: uuid.NewString(), Schema: &planv1.Schema{Fields: fields}, DataLocation: "file://" + root + "/data",
		Files: &planv1.FileRules{Metrics: full(fields, map[int32]*planv1.MetricsMode{})},
	}
	attempt := uuid.NewString()
	task := &planv1.Task{JobId: uuid.NewString(), AttemptId: attempt, Epoch: 1}
	w := &planv1.WriteTask{Spec: spec, Prefix: spec.DataLocation + "/job/0/0/" + attempt}
	for n, f := range fields {
		w.Columns = append(w.Columns, &planv1.OutputColumn{Field: f, Input: int32(n)})
	}
	task.Work = &planv1.Task_Write{Write: w}
	return &table{WriteSpec: spec, task: task}
}

func (tb *table) write() *planv1.WriteTask { return tb.task.GetWrite() }

func (tb *table) partitionBy(name string, source int32, kind planv1.TransformKind, param int32) *table {
	tb.Partition = append(tb.Partition, &planv1.PartitionField{
		FieldId: int32(1000 + len(tb.Partition)), Name: name, SourceId: source, Transform: kind, Param: param,
	})
	return tb
}

func open(t testing.TB, scratch string, threads int, keepOrder bool) *duckdb.Instance {
	t.Helper()
	pool := duckdb.NewPool(duckdb.Options{Ready: -1, Setup: transform.Register})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	inst, err := pool.Open(context.Background(), duckdb.Access{
		WriteDirs: []string{scratch}, TempDir: scratch + "/spill", Threads: threads, MemoryBytes: 1 << 30, KeepOrder: keepOrder,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inst.Close()) })
	return inst
}

// run executes the write of the query's rows.
func (tb *table) run(t testing.TB, sql string) ([]*planv1.DataFile, error) {
	t.Helper()
	scratch := t.TempDir()
	inst := open(t, scratch, 2, write.KeepOrder(tb.task))
	tb.task.Sql = sql
	tb.task.AttemptId = uuid.NewString()
	tb.write().Prefix = tb.DataLocation + "/job/0/0/" + tb.task.AttemptId
	files, err := write.Run(t.Context(), inst, tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
	if err != nil {
		require.NoDirExists(t, path(tb.write().Prefix), "nothing is uploaded before every check has passed")
	}
	return files, err
}

func (tb *table) mustRun(t testing.TB, sql string) []*planv1.DataFile {
	t.Helper()
	files, err := tb.run(t, sql)
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, strings.HasPrefix(f.GetPath(), tb.write().Prefix+"/0-0-"+tb.task.AttemptId+"-"), f.GetPath())
		require.Equal(t, tb.write().Prefix, "file://"+filepath.Dir(path(f.GetPath())))
		st, err := os.Stat(path(f.GetPath()))
		require.NoError(t, err)
		require.Equal(t, st.Size(), f.GetSizeBytes())
		require.Positive(t, f.GetRecordCount())
		require.NotEmpty(t, f.GetSplitOffsets())
	}
	return files
}

func path(uri string) string { return strings.TrimPrefix(uri, "file://") }

// query runs SQL in an unlocked DuckDB and answers the rows as text.
func query(t testing.TB, sql string) []string {
	t.Helper()
	pool := duckdb.NewPool(duckdb.Options{Ready: -1})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	inst, err := pool.Open(context.Background(), duckdb.Access{WriteDirs: []string{"/"}, Threads: 1, KeepOrder: true})
	require.NoError(t, err)
	defer inst.Close()
	rows, err := inst.Conn().QueryContext(context.Background(), sql)
	require.NoError(t, err, sql)
	defer rows.Close()
	cols, err := rows.Columns()
	require.NoError(t, err)
	var out []string
	for rows.Next() {
		vals, dest := make([]any, len(cols)), make([]any, len(cols))
		for i := range vals {
			dest[i] = &vals[i]
		}
		require.NoError(t, rows.Scan(dest...))
		out = append(out, strings.TrimSuffix(fmt.Sprintln(vals...), "\n"))
	}
	require.NoError(t, rows.Err())
	return out
}

// rows reads files back as one VARCHAR per column.
func readBack(t testing.TB, files []*planv1.DataFile, cols string) []string {
	t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, path(f.GetPath()))
	}
	return query(t, "SELECT "+cols+" FROM read_parquet("+duckdb.ListLiteral(paths)+", hive_partitioning=false)")
}

func metrics(t testing.TB, f *planv1.DataFile, id int32) *planv1.ColumnMetrics {
	t.Helper()
	for _, m := range f.GetColumns() {
		if m.GetFieldId() == id {
			return m
		}
	}
	t.Fatalf("no metrics of field %d", id)
	return nil
}

func signed(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}
