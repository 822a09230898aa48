package write

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// V4
func TestStringBound_RoundsUpOverSurrogates(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
		none  bool
		exact bool
	}{
		{"abc", 3, "abc", false, true},
		{"abcd", 3, "abd", false, false},
		{"ab\uD7FFx", 3, "ab\uE000", false, false},
		{"ab\U0010FFFFx", 3, "ac", false, false},
		{"\U0010FFFF\U0010FFFFx", 2, "", true, false},
		{"日本語", 2, "日札", false, false},
		{"", 16, "", false, true},
	} {
		b := stringBound(c.in, c.width, true)
		if c.none {
			require.Nil(t, b, c.in)
			continue
		}
		require.Equal(t, c.want, b.GetValue().GetString_(), c.in)
		require.Equal(t, c.exact, b.GetExact(), c.in)
	}
	require.Equal(t, "日本", stringBound("日本語", 2, false).GetValue().GetString_())
}

func TestStringBound_AlwaysBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		width := rapid.IntRange(1, 20).Draw(t, "width")
		lower := stringBound(s, width, false)
		require.LessOrEqual(t, lower.GetValue().GetString_(), s)
		if upper := stringBound(s, width, true); upper != nil {
			require.GreaterOrEqual(t, upper.GetValue().GetString_(), s)
			require.True(t, utf8.ValidString(upper.GetValue().GetString_()))
			require.LessOrEqual(t, utf8.RuneCountInString(upper.GetValue().GetString_()), width)
		}
	})
}

func TestBinaryBound(t *testing.T) {
	require.Equal(t, []byte{1, 3}, binaryBound([]byte{1, 2, 9}, 2, true).GetValue().GetBinary())
	require.Equal(t, []byte{2}, binaryBound([]byte{1, 255, 9}, 2, true).GetValue().GetBinary())
	require.Equal(t, []byte{1, 255}, binaryBound([]byte{1, 255, 9}, 2, false).GetValue().GetBinary())
	require.Nil(t, binaryBound([]byte{255, 255, 9}, 2, true))
	require.False(t, binaryBound(make([]byte, cutAt), math.MaxInt, true).GetExact(), "DuckDB may have cut it")
	require.False(t, stringBound(strings.Repeat("x", cutAt), math.MaxInt, true).GetExact())
}

func TestInteger_DuckDBText(t *testing.T) {
	const (
		date = planv1.TypeKind_TYPE_KIND_DATE
		ts   = planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS
		tz   = planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS
		ns   = planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS
		tm   = planv1.TypeKind_TYPE_KIND_TIME_MICROS
	)
	for _, c := range []struct {
		kind planv1.TypeKind
		text string
		want int64
		ok   bool
	}{
		{date, "1970-01-01", 0, true},
		{date, "1969-12-31", -1, true},
		{date, "0001-01-01", -719162, true},
		{date, "0001-12-31 (BC)", -719163, true},
		{date, "12345-01-01", 3789391, true},
		{date, "infinity", 0, false},
		{date, "-infinity", 0, false},
		{ts, "1969-12-31 23:59:59.999999", -1, true},
		{ts, "1970-01-01 00:00:01.5", 1500000, true},
		{ts, "0044-03-15 (BC) 10:00:00", -63517788000000000, true},
		{ts, "infinity", 0, false},
		{tz, "1970-01-01 00:00:00+00", 0, true},
		{tz, "1970-01-01 00:00:00+05", 0, false},
		{ns, "1970-01-01 00:00:00.000000001", 1, true},
		{ns, "9999-01-01 00:00:00", 0, false},
		{tm, "23:59:59.999999", 86399999999, true},
		{tm, "1:2:3", 0, false},
		{planv1.TypeKind_TYPE_KIND_INT32, "-5", -5, true},
		{planv1.TypeKind_TYPE_KIND_INT32, "5.0", 0, false},
	} {
		got, ok := integer(c.kind, c.text)
		require.Equal(t, c.ok, ok, c.text)
		if ok {
			require.Equal(t, c.want, got, c.text)
		}
	}
}

func TestScalarBound_ZerosAndNaN(t *testing.T) {
	double := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT64}
	require.True(t, math.Signbit(scalarBound(double, "0.0", false).GetFloat64()))
	require.False(t, math.Signbit(scalarBound(double, "-0.0", true).GetFloat64()))
	require.Nil(t, scalarBound(double, "nan", true))
	require.Nil(t, scalarBound(double, "x", true))
	require.Nil(t, scalarBound(&planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 4, Scale: 1}, "1.25", true))
}
