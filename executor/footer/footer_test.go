package footer_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/footer"
)

func sample() *footer.File {
	stats := &footer.Statistics{Nulls: 2, Distinct: -1, Min: []byte{1, 0, 0, 0}, Max: []byte{9, 0, 0, 0}, HasMin: true, HasMax: true, MinExact: footer.Yes, MaxExact: footer.No}
	chunk := func(path string, p footer.Physical, at int64) footer.Chunk {
		return footer.Chunk{
			Physical: p, Encodings: []footer.Encoding{footer.Plain, footer.RLEDictionary}, Path: []string{path}, Codec: 6, Values: 10, Uncompressed: 100, Compressed: 50,
			DataOffset: at + 20, DictOffset: at, Stats: stats, Pages: []footer.EncodingStats{{Page: footer.DataPage, Encoding: footer.Plain, Count: 1}}, BloomOffset: 1000, BloomLength: 77,
		}
	}
	leaf := func(name string, id int32, p footer.Physical, l footer.Logical) footer.Element {
		return footer.Element{Physical: p, Repetition: footer.Optional, Name: name, Converted: footer.NoConverted, FieldID: id, HasID: true, Logical: l}
	}
	d := leaf("d", 3, footer.FixedLenByteArray, footer.Logical{Kind: footer.DecimalLogical, Precision: 20, Scale: 2})
	d.TypeLength, d.Converted, d.Precision, d.Scale = 9, footer.DecimalOld, 20, 2
	f := &footer.File{
		Version: 2, Rows: 20, CreatedBy: "test version 1.0", Metadata: []footer.Pair{{Key: "k", Value: "v"}}, Ordered: []bool{true, false, true, true, true},
		Schema: []footer.Element{
			{Physical: footer.Group, Repetition: footer.Unrepeated, Name: "root", Children: 5, Converted: footer.NoConverted},
			leaf("i", 1, footer.Int32, footer.Logical{Kind: footer.Integer, Bits: 16, Signed: true}),
			leaf("t", 2, footer.Int64, footer.Logical{Kind: footer.Timestamp, UTC: true, Unit: footer.Nanos}),
			d,
			leaf("s", 400, footer.ByteArray, footer.Logical{Kind: footer.StringLogical}),
			leaf("u", 5, footer.FixedLenByteArray, footer.Logical{Kind: footer.UUIDLogical}),
		},
	}
	f.Schema[5].TypeLength = 16
	for range 2 {
		f.Groups = append(f.Groups, footer.RowGroup{Rows: 10, Bytes: 500, Chunks: []footer.Chunk{
			chunk("i", footer.Int32, 4), chunk("t", footer.Int64, 54), chunk("d", footer.FixedLenByteArray, 104), chunk("s", footer.ByteArray, 154), chunk("u", footer.FixedLenByteArray, 204),
		}})
	}
	return f
}

func TestFile_RoundTrip(t *testing.T) {
	f := sample()
	got, err := footer.Parse(f.Bytes())
	require.NoError(t, err)
	require.Equal(t, f, got)
}

// Another implementation reads what is written here.
func TestFile_ArrowReadsIt(t *testing.T) {
	md, err := metadata.NewFileMetaData(sample().Bytes(), nil)
	require.NoError(t, err)
	require.EqualValues(t, 20, md.GetNumRows())
	require.Len(t, md.RowGroups, 2)
	require.EqualValues(t, 400, md.Schema.Column(3).SchemaNode().FieldID())
	require.Equal(t, "String", md.Schema.Column(3).LogicalType().String())
	require.Equal(t, "Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds, is_from_converted_type=false, force_set_converted_type=false)", md.Schema.Column(1).LogicalType().String())
	col, err := md.RowGroup(1).ColumnChunk(2)
	require.NoError(t, err)
	require.EqualValues(t, 104, col.DictionaryPageOffset())
	require.EqualValues(t, 50, col.TotalCompressedSize())
	st, err := col.Statistics()
	require.NoError(t, err)
	require.NotNil(t, st)
}

// Damaged footers are errors: nothing panics, and lies about numbers of elements cost no memory.
func TestParse_Damaged(t *testing.T) {
	good := sample().Bytes()
	for n := range good {
		_, err := footer.Parse(good[:n])
		require.Error(t, err, "cut at %d", n)
	}
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 20_000 {
		b := bytes.Clone(good)
		for range 1 + rnd.IntN(4) {
			b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
		}
		if f, err := footer.Parse(b); err == nil {
			_, err = footer.Parse(f.Bytes())
			require.NoError(t, err, "what is read can be written and read again")
		}
	}
	for _, b := range [][]byte{
		{0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f}, // a schema of 2^32 elements
		{0x68, 0xff, 0xff, 0xff, 0xff, 0x0f, 'x'},  // a text of 4 GiB
		bytes.Repeat([]byte{0x1c}, 1000),           // structs in structs
		bytes.Repeat([]byte{0x19}, 1000),
		{},
	} {
		_, err := footer.Parse(b)
		require.Error(t, err)
	}
}

func TestFile_CountsMustAgree(t *testing.T) {
	for name, change := range map[string]func(*footer.File){
		"rows":     func(f *footer.File) { f.Rows++ },
		"negative": func(f *footer.File) { f.Groups[0].Rows, f.Groups[1].Rows = -1, 21 },
		"columns":  func(f *footer.File) { f.Groups[0].Chunks = f.Groups[0].Chunks[:4] },
		"children": func(f *footer.File) { f.Schema[0].Children = 6 },
		"fewer":    func(f *footer.File) { f.Schema[0].Children = 4 },
	} {
		f := sample()
		change(f)
		_, err := footer.Parse(f.Bytes())
		require.Error(t, err, name)
	}
}

func TestOpen_NotParquet(t *testing.T) {
	write := func(b []byte) string {
		p := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(p, b, 0o600))
		return p
	}
	for name, b := range map[string][]byte{
		"empty": {}, "short": []byte("PAR1"), "tail": []byte("PAR1xxxxxxxxPAR2"), "encrypted": []byte("PAR1\x01\x02\x00\x00\x00PARE"),
		"long": []byte("PAR1\xff\xff\xff\x7fPAR1"), "head": append([]byte("XXXX"), sample().End()...),
	} {
		_, _, _, err := footer.Open(write(b))
		require.Error(t, err, name)
	}
	meta, start, size, err := footer.Open(write(append([]byte("PAR1"), sample().End()...)))
	require.NoError(t, err)
	require.EqualValues(t, 4, start)
	require.Greater(t, size, start)
	require.EqualValues(t, 20, meta.Rows)
}
