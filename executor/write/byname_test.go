package write_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/write"
)

// byName is a table of a format whose files have neither field ids nor partition columns, as Delta's.
func byName(t testing.TB, fields ...*planv1.Field) *table {
	tb := newTable(t, fields...)
	tb.Files.NoFieldIds, tb.Files.OmitPartitionColumns, tb.Files.FourDigitYears = true, true, true
	return tb
}

// schemaOf is the schema of a file: names, types and ids.
func schemaOf(t testing.TB, f *planv1.DataFile) []string {
	t.Helper()
	return query(t, "SELECT name, type, coalesce(CAST(field_id AS VARCHAR), '-') FROM parquet_schema("+duckdb.Literal(path(f.GetPath()))+") WHERE column_id > 0 ORDER BY column_id")
}

func TestRun_NoFieldIDs(t *testing.T) {
	tb := byName(t, field(1, "i", "int"), structOf(2, "s", field(3, "v", "string")), listOf(4, "l", field(5, "element", "long")), mapOf(6, "m", field(7, "key", "string"), field(8, "value", "int")))
	files := tb.mustRun(t, "VALUES (1, {'v': 'a'}, [2], MAP {'k': 3})")
	require.Len(t, files, 1)
	for _, line := range schemaOf(t, files[0]) {
		require.True(t, strings.HasSuffix(line, " -"), line)
	}
	require.Equal(t, int64(1), metrics(t, files[0], 1).GetLower().GetValue().GetInteger(), "statistics go by the ids of the plan")
	require.Empty(t, query(t, "SELECT name FROM parquet_schema("+duckdb.Literal(path(files[0].GetPath()))+") WHERE converted_type IN ('INT_32', 'INT_64')"))
}

func TestRun_OmitsPartitionColumns(t *testing.T) {
	tb := byName(t, field(1, "p", "string"), field(2, "x", "int"), required(field(3, "d", "date"))).partitionBy("p", 1, identity, 0).partitionBy("d", 3, identity, 0)
	files := tb.mustRun(t, "VALUES ('a', 1, DATE '2024-02-29'), ('a', 2, DATE '2024-02-29'), (NULL, 3, DATE '0001-01-01'), ('', 4, DATE '9999-12-31')")
	require.Equal(t, []string{`"",2932896: 1`, `"a",19782: 2`, "NULL,-719162: 1"}, partitions(files))
	for _, f := range files {
		require.Equal(t, []string{"x INT32 -"}, schemaOf(t, f))
		require.Len(t, f.GetColumns(), 1)
	}
	require.ElementsMatch(t, []string{"1", "2", "3", "4"}, readBack(t, files, "x"))

	_, err := tb.run(t, "VALUES ('a', 1, NULL::DATE)")
	refuse(t, err, `column "d": NULL in a required column`)
}

func TestRun_OmittedColumnsOfEveryType(t *testing.T) {
	for _, m := range matrix {
		t.Run(m.t, func(t *testing.T) {
			tb := byName(t, field(1, "x", "int"), field(2, "p", m.t)).partitionBy("p", 2, identity, 0)
			tb.Files.FourDigitYears = false
			kept := newTable(t, field(1, "x", "int"), field(2, "p", m.t)).partitionBy("p", 2, identity, 0)
			sql := "SELECT unnest([1, 2]), p FROM (VALUES (" + strings.Join(append(m.values, "NULL"), "), (") + ")) v(p)"
			require.Equal(t, partitions(kept.mustRun(t, sql)), partitions(tb.mustRun(t, sql)))
		})
	}
}

// Sorted and outsize files are written anew, without the columns that they do not have.
func TestRun_OmittedColumnsOfSortedFiles(t *testing.T) {
	tb := byName(t, field(1, "p", "int"), field(2, "x", "long")).partitionBy("p", 1, identity, 0)
	tb.SortOrderId, tb.Sort = 1, []*planv1.SortField{{SourceId: 1, Transform: identity}, {SourceId: 2, Transform: identity, Descending: true}}
	tb.Files.TargetFileSizeBytes, tb.Files.RowGroupRows = 100<<10, 10_000
	files := tb.mustRun(t, "SELECT i % 2, (hash(i) >> 1)::BIGINT FROM range(100000) t(i)")
	require.Greater(t, len(files), 2)
	for _, f := range files {
		require.Equal(t, []string{"x INT64 -"}, schemaOf(t, f))
		require.Equal(t, []string{"0"}, query(t, "SELECT count(*) FROM (SELECT x, lag(x) OVER (ORDER BY file_row_number) AS before FROM read_parquet("+duckdb.Literal(path(f.GetPath()))+", file_row_number=true)) WHERE before < x"))
	}
}

func TestRun_NothingButPartitionColumns(t *testing.T) {
	tb := byName(t, field(1, "p", "int")).partitionBy("p", 1, identity, 0)
	_, err := tb.run(t, "VALUES (1)")
	refuse(t, err, "all columns of the table are partition columns")
}

func TestRun_NamesThatDifferInCase(t *testing.T) { // X3: without ids nobody could tell them apart
	_, err := byName(t, field(1, "a", "int"), field(2, "A", "int")).run(t, "VALUES (1, 2)")
	refuse(t, err, `column "A"`)
}

// X4
func TestRun_YearsOfFourDigits(t *testing.T) {
	for _, c := range []struct{ t, value, want string }{
		{"date", "DATE '10000-01-01'", "10000-01-01"},
		{"date", "DATE '0001-12-31 (BC)'", "0001-12-31 (BC)"},
		{"date", "'infinity'::DATE", "infinity"},
		{"timestamp", "TIMESTAMP '10000-01-01'", "10000-01-01"},
		{"timestamptz", "TIMESTAMPTZ '0001-12-31 (BC) 23:59:59.999999+00'", "(BC)"},
		{"timestamp", "'-infinity'::TIMESTAMP", "infinity"},
		{"timestamptz", "'infinity'::TIMESTAMPTZ", "infinity"},
	} {
		tb := byName(t, field(1, "x", "int"), field(2, "v", c.t))
		_, err := tb.run(t, "VALUES (1, "+c.value+")")
		refuse(t, err, `column "v": value`, c.want)
		_, err = tb.partitionBy("v", 2, identity, 0).run(t, "VALUES (1, "+c.value+")")
		refuse(t, err, `column "v": value`)
		_, err = byName(t, listOf(1, "l", field(2, "element", c.t))).run(t, "SELECT ["+c.value+"]")
		refuse(t, err, `column "l.element": value`)
	}
	ok := "VALUES (DATE '0001-01-01', TIMESTAMP '0001-01-01', TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'), (DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMPTZ '0001-01-01 00:00:00+00')"
	byName(t, field(1, "a", "date"), field(2, "b", "timestamp"), field(3, "c", "timestamptz")).mustRun(t, ok)
	newTable(t, field(1, "d", "date")).mustRun(t, "VALUES (DATE '12026-01-01')")
}

func TestRun_NaNsAreKnownExactly(t *testing.T) {
	tb := byName(t, field(1, "a", "double"), field(2, "b", "float"), structOf(3, "s", field(4, "c", "double")))
	files := tb.mustRun(t, "VALUES (1.5::DOUBLE, 'nan'::FLOAT, {'c': 'nan'::DOUBLE}), (NULL, 2, NULL), ('-infinity'::DOUBLE, NULL, {'c': NULL})")
	f := files[0]
	for id, nans := range map[int32]int64{1: 0, 2: 1, 4: 1} {
		require.NotNil(t, metrics(t, f, id).NanCount)
		require.Equal(t, nans, metrics(t, f, id).GetNanCount(), id)
	}
	require.True(t, math.IsInf(metrics(t, f, 1).GetLower().GetValue().GetFloat64(), -1))
	require.Equal(t, int64(2), metrics(t, f, 4).GetNullCount(), "a row without the struct has no value either")
}

// byNameScan is a scan of files by names.
func byNameScan(fields []*planv1.Field, files ...*planv1.PinnedFile) *planv1.TableScan {
	return &planv1.TableScan{Schema: &planv1.Schema{Fields: fields}, Files: files, Table: "lake.s.t", ByName: true}
}

func TestSplice_WithoutFieldIDsAndPartitionColumns(t *testing.T) {
	src := newTable(t, field(11, "p", "string"), field(12, "x", "long")).partitionBy("p", 11, identity, 0)
	src.Files.RowGroupRows = 20_000
	made := src.mustRun(t, "SELECT CASE WHEN i % 2 = 0 THEN 'even' END, i FROM range(100000) t(i)")
	require.Len(t, made, 2)
	var files []*planv1.PinnedFile
	for _, f := range made {
		files = append(files, pinned(t, path(f.GetPath())))
	}
	tb := byName(t, field(1, "p", "string"), field(2, "x", "long")).partitionBy("p", 1, identity, 0)
	tb.Files.AnyCodec = true
	tb.write().Splice = true
	out := tb.copies(t, &planv1.Source{View: "v", Kind: &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet", Files: files}}}, 100_000)
	require.Equal(t, []string{`"even": 50000`, "NULL: 50000"}, partitions(out))
	for _, f := range out {
		require.Equal(t, []string{"x INT64 -"}, schemaOf(t, f), "the column is in the source alone")
	}
	require.Equal(t, []string{"100000 4999950000"}, readBack(t, out, "count(*), sum(x)::BIGINT"))

	// From one such table into another: neither has the column in its files.
	var scanned []*planv1.PinnedFile
	for _, f := range out {
		file := pinned(t, path(f.GetPath()))
		file.Constants = f.GetPartition()
		scanned = append(scanned, file)
	}
	scan := byNameScan([]*planv1.Field{field(1, "p", "string"), field(2, "x", "long")}, scanned...)
	scan.ConstantIds = []int32{1}
	again := tb.copies(t, &planv1.Source{View: "v", Kind: &planv1.Source_Table{Table: scan}}, 100_000)
	require.Equal(t, partitions(out), partitions(again))
	require.Equal(t, []string{"100000 4999950000"}, readBack(t, again, "count(*), sum(x)::BIGINT"))

	// Into a table that wants the column in its files it has to be written.
	into := newTable(t, field(1, "p", "string"), field(2, "x", "long"))
	into.write().Splice = true
	require.Contains(t, into.report(t, &planv1.Source{View: "v", Kind: &planv1.Source_Table{Table: scan}}).Reason, `column "p" is not in the files`)
}

func TestSplice_YearsAndPartsOfStructs(t *testing.T) {
	src := newTable(t, field(1, "d", "date"), structOf(2, "s", field(3, "v", "long")))
	f := src.mustRun(t, "SELECT DATE '12026-01-01', {'v': i} FROM range(100000) t(i)")
	tb := byName(t, field(1, "d", "date"), structOf(2, "s", field(3, "v", "long")))
	tb.write().Splice = true
	source := &planv1.Source{View: "v", Kind: &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet", Files: []*planv1.PinnedFile{pinned(t, path(f[0].GetPath()))}}}}
	require.Contains(t, tb.report(t, source).Files[0].Reason, `column "d": it has a date or time that tables do not store`)
	_, err := tb.runBound(t)
	refuse(t, err, `column "d": value 12026-01-01`)
}

// Files that others have written for the table may hold a partition column, and ids that are somebody else's.
func TestAdd_FieldIDsOfOthers(t *testing.T) {
	file := parquetFile(t, "SELECT 7 AS p, r AS x FROM range(10) q(r)", "FIELD_IDS {p: 2, x: 1}")
	_, err := newTable(t, field(1, "p", "int"), field(2, "x", "long")).partitionBy("p", 1, identity, 0).adds(t, file)
	refuse(t, err, `column "p" has field id 2`)
	files, err := byName(t, field(1, "p", "int"), field(2, "x", "long")).partitionBy("p", 1, identity, 0).adds(t, file)
	require.NoError(t, err)
	require.Equal(t, []string{"7: 10"}, partitions(files))
	require.True(t, files[0].GetByName())
}

// copies writes a source as it is, and requires that all of its rows are copied.
func (tb *table) copies(t testing.TB, src *planv1.Source, rows int64) []*planv1.DataFile {
	t.Helper()
	report := tb.report(t, src)
	require.Empty(t, report.Reason)
	copied := int64(0)
	for _, f := range report.Files {
		require.Empty(t, f.Reason)
		copied += f.Copied
	}
	require.Equal(t, rows, copied)
	files, err := tb.runBound(t)
	require.NoError(t, err)
	return files
}

// report says what of a source would be copied.
func (tb *table) report(t testing.TB, src *planv1.Source) *write.SpliceReport {
	t.Helper()
	tb.task.Sources, tb.task.Sql = []*planv1.Source{src}, "FROM v"
	r, err := write.Splice(t.Context(), tb.bound(t, t.TempDir()), tb.task, nil)
	require.NoError(t, err)
	return r
}
