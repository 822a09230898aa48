package format_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/cli/format"
)

// build makes an array of one type; f appends the values.
func build(t *testing.T, dt arrow.DataType, f func(array.Builder)) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	f(b)
	a := b.NewArray()
	t.Cleanup(a.Release)
	return a
}

// of parses values from Arrow's own JSON form.
func of(t *testing.T, dt arrow.DataType, values string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(values))
	require.NoError(t, err)
	t.Cleanup(a.Release)
	return a
}

func ints[T any, B interface{ Append(T) }](vs ...T) func(array.Builder) {
	return func(b array.Builder) {
		for _, v := range vs {
			any(b).(B).Append(v)
		}
	}
}

func dec(s string) decimal128.Num {
	n, err := decimal128.FromString(s, 38, 0)
	if err != nil {
		panic(err)
	}
	return n
}

func TestValues(t *testing.T) {
	ts := func(u arrow.TimeUnit, tz string) arrow.DataType { return &arrow.TimestampType{Unit: u, TimeZone: tz} }
	stamps := func(vs ...arrow.Timestamp) func(array.Builder) {
		return ints[arrow.Timestamp, *array.TimestampBuilder](vs...)
	}
	cases := []struct {
		name string
		arr  arrow.Array
		text []string
		json []string
	}{
		{"null", of(t, arrow.Null, `[null]`), []string{"NULL"}, []string{"null"}},
		{"boolean", of(t, arrow.FixedWidthTypes.Boolean, `[true, false, null]`), []string{"true", "false", "NULL"}, []string{"true", "false", "null"}},
		{"int8", of(t, arrow.PrimitiveTypes.Int8, `[-128, 127]`), []string{"-128", "127"}, []string{"-128", "127"}},
		{"int16", of(t, arrow.PrimitiveTypes.Int16, `[-32768]`), []string{"-32768"}, []string{"-32768"}},
		{"int32", of(t, arrow.PrimitiveTypes.Int32, `[-2147483648]`), []string{"-2147483648"}, []string{"-2147483648"}},
		{
			"int64", build(t, arrow.PrimitiveTypes.Int64, ints[int64, *array.Int64Builder](math.MinInt64, 9007199254740993)),
			[]string{"-9223372036854775808", "9007199254740993"},
			[]string{"-9223372036854775808", "9007199254740993"},
		},
		{"uint8", of(t, arrow.PrimitiveTypes.Uint8, `[255]`), []string{"255"}, []string{"255"}},
		{"uint16", of(t, arrow.PrimitiveTypes.Uint16, `[65535]`), []string{"65535"}, []string{"65535"}},
		{"uint32", of(t, arrow.PrimitiveTypes.Uint32, `[4294967295]`), []string{"4294967295"}, []string{"4294967295"}},
		{"uint64", build(t, arrow.PrimitiveTypes.Uint64, ints[uint64, *array.Uint64Builder](math.MaxUint64)), []string{"18446744073709551615"}, []string{"18446744073709551615"}},
		{"float16", build(t, arrow.FixedWidthTypes.Float16, ints[float16.Num, *array.Float16Builder](float16.New(1.5))), []string{"1.5"}, []string{"1.5"}},
		{
			"float32", build(t, arrow.PrimitiveTypes.Float32, ints[float32, *array.Float32Builder](0.1, 16777216, float32(math.NaN()))),
			[]string{"0.1", "16777216.0", "nan"},
			[]string{"0.1", "16777216.0", `"NaN"`},
		},
		{
			"float64", build(t, arrow.PrimitiveTypes.Float64, ints[float64, *array.Float64Builder](0.1, 1, math.Copysign(0, -1), 1e15, 1e16, 1e-5, 0.0001, math.MaxFloat64, math.Inf(1), math.Inf(-1))),
			[]string{"0.1", "1.0", "-0.0", "1000000000000000.0", "1e+16", "1e-05", "0.0001", "1.7976931348623157e+308", "inf", "-inf"},
			[]string{"0.1", "1.0", "-0.0", "1000000000000000.0", "1e+16", "1e-05", "0.0001", "1.7976931348623157e+308", `"Infinity"`, `"-Infinity"`},
		},
		{
			"decimal(38,0)", build(t, &arrow.Decimal128Type{Precision: 38}, ints[decimal128.Num, *array.Decimal128Builder](dec("-99999999999999999999999999999999999999"), dec("0"))),
			[]string{"-99999999999999999999999999999999999999", "0"},
			[]string{"-99999999999999999999999999999999999999", "0"},
		},
		{
			"decimal(18,4)", build(t, &arrow.Decimal128Type{Precision: 18, Scale: 4}, ints[decimal128.Num, *array.Decimal128Builder](dec("-1"), dec("10000"), dec("123456789012345678"))),
			[]string{"-0.0001", "1.0000", "12345678901234.5678"},
			[]string{`"-0.0001"`, `"1.0000"`, `"12345678901234.5678"`},
		},
		{
			"decimal, scale -2", build(t, &arrow.Decimal256Type{Precision: 9, Scale: -2}, ints[decimal256.Num, *array.Decimal256Builder](decimal256.FromI64(-12), decimal256.FromI64(0))),
			[]string{"-1200", "0"},
			[]string{"-1200", "0"},
		},
		{
			"date", build(t, arrow.FixedWidthTypes.Date32, ints[arrow.Date32, *array.Date32Builder](0, -1, 11016, -719162, -719163, 2932896, 2932897, math.MaxInt32, -math.MaxInt32)),
			[]string{"1970-01-01", "1969-12-31", "2000-02-29", "0001-01-01", "0001-12-31 (BC)", "9999-12-31", "10000-01-01", "infinity", "-infinity"},
			[]string{`"1970-01-01"`, `"1969-12-31"`, `"2000-02-29"`, `"0001-01-01"`, `"0000-12-31"`, `"9999-12-31"`, `"+10000-01-01"`, `"infinity"`, `"-infinity"`},
		},
		{"date64", build(t, arrow.FixedWidthTypes.Date64, ints[arrow.Date64, *array.Date64Builder](-86400000)), []string{"1969-12-31"}, []string{`"1969-12-31"`}},
		{
			"time", build(t, arrow.FixedWidthTypes.Time64us, ints[arrow.Time64, *array.Time64Builder](0, 86399999999, 1000)),
			[]string{"00:00:00", "23:59:59.999999", "00:00:00.001"},
			[]string{`"00:00:00"`, `"23:59:59.999999"`, `"00:00:00.001"`},
		},
		{"time32", build(t, arrow.FixedWidthTypes.Time32ms, ints[arrow.Time32, *array.Time32Builder](3661001)), []string{"01:01:01.001"}, []string{`"01:01:01.001"`}},
		{
			"timestamp us", build(t, ts(arrow.Microsecond, ""), stamps(0, -1, 1714521600000001, math.MaxInt64, -math.MaxInt64, math.MaxInt64-1)),
			[]string{"1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-05-01 00:00:00.000001", "infinity", "-infinity", "294247-01-10 04:00:54.775806"},
			[]string{`"1970-01-01T00:00:00"`, `"1969-12-31T23:59:59.999999"`, `"2024-05-01T00:00:00.000001"`, `"infinity"`, `"-infinity"`, `"+294247-01-10T04:00:54.775806"`},
		},
		{"timestamp ns", build(t, ts(arrow.Nanosecond, ""), stamps(-1)), []string{"1969-12-31 23:59:59.999999999"}, []string{`"1969-12-31T23:59:59.999999999"`}},
		{"timestamp s, BC", build(t, ts(arrow.Second, ""), stamps(-63549403200)), []string{"0045-03-14 (BC) 12:00:00"}, []string{`"-0044-03-14T12:00:00"`}},
		{"timestamptz", build(t, ts(arrow.Microsecond, "Europe/Berlin"), stamps(1500000)), []string{"1970-01-01 00:00:01.5+00"}, []string{`"1970-01-01T00:00:01.5Z"`}},
		{"duration", build(t, arrow.FixedWidthTypes.Duration_us, ints[arrow.Duration, *array.DurationBuilder](-3600000001)), []string{"-01:00:00.000001"}, []string{`"-01:00:00.000001"`}},
		{
			"interval", build(t, arrow.FixedWidthTypes.MonthDayNanoInterval, ints[arrow.MonthDayNanoInterval, *array.MonthDayNanoIntervalBuilder](
				arrow.MonthDayNanoInterval{Months: 14, Days: 3, Nanoseconds: 14706007000000}, arrow.MonthDayNanoInterval{}, arrow.MonthDayNanoInterval{Days: -1})),
			[]string{"1 year 2 months 3 days 04:05:06.007", "00:00:00", "-1 day"},
			[]string{`"1 year 2 months 3 days 04:05:06.007"`, `"00:00:00"`, `"-1 day"`},
		},
		{"text", of(t, arrow.BinaryTypes.String, `["größe <&>", "", "NULL"]`), []string{"größe <&>", "", "NULL"}, []string{`"größe <&>"`, `""`, `"NULL"`}},
		{"large text", of(t, arrow.BinaryTypes.LargeString, `["x"]`), []string{"x"}, []string{`"x"`}},
		{"text view", of(t, arrow.BinaryTypes.StringView, `["a longer text than twelve"]`), []string{"a longer text than twelve"}, []string{`"a longer text than twelve"`}},
		{"blob", build(t, arrow.BinaryTypes.Binary, ints[[]byte, *array.BinaryBuilder]([]byte("a\x00\\'é"))), []string{`a\x00\x5C\x27\xC3\xA9`}, []string{`"YQBcJ8Op"`}},
		{"fixed", build(t, &arrow.FixedSizeBinaryType{ByteWidth: 2}, ints[[]byte, *array.FixedSizeBinaryBuilder]([]byte{0xff, 'a'})), []string{`\xFFa`}, []string{`"/2E="`}},
		{
			"uuid", build(t, extensions.NewUUIDType(), ints[uuid.UUID, *extensions.UUIDBuilder](uuid.MustParse("ffffffff-0000-4000-8000-00000000000a"))),
			[]string{"ffffffff-0000-4000-8000-00000000000a"},
			[]string{`"ffffffff-0000-4000-8000-00000000000a"`},
		},
		{"enum", of(t, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["b", "a", null]`), []string{"b", "a", "NULL"}, []string{`"b"`, `"a"`, "null"}},
		{
			"list", of(t, arrow.ListOf(arrow.BinaryTypes.String), `[["a", null, "b c", "d,e", "", "null", "o'k"], [], null]`),
			[]string{`[a, NULL, b c, 'd,e', '', 'null', 'o\'k']`, "[]", "NULL"},
			[]string{`["a",null,"b c","d,e","","null","o'k"]`, "[]", "null"},
		},
		{"large list", of(t, arrow.LargeListOf(arrow.PrimitiveTypes.Int32), `[[1, 2]]`), []string{"[1, 2]"}, []string{"[1,2]"}},
		{"array", of(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), `[[1, null]]`), []string{"[1, NULL]"}, []string{"[1,null]"}},
		{
			"struct", of(t, arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "o'b", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8), Nullable: true}), `[{"a": 1, "o'b": [2]}, {"a": null, "o'b": null}, null]`),
			[]string{`{'a': 1, 'o\'b': [2]}`, `{'a': NULL, 'o\'b': NULL}`, "NULL"},
			[]string{`{"a":1,"o'b":[2]}`, `{"a":null,"o'b":null}`, "null"},
		},
		{
			"map", of(t, arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), `[[{"key": "k=1", "value": 1}, {"key": "b", "value": null}], [], null]`),
			[]string{`{'k=1'=1, b=NULL}`, "{}", "NULL"},
			[]string{`{"k=1":1,"b":null}`, "{}", "null"},
		},
		{"map of numbers", of(t, arrow.MapOf(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String), `[[{"key": 1, "value": "x"}], []]`), []string{"{1=x}", "{}"}, []string{`[{"key":1,"value":"x"}]`, "[]"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Len(t, c.text, c.arr.Len())
			for i := range c.arr.Len() {
				require.Equal(t, c.text[i], string(format.Text(nil, c.arr, i)))
				got := string(format.JSON(nil, c.arr, i))
				require.Equal(t, c.json[i], got)
				require.True(t, json.Valid([]byte(got)), got)
			}
		})
	}
}

// A slice has an offset; the children of nested values must follow it.
func TestValues_OfASlice(t *testing.T) {
	a := of(t, arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1], [2, 3], [4]]`)
	s := array.NewSlice(a, 1, 3)
	defer s.Release()
	require.Equal(t, "[2, 3]", string(format.Text(nil, s, 0)))
	require.Equal(t, "[4]", string(format.JSON(nil, s, 1)))
	st := of(t, arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32}), `[{"a": 1}, {"a": 2}]`)
	s2 := array.NewSlice(st, 1, 2)
	defer s2.Release()
	require.Equal(t, "{'a': 2}", string(format.Text(nil, s2, 0)))
}

func TestValues_UnionAndRuns(t *testing.T) {
	ids := of(t, arrow.PrimitiveTypes.Int8, `[0, 1]`)
	n, s := of(t, arrow.PrimitiveTypes.Int32, `[7, 0]`), of(t, arrow.BinaryTypes.String, `["", "x"]`)
	u, err := array.NewSparseUnionFromArrays(ids, []arrow.Array{n, s})
	require.NoError(t, err)
	defer u.Release()
	require.Equal(t, "7", string(format.Text(nil, u, 0)))
	require.Equal(t, `"x"`, string(format.JSON(nil, u, 1)))

	ends, vals := of(t, arrow.PrimitiveTypes.Int32, `[2, 3]`), of(t, arrow.BinaryTypes.String, `["a", null]`)
	r := array.NewRunEndEncodedArray(ends, vals, 3, 0)
	defer r.Release()
	require.Equal(t, "a", string(format.Text(nil, r, 1)))
	require.Equal(t, "null", string(format.JSON(nil, r, 2)))
}

func record(t *testing.T) arrow.RecordBatch {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "n", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	cols := []arrow.Array{
		of(t, arrow.BinaryTypes.String, `["日本", "e\u0301", "a\nb\u001b[2J\u202e", null]`),
		of(t, arrow.PrimitiveTypes.Int64, `[1, -20, null, 300]`),
		of(t, arrow.BinaryTypes.String, `["x,y", "say \"hi\"", "", null]`),
	}
	r := array.NewRecordBatch(schema, cols, 4)
	t.Cleanup(r.Release)
	return r
}

func write(t *testing.T, kind string, batches ...arrow.RecordBatch) string {
	t.Helper()
	var out bytes.Buffer
	w, err := format.New(kind, &out)
	require.NoError(t, err)
	require.NoError(t, w.Begin(batches[0].Schema()))
	var rows int64
	for _, b := range batches {
		require.NoError(t, w.Batch(b))
		rows += b.NumRows()
	}
	n, err := w.End()
	require.NoError(t, err)
	require.Equal(t, rows, n)
	return out.String()
}

func TestTable_AlignsAndDisarms(t *testing.T) {
	require.Equal(t, strings.TrimLeft(`
┌───────────────────┬──────┬──────────┐
│ name              │    n │ n        │
├───────────────────┼──────┼──────────┤
│ 日本              │    1 │ x,y      │
│ é                 │  -20 │ say "hi" │
│ a\nb\x1B[2J\u202E │ NULL │          │
│ NULL              │  300 │ NULL     │
└───────────────────┴──────┴──────────┘
(4 rows)
`, "\n"), write(t, "table", record(t)))
}

func TestJSON_OneObjectPerRow(t *testing.T) {
	require.Equal(t, `{"name":"日本","n":1,"n_1":"x,y"}
{"name":"é","n":-20,"n_1":"say \"hi\""}
{"name":"a\nb\u001b[2J`+"\u202e"+`","n":null,"n_1":""}
{"name":null,"n":300,"n_1":null}
`, write(t, "json", record(t)))
}

func TestCSV_IsRFC4180(t *testing.T) {
	got := write(t, "csv", record(t), record(t))
	require.True(t, strings.HasPrefix(got, "name,n,n\r\n日本,1,\"x,y\"\r\n"), got)
	require.Contains(t, got, "-20,\"say \"\"hi\"\"\"\r\n")
	require.Contains(t, got, ",,\"\"\r\n", "NULL is nothing, an empty string is quoted")
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 9)
}

func TestTable_ManyRowsKeepOneShape(t *testing.T) {
	batches := make([]arrow.RecordBatch, 600)
	for i := range batches {
		batches[i] = record(t)
	}
	got := write(t, "table", batches...)
	require.Equal(t, 1, strings.Count(got, "┌"))
	require.Contains(t, got, "(2400 rows)")
	require.Equal(t, 2400+5, strings.Count(got, "\n"))
}

func TestNew_UnknownKind(t *testing.T) {
	_, err := format.New("xml", nil)
	require.ErrorContains(t, err, "table, json, csv")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe closed") }

func TestWriters_ReportABrokenOutput(t *testing.T) {
	for _, kind := range format.Kinds {
		w, err := format.New(kind, broken{})
		require.NoError(t, err)
		require.NoError(t, w.Begin(record(t).Schema()))
		err = nil
		for range 2000 {
			if err = w.Batch(record(t)); err != nil {
				break
			}
		}
		require.ErrorContains(t, err, "pipe closed", kind)
		_, err = w.End()
		require.ErrorContains(t, err, "pipe closed", kind)
	}
}
