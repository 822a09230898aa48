package write_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// constants runs a task without DuckDB.
func (tb *table) constants(t testing.TB, sql string) ([]*planv1.DataFile, bool) {
	t.Helper()
	tb.task.Sql, tb.task.AttemptId = sql, uuid.NewString()
	tb.write().Prefix = tb.DataLocation + "/job/0/0/" + tb.task.AttemptId
	scratch := t.TempDir()
	files, done, err := write.Constants(t.Context(), tb.task, filepath.Join(scratch, "f.parquet"), write.Options{Store: upload.Local{}})
	require.NoError(t, err)
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, left)
	return files, done
}

// wide is a table of every type that is written without DuckDB.
func wide(t testing.TB) *table {
	return newTable(t, field(1, "l", "long"), field(2, "i", "int"), field(3, "s", "string"), field(7, "b", "boolean"))
}

// What is written without DuckDB is what DuckDB writes, but for sizes.
func TestConstants_AreWhatDuckDBWrites(t *testing.T) {
	for name, sql := range map[string]string{
		"one row":      "VALUES (1, 2, 'one row', true)",
		"wide numbers": "VALUES (9223372036854775807, -2147483647, 'it''s', false), (-9223372036854775807, 2147483647, '', true)",
		"nulls":        "VALUES (NULL, 1, NULL, true), (2, NULL, 'ü€𝄞', NULL), (3, NULL, 'b', NULL), (NULL, NULL, NULL, NULL)",
		"only nulls":   "VALUES (NULL, NULL, NULL, NULL)",
		"many":         "VALUES (1, 1, 'a', true), (2, 1, 'b', false), (3, 1, 'c', true), (4, 1, 'd', true), (5, 1, 'e', false), (6, 1, 'f', true), (7, 1, 'g', true), (8, 1, 'h', true), (9, 1, 'i', false), (10, 1, 'j', true)",
	} {
		for _, codec := range []string{"", "zstd", "snappy", "uncompressed"} {
			t.Run(name+" "+codec, func(t *testing.T) {
				tb := wide(t)
				tb.Files.Codec = codec
				tb.Files.Metrics[3] = &planv1.MetricsMode{Kind: planv1.MetricsKind_METRICS_KIND_TRUNCATE, Length: 3}
				files, done := tb.constants(t, sql)
				require.True(t, done)
				require.Len(t, files, 1)
				st, err := os.Stat(path(files[0].GetPath()))
				require.NoError(t, err)
				require.Equal(t, st.Size(), files[0].GetSizeBytes())
				want := tb.mustRun(t, sql)
				require.Equal(t, readBack(t, want, "*"), readBack(t, files, "*"))
				require.True(t, proto.Equal(withoutSizes(want[0]), withoutSizes(files[0])), "%v\n%v", want[0], files[0])
				requireParquet(t, path(want[0].GetPath()), path(files[0].GetPath()))
			})
		}
	}
}

func withoutSizes(f *planv1.DataFile) *planv1.DataFile {
	out := proto.CloneOf(f)
	out.Path, out.SizeBytes = "", 0
	for _, c := range out.GetColumns() {
		c.SizeBytes = nil
	}
	return out
}

// requireParquet compares schemas, and reads the file with another reader than DuckDB.
func requireParquet(t *testing.T, want, got string) {
	t.Helper()
	a, _, _, err := footer.Open(want)
	require.NoError(t, err)
	b, _, _, err := footer.Open(got)
	require.NoError(t, err)
	require.Equal(t, a.Schema[1:], b.Schema[1:])
	require.Equal(t, a.Rows, b.Rows)
	for n := range a.Groups[0].Chunks {
		x, y := a.Groups[0].Chunks[n], b.Groups[0].Chunks[n]
		require.Equal(t, x.Codec, y.Codec)
		require.Equal(t, x.Stats.Nulls, y.Stats.Nulls)
		require.Equal(t, []any{x.Stats.HasMin, x.Stats.Min, x.Stats.Max}, []any{y.Stats.HasMin, y.Stats.Min, y.Stats.Max})
	}
	r, err := file.OpenParquetFile(got, false)
	require.NoError(t, err)
	defer r.Close()
	md := r.MetaData()
	require.EqualValues(t, b.Rows, md.NumRows)
	pages := 0
	for n := range b.Groups[0].Chunks {
		p, err := r.RowGroup(0).GetColumnPageReader(n)
		require.NoError(t, err)
		for p.Next() {
			pages++
			require.EqualValues(t, b.Rows, p.Page().NumValues())
		}
		require.NoError(t, p.Err())
	}
	require.Equal(t, len(b.Groups[0].Chunks), pages)
}

// What does not fit is DuckDB's: its checks and its messages stay the only ones.
func TestConstants_LeaveTheRestToDuckDB(t *testing.T) {
	long := make([]byte, 256)
	for i := range long {
		long[i] = 'x'
	}
	for name, c := range map[string]struct {
		sql    string
		change func(*table)
	}{
		"out of range":       {sql: "VALUES (1, 2147483648, 'a', true)"},
		"another type":       {sql: "VALUES ('1', 2, 'a', true)"},
		"a number as text":   {sql: "VALUES (1, 2, 3, true)"},
		"a long text":        {sql: "VALUES (1, 2, '" + string(long) + "', true)"},
		"an expression":      {sql: "VALUES (1, 2, lower('A'), true)"},
		"a select":           {sql: "SELECT 1, 2, 'a', true"},
		"null in a required": {sql: "VALUES (NULL, 2, 'a', true)", change: func(tb *table) { tb.write().Columns[0].Field.Required = true }},
		"a partition":        {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.partitionBy("p", 1, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0) }},
		"a sort order": {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) {
			tb.Sort = []*planv1.SortField{{SourceId: 1, Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}
		}},
		"another codec":     {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.Files.Codec = "gzip" }},
		"a level":           {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.Files.CodecLevel = 7 }},
		"a default":         {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.write().Columns[1].Input = -1 }},
		"another column":    {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.write().Columns[1].Input = 9 }},
		"lineage":           {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.write().RowLineage = true }},
		"a source":          {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.task.Sources = []*planv1.Source{{View: "v"}} }},
		"a float":           {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.write().Columns[1].Field = field(2, "f", "double") }},
		"another text type": {sql: "VALUES (1, 2, 'a', true)", change: func(tb *table) { tb.write().Columns[2].CastType = "JSON" }},
	} {
		t.Run(name, func(t *testing.T) {
			tb := wide(t)
			if c.change != nil {
				c.change(tb)
			}
			files, done := tb.constants(t, c.sql)
			require.False(t, done)
			require.Empty(t, files)
		})
	}
}

// A column of the query may go into any column of the table, or into several.
func TestConstants_ColumnsInAnyOrder(t *testing.T) {
	tb := wide(t)
	for n, in := range []int32{1, 1, 2, 0} {
		tb.write().Columns[n].Input = in
	}
	files, done := tb.constants(t, "VALUES (true, 5, 'a'), (NULL, 6, NULL)")
	require.True(t, done)
	require.Equal(t, []string{"5 5 a true", "6 6 <nil> <nil>"}, readBack(t, files, "*"))
}
