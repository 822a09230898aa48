package manifest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// requireLean compares with proto.Unmarshal: what is answered is the same, but for the columns, which are as they came.
func requireLean(t *testing.T, d *Decoder, b []byte) {
	t.Helper()
	want := &planv1.DataFiles{}
	wantErr := proto.Unmarshal(b, want)
	files, replaced, err := d.DecodeLean(b)
	got := &planv1.DataFiles{Replaced: replaced}
	for _, f := range files {
		require.Empty(t, f.DataFile.GetColumns())
		f.DataFile.Columns = nil
		file := proto.CloneOf(f.DataFile)
		for _, c := range f.Columns {
			m := &planv1.ColumnMetrics{}
			if e := proto.Unmarshal(c, m); e != nil {
				require.Error(t, wantErr, "%x", b)
				return // who reads the columns notices
			}
			file.Columns = append(file.Columns, m)
			requireMetrics(t, c)
		}
		got.Files = append(got.Files, file)
	}
	require.Equal(t, wantErr != nil, err != nil, "%x", b)
	if err == nil {
		want.ProtoReflect().SetUnknown(nil) // of a newer version: not of a file
		require.True(t, proto.Equal(want, got), "%x\n%v\n%v", b, want, got)
	}
}

// requireMetrics compares with proto.Unmarshal where the bytes are not left to it.
func requireMetrics(t *testing.T, b []byte) (decoded bool) {
	t.Helper()
	var m Metrics
	if !m.Decode(b) {
		return false
	}
	want := &planv1.ColumnMetrics{}
	require.NoError(t, proto.Unmarshal(b, want), "%x", b)
	got := &planv1.ColumnMetrics{FieldId: m.FieldID}
	for _, n := range []struct {
		has bool
		n   int64
		to  **int64
	}{{m.HasSize, m.Size, &got.SizeBytes}, {m.HasValues, m.Values, &got.ValueCount}, {m.HasNulls, m.Nulls, &got.NullCount}, {m.HasNaNs, m.NaNs, &got.NanCount}} {
		if n.has {
			*n.to = &n.n
		}
	}
	require.True(t, proto.Equal(got, &planv1.ColumnMetrics{
		FieldId: want.GetFieldId(), SizeBytes: want.SizeBytes, ValueCount: want.ValueCount, NullCount: want.NullCount, NanCount: want.NanCount,
	}), "%x", b)
	for _, x := range []struct {
		got  Scalar
		want *planv1.Bound
	}{{m.Lower, want.GetLower()}, {m.Upper, want.GetUpper()}} {
		switch k := x.want.GetValue().GetKind().(type) {
		case nil:
			require.Equal(t, NoScalar, x.got.Kind)
		case *planv1.Value_Integer:
			require.Equal(t, Scalar{Kind: IntegerScalar, Integer: k.Integer}, x.got)
		case *planv1.Value_Float64:
			require.Equal(t, FloatScalar, x.got.Kind)
			require.Equal(t, math.Float64bits(k.Float64), math.Float64bits(x.got.Float))
		case *planv1.Value_String_:
			require.Equal(t, StringScalar, x.got.Kind)
			require.Equal(t, k.String_, string(x.got.Text))
		default:
			require.Fail(t, "a kind that is not read", "%x", b)
		}
	}
	return true
}

func TestDecodeLean_IsWhatProtoDecodes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	d := &Decoder{}
	for range 2000 {
		m := &planv1.DataFiles{}
		fill(r, m.ProtoReflect(), 0)
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		requireLean(t, d, b)
		for range 20 { // damaged
			bad := append([]byte{}, b...)
			for range 1 + r.IntN(3) {
				if len(bad) > 0 {
					bad[r.IntN(len(bad))] = byte(r.IntN(256))
				}
			}
			requireLean(t, d, bad)
			requireLean(t, d, bad[:r.IntN(len(bad)+1)])
		}
	}
}

func TestMetrics_AreWhatProtoDecodes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	decoded := 0
	for range 20_000 {
		m := &planv1.ColumnMetrics{}
		fill(r, m.ProtoReflect(), 0)
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		if requireMetrics(t, b) {
			decoded++
		}
		for range 5 {
			bad := append([]byte{}, b...)
			if len(bad) > 0 {
				bad[r.IntN(len(bad))] = byte(r.IntN(256))
			}
			requireMetrics(t, bad)
			requireMetrics(t, append(bad, b...)) // fields that come twice
			requireMetrics(t, bad[:r.IntN(len(bad)+1)])
		}
	}
	require.Greater(t, decoded, 2000, "ordinary metrics are decoded here")
}
