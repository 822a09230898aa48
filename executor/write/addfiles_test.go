package write_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/footer"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/executor/write"
)

// adds registers files in a table.
func (tb *table) adds(t testing.TB, files ...string) ([]*planv1.DataFile, error) {
	t.Helper()
	tb.from(t, "SELECT * FROM v", files...)
	tb.write().Add = &planv1.AddFiles{}
	scratch := t.TempDir()
	pool := duckdb.NewPool(duckdb.Options{Ready: -1, Setup: transform.Register})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	inst, err := pool.Open(t.Context(), duckdb.Access{ReadFiles: duckdb.FilesOf(tb.task.GetSources()), TempDir: scratch + "/spill", Threads: 1, MemoryBytes: 1 << 28})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inst.Close()) })
	return write.Add(t.Context(), inst, tb.task, write.Options{Scratch: scratch})
}

// A file that is registered has the metrics of one that is written, as far as its footer says them.
func TestAdd_MetricsAreTheFooters(t *testing.T) {
	fields, sql := everyColumn()
	src := parquetFile(t, sql, zstd)
	added, err := newTable(t, fields...).adds(t, src)
	require.NoError(t, err)
	require.Len(t, added, 1)
	st, err := os.Stat(src)
	require.NoError(t, err)
	require.Equal(t, "file://"+src, added[0].GetPath())
	require.Equal(t, []int64{50000, st.Size()}, []int64{added[0].GetRecordCount(), added[0].GetSizeBytes()})
	require.True(t, added[0].GetByName())
	require.Len(t, added[0].GetSplitOffsets(), 3)

	written, err := newTable(t, fields...).from(t, "SELECT * FROM v", src).runBound(t)
	require.NoError(t, err)
	for _, want := range written[0].GetColumns() {
		got := proto.CloneOf(metrics(t, added[0], want.GetFieldId()))
		require.NotNil(t, got.SizeBytes)
		got.SizeBytes = want.SizeBytes
		switch want.GetFieldId() {
		case 4, 5: // of floats only a look at the values tells how many NaNs there are
			require.Nil(t, got.NanCount)
			require.Nil(t, got.GetLower())
			require.Equal(t, want.GetNullCount(), got.GetNullCount())
			continue
		}
		if want.GetLower() != nil && got.GetLower() != nil { // exactness of text is not said by every writer
			got.Lower.Exact, got.Upper.Exact = want.GetLower().GetExact(), want.GetUpper().GetExact()
		}
		require.True(t, proto.Equal(want, got), "field %d:\n%v\n%v", want.GetFieldId(), want, got)
	}
}

func TestAdd_FieldIDs(t *testing.T) {
	const rows = "SELECT r AS a, {'x': r::INTEGER} AS s, ['t' || r] AS l FROM range(10) AS q(r)"
	fields := func() []*planv1.Field {
		return []*planv1.Field{field(1, "a", "long"), structOf(2, "s", field(5, "x", "int")), listOf(3, "l", field(6, "", "string"))}
	}
	good := parquetFile(t, rows, "FIELD_IDS {a: 1, s: {__duckdb_field_id: 2, x: 5}, l: {__duckdb_field_id: 3, element: 6}}")
	added, err := newTable(t, fields()...).adds(t, good)
	require.NoError(t, err)
	require.False(t, added[0].GetByName())
	require.EqualValues(t, 9, metrics(t, added[0], 5).GetUpper().GetValue().GetInteger())
	for name, tc := range map[string]struct{ ids, want string }{
		"another column's": {"{a: 2, s: {__duckdb_field_id: 1, x: 5}, l: {__duckdb_field_id: 3, element: 6}}", `column "a" has field id 2 in the file, which is column "s" of the table`},
		"nobody's":         {"{a: 9, s: {__duckdb_field_id: 2, x: 5}, l: {__duckdb_field_id: 3, element: 6}}", `column "a" has field id 9 in the file, and 1 in the table`},
		"not all":          {"{a: 1}", `column "s" has no field id, and other columns of the file have`},
		"nested":           {"{a: 1, s: {__duckdb_field_id: 2, x: 7}, l: {__duckdb_field_id: 3, element: 6}}", `column "s.x" has another field id in the file`},
	} {
		t.Run(name, func(t *testing.T) {
			file := parquetFile(t, rows, "FIELD_IDS "+tc.ids)
			_, err := newTable(t, fields()...).adds(t, file)
			refuse(t, err, tc.want, file)
		})
	}
	renamed := parquetFile(t, "SELECT r AS b FROM range(10) AS q(r)", "FIELD_IDS {b: 1}")
	_, err = newTable(t, field(1, "a", "long")).adds(t, renamed)
	refuse(t, err, `column "b" has field id 1 in the file, which is column "a" of the table`)
}

// Files without field ids are found by the table's name mapping, or its names.
func TestAdd_NameMapping(t *testing.T) {
	file := parquetFile(t, "SELECT r AS old, {'x': r} AS s FROM range(10) AS q(r)", "COMPRESSION zstd")
	tb := newTable(t, field(1, "a", "long"), structOf(2, "s", field(3, "x", "long")))
	_, err := tb.adds(t, file)
	refuse(t, err, `column "old" is not one of the table's`)
	tb.Names = []*planv1.FieldNames{{FieldId: 1, Names: []string{"a", "old"}}, {FieldId: 2, Names: []string{"s"}}, {FieldId: 3, Names: []string{"x"}}}
	added, err := tb.adds(t, file)
	require.NoError(t, err)
	require.EqualValues(t, 9, metrics(t, added[0], 1).GetUpper().GetValue().GetInteger())
	tb.Names = tb.Names[:2]
	_, err = tb.adds(t, file)
	refuse(t, err, `column "s.x" is not in the table's name mapping (property schema.name-mapping.default) as "x"`)
}

func TestAdd_Refusals(t *testing.T) {
	plain := func() *table { return newTable(t, required(field(1, "id", "long")), field(2, "s", "string")) }
	for name, tc := range map[string]struct {
		sql, options, want string
		table              *table
	}{
		"extra column":    {sql: "SELECT 1::BIGINT AS id, 'a' AS s, 2 AS more", want: `column "more" is not one of the table's`},
		"spelt otherwise": {sql: `SELECT 1::BIGINT AS "ID", 'a' AS s`, want: `column "ID" is not one of the table's, which has "id"`},
		"missing column":  {sql: "SELECT 'a' AS s", want: `column "id" of the table is required, and the file does not have it`},
		"NULLs":           {sql: "SELECT CASE WHEN r > 3 THEN r END AS id, 'a' AS s FROM range(9) AS q(r)", want: `column "id" of the table is required, and 4 rows of the file have none`},
		"wider type":      {sql: "SELECT 1::HUGEINT AS id", want: `column "id" is stored as DOUBLE`},
		"unsigned":        {sql: "SELECT 1::UINTEGER AS id", want: `column "id" is stored as INT32 with converted type 13`},
		"another type":    {sql: "SELECT 1::BIGINT AS id, 2 AS s", want: `column "s" is stored as INT32`},
		"milliseconds": {
			sql: "SELECT TIMESTAMP_MS '2024-01-01' AS ts", want: `column "ts" is stored as INT64 TIMESTAMP(millis`, table: newTable(t, field(1, "ts", "timestamp")),
		},
		"infinite date": {sql: "SELECT 'infinity'::DATE AS d", want: "it has a date or time that tables do not store", table: newTable(t, field(1, "d", "date"))},
		"several days": {
			sql: "SELECT DATE '2024-01-01' + r::INTEGER AS d FROM range(3) AS q(r)", want: `column "d": its rows are in several partitions of "p"`,
			table: newTable(t, field(1, "d", "date")).partitionBy("p", 1, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0),
		},
		"NULL beside a value": {
			sql: "SELECT CASE WHEN r > 0 THEN 1 END AS a FROM range(3) AS q(r)", want: `its rows are in several partitions of "p"`,
			table: newTable(t, field(1, "a", "int")).partitionBy("p", 1, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0),
		},
		"several buckets": {
			sql: "SELECT r AS id FROM range(100) AS q(r)", want: `its rows are in several partitions of "b"`,
			table: newTable(t, field(1, "id", "long")).partitionBy("b", 1, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 4),
		},
	} {
		t.Run(name, func(t *testing.T) {
			tb := tc.table
			if tb == nil {
				tb = plain()
			}
			file := parquetFile(t, tc.sql, "COMPRESSION zstd")
			_, err := tb.adds(t, file)
			refuse(t, err, tc.want, file)
		})
	}
	t.Run("no Parquet", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "x.parquet")
		require.NoError(t, os.WriteFile(file, []byte("PAR1 is not all of it PAR1"), 0o600))
		_, err := plain().adds(t, file)
		refuse(t, err, "it is no Parquet file that can be read", file)
	})
	t.Run("offsets", func(t *testing.T) {
		file := refooted(t, parquetFile(t, "SELECT r AS id FROM range(10) AS q(r)", "COMPRESSION zstd"), func(f *footer.File) { f.Groups[0].Chunks[0].DataOffset = 1 << 40 })
		_, err := plain().adds(t, file)
		refuse(t, err, `column "id": its place is not inside the file`, file)
	})
	t.Run("changed", func(t *testing.T) {
		file := parquetFile(t, "SELECT r AS id FROM range(10) AS q(r)", "COMPRESSION zstd")
		tb := plain().from(t, "SELECT * FROM v", file)
		tb.task.Sources[0].GetFile().Files[0].SizeBytes++
		tb.write().Add = &planv1.AddFiles{}
		_, err := write.Add(t.Context(), nil, tb.task, write.Options{})
		refuse(t, err, "has changed since the job was planned")
	})
}

// Types that a table's columns may have had before are read as those that they have now.
func TestAdd_NarrowerTypes(t *testing.T) {
	file := parquetFile(t, "SELECT r::INTEGER AS l, r::FLOAT AS d, (r * 0.5)::DECIMAL(9,2) AS n FROM range(10) AS q(r)", "COMPRESSION zstd")
	added, err := newTable(t, required(field(1, "l", "long")), field(2, "d", "double"), field(3, "n", "decimal(20,2)")).adds(t, file)
	require.NoError(t, err)
	require.EqualValues(t, 9, metrics(t, added[0], 1).GetUpper().GetValue().GetInteger())
	require.Equal(t, []byte{0x01, 0xc2}, metrics(t, added[0], 3).GetUpper().GetValue().GetDecimal().GetUnscaled())
	_, err = newTable(t, field(1, "l", "int"), field(2, "d", "float"), field(3, "n", "decimal(8,2)")).adds(t, file)
	refuse(t, err, `column "n" is stored as INT32 DECIMAL(9,2)`)
}

// A file is in one partition: by its footer, by a look at the column, or by the names of directories.
func TestAdd_Partitions(t *testing.T) {
	part := func(tb *table, file string) *planv1.DataFile {
		t.Helper()
		added, err := tb.adds(t, file)
		require.NoError(t, err)
		require.Len(t, added, 1)
		return added[0]
	}
	file := parquetFile(t, "SELECT DATE '2024-02-01' + (r % 20)::INTEGER AS d, 7::BIGINT AS id, NULL::INTEGER AS nothing, 1.5::DOUBLE AS f FROM range(50000) AS q(r)", zstd)
	fields := func() []*planv1.Field {
		return []*planv1.Field{field(1, "d", "date"), field(2, "id", "long"), field(3, "nothing", "int"), field(4, "f", "double")}
	}
	got := part(newTable(t, fields()...).partitionBy("m", 1, planv1.TransformKind_TRANSFORM_KIND_MONTH, 0).partitionBy("b", 2, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 16).
		partitionBy("n", 3, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0).partitionBy("v", 2, planv1.TransformKind_TRANSFORM_KIND_VOID, 0).
		partitionBy("f", 4, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0), file) // of floats only the values tell
	require.EqualValues(t, 54*12+1, got.GetPartition()[0].GetInteger())
	require.EqualValues(t, 3, got.GetPartition()[1].GetInteger())
	require.Nil(t, got.GetPartition()[2].GetKind())
	require.Nil(t, got.GetPartition()[3].GetKind())
	require.InDelta(t, 1.5, got.GetPartition()[4].GetFloat64(), 0)

	// Several values of one bucket: only the values tell.
	same := parquetFile(t, "SELECT 7::BIGINT + (r % 2) * 0 AS id FROM range(10) AS q(r)", "COMPRESSION zstd")
	stripped := refooted(t, same, func(f *footer.File) { f.Groups[0].Chunks[0].Stats = nil })
	got = part(newTable(t, field(2, "id", "long")).partitionBy("b", 2, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 16), stripped)
	require.EqualValues(t, 3, got.GetPartition()[0].GetInteger())
	require.Nil(t, metrics(t, got, 2).NullCount)

	hive := func(dirs ...string) string {
		dir := filepath.Join(append([]string{t.TempDir()}, dirs...)...)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		b, err := os.ReadFile(parquetFile(t, "SELECT 1::BIGINT AS id", "COMPRESSION zstd"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.parquet"), b, 0o600))
		return filepath.Join(dir, "x.parquet")
	}
	byDay := func() *table {
		return newTable(t, field(1, "id", "long"), field(2, "day", "date"), field(3, "n", "int")).partitionBy("day", 2, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0).
			partitionBy("n", 3, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0)
	}
	got = part(byDay(), hive("day=2024-01-02", "n=007", "other=1"))
	require.EqualValues(t, 19724, got.GetPartition()[0].GetInteger())
	require.EqualValues(t, 7, got.GetPartition()[1].GetInteger())
	require.Len(t, got.GetColumns(), 1, "the file does not have the others")
	got = part(byDay(), hive("day=__HIVE_DEFAULT_PARTITION__"))
	require.Nil(t, got.GetPartition()[0].GetKind())
	_, err := byDay().adds(t, hive("day=yesterday"))
	refuse(t, err, `column "day": the directory says "yesterday", which is no DATE`)
	_, err = byDay().adds(t, hive("n=1.5"))
	refuse(t, err, `column "n": the directory says "1.5", which is no INTEGER`)
	_, err = newTable(t, field(1, "id", "long"), field(2, "day", "date")).adds(t, hive("day=2024-01-02"))
	refuse(t, err, `column "day" is in the names of directories only, and the table is not partitioned by its values`)
	_, err = newTable(t, field(1, "id", "long"), field(2, "day", "date")).partitionBy("m", 2, planv1.TransformKind_TRANSFORM_KIND_MONTH, 0).adds(t, hive("day=2024-01-02"))
	refuse(t, err, `column "day" is in the names of directories only`)
}

func TestAdd_FilesWithoutRowsAreLeftOut(t *testing.T) {
	empty := parquetFile(t, "SELECT 1::BIGINT AS id WHERE false", "COMPRESSION zstd")
	full := parquetFile(t, "SELECT 1::BIGINT AS id", "COMPRESSION zstd")
	added, err := newTable(t, field(1, "id", "long")).adds(t, empty, full)
	require.NoError(t, err)
	require.Len(t, added, 1)
	require.Equal(t, "file://"+full, added[0].GetPath())
}

func TestCheckCopies(t *testing.T) {
	tb := newTable(t, required(field(1, "id", "long")), field(2, "s", "string"), field(3, "day", "date"))
	check := func(files ...string) (*write.CopyReport, error) {
		tb.from(t, "", files...)
		return write.CheckCopies(t.Context(), tb.WriteSpec, tb.task.GetSources()[0].GetFile().GetFiles())
	}
	a := parquetFile(t, "SELECT 1::BIGINT AS id, 'x' AS s", "COMPRESSION zstd")
	b := parquetFile(t, "SELECT 1::UTINYINT AS id", "COMPRESSION zstd")
	r, err := check(a, b)
	require.NoError(t, err)
	require.Equal(t, &write.CopyReport{Columns: []string{"id", "s"}, Rows: 2}, r)
	_, err = check(a, parquetFile(t, "SELECT 'x' AS s", "COMPRESSION zstd"))
	refuse(t, err, `column "id" of the table is required, and the file does not have it`)
	_, err = check(parquetFile(t, "SELECT 1 AS id, 2 AS x", "COMPRESSION zstd"))
	refuse(t, err, `column "x" is not one of the table's`)
	_, err = check(parquetFile(t, "SELECT 1 AS id", "FIELD_IDS {id: 2}"))
	refuse(t, err, `column "id" has field id 2 in the file, which is column "s" of the table`)
	dir := filepath.Join(t.TempDir(), "day=2024-01-02")
	require.NoError(t, os.Mkdir(dir, 0o755))
	raw, err := os.ReadFile(a)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "y.parquet"), raw, 0o600))
	r, err = check(filepath.Join(dir, "y.parquet"))
	require.NoError(t, err)
	require.Equal(t, []string{"day"}, r.PathColumns)
	_, err = check(filepath.Join(dir, "y.parquet"), parquetFile(t, "SELECT 1::BIGINT AS id, DATE '2024-01-01' AS day", "COMPRESSION zstd"))
	refuse(t, err, `column "day" is in the names of directories only, and`)
}
