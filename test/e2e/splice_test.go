package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pqfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// exported writes a file of two row groups, as another program would: ids count from first, day is the row group's.
func exported(t *testing.T, path string, first int64, codec compress.Compression) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "day", Type: arrow.FixedWidthTypes.Date32},
	}, nil)
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithCreatedBy("exporter version 1.0.0")), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	for g := range int64(2) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range int64(20000) {
			id := first + g*20000 + i
			b.Field(0).(*array.Int64Builder).Append(id)
			if id%7 == 0 {
				b.Field(1).AppendNull()
			} else {
				b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("name %d", id))
			}
			b.Field(2).(*array.Date32Builder).Append(arrow.Date32(18000 + g))
		}
		rec := b.NewRecordBatch()
		require.NoError(t, w.Write(rec))
		rec.Release()
	}
	require.NoError(t, w.Close())
}

// copiedFiles counts data files whose row groups were copied: a writer of tables gives the root of a schema another name.
func copiedFiles(t *testing.T, files []string) int {
	t.Helper()
	n := 0
	for _, f := range files {
		r, err := pqfile.OpenParquetFile(strings.TrimPrefix(f, "file://"), false)
		require.NoError(t, err)
		if r.MetaData().FileMetaData.Schema[0].Name == "table" {
			n++
		}
		require.NoError(t, r.Close())
	}
	return n
}

// Row groups are copied by INSERT and CREATE TABLE AS from files and from tables, EXPLAIN says which, and nobody sees a difference.
func TestSplice(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	dir := t.TempDir()
	exported(t, filepath.Join(dir, "a.parquet"), 0, compress.Codecs.Zstd)
	exported(t, filepath.Join(dir, "b.parquet"), 40000, compress.Codecs.Snappy)
	exported(t, filepath.Join(dir, "c.parquet"), 80000, compress.Codecs.Uncompressed)
	const sums = "count(*), count(name), sum(id), min(name), max(name), min(day), max(day), sum(hash(id, name, day))"
	want := c.SQL("SELECT " + sums + " FROM '" + dir + "/*.parquet'")

	c.SQL("CREATE TABLE lake.x.t (id BIGINT NOT NULL, name VARCHAR, day DATE)")
	insert := "INSERT INTO lake.x.t SELECT * FROM '" + dir + "/*.parquet'"
	explained := c.Run("sql", "-q", "-o", "csv", "EXPLAIN "+insert).Out
	require.Contains(t, explained, "Copied row groups: 80000 of 120000 rows")
	require.Contains(t, explained, "2 of 3 files wholly")
	require.Contains(t, explained, "compressed with uncompressed, and the table's files with zstd")
	c.SQL(insert)
	tab := c.Table("x", "t")
	require.EqualValues(t, 120000, tab.Records)
	require.Equal(t, 1, copiedFiles(t, tab.Files))
	require.Equal(t, want, c.SQL("SELECT "+sums+" FROM lake.x.t"))
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.t WHERE id = 41234"))

	c.SQL("CREATE TABLE lake.x.again AS SELECT * FROM lake.x.t")
	require.Equal(t, want, c.SQL("SELECT "+sums+" FROM lake.x.again"))
	require.Equal(t, len(c.Table("x", "again").Files), copiedFiles(t, c.Table("x", "again").Files))

	c.SQL("CREATE TABLE lake.x.days PARTITIONED BY (day) AS SELECT * FROM '" + dir + "/a.parquet'")
	days := c.Table("x", "days")
	require.Len(t, days.Files, 2)
	require.Equal(t, 2, copiedFiles(t, days.Files))
	require.Equal(t, "20000", c.Value("SELECT count(*) FROM lake.x.days WHERE day = DATE '1970-01-01' + 18001"))

	require.Contains(t, c.Run("sql", "-q", "-o", "csv", "--set", "signet.splice.enabled=false", "EXPLAIN "+insert).Out, "none, because it is switched off")
	c.SQL("CREATE TABLE lake.x.off (id BIGINT, name VARCHAR, day DATE) WITH ('signet.splice.enabled' = 'false')")
	c.SQL("INSERT INTO lake.x.off SELECT * FROM '" + dir + "/a.parquet'")
	require.Zero(t, copiedFiles(t, c.Table("x", "off").Files))
	require.Contains(t, c.Run("sql", "-q", "-o", "csv", "EXPLAIN INSERT INTO lake.x.t SELECT * FROM '"+dir+"/a.parquet' WHERE id > 0").Out, "none, because the query has WHERE")
	c.NoOrphans("x", "t")
}
