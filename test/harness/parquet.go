package harness

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// WriteParquet writes the rows of a JSON array in the schema's form to a file, with arrow-go.
func WriteParquet(t testing.TB, path string, schema *arrow.Schema, json string, opts ...parquet.WriterProperty) {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(json))
	require.NoError(t, err)
	defer rec.Release()
	WriteRecord(t, path, rec, opts...)
}

// WriteRecord writes a record as one row group.
func WriteRecord(t testing.TB, path string, rec arrow.RecordBatch, opts ...parquet.WriterProperty) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(rec.Schema(), f, parquet.NewWriterProperties(opts...), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close()) // closes the file too
}

// Bulky writes files large enough for a task each: id BIGINT counts through all of them, pad is of no use.
func Bulky(t testing.TB, dir string, files, rowsEach int) (pattern string) {
	t.Helper()
	const padding = 64 << 10
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "pad", Type: arrow.BinaryTypes.Binary}}, nil)
	src := rand.NewChaCha8([32]byte{})
	pad := make([]byte, padding)
	for n := range files {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range rowsEach {
			_, _ = src.Read(pad) // never fails
			b.Field(0).(*array.Int64Builder).Append(int64(n*rowsEach + i))
			b.Field(1).(*array.BinaryBuilder).Append(pad)
		}
		rec := b.NewRecordBatch()
		WriteRecord(t, filepath.Join(dir, "part-"+string(rune('a'+n))+".parquet"), rec, parquet.WithCompression(compress.Codecs.Uncompressed), parquet.WithDictionaryDefault(false))
		rec.Release()
		b.Release()
	}
	return filepath.Join(dir, "*.parquet")
}

// Int64s reads a column of a Parquet file.
func Int64s(t testing.TB, path, column string) []int64 {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	require.NoError(t, err, path)
	defer r.Close()
	i := r.MetaData().Schema.ColumnIndexByName(column)
	require.GreaterOrEqual(t, i, 0, "%s has no column %s", path, column)
	var out []int64
	for g := range r.NumRowGroups() {
		col, err := r.RowGroup(g).Column(i)
		require.NoError(t, err)
		rd, ok := col.(*file.Int64ColumnChunkReader)
		require.True(t, ok)
		n := r.RowGroup(g).NumRows()
		vals, defs := make([]int64, n), make([]int16, n)
		for total := int64(0); total < n; {
			read, values, err := rd.ReadBatch(n-total, vals, defs, nil)
			require.NoError(t, err)
			require.Positive(t, read)
			out, total = append(out, vals[:values]...), total+read
		}
	}
	require.LessOrEqual(t, int64(len(out)), r.NumRows())
	return out
}

// Rows reads the rows of a table's data files, with arrow-go, as sorted lines of JSON.
func Rows(t testing.TB, tab Table) []string {
	t.Helper()
	var out []string
	for _, path := range tab.Files {
		r, err := file.OpenParquetFile(path, false)
		require.NoError(t, err, path)
		rd, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		require.NoError(t, err, path)
		data, err := rd.ReadTable(context.Background())
		require.NoError(t, err, path)
		for batches := array.NewTableReader(data, 1<<20); batches.Next(); {
			var b bytes.Buffer
			require.NoError(t, array.RecordToJSON(batches.RecordBatch(), &b))
			out = append(out, strings.Split(strings.TrimSpace(b.String()), "\n")...)
		}
		data.Release()
		require.NoError(t, r.Close())
	}
	slices.Sort(out)
	return out
}
