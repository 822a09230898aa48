package harness

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	iceberg "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// addDeletes reads a delete file of the current snapshot: what it deletes, nothing else deletes, and each data file has one deletion vector at most.
func (t *Table) addDeletes(tt require.TestingT, f iceberg.DataFile) {
	t.DeleteFiles = append(t.DeleteFiles, clean(f.FilePath()))
	if f.FileFormat() == iceberg.PuffinFile {
		name, rows := vectorRows(tt, f)
		require.NotContains(tt, t.Deleted, name, "a second deletion vector, or other deletes beside one")
		t.delete(tt, name, rows...)
		return
	}
	require.Equal(tt, iceberg.EntryContentPosDeletes, f.ContentType())
	r, err := file.OpenParquetFile(clean(f.FilePath()), false)
	require.NoError(tt, err)
	defer r.Close()
	rd, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(tt, err)
	data, err := rd.ReadTable(context.Background())
	require.NoError(tt, err)
	defer data.Release()
	require.Equal(tt, f.Count(), data.NumRows())
	last := int64(-1)
	for batches := array.NewTableReader(data, 1<<20); batches.Next(); {
		names, positions := batches.RecordBatch().Column(0).(*array.String), batches.RecordBatch().Column(1).(*array.Int64)
		for i := range names.Len() {
			if about := f.ReferencedDataFile(); about != nil {
				require.Equal(tt, *about, names.Value(i))
				require.Greater(tt, positions.Value(i), last, "positions are sorted, and each is there once")
				last = positions.Value(i)
			}
			t.delete(tt, clean(names.Value(i)), uint64(positions.Value(i)))
		}
	}
}

func (t *Table) delete(tt require.TestingT, dataFile string, rows ...uint64) {
	if t.Deleted == nil {
		t.Deleted = map[string]map[uint64]bool{}
	}
	if t.Deleted[dataFile] == nil {
		t.Deleted[dataFile] = map[uint64]bool{}
	}
	for _, row := range rows {
		require.False(tt, t.Deleted[dataFile][row], "row %d of %s is deleted twice", row, dataFile)
		t.Deleted[dataFile][row] = true
	}
}

// vectorRows reads a deletion vector and compares it with the footer of its Puffin file.
func vectorRows(t require.TestingT, f iceberg.DataFile) (string, []uint64) {
	raw, err := os.ReadFile(clean(f.FilePath()))
	require.NoError(t, err)
	require.EqualValues(t, len(raw), f.FileSizeBytes())
	require.NotNil(t, f.ReferencedDataFile())
	require.NotNil(t, f.ContentOffset())
	require.NotNil(t, f.ContentSizeInBytes())
	tail := raw[len(raw)-12:]
	size := int(binary.LittleEndian.Uint32(tail))
	require.Equal(t, "PFA1PFA1PFA1\x00\x00\x00\x00", string(raw[:4])+string(raw[len(raw)-16-size:len(raw)-12-size])+string(tail[8:])+string(tail[4:8]))
	var footer struct {
		Blobs []struct {
			Type       string
			Fields     []int
			Offset     int64
			Length     int64
			Properties map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(raw[len(raw)-12-size:len(raw)-12], &footer))
	found := false
	for _, b := range footer.Blobs {
		if b.Offset == *f.ContentOffset() {
			found = true
			require.Equal(t, "deletion-vector-v1", b.Type)
			require.Equal(t, []int{2147483645}, b.Fields)
			require.Equal(t, *f.ContentSizeInBytes(), b.Length)
			require.Equal(t, map[string]string{"referenced-data-file": *f.ReferencedDataFile(), "cardinality": strconv.FormatInt(f.Count(), 10)}, b.Properties)
		}
	}
	require.True(t, found, "the Puffin file has no blob at %d", *f.ContentOffset())
	blob := raw[*f.ContentOffset() : *f.ContentOffset()+*f.ContentSizeInBytes()]
	body := blob[4 : len(blob)-4]
	require.EqualValues(t, len(body), binary.BigEndian.Uint32(blob))
	require.Equal(t, []byte{0xD1, 0xD3, 0x39, 0x64}, body[:4])
	require.Equal(t, crc32.ChecksumIEEE(body), binary.BigEndian.Uint32(blob[len(blob)-4:]))
	b := roaring64.New()
	_, err = b.ReadFrom(bytes.NewReader(body[4:]))
	require.NoError(t, err)
	require.EqualValues(t, b.GetCardinality(), f.Count())
	return clean(*f.ReferencedDataFile()), b.ToArray()
}

// IDs are the values of a BIGINT column without NULLs in the rows of the table.
func (t Table) IDs(tt testing.TB, column string) []int64 {
	var out []int64
	for _, path := range t.Files {
		for row, v := range Int64s(tt, path, column) {
			if !t.Deleted[path][uint64(row)] {
				out = append(out, v)
			}
		}
	}
	return out
}
