package flightsql

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/sql"
)

func arrayOf(t testing.TB, typ arrow.DataType, json string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader("["+json+"]"))
	require.NoError(t, err)
	return a
}

func TestLiteral_HasTypeAndValue(t *testing.T) {
	for _, c := range []struct {
		typ  arrow.DataType
		json string
		want string
	}{
		{arrow.PrimitiveTypes.Int64, `1`, "CAST('1' AS BIGINT)"},
		{arrow.PrimitiveTypes.Int64, `null`, "CAST(NULL AS BIGINT)"},
		{arrow.Null, `null`, "NULL"},
		{arrow.BinaryTypes.String, `null`, "NULL"},
		{arrow.BinaryTypes.String, `"it's"`, "'it''s'"},
		{arrow.BinaryTypes.String, `"a\u0000'"`, "'a' || chr(0) || ''''"},
		{arrow.BinaryTypes.Binary, `"AP8="`, `CAST('\x00\xff' AS BLOB)`},
		{arrow.PrimitiveTypes.Date32, `"0000-12-31"`, "CAST('0001-12-31 (BC)' AS DATE)"},
		{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, `"1969-12-31 23:59:59.5Z"`, "CAST('1969-12-31 23:59:59.5+00' AS TIMESTAMPTZ)"},
		{arrow.ListOf(arrow.PrimitiveTypes.Int8), `[]`, "CAST([] AS TINYINT[])"},
		{arrow.StructOf(arrow.Field{Name: `a"'b`, Type: arrow.BinaryTypes.String}), `{"a\"'b":"x"}`, `CAST({'a"''b': 'x'} AS STRUCT("a""'b" VARCHAR))`},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), `[{"key":"k","value":null}]`, "CAST(MAP(['k'], [CAST(NULL AS TINYINT)]) AS MAP(VARCHAR, TINYINT))"},
		{arrow.FixedWidthTypes.MonthDayNanoInterval, `{"months":1,"days":-2,"nanoseconds":3000}`, "CAST('1 months -2 days 3 microseconds' AS INTERVAL)"},
	} {
		got, err := literal(arrayOf(t, c.typ, c.json), 0)
		require.NoError(t, err, c.json)
		require.Equal(t, c.want, got)
	}
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues([]float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1)}, nil)
	floats := b.NewArray()
	for i, want := range []string{"CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "CAST('-0' AS DOUBLE)"} {
		got, err := literal(floats, i)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestLiteral_Refusals(t *testing.T) {
	for _, c := range []struct {
		typ  arrow.DataType
		json string
		says string
	}{
		{arrow.FixedWidthTypes.Time64ns, `"00:00:00.000000001"`, "nothing is rounded"},
		{&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, `"2024-01-01 00:00:00.000000001Z"`, "nothing is rounded"},
		{&arrow.Decimal256Type{Precision: 76}, `"1"`, "at most 38 digits"},
		{arrow.FixedWidthTypes.DayTimeInterval, `{"days":1,"milliseconds":2}`, "not supported"},
	} {
		_, err := literal(arrayOf(t, c.typ, c.json), 0)
		require.ErrorContains(t, err, c.says, c.typ)
	}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append("\xff")
	_, err := literal(b.NewArray(), 0)
	require.ErrorContains(t, err, "UTF-8")
	tb := array.NewTime64Builder(memory.DefaultAllocator, &arrow.Time64Type{Unit: arrow.Microsecond})
	tb.AppendValues([]arrow.Time64{-1, 24*60*60*1e6 + 1}, nil)
	times := tb.NewArray()
	for i := range 2 {
		_, err := literal(times, i)
		require.ErrorContains(t, err, "24:00")
	}
}

func TestLiteral_OfUnionsAndDictionaries(t *testing.T) {
	union := arrow.DenseUnionOf([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, []arrow.UnionTypeCode{0, 1})
	b := array.NewDenseUnionBuilder(memory.DefaultAllocator, union)
	b.Append(1)
	b.Child(1).(*array.Int64Builder).Append(7)
	b.Append(0)
	b.Child(0).(*array.StringBuilder).Append("x'")
	a := b.NewArray()
	for i, want := range []string{"CAST('7' AS BIGINT)", "'x'''"} {
		got, err := literal(a, i)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	dict := arrayOf(t, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int16}, `5, null, 5`)
	for i, want := range []string{"CAST('5' AS SMALLINT)", "CAST(NULL AS SMALLINT)", "CAST('5' AS SMALLINT)"} {
		got, err := literal(dict, i)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// No text gets out of its literal: it is one string for the lexer that the engine's is equal to, with the same value.
func FuzzLiteral_TextIsOneToken(f *testing.F) {
	for _, s := range []string{"", "'", "''", "\\'", "' OR 1=1 --", "$$", "\x00", "\u00a0'", "\ufeff'", "a\nb", "/*", "E'\\''"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := textLiteral(s)
		if !utf8.ValidString(s) {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		toks, err := sql.Tokenize(got)
		require.NoError(t, err, got)
		var b strings.Builder
		for i, tok := range toks {
			switch {
			case tok.Kind == sql.KindString:
				b.WriteString(tok.Value)
			case i%9 == 5: // the 0 of || chr(0) ||
				require.Equal(t, "0", tok.Value)
				b.WriteByte(0)
			}
		}
		require.Equal(t, s, b.String())
	})
}
