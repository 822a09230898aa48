package plan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

func kindType(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }

// conditionSchema has a column of every type, called like it.
func conditionSchema() *planv1.Schema {
	f := func(id int32, name string, t *planv1.Type) *planv1.Field {
		return &planv1.Field{Id: id, Name: name, Type: t}
	}
	return &planv1.Schema{Fields: []*planv1.Field{
		f(1, "b", kindType(planv1.TypeKind_TYPE_KIND_BOOLEAN)),
		f(2, "i", kindType(planv1.TypeKind_TYPE_KIND_INT32)),
		f(3, "l", kindType(planv1.TypeKind_TYPE_KIND_INT64)),
		f(4, "r", kindType(planv1.TypeKind_TYPE_KIND_FLOAT32)),
		f(5, "d", kindType(planv1.TypeKind_TYPE_KIND_FLOAT64)),
		f(6, "n", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 5, Scale: 2}),
		f(7, "day", kindType(planv1.TypeKind_TYPE_KIND_DATE)),
		f(8, "tm", kindType(planv1.TypeKind_TYPE_KIND_TIME_MICROS)),
		f(9, "ts", kindType(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS)),
		f(10, "tz", kindType(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS)),
		f(11, "ns", kindType(planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS)),
		f(12, "s", kindType(planv1.TypeKind_TYPE_KIND_STRING)),
		f(13, "u", kindType(planv1.TypeKind_TYPE_KIND_UUID)),
		f(14, "x", kindType(planv1.TypeKind_TYPE_KIND_BINARY)),
		f(15, "fx", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: 2}),
		f(16, "st", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{f(17, "In ner", kindType(planv1.TypeKind_TYPE_KIND_INT64))}}),
		f(18, "li", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{f(19, "element", kindType(planv1.TypeKind_TYPE_KIND_INT64))}}),
	}}
}

func conditionOf(t *testing.T, text string) *sql.Condition {
	t.Helper()
	st, err := sql.Parse("INSERT INTO t REPLACE WHERE " + text + " SELECT 1")
	require.NoError(t, err)
	return st.(*sql.Insert).Overwrite.Where
}

// What is bound is written back as the same condition, value by value.
func TestBindCondition_ReadsEveryType(t *testing.T) {
	for text, want := range map[string]string{
		"b":                                    "b = TRUE",
		"NOT b":                                "NOT (b = TRUE)",
		"b = FALSE":                            "b = FALSE",
		"i = -2147483648":                      "i = -2147483648",
		"I IN (1, 2)":                          "i IN (1, 2)",
		"l > 9223372036854775807":              "l > 9223372036854775807",
		"l = 1.0":                              "l = 1",
		"r = 0.5":                              "r = 0.5",
		"d <> 1e3":                             "d <> 1000",
		"n = -1.50":                            "n = -1.50",
		"n = 999.99":                           "n = 999.99",
		"n = 1":                                "n = 1.00",
		"day = '1969-12-31'":                   "day = '1969-12-31'",
		"day >= DATE '2026-01-31'":             "day >= '2026-01-31'",
		"tm = '23:59:59.000001'":               "tm = '23:59:59.000001'",
		"ts < '2026-01-31'":                    "ts < '2026-01-31 00:00:00'",
		"ts = '2026-01-31T01:02:03.5'":         "ts = '2026-01-31 01:02:03.5'",
		"tz = '2026-01-31 01:00+01:00'":        "tz = '2026-01-31 00:00:00+00'",
		"tz = TIMESTAMP '2026-01-31'":          "tz = '2026-01-31 00:00:00+00'",
		"ns = '2026-01-31 00:00:00.123456789'": "ns = '2026-01-31 00:00:00.123456789'",
		"s = 'it''s'":                          "s = 'it''s'",
		"s = ''":                               "s = ''",
		"u = '00000000-0000-0000-0000-0000000000ff'": "u = '00000000-0000-0000-0000-0000000000ff'",
		`x = '\xff\x00a'`:                      `x = '\xff\x00\x61'`,
		`fx = 'ab'`:                            `fx = '\x61\x62'`,
		`st."in ner" = 1`:                      `st."In ner" = 1`,
		"li IS NULL OR TRUE AND s IS NOT NULL": "",
		"(i = 1 OR i = 2) AND s IS NULL":       "(i = 1 OR i = 2) AND s IS NULL",
		"i BETWEEN 1 AND 2":                    "i >= 1 AND i <= 2",
		"FALSE":                                "FALSE",
	} {
		p, err := BindCondition(conditionOf(t, text), conditionSchema(), "t", "REPLACE WHERE")
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, PredicateText(p, conditionSchema()), text)
	}
}

// A constant that no value of the column equals is refused, with the column, the constant and its type.
func TestBindCondition_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"i = 2147483648":                     "column i: 2147483648 is no INTEGER: it is out of range",
		"i = 1.5":                            "column i: 1.5 is no INTEGER: it has a fraction",
		"i = 'x'":                            "column i: 'x' is no INTEGER: want a number",
		"i = TRUE":                           "want a number",
		"l = 1e999":                          "want a number",
		"n = 1.234":                          "more digits behind the point",
		"n = 1000":                           "out of range",
		"d = 'NaN'":                          "want a number",
		"r = 1e39":                           "out of range",
		"b = 1":                              "want TRUE or FALSE",
		"day = '2026-02-30'":                 "want YYYY-MM-DD",
		"day = 20":                           "as a string in single quotes",
		"day = TIMESTAMP '2026-01-1'":        "names another type",
		"tm = '24:00:00'":                    "want HH:MM:SS",
		"ts = '2026-01-31 00:00:00Z'":        "want YYYY-MM-DD HH:MM:SS",
		"ts = '2026-01-31 00:00:00.0000001'": "finer than microseconds",
		"ns = '2300-01-01'":                  "out of range",
		"u = 'x'":                            "want xxxxxxxx-",
		`x = '\xg0'`:                         "hexadecimal",
		`fx = 'abc'`:                         "3 bytes",
		"s = 1":                              "single quotes",
		"i":                                  "i is INTEGER, not a condition",
		"st = 1":                             "column st is STRUCT",
		"li = 1":                             "column li is BIGINT[]",
		"nope = 1":                           "column nope is not in t",
		"st.nope = 1":                        "column nope is not in the struct st",
		"i.x = 1":                            "column x is not in the struct i",
	} {
		_, err := BindCondition(conditionOf(t, text), conditionSchema(), "t", "REPLACE WHERE")
		var pe *Error
		require.ErrorAs(t, err, &pe, text)
		require.Contains(t, pe.Message, want, text)
		require.Contains(t, pe.Message, "REPLACE WHERE: ", text)
	}
}

func TestLiteralValue_DecimalsInTwosComplement(t *testing.T) {
	for text, want := range map[string][]byte{"0": {0}, "1.27": {0x7f}, "1.28": {0, 0x80}, "-1.28": {0x80}, "-1.29": {0xff, 0x7f}, "-0.01": {0xff}, "327.67": {0x7f, 0xff}, "-327.68": {0x80, 0}} {
		v, err := LiteralValue(sql.Literal{Kind: sql.LiteralNumber, Text: text}, &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2})
		require.NoError(t, err, text)
		require.Equal(t, want, v.GetDecimal().GetUnscaled(), text)
	}
}

func TestFixPartitions(t *testing.T) {
	spec := []*planv1.PartitionField{
		{SourceId: 7, Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY},
		{SourceId: 12, Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY},
		{SourceId: 9, Transform: planv1.TransformKind_TRANSFORM_KIND_DAY},
	}
	fix := func(clause string) (map[int32]*planv1.Value, error) {
		st, err := sql.Parse("INSERT OVERWRITE t PARTITION (" + clause + ") SELECT 1")
		require.NoError(t, err)
		return FixPartitions(st.(*sql.Insert).Partition, conditionSchema(), spec, "t")
	}
	got, err := fix("DAY = '1970-01-02', s = NULL, ts")
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.True(t, proto.Equal(&planv1.Value{Kind: &planv1.Value_Integer{Integer: 1}}, got[7]))
	require.Nil(t, got[12].GetKind())
	for clause, want := range map[string]string{
		"i = 1": "not partitioned by the values of column i", "i": "not partitioned by the values of column i",
		"ts = '2026-01-01'": "not partitioned by the values of column ts", "day = 'x'": "column day: 'x' is no DATE", "q = 1": "column q is not in t",
	} {
		_, err := fix(clause)
		require.ErrorContains(t, err, want, clause)
	}
	_, err = FixPartitions(nil, conditionSchema(), nil, "t")
	require.ErrorContains(t, err, "t is not partitioned")
}

func TestMapInsert_FixedColumnsStandInTheirPlaces(t *testing.T) {
	schema := &planv1.Schema{Fields: []*planv1.Field{
		{Id: 1, Name: "a", Type: kindType(planv1.TypeKind_TYPE_KIND_INT64)},
		{Id: 2, Name: "p", Type: kindType(planv1.TypeKind_TYPE_KIND_STRING)},
		{Id: 3, Name: "c", Type: kindType(planv1.TypeKind_TYPE_KIND_INT64)},
	}}
	fixed := map[int32]*planv1.Value{2: {Kind: &planv1.Value_String_{String_: "x"}}}
	query := []*planv1.Column{{Name: "c", EngineType: "BIGINT"}, {Name: "a", EngineType: "BIGINT"}}
	inputs := func(target Target) []int32 {
		target.Table, target.Schema = "t", schema
		out, err := MapInsert(target, fixed, query)
		require.NoError(t, err)
		require.Equal(t, "x", out[1].Field.WriteDefault.GetString_())
		require.Nil(t, schema.Fields[1].WriteDefault, "the table's own field is not changed")
		return []int32{out[0].Input, out[1].Input, out[2].Input}
	}
	require.Equal(t, []int32{0, -1, 1}, inputs(Target{}))
	require.Equal(t, []int32{1, -1, 0}, inputs(Target{ByName: true}))
	require.Equal(t, []int32{1, -1, 0}, inputs(Target{List: []string{"c", "a"}}))
	for _, bad := range []Target{{List: []string{"a", "P"}}, {List: []string{"a"}}, {}} {
		bad.Table, bad.Schema = "t", schema
		q := query
		if bad.List == nil {
			q = append(q, &planv1.Column{Name: "p", EngineType: "VARCHAR"})
		}
		_, err := MapInsert(bad, fixed, q)
		var pe *Error
		require.True(t, errors.As(err, &pe), "%v", err)
	}
}
