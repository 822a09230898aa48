package value

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

func typ(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }

var (
	str    = typ(planv1.TypeKind_TYPE_KIND_STRING)
	bin    = typ(planv1.TypeKind_TYPE_KIND_BINARY)
	double = typ(planv1.TypeKind_TYPE_KIND_FLOAT64)
	float  = typ(planv1.TypeKind_TYPE_KIND_FLOAT32)
	dec    = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2}
	fixed4 = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: 4}
)

func vs(s string) *planv1.Value  { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }
func vb(b ...byte) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}} }
func vi(n int64) *planv1.Value   { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}} }
func vd(f float64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}} }
func vf(f float32) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Float32{Float32: f}} }

func vdec(n int64, scale int32) *planv1.Value {
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: meta.TwosComplement(big.NewInt(n)), Scale: scale}}}
}

func TestBounds_AreShortenedByCodePoints(t *testing.T) { // X10, V4
	for _, c := range []struct {
		name         string
		typ          *planv1.Type
		v            *planv1.Value
		limit        int
		lower, upper string
		noUpper      bool
	}{
		{"short", str, vs("abc"), 16, "abc", "abc", false},
		{"exactly", str, vs("abc"), 3, "abc", "abc", false},
		{"cut", str, vs("abcd"), 3, "abc", "abd", false},
		{"umlauts count once", str, vs("äöüß"), 3, "äöü", "äöý", false},
		{"astral", str, vs("😎😎😎"), 2, "😎😎", "😎😏", false},
		{"before the surrogates", str, vs("a\ud7ffx"), 2, "a\ud7ff", "a\ue000", false},
		{"last code point", str, vs("a\U0010ffffx"), 2, "a\U0010ffff", "b", false},
		{"nothing to raise", str, vs("\U0010ffff\U0010ffffx"), 2, "\U0010ffff\U0010ffff", "", true},
		{"empty", str, vs(""), 16, "", "", false},
		{"no limit", str, vs(strings.Repeat("x", 5000)), 0, strings.Repeat("x", 5000), strings.Repeat("x", 5000), false},
		{"bytes", bin, vb(1, 2, 3, 4), 2, "\x01\x02", "\x01\x03", false},
		{"bytes carry", bin, vb(1, 255, 255, 4), 3, "\x01\xff\xff", "\x02", false},
		{"all ones", bin, vb(255, 255, 255), 2, "\xff\xff", "", true},
		{"no bytes", bin, vb(), 16, "", "", false},
		{"fixed is never cut", fixed4, vb(1, 2, 3, 4), 2, "\x01\x02\x03\x04", "\x01\x02\x03\x04", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			lower, ok := Lower(c.typ, c.v, c.limit)
			require.True(t, ok)
			require.Equal(t, c.lower, string(lower))
			upper, ok := Upper(c.typ, c.v, c.limit)
			require.Equal(t, c.noUpper, !ok)
			require.Equal(t, c.upper, string(upper))
		})
	}
}

func TestBounds_LongFixedHasNone(t *testing.T) {
	long := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: 1000}
	_, ok := Lower(long, vb(make([]byte, 1000)...), 16)
	require.False(t, ok)
	_, ok = Lower(long, vb(make([]byte, 1000)...), 0)
	require.True(t, ok)
}

func TestBounds_ZeroAndNaN(t *testing.T) { // V5
	negative := math.Copysign(0, -1)
	for _, zero := range []float64{0, negative} {
		lower, _ := Lower(double, vd(zero), 16)
		upper, _ := Upper(double, vd(zero), 16)
		require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, lower)
		require.Equal(t, make([]byte, 8), upper)
		lower, _ = Lower(float, vf(float32(zero)), 16)
		require.Equal(t, []byte{0, 0, 0, 0x80}, lower)
	}
	_, ok := Lower(double, vd(math.NaN()), 0)
	require.False(t, ok)
	_, ok = Upper(float, vf(float32(math.NaN())), 0)
	require.False(t, ok)
	require.Equal(t, math.Inf(1), 1/PlusZero(vd(negative)).GetFloat64())
}

// TestBounds_EncloseStrings: whatever the string and the limit, the bounds enclose it and every string with its prefix, in both orders that readers use.
func TestBounds_EncloseStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune{'a', 0xd7ff, 0xe000, 0xffff, 0x10ffff, 0x7f, 0x80}))).Draw(t, "s")
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		lower, ok := Lower(str, vs(s), limit)
		if !ok || string(lower) > s || len([]rune(string(lower))) > limit {
			t.Fatalf("lower bound %q of %q", lower, s)
		}
		if upper, ok := Upper(str, vs(s), limit); ok && (string(upper) < s || len([]rune(string(upper))) > limit) {
			t.Fatalf("upper bound %q of %q", upper, s)
		}
	})
}

func TestBounds_EncloseBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.Just(byte(255)))).Draw(t, "b")
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		lower, _ := Lower(bin, vb(b...), limit)
		if bytes.Compare(lower, b) > 0 {
			t.Fatalf("lower bound %x of %x", lower, b)
		}
		if upper, ok := Upper(bin, vb(b...), limit); ok && bytes.Compare(upper, b) < 0 {
			t.Fatalf("upper bound %x of %x", upper, b)
		}
	})
}

// TestAppend_AgreesWithIcebergGo compares the binary form with another implementation's.
func TestAppend_AgreesWithIcebergGo(t *testing.T) {
	uuidBytes := []byte("0123456789abcdef")
	for _, c := range []struct {
		typ *planv1.Type
		v   *planv1.Value
		ice icebergo.Type
	}{
		{typ(planv1.TypeKind_TYPE_KIND_BOOLEAN), &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: true}}, icebergo.PrimitiveTypes.Bool},
		{typ(planv1.TypeKind_TYPE_KIND_INT32), vi(-5), icebergo.PrimitiveTypes.Int32},
		{typ(planv1.TypeKind_TYPE_KIND_INT64), vi(math.MinInt64), icebergo.PrimitiveTypes.Int64},
		{typ(planv1.TypeKind_TYPE_KIND_DATE), vi(-719162), icebergo.PrimitiveTypes.Date},
		{typ(planv1.TypeKind_TYPE_KIND_TIME_MICROS), vi(86_399_999_999), icebergo.PrimitiveTypes.Time},
		{typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), vi(-1), icebergo.PrimitiveTypes.Timestamp},
		{typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS), vi(1), icebergo.PrimitiveTypes.TimestampTz},
		{float, vf(1.5), icebergo.PrimitiveTypes.Float32},
		{double, vd(-1.5), icebergo.PrimitiveTypes.Float64},
		{str, vs("größe"), icebergo.PrimitiveTypes.String},
		{bin, vb(0, 255), icebergo.PrimitiveTypes.Binary},
		{fixed4, vb(1, 2, 3, 4), icebergo.FixedTypeOf(4)},
		{typ(planv1.TypeKind_TYPE_KIND_UUID), vb(uuidBytes...), icebergo.PrimitiveTypes.UUID},
		{dec, vdec(-123456, 2), icebergo.DecimalTypeOf(9, 2)},
		{dec, vdec(128, 2), icebergo.DecimalTypeOf(9, 2)},
		{dec, vdec(0, 2), icebergo.DecimalTypeOf(9, 2)},
	} {
		require.NoError(t, Check(c.typ, c.v))
		got := Append(nil, c.typ, c.v)
		lit, err := icebergo.LiteralFromBytes(c.ice, got)
		require.NoError(t, err, c.ice)
		want, err := lit.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, want, got, c.ice)
	}
}

func TestCheck_RefusesWhatDoesNotFit(t *testing.T) {
	i32 := typ(planv1.TypeKind_TYPE_KIND_INT32)
	for name, c := range map[string]struct {
		typ *planv1.Type
		v   *planv1.Value
	}{
		"null":               {i32, &planv1.Value{}},
		"string for int":     {i32, vs("1")},
		"too large":          {i32, vi(math.MaxInt32 + 1)},
		"date out of range":  {typ(planv1.TypeKind_TYPE_KIND_DATE), vi(math.MinInt32 - 1)},
		"negative time":      {typ(planv1.TypeKind_TYPE_KIND_TIME_MICROS), vi(-1)},
		"time of 24 hours":   {typ(planv1.TypeKind_TYPE_KIND_TIME_MICROS), vi(86_400_000_000)},
		"double for float":   {float, vd(1)},
		"other scale":        {dec, vdec(1, 3)},
		"too many digits":    {dec, vdec(1_000_000_000, 2)},
		"decimal of nothing": {dec, &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Scale: 2}}}},
		"short fixed":        {fixed4, vb(1, 2, 3)},
		"short uuid":         {typ(planv1.TypeKind_TYPE_KIND_UUID), vb(1)},
		"invalid UTF-8":      {str, vs("\xff")},
		"value of a struct":  {typ(planv1.TypeKind_TYPE_KIND_STRUCT), vi(1)},
	} {
		require.ErrorIs(t, Check(c.typ, c.v), ErrMismatch, name)
	}
}

func TestCheck_TakesTheLargestDecimals(t *testing.T) {
	d38 := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 38}
	n := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(1))
	v := &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: meta.TwosComplement(n)}}}
	require.NoError(t, Check(d38, v))
	v.GetDecimal().Unscaled = meta.TwosComplement(n.Neg(n))
	require.NoError(t, Check(d38, v))
	v.GetDecimal().Unscaled = append([]byte{0xff}, v.GetDecimal().GetUnscaled()...) // longer than it must be
	require.NoError(t, Check(d38, v))
	require.Len(t, Append(nil, d38, v), 16)
}

func TestCompare_OrdersAsIcebergDoes(t *testing.T) {
	for _, pair := range [][2]*planv1.Value{
		{vi(-1), vi(1)},
		{vs("Z"), vs("a")},
		{vs("\uffff"), vs("😎")}, // by code points, not by UTF-16
		{vb(0x7f), vb(0x80)},
		{vb(1), vb(1, 0)},
		{vd(math.Copysign(0, -1)), vd(0)},
		{vd(math.Inf(-1)), vd(-1)},
		{vdec(-5, 2), vdec(4, 2)},
		{vdec(-1000, 2), vdec(-5, 2)},
		{&planv1.Value{Kind: &planv1.Value_Boolean{}}, &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: true}}},
	} {
		require.Negative(t, Compare(pair[0], pair[1]))
		require.Positive(t, Compare(pair[1], pair[0]))
		require.Zero(t, Compare(pair[0], pair[0]))
	}
}

func TestParse_ReadsWhatAppendWrites(t *testing.T) {
	for _, c := range []struct {
		kind planv1.TypeKind
		v    *planv1.Value
	}{
		{planv1.TypeKind_TYPE_KIND_BOOLEAN, &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: true}}},
		{planv1.TypeKind_TYPE_KIND_INT32, &planv1.Value{Kind: &planv1.Value_Integer{Integer: -5}}},
		{planv1.TypeKind_TYPE_KIND_INT64, &planv1.Value{Kind: &planv1.Value_Integer{Integer: math.MinInt64}}},
		{planv1.TypeKind_TYPE_KIND_DATE, &planv1.Value{Kind: &planv1.Value_Integer{Integer: -1}}},
		{planv1.TypeKind_TYPE_KIND_FLOAT32, &planv1.Value{Kind: &planv1.Value_Float32{Float32: -1.5}}},
		{planv1.TypeKind_TYPE_KIND_FLOAT64, &planv1.Value{Kind: &planv1.Value_Float64{Float64: 2.5}}},
		{planv1.TypeKind_TYPE_KIND_STRING, &planv1.Value{Kind: &planv1.Value_String_{String_: "é"}}},
		{planv1.TypeKind_TYPE_KIND_BINARY, &planv1.Value{Kind: &planv1.Value_Binary{Binary: []byte{0, 255}}}},
		{planv1.TypeKind_TYPE_KIND_DECIMAL, &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: []byte{0xff, 0x7f}}}}},
	} {
		ty := &planv1.Type{Kind: c.kind, Precision: 9}
		got, ok := Parse(ty, Append([]byte{}, ty, c.v))
		require.True(t, ok, c.kind)
		require.True(t, proto.Equal(c.v, got), "%v: %v", c.v, got)
	}
	widened := func(kind planv1.TypeKind, b []byte) *planv1.Value {
		v, ok := Parse(&planv1.Type{Kind: kind}, b)
		require.True(t, ok)
		return v
	}
	require.EqualValues(t, -2, widened(planv1.TypeKind_TYPE_KIND_INT64, []byte{0xfe, 0xff, 0xff, 0xff}).GetInteger())
	require.EqualValues(t, 86_400_000_000, widened(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, []byte{1, 0, 0, 0}).GetInteger())
	require.InDelta(t, 1.0, widened(planv1.TypeKind_TYPE_KIND_FLOAT64, []byte{0, 0, 0x80, 0x3f}).GetFloat64(), 0)
	for kind, b := range map[planv1.TypeKind][]byte{
		planv1.TypeKind_TYPE_KIND_BOOLEAN: {}, planv1.TypeKind_TYPE_KIND_INT64: {1}, planv1.TypeKind_TYPE_KIND_FLOAT32: {1, 2, 3, 4, 5}, planv1.TypeKind_TYPE_KIND_FLOAT64: {1},
		planv1.TypeKind_TYPE_KIND_STRING: {0xff}, planv1.TypeKind_TYPE_KIND_DECIMAL: {}, planv1.TypeKind_TYPE_KIND_INT32: {0, 0, 0, 0, 1, 0, 0, 0}, planv1.TypeKind_TYPE_KIND_BINARY: nil,
	} {
		_, ok := Parse(&planv1.Type{Kind: kind}, b)
		require.False(t, ok, kind)
	}
}
