package meta

import (
	"encoding/json"
	"math/big"
	"os"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func f(name string, t *planv1.Type, required bool) *planv1.Field {
	return &planv1.Field{Name: name, Type: t, Required: required}
}

func prim(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }

// nested is the schema of Iceberg's own test of fresh ids: a struct, a list of structs and a map.
func nested() []*planv1.Field {
	long, str := prim(planv1.TypeKind_TYPE_KIND_INT64), prim(planv1.TypeKind_TYPE_KIND_STRING)
	point := func() *planv1.Type {
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{f("x", long, true), f("y", long, false)}}
	}
	return []*planv1.Field{
		f("id", long, true),
		f("data", point(), false),
		f("points", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{f("element", point(), false)}}, false),
		f("props", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{f("key", str, true), f("value", point(), false)}}, false),
		f("last", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 38, Scale: 10}, false),
	}
}

func TestAssignIDs_LevelByLevel(t *testing.T) {
	fields := nested()
	AssignIDs(fields)
	s, err := NewSchema(0, fields)
	require.NoError(t, err)
	ids := map[string]int32{}
	s.Walk(func(n *Node) { ids[n.Path] = n.Field.GetId() })
	require.Equal(t, map[string]int32{
		"id": 1, "data": 2, "points": 3, "props": 4, "last": 5, "data.x": 6, "data.y": 7, "points.element": 8, "points.element.x": 9, "points.element.y": 10,
		"props.key": 11, "props.value": 12, "props.value.x": 13, "props.value.y": 14,
	}, ids)
	require.EqualValues(t, 14, s.Highest())
	require.True(t, s.Lookup("points.element.x").Repeated)
	require.False(t, s.Lookup("data.x").Repeated)
	require.True(t, s.Lookup("data.x").Optional, "the struct above it may be NULL")
}

func TestSchema_RoundTripsAndIcebergGoReadsIt(t *testing.T) {
	fields := nested()
	fields[0].Doc = "the \"key\""
	AssignIDs(fields)
	s, err := NewSchema(7, fields)
	require.NoError(t, err)
	back, err := ParseSchema(s.JSON)
	require.NoError(t, err)
	require.Equal(t, s.JSON, back.JSON)
	require.EqualValues(t, 7, back.ID)
	again, err := NewSchema(7, back.Fields)
	require.NoError(t, err)
	require.Equal(t, string(s.JSON), string(again.JSON))
	var ice icebergo.Schema
	require.NoError(t, json.Unmarshal(s.JSON, &ice))
	require.Equal(t, 14, ice.HighestFieldID())
}

func TestParseSchema_NamesWhatItCannotRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"struct","fields":[{"id":1,"name":"v","required":false,"type":"variant"}]}`:                                                                   "column v: type variant",
		`{"type":"struct","fields":[{"id":1,"name":"g","required":false,"type":"geometry(srid:4326)"}]}`:                                                       "column g: type geometry(srid:4326)",
		`{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":{"type":"list","element-id":2,"element-required":false,"element":"unknown"}}]}`: "column a.element: type unknown",
		`{"type":"struct","fields":[{"id":1,"name":"d","required":false,"type":"decimal(39,2)"}]}`:                                                             "column d: ",
		`{"type":"struct","fields":[{"id":1,"name":"d","required":false,"type":"decimal(5,6)"}]}`:                                                              "column d: ",
		`{"type":"struct","fields":[{"id":1,"name":"x","required":false,"type":"fixed[0]"}]}`:                                                                  "column x: ",
		`{"type":"struct","fields":[{"id":1,"name":"x","required":false,"type":{"type":"bag"}}]}`:                                                              `column x: type "bag"`,
	} {
		_, err := ParseSchema([]byte(text))
		require.ErrorIs(t, err, ErrUnsupported, text)
		require.ErrorContains(t, err, want)
	}
	_, err := ParseSchema([]byte(`{"type":"struct","fields":[{"id":1,"name":"a","required":true,"type":"int"},{"id":1,"name":"b","required":true,"type":"int"}]}`))
	require.ErrorContains(t, err, "same field id 1")
}

func TestParseSchema_BoundsTheDepth(t *testing.T) {
	text := `"int"`
	for range 300 {
		text = `{"type":"list","element-id":1,"element-required":true,"element":` + text + `}`
	}
	_, err := ParseSchema([]byte(`{"type":"struct","fields":[{"id":1,"name":"deep","required":false,"type":` + text + `}]}`))
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestValues_RoundTripThroughJSON(t *testing.T) {
	for _, c := range []struct {
		typ  *planv1.Type
		text string
	}{
		{prim(planv1.TypeKind_TYPE_KIND_BOOLEAN), `true`},
		{prim(planv1.TypeKind_TYPE_KIND_INT32), `-34`},
		{prim(planv1.TypeKind_TYPE_KIND_INT64), `9223372036854775807`},
		{prim(planv1.TypeKind_TYPE_KIND_FLOAT64), `1.5`},
		{&planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2}, `"-0.05"`},
		{&planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 0}, `"14"`},
		{prim(planv1.TypeKind_TYPE_KIND_DATE), `"1907-11-16"`},
		{prim(planv1.TypeKind_TYPE_KIND_TIME_MICROS), `"22:31:08.123456"`},
		{prim(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), `"1969-12-31T23:59:59.999999"`},
		{prim(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS), `"2017-11-16T22:31:08.123456+00:00"`},
		{prim(planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS), `"2017-11-16T22:31:08.123456789"`},
		{prim(planv1.TypeKind_TYPE_KIND_STRING), `"größe"`},
		{prim(planv1.TypeKind_TYPE_KIND_UUID), `"f79c3e09-677c-4bbd-a479-512f87f77acf"`},
		{&planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: 2}, `"00ff"`},
		{prim(planv1.TypeKind_TYPE_KIND_BINARY), `""`},
	} {
		v, err := ParseValue(c.typ, []byte(c.text))
		require.NoError(t, err, c.text)
		out, err := FormatValue(c.typ, v)
		require.NoError(t, err, c.text)
		require.Equal(t, c.text, string(out))
	}
	v, err := ParseValue(prim(planv1.TypeKind_TYPE_KIND_DATE), []byte(`"1969-12-31"`))
	require.NoError(t, err)
	require.EqualValues(t, -1, v.GetInteger())
	_, err = ParseValue(prim(planv1.TypeKind_TYPE_KIND_INT32), []byte(`3000000000`))
	require.Error(t, err)
}

func TestTwosComplement_IsShortestAndExact(t *testing.T) {
	for n, want := range map[int64][]byte{0: {0}, 1: {1}, -1: {0xff}, 127: {127}, 128: {0, 128}, -128: {0x80}, -129: {0xff, 0x7f}, 256: {1, 0}} {
		require.Equal(t, want, TwosComplement(big.NewInt(n)), n)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := new(big.Int).SetBytes(rapid.SliceOf(rapid.Byte()).Draw(t, "n"))
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		if got := FromTwosComplement(TwosComplement(n)); got.Cmp(n) != 0 {
			t.Fatalf("%v became %v", n, got)
		}
	})
}

func schemaOf(t *testing.T, fields ...*planv1.Field) *Schema {
	t.Helper()
	AssignIDs(fields)
	s, err := NewSchema(0, fields)
	require.NoError(t, err)
	return s
}

func TestNewSpec_NamesAsTheReferenceImplementation(t *testing.T) {
	s := schemaOf(t, f("ts", prim(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), false), f("dt", prim(planv1.TypeKind_TYPE_KIND_DATE), false),
		f("s", prim(planv1.TypeKind_TYPE_KIND_STRING), false),
		f("st", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{f("a", prim(planv1.TypeKind_TYPE_KIND_INT32), false)}}, false))
	spec, err := NewSpec(s, []Clause{
		{"ts", Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_HOUR}},
		{"dt", Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_YEAR}},
		{"s", Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}},
		{"s", Transform{planv1.TransformKind_TRANSFORM_KIND_BUCKET, 16}},
		{"s", Transform{planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, 4}},
		{"s", Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_VOID}},
		{"st.a", Transform{planv1.TransformKind_TRANSFORM_KIND_BUCKET, 2}},
		{"s", Transform{planv1.TransformKind_TRANSFORM_KIND_BUCKET, 3}},
		{"s", Transform{planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, 8}},
	})
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"source-id":1,"field-id":1000,"name":"ts_hour","transform":"hour"},
		{"source-id":2,"field-id":1001,"name":"dt_year","transform":"year"},
		{"source-id":3,"field-id":1002,"name":"s","transform":"identity"},
		{"source-id":3,"field-id":1003,"name":"s_bucket","transform":"bucket[16]"},
		{"source-id":3,"field-id":1004,"name":"s_trunc","transform":"truncate[4]"},
		{"source-id":3,"field-id":1005,"name":"s_null","transform":"void"},
		{"source-id":5,"field-id":1006,"name":"st.a_bucket","transform":"bucket[2]"},
		{"source-id":3,"field-id":1007,"name":"s_bucket_3","transform":"bucket[3]"},
		{"source-id":3,"field-id":1008,"name":"s_trunc_8","transform":"truncate[8]"}]`, string(spec.JSON))
	back, err := ParseSpec(spec.Document())
	require.NoError(t, err)
	require.True(t, back.Equal(spec))
	parts, err := spec.Partition(s)
	require.NoError(t, err)
	require.Equal(t, planv1.TypeKind_TYPE_KIND_INT32, parts[0].GetResultType().GetKind())
	require.Equal(t, planv1.TypeKind_TYPE_KIND_STRING, parts[4].GetResultType().GetKind())
}

func TestNewSpec_RefusesByName(t *testing.T) {
	list := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{f("element", prim(planv1.TypeKind_TYPE_KIND_INT32), false)}}
	s := schemaOf(t, f("ts", prim(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), false), f("ts_day", prim(planv1.TypeKind_TYPE_KIND_INT32), false),
		f("d", prim(planv1.TypeKind_TYPE_KIND_FLOAT64), false), f("dt", prim(planv1.TypeKind_TYPE_KIND_DATE), false), f("l", list, false), f("b", prim(planv1.TypeKind_TYPE_KIND_BOOLEAN), false))
	one := func(col string, k planv1.TransformKind, p int32) []Clause { return []Clause{{col, Transform{k, p}}} }
	for want, clauses := range map[string][]Clause{
		"column nope: the table has no such column": one("nope", planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0),
		"column TS: the table has no such column":   one("TS", planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0), // V7
		"column d: bucket[4] cannot be applied":     one("d", planv1.TransformKind_TRANSFORM_KIND_BUCKET, 4),
		"column b: truncate[4] cannot be applied":   one("b", planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, 4),
		"column dt: hour cannot be applied":         one("dt", planv1.TransformKind_TRANSFORM_KIND_HOUR, 0),
		"column d: month cannot be applied":         one("d", planv1.TransformKind_TRANSFORM_KIND_MONTH, 0),
		"column l: identity cannot be applied":      one("l", planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0),
		"column l.element: it lies inside a list":   one("l.element", planv1.TransformKind_TRANSFORM_KIND_IDENTITY, 0),
		"bucket[0]: the number must be positive":    one("dt", planv1.TransformKind_TRANSFORM_KIND_BUCKET, 0),
		"which is a column of the table":            one("ts", planv1.TransformKind_TRANSFORM_KIND_DAY, 0),
		"one of them is redundant":                  append(one("dt", planv1.TransformKind_TRANSFORM_KIND_YEAR, 0), one("dt", planv1.TransformKind_TRANSFORM_KIND_MONTH, 0)...),
	} {
		_, err := NewSpec(s, clauses)
		require.ErrorContains(t, err, want)
	}
}

func TestSpec_SourceColumnGone(t *testing.T) { // C27
	s := schemaOf(t, f("a", prim(planv1.TypeKind_TYPE_KIND_INT32), false))
	spec, err := ParseSpec([]byte(`{"spec-id":3,"fields":[{"source-id":9,"field-id":1000,"name":"gone_bucket","transform":"bucket[4]"}]}`))
	require.NoError(t, err)
	_, err = spec.Partition(s)
	require.ErrorContains(t, err, `partition field "gone_bucket": its source column (field id 9) has been dropped`)
	require.Len(t, spec.Describe(s), 1)

	void, err := ParseSpec([]byte(`{"spec-id":3,"fields":[{"source-id":9,"name":"gone","transform":"void"}]}`))
	require.NoError(t, err)
	parts, err := void.Partition(s)
	require.NoError(t, err, "what version 1 makes of a dropped field")
	require.EqualValues(t, 1000, parts[0].GetFieldId())

	odd, err := ParseSpec([]byte(`{"spec-id":3,"fields":[{"source-id":1,"field-id":1000,"name":"z","transform":"zorder[3]"}]}`))
	require.NoError(t, err)
	_, err = odd.Partition(s)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, `transform "zorder[3]"`)
}

func TestSortOrder_MakesAndChecks(t *testing.T) {
	s := schemaOf(t, f("a", prim(planv1.TypeKind_TYPE_KIND_INT32), false), f("b", prim(planv1.TypeKind_TYPE_KIND_STRING), false))
	o, err := NewSortOrder(s, []SortClause{
		{Clause: Clause{"b", Transform{planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, 3}}, Descending: true}, {Clause: Clause{"a", Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}, NullsFirst: true},
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"order-id":1,"fields":[{"transform":"truncate[3]","source-id":2,"direction":"desc","null-order":"nulls-last"},
		{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}`, string(o.JSON))
	back, err := parseSortOrder(o.JSON)
	require.NoError(t, err)
	require.NoError(t, back.Check(s))
	require.True(t, back.Fields[0].GetDescending())
	require.Error(t, back.Check(schemaOf(t, f("a", prim(planv1.TypeKind_TYPE_KIND_INT32), false))))
	none, err := NewSortOrder(s, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"order-id":0,"fields":[]}`, string(none.JSON))
}

func TestParse_VersionOneOfOldWriters(t *testing.T) {
	raw, err := os.ReadFile("testdata/v1.metadata.json")
	require.NoError(t, err)
	m, err := Parse(raw)
	require.NoError(t, err)
	require.Equal(t, 1, m.FormatVersion)
	require.Equal(t, "s3://bucket/test/location", m.Location)
	s, err := m.CurrentSchema()
	require.NoError(t, err)
	require.Len(t, s.Fields, 3)
	spec, err := m.DefaultSpec()
	require.NoError(t, err)
	require.EqualValues(t, 1000, spec.Fields[0].ID)
	head, err := m.Head()
	require.NoError(t, err)
	require.Nil(t, head, "-1 is none")
	order, err := m.SortOrder()
	require.NoError(t, err)
	require.Zero(t, order.ID)
}

func TestParse_RefusesWhatItMust(t *testing.T) {
	for text, want := range map[string]error{
		`{`:                    ErrInvalid,
		`{"format-version":4}`: ErrUnsupported,
		`{"format-version":0}`: ErrUnsupported,
		`{"format-version":2,"location":"file:///x"}`:                                                           ErrInvalid,
		`{"format-version":2,"table-uuid":"f79c3e09-677c-4bbd-a479-512f87f77acf"}`:                              ErrInvalid,
		`{"format-version":2,"table-uuid":"f79c3e09-677c-4bbd-a479-512f87f77acf","location":"x","schemas":[7]}`: ErrInvalid,
	} {
		_, err := Parse([]byte(text))
		require.ErrorIs(t, err, want, text)
	}
}

func TestSnapshots_AreFoundByIDAndMarker(t *testing.T) {
	m, err := Parse([]byte(`{"format-version":2,"table-uuid":"F79C3E09-677C-4BBD-A479-512F87F77ACF","location":"file:///x/","current-schema-id":5,
		"schemas":[{"schema-id":4,"type":"struct","fields":[]}],"snapshots":[
		{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"a","summary":{"operation":"append","signet.markers":"aa,bb"}},
		{"snapshot-id":12,"timestamp-ms":2,"manifest-list":"b","summary":{"operation":"append","comment":"aa","signet.markers":"cc"}}],
		"refs":{"main":{"snapshot-id":12,"type":"branch","max-ref-age-ms":5},"tag":{"snapshot-id":1,"type":"tag"}}}`))
	require.NoError(t, err)
	require.Equal(t, "f79c3e09-677c-4bbd-a479-512f87f77acf", m.UUID)
	s, err := m.FindMarked("signet.markers", "aa")
	require.NoError(t, err)
	require.EqualValues(t, 1, s.ID)
	s, err = m.FindMarked("signet.markers", "a")
	require.NoError(t, err)
	require.Nil(t, s)
	s, err = m.Snapshot(2)
	require.NoError(t, err)
	require.Nil(t, s)
	head, err := m.Head()
	require.NoError(t, err)
	require.Equal(t, "b", head.ManifestList)
	_, err = m.CurrentSchema()
	require.ErrorIs(t, err, ErrInvalid)
	gone, err := m.Schema(9)
	require.NoError(t, err)
	require.Nil(t, gone)
}

// FuzzParse: no metadata makes the reader panic.
func FuzzParse(f *testing.F) {
	raw, err := os.ReadFile("testdata/v1.metadata.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(_ *testing.T, raw []byte) {
		m, err := Parse(raw)
		if err != nil {
			return
		}
		s, err := m.CurrentSchema()
		if err != nil {
			return
		}
		if spec, err := m.DefaultSpec(); err == nil {
			_, _ = spec.Partition(s)
		}
		if o, err := m.SortOrder(); err == nil {
			_ = o.Check(s)
		}
		_, _ = m.Head()
	})
}
