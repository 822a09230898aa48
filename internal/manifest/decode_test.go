package manifest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// fill sets fields of a message by chance, of every kind that the schema has.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fs := m.Descriptor().Fields()
	for i := range fs.Len() {
		f := fs.Get(i)
		if r.IntN(3) == 0 {
			continue
		}
		if f.IsList() {
			l := m.Mutable(f).List()
			for range r.IntN(4) {
				if f.Message() != nil {
					v := l.NewElement()
					fill(r, v.Message(), depth+1)
					l.Append(v)
				} else {
					l.Append(scalar(r, f))
				}
			}
			continue
		}
		if f.Message() != nil {
			fill(r, m.Mutable(f).Message(), depth+1)
			continue
		}
		m.Set(f, scalar(r, f))
	}
}

func scalar(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := int64(r.Uint64() >> r.IntN(64)) //nolint:gosec // any bits
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 0)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n % 5))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n) / 7)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"", "a", "ü€𝄞", "file:///data/x.parquet"}[r.IntN(4)])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{byte(n), byte(n >> 8)}[:r.IntN(3)])
	}
	return protoreflect.ValueOfInt64(n)
}

// requireSame compares with proto.Unmarshal.
func requireSame(t *testing.T, d *Decoder, b []byte) {
	t.Helper()
	want := &planv1.DataFiles{}
	wantErr := proto.Unmarshal(b, want)
	got, err := DecodeFiles(b)
	require.Equal(t, wantErr != nil, err != nil, "%x", b)
	if err == nil {
		require.True(t, proto.Equal(want, got), "%x\n%v\n%v", b, want, got)
		again, err := d.Decode(b)
		require.NoError(t, err)
		require.True(t, proto.Equal(want, again), "%x\n%v\n%v", b, want, again)
	}
}

func TestDecodeFiles_IsWhatProtoDecodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	d := &Decoder{}                  // keeps what earlier chunks have left in it
	for range 2000 {
		m := &planv1.DataFiles{}
		fill(r, m.ProtoReflect(), 0)
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		requireSame(t, d, b)
		for range 20 { // damaged
			bad := append([]byte{}, b...)
			for range 1 + r.IntN(3) {
				if len(bad) > 0 {
					bad[r.IntN(len(bad))] = byte(r.IntN(256))
				}
			}
			requireSame(t, d, bad)
			requireSame(t, d, bad[:r.IntN(len(bad)+1)])
		}
	}
}

// What a writer of the ordinary kind sends does not fall back.
func TestDecodeFiles_OrdinaryFilesAreNotLeftToProto(t *testing.T) {
	size, zero := int64(5), int64(0)
	text := func(s string) *planv1.Bound {
		return &planv1.Bound{Value: &planv1.Value{Kind: &planv1.Value_String_{String_: s}}, Exact: true}
	}
	files := &planv1.DataFiles{
		Files: []*planv1.DataFile{{
			Path: "file:///x", Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 3, SizeBytes: 9, SplitOffsets: []int64{4, 1000}, SortOrderId: 1,
			Partition: []*planv1.Value{{}, {Kind: &planv1.Value_Integer{Integer: -7}}},
			Columns: []*planv1.ColumnMetrics{
				{FieldId: 1, SizeBytes: &size, ValueCount: &size, NullCount: &zero, Lower: text("a"), Upper: text("b")},
				{FieldId: 2, NanCount: &zero, Lower: &planv1.Bound{Value: &planv1.Value{Kind: &planv1.Value_Float64{Float64: -1.5}}}},
			},
		}},
		Replaced: []*planv1.ReplacedFile{{Path: "p", RecordCount: 1}},
	}
	b, err := proto.Marshal(files)
	require.NoError(t, err)
	out := &planv1.DataFiles{}
	require.True(t, (&Decoder{}).files(b, out))
	require.True(t, proto.Equal(files, out))
	require.False(t, (&Decoder{}).files(protowire.AppendTag(b, 99, protowire.VarintType), &planv1.DataFiles{}))
}

func BenchmarkDecodeFiles(b *testing.B) {
	files := &planv1.DataFiles{}
	n := int64(1000)
	for range 100 {
		f := &planv1.DataFile{Path: "file:///warehouse/b/t/data/job/0/1/attempt/000001.parquet", RecordCount: 1000, SizeBytes: 4096, Partition: []*planv1.Value{{Kind: &planv1.Value_Integer{Integer: 9}}}}
		for c := range int32(16) {
			v := &planv1.Bound{Value: &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}}
			f.Columns = append(f.Columns, &planv1.ColumnMetrics{FieldId: c, SizeBytes: &n, ValueCount: &n, NullCount: &n, Lower: v, Upper: v})
		}
		files.Files = append(files.Files, f)
	}
	raw, err := proto.Marshal(files)
	require.NoError(b, err)
	b.Run("slabs", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeFiles(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reused", func(b *testing.B) {
		d := &Decoder{}
		for b.Loop() {
			if _, err := d.Decode(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("proto", func(b *testing.B) {
		for b.Loop() {
			if err := proto.Unmarshal(raw, &planv1.DataFiles{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
