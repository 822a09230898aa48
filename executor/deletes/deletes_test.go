package deletes

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEncodeVector_AsTheSpecificationHasIt(t *testing.T) {
	raw, err := EncodeVector(roaring64.BitmapOf(5, 3, 1<<33|7))
	require.NoError(t, err)
	// Two bitmaps of 32 bits, by their upper halves: 0 with an array of 3 and 5, 2 with an array of 7.
	body := "\xd1\xd3\x39\x64" + "\x02\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00" + "\x3a\x30\x00\x00\x01\x00\x00\x00" + "\x00\x00\x01\x00" + "\x10\x00\x00\x00" + "\x03\x00\x05\x00" +
		"\x02\x00\x00\x00" + "\x3a\x30\x00\x00\x01\x00\x00\x00" + "\x00\x00\x00\x00" + "\x10\x00\x00\x00" + "\x07\x00"
	want := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	want = append(want, body...)
	want = binary.BigEndian.AppendUint32(want, crc32.ChecksumIEEE([]byte(body)))
	require.Equal(t, want, raw)
}

func TestEncodeVector_DependsOnThePositionsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Uint64Range(0, 1<<40), 1, 200).Draw(t, "rows")
		from := rapid.Uint64Range(0, 1<<34).Draw(t, "from")
		to := from + rapid.Uint64Range(0, 70000).Draw(t, "length")
		one, two := roaring64.New(), roaring64.New()
		one.AddMany(rows)
		one.AddRange(from, to)
		two.AddRange(from, to)
		for i := range rows {
			two.Add(rows[len(rows)-1-i])
		}
		a, err := EncodeVector(one)
		require.NoError(t, err)
		b, err := EncodeVector(two)
		require.NoError(t, err)
		require.Equal(t, a, b)
		back := roaring64.New()
		_, err = back.ReadFrom(bytes.NewReader(a[8 : len(a)-4]))
		require.NoError(t, err)
		require.Equal(t, one.ToArray(), back.ToArray())
	})
}

func TestPuffin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.puffin")
	p, err := CreatePuffin(path)
	require.NoError(t, err)
	var places []Place
	for n := range 3 {
		at, err := p.Add(fmt.Sprintf("file:///t/\"%d\".parquet", n), roaring64.BitmapOf(uint64(n), 1000))
		require.NoError(t, err)
		places = append(places, at)
	}
	size, err := p.Close()
	require.NoError(t, err)
	require.NoError(t, p.Abort(), "after Close it does nothing")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, raw, int(size))
	require.Equal(t, "PFA1", string(raw[:4]))
	require.Equal(t, "\x00\x00\x00\x00PFA1", string(raw[len(raw)-8:]))
	length := int(binary.LittleEndian.Uint32(raw[len(raw)-12:]))
	require.Equal(t, "PFA1", string(raw[len(raw)-16-length:len(raw)-12-length]))
	var footer map[string]any
	require.NoError(t, json.Unmarshal(raw[len(raw)-12-length:len(raw)-12], &footer))
	require.Equal(t, map[string]any{"created-by": "signet"}, footer["properties"])
	blobs := footer["blobs"].([]any)
	require.Len(t, blobs, 3)
	for n, at := range places {
		require.Equal(t, map[string]any{
			"type": "deletion-vector-v1", "fields": []any{2147483645.0}, "snapshot-id": -1.0, "sequence-number": -1.0, "offset": float64(at.Offset), "length": float64(at.Size),
			"properties": map[string]any{"referenced-data-file": fmt.Sprintf("file:///t/\"%d\".parquet", n), "cardinality": "2"},
		}, blobs[n])
		want, err := EncodeVector(roaring64.BitmapOf(uint64(n), 1000))
		require.NoError(t, err)
		require.Equal(t, want, raw[at.Offset:at.Offset+at.Size])
	}
	_, err = CreatePuffin(path)
	require.ErrorIs(t, err, os.ErrExist)
}

func TestWritePositions(t *testing.T) {
	name := "file:///warehouse/t/" + string(bytes.Repeat([]byte("long/"), 60)) + "größe.parquet" // longer than a truncated bound
	for what, rows := range map[string]func(*roaring64.Bitmap){
		"one":             func(b *roaring64.Bitmap) { b.Add(0) },
		"a few":           func(b *roaring64.Bitmap) { b.AddMany([]uint64{7, 3, 1 << 40}) },
		"a batch":         func(b *roaring64.Bitmap) { b.AddRange(0, batchRows) },
		"many row groups": func(b *roaring64.Bitmap) { b.AddRange(10, 10+2*groupRows+5) },
	} {
		t.Run(what, func(t *testing.T) {
			want := roaring64.New()
			rows(want)
			path := filepath.Join(t.TempDir(), "d.parquet")
			size, err := WritePositions(path, name, want, compress.Codecs.Zstd)
			require.NoError(t, err)
			st, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, st.Size(), size)
			got := roaring64.New()
			readPositions(t, path, name, got)
			require.True(t, want.Equals(got))
		})
	}
	_, err := WritePositions(filepath.Join(t.TempDir(), "none", "d.parquet"), name, roaring64.BitmapOf(1), compress.Codecs.Zstd)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// readPositions checks the columns, their order and their statistics.
func readPositions(t *testing.T, path, name string, into *roaring64.Bitmap) {
	r, err := file.OpenParquetFile(path, false)
	require.NoError(t, err)
	defer r.Close()
	for n, want := range []struct {
		name string
		id   int32
	}{{"file_path", 2147483546}, {"pos", 2147483545}} {
		node := r.MetaData().Schema.Column(n).SchemaNode()
		require.Equal(t, want.name, node.Name())
		require.Equal(t, want.id, node.FieldID())
		require.Equal(t, parquet.Repetitions.Required, node.RepetitionType())
	}
	for g := range r.NumRowGroups() {
		chunk, err := r.RowGroup(g).MetaData().ColumnChunk(0)
		require.NoError(t, err)
		st, err := chunk.Statistics()
		require.NoError(t, err)
		paths := st.(*metadata.ByteArrayStatistics)
		require.Equal(t, name, string(paths.Min()), "bounds are not cut")
		require.Equal(t, name, string(paths.Max()))
	}
	rd, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	data, err := rd.ReadTable(context.Background())
	require.NoError(t, err)
	defer data.Release()
	last := int64(-1)
	for batches := array.NewTableReader(data, 1<<20); batches.Next(); {
		names, positions := batches.RecordBatch().Column(0).(*array.String), batches.RecordBatch().Column(1).(*array.Int64)
		for i := range names.Len() {
			if names.Value(i) != name || positions.Value(i) <= last {
				t.Fatalf("%s at %d after %d", names.Value(i), positions.Value(i), last)
			}
			last = positions.Value(i)
			into.Add(uint64(last))
		}
	}
}
