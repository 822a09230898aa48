package write_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
	"github.com/signet-io/signet/executor/write"
)

// plainRows is a file that can be copied into plainTable.
const plainRows = "SELECT r AS id, 'name ' || r AS name, DATE '2020-01-01' + (r % 1000)::INTEGER AS day FROM range(60000) AS q(r)"

func plainTable(t testing.TB) *table {
	return spliced(t, field(1, "id", "long"), field(2, "name", "string"), field(3, "day", "date"))
}

// refooted writes a copy of a file with another footer.
func refooted(t testing.TB, file string, change func(*footer.File)) string {
	t.Helper()
	meta, start, _, err := footer.Open(file)
	require.NoError(t, err)
	change(meta)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "changed.parquet")
	require.NoError(t, os.WriteFile(out, append(b[:start], meta.End()...), 0o600))
	return out
}

func (tb *table) reason(t testing.TB) string {
	t.Helper()
	report, err := write.Splice(t.Context(), tb.bound(t, t.TempDir()), tb.task, nil)
	require.NoError(t, err)
	if report.Reason != "" {
		return report.Reason
	}
	for _, f := range report.Files {
		if f.Reason != "" {
			return f.Reason
		}
	}
	return ""
}

// Each rule has a source or a table that breaks it; its rows are then written anew, and are the same.
func TestSplice_Rules(t *testing.T) {
	plain := parquetFile(t, plainRows, zstd)
	for _, c := range []struct {
		name   string
		make   func(*testing.T) *table
		reason string
	}{
		{"nothing is broken", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT * FROM v", plain) }, ""},
		{"columns by name", func(t *testing.T) *table {
			return plainTable(t).from(t, `SELECT "ID", x.name, day AS d FROM v AS x`, plain)
		}, ""},
		{"filter", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT * FROM v WHERE id >= 0", plain) }, "the query has WHERE"},
		{"limit", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT * FROM v LIMIT 60000", plain) }, "LIMIT"},
		{"distinct", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT DISTINCT * FROM v", plain) }, "DISTINCT"},
		{"order", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT * FROM v ORDER BY id", plain) }, "ORDER BY"},
		{"group", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT id, name, day FROM v GROUP BY ALL", plain)
		}, "the query is more than one SELECT"},
		{"sample", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT * FROM v USING SAMPLE 100%", plain) }, "a sample"},
		{"table sample", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT * FROM v TABLESAMPLE 100%", plain) }, "more than one SELECT"},
		{"qualify", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v QUALIFY row_number() OVER (ORDER BY id) > 0", plain)
		}, "QUALIFY"},
		{"union", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v UNION ALL SELECT * FROM v WHERE false", plain)
		}, "more than one SELECT"},
		{"with", func(t *testing.T) *table { return plainTable(t).from(t, "WITH w AS (SELECT 1) SELECT * FROM v", plain) }, "more than one SELECT"},
		{"join", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT v.* FROM v, (SELECT 1)", plain) }, "more than its source"},
		{"expression", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT id + 0, name, day FROM v", plain) }, "computes a column"},
		{"replace", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * REPLACE (id + 0 AS id) FROM v", plain)
		}, "what * stands for"},
		{"exclude", func(t *testing.T) *table { return plainTable(t).from(t, "SELECT * EXCLUDE (day), day FROM v", plain) }, "what * stands for"},
		{"cast", func(t *testing.T) *table {
			return spliced(t, field(1, "id", "decimal(20,0)"), field(2, "name", "string"), field(3, "day", "date")).from(t, "SELECT * FROM v", plain)
		}, `column "id" is cast`},
		{"default", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT id, name FROM v", plain)
			tb.write().Columns[2].Input = -1
			return tb
		}, `column "day" gets its default`},
		{"switched off", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", plain)
			tb.Files.NoSplice = true
			return tb
		}, "switched off for the table"},
		{"sort order", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", plain)
			tb.SortOrderId, tb.Sort = 1, []*planv1.SortField{{SourceId: 1, Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}
			return tb
		}, "sort order"},
		{"row lineage", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", plain)
			tb.write().RowLineage = true
			return tb
		}, "keep their ids"},
		{"option", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT id, name, day FROM v", plain)
			tb.task.Sources[0].GetFile().Options = map[string]string{"filename": "true"}
			return tb
		}, "option filename"},
		{"codec", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", plain)
			tb.Files.Codec = "snappy"
			return tb
		}, "compressed with zstd, and the table's files with snappy"},
		{"codec that is a default", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", parquetFile(t, plainRows, "COMPRESSION snappy, ROW_GROUP_SIZE 20000"))
			tb.Files.Codec, tb.Files.AnyCodec = "zstd", true
			return tb
		}, ""},
		{"uncompressed", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", parquetFile(t, plainRows, "COMPRESSION uncompressed"))
			tb.Files.Codec, tb.Files.AnyCodec = "zstd", true
			return tb
		}, "compressed with uncompressed"},
		{"rows of a row group", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", plain)
			tb.Files.RowGroupRows = 10000
			return tb
		}, "a row group has 20480 rows, and the table allows 10000"},
		{"bytes of a row group", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", plain)
			tb.Files.RowGroupBytes = 100000
			return tb
		}, "and the table allows 100000"},
		{"small row groups", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v", parquetFile(t, plainRows+" LIMIT 4000", "COMPRESSION zstd, ROW_GROUP_SIZE 2048"))
		}, "on average"},
		{"encodings of version 2", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v", parquetFile(t, plainRows, zstd+", PARQUET_VERSION V2"))
		}, "version"},
		{"encodings of version 2 where they are wanted", func(t *testing.T) *table {
			tb := plainTable(t).from(t, "SELECT * FROM v", parquetFile(t, plainRows, zstd+", PARQUET_VERSION V2"))
			tb.Files.ParquetVersion = "V2"
			return tb
		}, ""},
		{"required, with NULL", func(t *testing.T) *table {
			tb := spliced(t, field(1, "id", "long"), required(field(2, "name", "string")))
			return tb.from(t, "SELECT * FROM v", refooted(t, parquetFile(t, "SELECT r AS id, 'n' || r AS name FROM range(60000) AS q(r)", zstd), func(f *footer.File) {
				f.Schema[2].Repetition = footer.Optional
				for n := range f.Groups {
					f.Groups[n].Chunks[1].Stats.Nulls = -1
				}
			}))
		}, `column "name" is required`},
		{"required, without NULL", func(t *testing.T) *table {
			return spliced(t, field(1, "id", "long"), required(field(2, "name", "string"))).
				from(t, "SELECT * FROM v", parquetFile(t, "SELECT r AS id, 'n' || r AS name FROM range(60000) AS q(r)", zstd))
		}, ""},
		{"dates without statistics", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v", refooted(t, plain, func(f *footer.File) {
				for n := range f.Groups {
					f.Groups[n].Chunks[2].Stats = nil
				}
			}))
		}, `column "day": it has no statistics that say`},
		{"order of statistics", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v", refooted(t, plain, func(f *footer.File) { f.Ordered = nil }))
		}, `column "day": it has no statistics`},
		{"writer of wrong statistics", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v", refooted(t, plain, func(f *footer.File) { f.CreatedBy = "parquet-mr version 1.8.0 (build 0)" }))
		}, `column "day": it has no statistics`},
		{"type of a column", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT id, name, day::DATE FROM v", parquetFile(t, "SELECT id, name, day::TIMESTAMP AS day FROM ("+plainRows+")", zstd))
		}, "computes a column"},
		{"timestamps that may be UTC or not", func(t *testing.T) *table {
			return spliced(t, field(1, "ts", "timestamp")).from(t, "SELECT * FROM v", refooted(t,
				parquetFile(t, "SELECT TIMESTAMP '2020-01-01' + to_microseconds(r * 1009) AS ts FROM range(100000) AS q(r)", zstd),
				func(f *footer.File) { f.Schema[1].Logical = footer.Logical{} }))
		}, "is stored as INT64 with converted type 10"},
		{"values do not add up", func(t *testing.T) *table {
			return plainTable(t).from(t, "SELECT * FROM v", refooted(t, plain, func(f *footer.File) {
				for n := range f.Groups {
					f.Groups[n].Chunks[0].Values--
					f.Groups[n].Chunks[0].Compressed--
				}
			}))
		}, `column "id": it counts`},
		{"partition", func(t *testing.T) *table {
			return plainTable(t).partitionBy("day", 3, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0).
				from(t, "SELECT * FROM v", parquetFile(t, "SELECT * REPLACE (DATE '2020-01-01' + (id % 3)::INTEGER AS day) FROM ("+plainRows+")", zstd))
		}, `partition field "day": the row group may have rows of several partitions`},
		{"NULLs beside values of a partition", func(t *testing.T) *table {
			return plainTable(t).partitionBy("day", 3, planv1.TransformKind_TRANSFORM_KIND_YEAR, 0).
				from(t, "SELECT * FROM v", parquetFile(t, "SELECT * REPLACE (CASE WHEN id % 2 = 0 THEN DATE '2020-01-01' END AS day) FROM ("+plainRows+")", zstd))
		}, "NULLs and other values"},
		{"bucket of a range", func(t *testing.T) *table {
			return plainTable(t).partitionBy("b", 1, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 4).from(t, "SELECT * FROM v", plain)
		}, "several buckets"},
		{"float partition", func(t *testing.T) *table {
			return spliced(t, field(1, "f", "double"), field(2, "s", "string")).partitionBy("f", 1, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0).
				from(t, "SELECT * FROM v", parquetFile(t, "SELECT 1.5::DOUBLE AS f, 'row ' || r AS s FROM range(60000) AS q(r)", zstd))
		}, "NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := c.make(t)
			got := tb.reason(t)
			cols := "count(COLUMNS(*)), sum(hash(COLUMNS(*)))"
			if c.reason == "" {
				require.Empty(t, got)
				copied, _ := tb.both(t, cols)
				require.EqualValues(t, 60000, copiedRows(t, copied, isCopy)*60000/max(copiedRows(t, copied, func(*footer.File) bool { return true }), 1))
				return
			}
			require.Contains(t, got, c.reason)
			if c.name == "row lineage" { // its rows come with ids, which this query does not give
				return
			}
			copied, _ := tb.both(t, cols)
			require.Zero(t, copiedRows(t, copied, isCopy))
		})
	}
}

// Row groups of one file go both ways, and their rows stay as they are.
func TestSplice_Mixed(t *testing.T) {
	src := parquetFile(t, "SELECT r AS id, 'name ' || r AS name, CASE WHEN r < 20480 OR r > 45000 THEN DATE '2020-01-01' ELSE DATE '2020-01-01' + (r % 3)::INTEGER END AS day FROM range(100000) AS q(r)", zstd)
	tb := plainTable(t).partitionBy("day", 3, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0).from(t, "SELECT * FROM v", src)
	copied, written := tb.both(t, "sum(hash(id, name, day))")
	require.EqualValues(t, 100000-2*20480, copiedRows(t, copied, isCopy))
	perDay := func(files []*planv1.DataFile) map[string]int64 {
		out := map[string]int64{}
		for _, f := range files {
			out[fmt.Sprint(f.GetPartition()[0].GetInteger())] += f.GetRecordCount()
		}
		return out
	}
	require.Equal(t, perDay(written), perDay(copied))
}

// Every transform that keeps order routes row groups; NULLs have a partition of their own.
func TestSplice_Partitions(t *testing.T) {
	src := parquetFile(t, `SELECT * FROM (SELECT r AS id, 'key' || (r // 20480) || '-' || r AS name, CASE WHEN r >= 40960 THEN NULL ELSE DATE '2020-01-15' + ((r // 20480) * 31)::INTEGER END AS day
		FROM range(61440) AS q(r)) ORDER BY id`, zstd)
	for _, p := range []struct {
		source int32
		kind   planv1.TransformKind
		param  int32
	}{
		{3, planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0},
		{3, planv1.TransformKind_TRANSFORM_KIND_DAY, 0},
		{3, planv1.TransformKind_TRANSFORM_KIND_MONTH, 0},
		{3, planv1.TransformKind_TRANSFORM_KIND_BUCKET, 7},
		{2, planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, 4},
		{1, planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, 20480},
	} {
		t.Run(fmt.Sprint(p.kind, p.source), func(t *testing.T) {
			tb := plainTable(t).partitionBy("p", p.source, p.kind, p.param).from(t, "SELECT * FROM v", src)
			copied, written := tb.both(t, "sum(hash(id, name, day))")
			require.EqualValues(t, 61440, copiedRows(t, copied, isCopy))
			parts := func(files []*planv1.DataFile) (out []string) {
				for _, f := range files {
					out = append(out, f.GetPartition()[0].String()+fmt.Sprint(f.GetRecordCount()))
				}
				return out
			}
			require.ElementsMatch(t, parts(written), parts(copied))
		})
	}
}

func TestSplice_RollsAndMerges(t *testing.T) {
	a, b := parquetFile(t, plainRows, zstd), parquetFile(t, plainRows, zstd)
	tb := plainTable(t).from(t, "SELECT * FROM v", a, b)
	files, err := tb.runBound(t)
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.EqualValues(t, 120000, files[0].GetRecordCount())
	require.Len(t, files[0].GetSplitOffsets(), 6)
	tb.Files.TargetFileSizeBytes = files[0].GetSizeBytes() / 3
	files, err = tb.runBound(t)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, f := range files {
		require.LessOrEqual(t, f.GetSizeBytes(), tb.Files.GetTargetFileSizeBytes()*11/10)
	}
	require.EqualValues(t, 120000, copiedRows(t, files, isCopy))
}

// A task's share is a run of row groups; one that cuts a row group takes its rows the other way.
func TestSplice_Shares(t *testing.T) {
	src := parquetFile(t, plainRows, zstd)
	tb := plainTable(t).from(t, "SELECT * FROM v", src)
	tb.bound(t, t.TempDir()) // learns the columns
	f := tb.task.Sources[0].GetFile().Files[0]
	f.FirstRow, f.EndRow = 20480, 40960
	copied, _ := tb.both(t, "min(id), max(id), sum(hash(id, name, day))")
	require.EqualValues(t, 20480, copiedRows(t, copied, isCopy))
	f.FirstRow, f.EndRow = 10, 41000
	copied, _ = tb.both(t, "min(id), max(id), sum(hash(id, name, day))")
	require.EqualValues(t, 20480, copiedRows(t, copied, isCopy))
}

// Statistics that are missing or not to be trusted are computed, and not copied.
func TestSplice_Measures(t *testing.T) {
	src := parquetFile(t, "SELECT r AS id, CASE WHEN r % 10 > 0 THEN 'name ' || r END AS name, CASE WHEN r = 7 THEN -0.0 WHEN r = 9 THEN 'nan'::DOUBLE ELSE r END AS f FROM range(60000) AS q(r)", zstd)
	for name, change := range map[string]func(*footer.File){
		"missing": func(f *footer.File) {
			for n := range f.Groups {
				for c := range f.Groups[n].Chunks {
					f.Groups[n].Chunks[c].Stats = nil
				}
			}
		},
		"wrong": func(f *footer.File) {
			f.CreatedBy = "parquet-mr version 1.8.0"
			for n := range f.Groups {
				f.Groups[n].Chunks[1].Stats.Max = []byte("a")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tb := spliced(t, field(1, "id", "long"), field(2, "name", "string"), field(3, "f", "double")).from(t, "SELECT * FROM v", refooted(t, src, change))
			files, err := tb.runBound(t)
			require.NoError(t, err)
			require.EqualValues(t, 60000, copiedRows(t, files, isCopy))
			require.EqualValues(t, 6000, metrics(t, files[0], 2).GetNullCount())
			require.Equal(t, "name 9999", metrics(t, files[0], 2).GetUpper().GetValue().GetString_())
			require.EqualValues(t, 59999, metrics(t, files[0], 1).GetUpper().GetValue().GetInteger())
			require.EqualValues(t, 1, metrics(t, files[0], 3).GetNanCount())
			require.InDelta(t, 59999, metrics(t, files[0], 3).GetUpper().GetValue().GetFloat64(), 0)
			meta, _, _, err := footer.Open(path(files[0].GetPath()))
			require.NoError(t, err)
			require.Nil(t, meta.Groups[0].Chunks[1].Stats)

			left, s := tb.runLeft(t, 1) // where only the columns in question are read
			require.Equal(t, 1, s.made)
			require.Zero(t, s.fetched)
			for n, want := range files[0].GetColumns() {
				require.True(t, proto.Equal(want, left[0].GetColumns()[n]), "%v\n%v", want, left[0].GetColumns()[n])
			}
			require.Equal(t, files[0].GetSizeBytes(), left[0].GetSizeBytes())
			require.Equal(t, files[0].GetSplitOffsets(), left[0].GetSplitOffsets())
		})
	}
}

// What no table stores is refused in the same words, copied or not.
func TestSplice_InfiniteDates(t *testing.T) {
	tb := plainTable(t).from(t, "SELECT * FROM v", parquetFile(t, "SELECT * REPLACE (CASE WHEN id = 5 THEN 'infinity'::DATE ELSE day END AS day) FROM ("+plainRows+")", zstd))
	_, err := tb.runBound(t)
	refuse(t, err, `column "day": value infinity cannot be stored`)
}

// S73
func TestSplice_ChangedSource(t *testing.T) {
	src := parquetFile(t, plainRows, zstd)
	tb := plainTable(t).from(t, "SELECT * FROM v", src)
	scratch := t.TempDir()
	inst := tb.bound(t, scratch)
	require.NoError(t, os.Chtimes(src, time.Now(), time.Now().Add(-time.Hour)))
	_, err := write.Run(t.Context(), inst, tb.task, write.Options{Scratch: scratch})
	refuse(t, err, "has changed since the job was planned")
}

// A damaged file is an error in the words of the reader, and nothing is written.
func TestSplice_Damaged(t *testing.T) {
	src := refooted(t, parquetFile(t, plainRows, zstd), func(f *footer.File) { f.Groups[1].Chunks[0].DataOffset = 1 << 40 })
	tb := plainTable(t).from(t, "SELECT * FROM v", src)
	require.Contains(t, tb.reason(t), "not inside the file")
	_, err := tb.runBound(t)
	require.Error(t, err)
	require.NoDirExists(t, path(tb.write().GetPrefix()))
}

// Tables are read by field id; files whose columns are found by name, lack a column or have deleted rows are written anew.
func TestSplice_TableScans(t *testing.T) {
	withIDs := parquetFile(t, "SELECT r AS other, 'name ' || r AS name, DATE '2020-01-01' AS day FROM range(60000) AS q(r)", zstd+", FIELD_IDS {other: 11, name: 12, day: 13}")
	scan := func(t *testing.T, file string) *table {
		tb := plainTable(t)
		tb.task.Sources = []*planv1.Source{{View: "v", Kind: &planv1.Source_Table{Table: &planv1.TableScan{
			Table: "c.s.t", Schema: &planv1.Schema{Fields: []*planv1.Field{field(13, "day", "date"), field(11, "id", "long"), field(12, "name", "string")}},
			Files: []*planv1.PinnedFile{pinned(t, file)},
		}}}}
		tb.task.Sql = "SELECT id, name, day FROM v"
		return tb
	}
	tb := scan(t, withIDs)
	copied, _ := tb.both(t, "sum(hash(id, name, day))")
	require.EqualValues(t, 60000, copiedRows(t, copied, isCopy))

	named := scan(t, parquetFile(t, plainRows, zstd))
	named.task.Sources[0].GetTable().Names = []*planv1.FieldNames{{FieldId: 11, Names: []string{"id"}}, {FieldId: 12, Names: []string{"name"}}, {FieldId: 13, Names: []string{"day"}}}
	require.Contains(t, named.reason(t), "found by name")
	lacks := parquetFile(t, "SELECT r AS id, 'name ' || r AS name FROM range(60000) AS q(r)", zstd+", FIELD_IDS {id: 11, name: 12}")
	require.Contains(t, scan(t, lacks).reason(t), `column "day" is not in the file`)
	promoted := parquetFile(t, "SELECT r::INTEGER AS id, 'name ' || r AS name, DATE '2020-01-01' AS day FROM range(60000) AS q(r)", zstd+", FIELD_IDS {id: 11, name: 12, day: 13}")
	require.Contains(t, scan(t, promoted).reason(t), `column "id" is stored as INT32`)

	tb = scan(t, withIDs)
	ts := tb.task.Sources[0].GetTable()
	ts.ConstantIds, ts.Files[0].Constants = []int32{13}, []*planv1.Value{{Kind: &planv1.Value_Integer{Integer: 3}}}
	require.Contains(t, tb.reason(t), "constant for each")
}
