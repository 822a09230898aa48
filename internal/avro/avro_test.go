package avro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

const testSchema = `{"type":"record","name":"r","namespace":"x.y","fields":[
	{"name":"a","type":"long","field-id":1},
	{"name":"s","type":["null","string"],"default":null,"field-id":2},
	{"name":"list","type":{"type":"array","items":{"type":"fixed","name":"two","size":2}},"field-id":3},
	{"name":"inner","type":{"type":"record","name":"in","fields":[{"name":"b","type":"bytes","field-id":5},{"name":"again","type":["null","x.y.two"]}]},"field-id":4},
	{"name":"m","type":{"type":"map","values":"double"}},
	{"name":"e","type":{"type":"enum","name":"en","symbols":["A","B"]}},
	{"name":"f","type":{"type":"float"},"field-id":8},
	{"name":"ok","type":"boolean","field-id":9}]}`

// testRow is one row of testSchema.
func testRow(n int64) []byte {
	b := AppendLong(nil, n)
	b = AppendString(AppendSome(b), "text")
	b = append(AppendLong(b, -2), 8) // a block of two that says its size: 4 bytes
	b = append(b, 1, 2, 3, 4, 0)
	b = AppendBytes(b, []byte{9})
	b = append(AppendSome(b), 7, 7)
	b = append(AppendString(AppendLong(b, 1), "key"), 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0)
	b = AppendLong(b, 1)
	b = append(b, 0, 0, 0x80, 0x3f)
	return append(b, 1)
}

func file(t testing.TB, rows int) []byte {
	t.Helper()
	w, err := NewWriter(testSchema, []KV{{"k", "v"}})
	require.NoError(t, err)
	for i := range rows {
		require.NoError(t, w.Done(append(w.Row(), testRow(int64(i))...)))
	}
	raw, err := w.Bytes()
	require.NoError(t, err)
	return bytes.Clone(raw)
}

func TestFile_RoundTrips(t *testing.T) {
	raw := file(t, 5000)
	f, err := Open(raw)
	require.NoError(t, err)
	require.Equal(t, "v", f.Meta["k"])
	n := int64(0)
	require.NoError(t, f.Records(func(r *Record) error {
		require.Equal(t, n, r.Get(1))
		require.Equal(t, "text", r.Get(2, "s"))
		require.Equal(t, []any{[]byte{1, 2}, []byte{3, 4}}, r.Get(3))
		require.Equal(t, []byte{9}, r.Get(4).(*Record).Get(5))
		require.Equal(t, []byte{7, 7}, r.Get(4).(*Record).Get(0, "again"))
		require.Equal(t, []any{1.0}, r.Get(0, "m"))
		require.Equal(t, 1.0, r.Get(8))
		require.Equal(t, true, r.Get(9))
		require.Nil(t, r.Get(99, "nope"))
		require.Nil(t, r.Get(99, "a"), "a field with an id is not found by its name")
		n++
		return nil
	}))
	require.EqualValues(t, 5000, n)
}

func TestFile_SkipsWhatIsNotWanted(t *testing.T) {
	f, err := Open(file(t, 3))
	require.NoError(t, err)
	f.Schema.Keep(nil, []int{1, 4})
	f.Schema.Keep([]int{4}, nil, "again")
	require.NoError(t, f.Records(func(r *Record) error {
		require.NotNil(t, r.Get(1))
		require.Nil(t, r.Get(2))
		require.Nil(t, r.Get(3))
		require.Nil(t, r.Get(4).(*Record).Get(5))
		require.Equal(t, []byte{7, 7}, r.Get(4).(*Record).Get(0, "again"))
		return nil
	}))
}

func TestFile_EndsWithTheVisitorsError(t *testing.T) {
	f, err := Open(file(t, 3))
	require.NoError(t, err)
	stop := errors.New("stop")
	require.ErrorIs(t, f.Records(func(*Record) error { return stop }), stop)
}

// packed makes a file of one block in any codec.
func packed(codec string, rows int64, block []byte) []byte {
	b := append([]byte(magic), AppendLong(nil, -2)...)
	b = AppendLong(b, 99) // the size of the block, which nobody needs
	for _, kv := range []KV{{"avro.schema", testSchema}, {"avro.codec", codec}} {
		b = AppendString(AppendString(b, kv.Key), kv.Value)
	}
	sync := bytes.Repeat([]byte{5}, syncSize)
	b = append(append(b, 0), sync...)
	b = AppendBytes(AppendLong(b, rows), block)
	return append(b, sync...)
}

func TestFile_ReadsEveryCodec(t *testing.T) {
	row := testRow(1)
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	snapped := binary.BigEndian.AppendUint32(snappy.Encode(nil, row), crc32.ChecksumIEEE(row))
	for codec, block := range map[string][]byte{"null": row, "": row, "snappy": snapped, "zstandard": enc.EncodeAll(row, nil)} {
		f, err := Open(packed(codec, 1, block))
		require.NoError(t, err, codec)
		n := 0
		require.NoError(t, f.Records(func(*Record) error { n++; return nil }), codec)
		require.Equal(t, 1, n)
	}
	_, err = Open(packed("lzma", 1, row))
	require.ErrorIs(t, err, ErrFormat)
	snapped[len(snapped)-1]++
	f, err := Open(packed("snappy", 1, snapped))
	require.NoError(t, err)
	require.ErrorIs(t, f.Records(func(*Record) error { return nil }), ErrFormat)
}

func TestFile_RefusesDamage(t *testing.T) {
	good := file(t, 100)
	read := func(raw []byte) error {
		f, err := Open(raw)
		if err != nil {
			return err
		}
		return f.Records(func(*Record) error { return nil })
	}
	require.NoError(t, read(good))
	header := bytes.Index(good, []byte("avro.codec"))
	for i := 0; i < len(good); i += 7 {
		if err := read(good[:i]); err == nil && i > header+100 {
			t.Fatalf("%d of %d bytes were read as a whole file", i, len(good))
		}
	}
	require.ErrorIs(t, read(nil), ErrFormat)
	require.ErrorIs(t, read([]byte("PAR1")), ErrFormat)
	bad := bytes.Clone(good)
	bad[len(bad)-1]++
	require.ErrorIs(t, read(bad), ErrFormat, "sync marker")
	require.ErrorIs(t, read(packed("null", 5, testRow(1))), ErrFormat, "more rows than bytes")
	require.ErrorIs(t, read(packed("null", 1, append(testRow(1), 0))), ErrFormat, "bytes after the last row")
	require.ErrorIs(t, read(packed("null", -1, testRow(1))), ErrFormat)
}

func TestFile_BoundsWhatALieCosts(t *testing.T) {
	// A few bytes that say "an array of 2^40 items", of items that take no bytes.
	schema := `{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"array","items":"null"},"field-id":1}]}`
	w, err := NewWriter(schema, nil)
	require.NoError(t, err)
	require.NoError(t, w.Done(append(w.Row(), append(AppendLong(nil, 1<<40), 0)...)))
	raw, err := w.Bytes()
	require.NoError(t, err)
	f, err := Open(raw)
	require.NoError(t, err)
	require.ErrorIs(t, f.Records(func(*Record) error { return nil }), ErrFormat)
}

func TestParseSchema_Refuses(t *testing.T) {
	for _, text := range []string{
		``, `7`, `"nope"`, `{"type":"record"`, `{"type":"fixed","name":"x","size":-1}`, `[{"type":"what"}]`, `{"type":"array"}`,
		strings.Repeat(`{"type":"array","items":`, 500) + `"int"` + strings.Repeat(`}`, 500),
	} {
		_, err := ParseSchema([]byte(text))
		require.ErrorIs(t, err, ErrFormat, text)
	}
}

// FuzzFile: no bytes make the reader panic.
func FuzzFile(f *testing.F) {
	f.Add(file(f, 3))
	f.Add(packed("null", 1, testRow(1)))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		a, err := Open(raw)
		if err != nil {
			return
		}
		a.Schema.Keep(nil, []int{1, 3, 4})
		_ = a.Records(func(r *Record) error { r.Each(func(int, any) {}); return nil })
	})
}
