package write_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/footer"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// parquetFile writes a query's rows with DuckDB.
func parquetFile(t testing.TB, sql, options string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "src.parquet")
	query(t, "COPY ("+sql+") TO "+duckdb.Literal(file)+" (FORMAT PARQUET, "+options+")")
	return file
}

const zstd = "COMPRESSION zstd, ROW_GROUP_SIZE 20000"

// spliced is a table that may take pages of files.
func spliced(t testing.TB, fields ...*planv1.Field) *table {
	tb := newTable(t, fields...)
	tb.write().Splice = true
	return tb
}

// from makes files the task's source, with the columns that DuckDB finds in them.
func (tb *table) from(t testing.TB, sql string, files ...string) *table {
	t.Helper()
	src := &planv1.FileSource{Function: "read_parquet"}
	for _, f := range files {
		src.Files = append(src.Files, pinned(t, f))
	}
	tb.task.Sources = []*planv1.Source{{View: "v", Alias: "v", Kind: &planv1.Source_File{File: src}}}
	tb.task.Sql = sql
	return tb
}

func pinned(t testing.TB, file string) *planv1.PinnedFile {
	t.Helper()
	st, err := os.Stat(file)
	require.NoError(t, err)
	return &planv1.PinnedFile{Path: file, Name: file, SizeBytes: st.Size(), MtimeNanos: st.ModTime().UnixNano()}
}

// bound opens an instance with the task's sources.
func (tb *table) bound(t testing.TB, scratch string, more ...string) *duckdb.Instance {
	t.Helper()
	pool := duckdb.NewPool(duckdb.Options{Ready: -1, Setup: transform.Register})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	access := duckdb.Access{
		WriteDirs: []string{scratch}, TempDir: scratch + "/spill", Threads: 2, MemoryBytes: 1 << 30, KeepOrder: write.KeepOrder(tb.task),
		ReadFiles: append(duckdb.FilesOf(tb.task.GetSources()), more...),
	}
	if fs := tb.task.GetSources()[0].GetFile(); len(fs.GetFiles()) > 0 && len(fs.GetColumns()) == 0 {
		inst, err := pool.Open(context.Background(), access)
		require.NoError(t, err)
		require.NoError(t, inst.BindSources(t.Context(), tb.task.GetSources()))
		fs.Columns, err = inst.Describe(t.Context(), "SELECT * FROM v")
		require.NoError(t, err)
		require.NoError(t, inst.Close())
	}
	inst, err := pool.Open(context.Background(), access)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inst.Close()) })
	require.NoError(t, inst.BindSources(t.Context(), tb.task.GetSources()))
	return inst
}

// runBound runs the task over its sources.
func (tb *table) runBound(t testing.TB) ([]*planv1.DataFile, error) {
	t.Helper()
	scratch := t.TempDir()
	inst := tb.bound(t, scratch)
	tb.task.AttemptId = uuid.NewString()
	tb.write().Prefix = tb.DataLocation + "/job/0/0/" + tb.task.AttemptId
	return write.Run(t.Context(), inst, tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
}

// copied says how many rows of files were copied. Files that were written anew are signed by the DuckDB in this process; sources of these tests that
// DuckDB wrote as well have row groups of other sizes, so the number of rows in the first row group tells.
func copiedRows(t testing.TB, files []*planv1.DataFile, isCopy func(*footer.File) bool) int64 {
	t.Helper()
	n := int64(0)
	for _, f := range files {
		meta, _, _, err := footer.Open(path(f.GetPath()))
		require.NoError(t, err)
		if isCopy(meta) {
			n += meta.Rows
		}
	}
	return n
}

// rootName tells the two kinds of files apart: the root of a copied file's schema is called table.
func isCopy(m *footer.File) bool { return m.Schema[0].Name == "table" }

// both runs the task with and without copying and compares what comes of it.
func (tb *table) both(t testing.TB, cols string) (copied, written []*planv1.DataFile) {
	t.Helper()
	copied, err := tb.runBound(t)
	require.NoError(t, err)
	tb.write().Splice = false
	written, err = tb.runBound(t)
	require.NoError(t, err)
	tb.write().Splice = true
	require.Equal(t, sortedRows(t, written, cols), sortedRows(t, copied, cols))
	for _, least := range []int64{1, 20_000, 1 << 40} {
		left, _ := tb.runLeft(t, least)
		require.Equal(t, sortedRows(t, written, cols), sortedRows(t, left, cols), "left in a store that copies runs of %d bytes", least)
		require.Equal(t, copiedRows(t, copied, isCopy), copiedRows(t, left, isCopy))
	}
	require.Zero(t, copiedRows(t, written, isCopy))
	return copied, written
}

func sortedRows(t testing.TB, files []*planv1.DataFile, cols string) []string {
	t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, path(f.GetPath()))
	}
	return query(t, "SELECT count(*), "+cols+" FROM read_parquet("+duckdb.ListLiteral(paths)+", hive_partitioning=false)")
}

var everyType = []struct{ name, typ, sql string }{
	{"bo", "boolean", "r % 3 = 0"},
	{"i", "int", "(r * 7 - 5000)::INTEGER"},
	{"l", "long", "r * 1000000007"},
	{"f", "float", "(r * 0.5)::FLOAT"},
	{"d", "double", "CASE WHEN r % 1000 = 17 THEN 'nan'::DOUBLE ELSE -r * 0.25::DOUBLE END"},
	{"d9", "decimal(9,2)", "(r * 0.01)::DECIMAL(9,2)"},
	{"d18", "decimal(18,3)", "(-r * 0.001)::DECIMAL(18,3)"},
	{"d38", "decimal(38,4)", "(r * 1.0001)::DECIMAL(38,4)"},
	{"dt", "date", "DATE '1960-01-01' + (r % 20000)::INTEGER"},
	{"tm", "time", "TIME '00:00:00' + to_microseconds(r)"},
	{"ts", "timestamp", "TIMESTAMP '1969-12-31 23:59:59' + to_microseconds(r * 1000001)"},
	{"tz", "timestamptz", "TIMESTAMPTZ '2000-01-01 00:00:00+00' + to_microseconds(r)"},
	{"ns", "timestamp_ns", "make_timestamp_ns(r * 1001)"},
	{"s", "string", "CASE WHEN r % 11 = 0 THEN NULL ELSE 'row ' || r || repeat('ä', 20) END"},
	{"u", "uuid", "('00000000-0000-0000-0000-' || lpad(r::VARCHAR, 12, '0'))::UUID"},
	{"bi", "binary", "encode('b' || r)"},
}

func everyColumn() (fields []*planv1.Field, sql string) {
	var exprs []string
	for n, c := range everyType {
		fields = append(fields, field(int32(n+1), c.name, c.typ))
		exprs = append(exprs, c.sql+" AS "+c.name)
	}
	return fields, "SELECT " + strings.Join(exprs, ", ") + " FROM range(50000) AS q(r)"
}

func TestSplice_EveryType(t *testing.T) {
	fields, sql := everyColumn()
	fields = append(fields, listOf(100, "li", field(101, "", "string")), mapOf(102, "m", field(103, "", "string"), field(104, "", "long")),
		structOf(105, "st", field(106, "a", "int"), structOf(107, "b", field(108, "c", "string"))))
	sql = strings.Replace(sql, " FROM range", ", [ 'x' || r, NULL ] AS li, MAP {'k' || (r % 5): r} AS m, {'a': r::INTEGER, 'b': {'c': 'c' || r}} AS st FROM range", 1)
	src := parquetFile(t, sql, zstd)
	tb := spliced(t, fields...).from(t, "SELECT * FROM v", src)
	copied, written := tb.both(t, "sum(hash(COLUMNS(*)))")
	require.Len(t, copied, 1)
	require.EqualValues(t, 50000, copiedRows(t, copied, isCopy))
	require.Len(t, written, 1)
	for _, want := range written[0].GetColumns() {
		got := proto.CloneOf(metrics(t, copied[0], want.GetFieldId()))
		require.NotNil(t, got.SizeBytes)
		got.SizeBytes = want.SizeBytes // row groups of another size
		if want.GetLower() != nil {    // exactness of text is not said by every writer
			require.NotNil(t, got.GetLower(), "%d", want.GetFieldId())
			got.Lower.Exact, got.Upper.Exact = want.GetLower().GetExact(), want.GetUpper().GetExact()
		}
		require.True(t, proto.Equal(want, got), "field %d:\n%v\n%v", want.GetFieldId(), want, got)
	}
	meta, _, _, err := footer.Open(path(copied[0].GetPath()))
	require.NoError(t, err)
	ids := map[string]int32{}
	for _, e := range meta.Schema {
		if e.HasID {
			ids[e.Name] = e.FieldID
		}
	}
	require.EqualValues(t, 1, ids["bo"])
	require.EqualValues(t, 101, ids["element"])
	require.EqualValues(t, 103, ids["key"])
	require.EqualValues(t, 108, ids["c"])
	require.Len(t, copied[0].GetSplitOffsets(), 3)
}
