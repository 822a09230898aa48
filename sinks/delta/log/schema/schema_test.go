package schema_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/signet-io/signet/sinks/delta/log/schema"
)

// As Spark writes it.
const everything = `{"type":"struct","fields":[{"name":"s","type":"string","nullable":true,"metadata":{"comment":"a \"word\", <b>","x" : [1, {"y":1e400}]}},` +
	`{"name":"l","type":"long","nullable":false,"metadata":{}},{"name":"i","type":"integer","nullable":true,"metadata":{}},{"name":"h","type":"short","nullable":true,"metadata":{}},` +
	`{"name":"b","type":"byte","nullable":true,"metadata":{}},{"name":"f","type":"float","nullable":true,"metadata":{}},{"name":"d","type":"double","nullable":true,"metadata":{}},` +
	`{"name":"m","type":"decimal(38,18)","nullable":true,"metadata":{}},{"name":"o","type":"boolean","nullable":true,"metadata":{}},{"name":"y","type":"binary","nullable":true,"metadata":{}},` +
	`{"name":"t","type":"date","nullable":true,"metadata":{}},{"name":"z","type":"timestamp","nullable":true,"metadata":{}},{"name":"n","type":"timestamp_ntz","nullable":true,"metadata":{}},` +
	`{"name":"a","type":{"type":"array","elementType":{"type":"array","elementType":"long","containsNull":false},"containsNull":true},"nullable":true,"metadata":{}},` +
	`{"name":"p","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[{"name":"k","type":"long","nullable":true,"metadata":{"comment":"deep"}}]},"valueContainsNull":false},"nullable":true,"metadata":{}},` +
	`{"name":"r","type":{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}},{"name":"y","type":{"type":"struct","fields":[{"name":"z","type":"date","nullable":false,"metadata":{}}]},"nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}}]}`

func parse(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRoundTrip(t *testing.T) {
	s := parse(t, everything)
	if got := s.String(); got != everything {
		t.Errorf("got  %s\nwant %s", got, everything)
	}
	if got := s.Fields[0].Comment(); got != `a "word", <b>` {
		t.Errorf("comment %q", got)
	}
	if got := s.Fields[15].Type.String(); got != "struct<x:long,y:struct<z:date>>" {
		t.Errorf("type %s", got)
	}
	var leaves []string
	for _, l := range s.Leaves() {
		leaves = append(leaves, l.Name())
	}
	if got := strings.Join(leaves, " "); got != "s l i h b f d m o y t z n a p r.x r.y.z" {
		t.Errorf("leaves %s", got)
	}
	if got := s.Features(); !slices.Equal(got, []string{"invariants", "timestampNtz"}) {
		t.Errorf("features %v", got)
	}
}

// E15: a timestamp without time zone needs its feature, at whatever depth it lies.
func TestSchema_E15TimestampNTZAtAnyDepthNeedsItsFeature(t *testing.T) {
	for text, needs := range map[string]bool{
		`"timestamp"`:     false,
		`"timestamp_ntz"`: true,
		`{"type":"array","elementType":"timestamp_ntz","containsNull":true}`:                                                         true,
		`{"type":"map","keyType":"timestamp_ntz","valueType":"long","valueContainsNull":true}`:                                       true,
		`{"type":"map","keyType":"long","valueType":"timestamp_ntz","valueContainsNull":true}`:                                       true,
		`{"type":"struct","fields":[{"name":"x","type":"timestamp_ntz","nullable":true,"metadata":{}}]}`:                             true,
		`{"type":"array","elementType":{"type":"array","elementType":"timestamp_ntz","containsNull":true},"containsNull":true}`:      true,
		`{"type":"struct","fields":[{"name":"timestamp_ntz","type":"date","nullable":true,"metadata":{"comment":"timestamp_ntz"}}]}`: false,
	} {
		s := parse(t, `{"type":"struct","fields":[{"name":"c","type":`+text+`,"nullable":true,"metadata":{}}]}`)
		if got := len(s.Features()) == 1; got != needs {
			t.Errorf("%s: %v", text, s.Features())
		}
	}
}

func TestWhatIsNotKnownOfAFieldIsKept(t *testing.T) {
	s := parse(t, `{"fields":[{"nullable":true,"type":"long","new":{"a":[1,2]},"name":"l","about":"x"}],"type":"struct"}`)
	want := `{"type":"struct","fields":[{"name":"l","type":"long","nullable":true,"metadata":{},"about":"x","new":{"a":[1,2]}}]}`
	if got := s.String(); got != want {
		t.Errorf("%s", got)
	}
}

func TestComments(t *testing.T) {
	f := schema.Field{Name: "a", Type: schema.Type{Kind: schema.Long}, Metadata: json.RawMessage(`{"x" : 1.50,"comment":"old","y":"<"}`)}
	for _, c := range []struct{ comment, want string }{
		{"new & \u2028 \U0001F3B5", `{"x":1.50,"comment":"new & \u2028 ` + "\U0001F3B5" + `","y":"<"}`},
		{"", `{"x":1.50,"y":"<"}`},
		{"again", `{"x":1.50,"y":"<","comment":"again"}`},
	} {
		if err := f.SetComment(c.comment); err != nil || string(f.Metadata) != c.want || f.Comment() != c.comment {
			t.Errorf("%q: %s, %q, %v", c.comment, f.Metadata, f.Comment(), err)
		}
	}
	f = schema.Field{Name: "a", Type: schema.Type{Kind: schema.Long}}
	if err := f.SetComment(""); err != nil || f.Metadata != nil {
		t.Errorf("%s, %v", f.Metadata, err)
	}
}

func field(kind string) string {
	return `{"type":"struct","fields":[{"name":"c","type":` + kind + `,"nullable":true,"metadata":{}}]}`
}

func TestUnsupportedTypes(t *testing.T) {
	for _, name := range []string{"void", "variant", "interval year to month", "geometry(OGC:CRS84)", "timestamp_nanos"} {
		_, err := schema.Parse(field(`{"type":"array","elementType":"` + name + `","containsNull":true}`))
		if !errors.Is(err, schema.ErrUnsupported) || !strings.Contains(err.Error(), "c.element is of type "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := schema.Parse(`{"type":"struct","fields":[{"name":"a","type":"void","nullable":true},{"name":"b b","type":{"type":"udt","class":"x"},"nullable":true}]}`)
	if err == nil || !strings.Contains(err.Error(), "column a is of type void") || !strings.Contains(err.Error(), "column `b b` is of type udt") {
		t.Errorf("not every column is named: %v", err)
	}
}

func TestInvalidSchemas(t *testing.T) {
	for _, text := range []string{
		``, `null`, `{}`, `[]`, `"long"`, `{"type":"struct"}`, `{"type":"struct","fields":null}`, `{"type":"struct","fields":{}}`, `{"type":"struct","fields":[1]}`, `{"type":"struct","fields":[null]}`,
		`{"type":"struct","fields":[{"type":"long","nullable":true}]}`, `{"type":"struct","fields":[{"name":null,"type":"long","nullable":true}]}`,
		`{"type":"struct","fields":[{"name":"a","nullable":true}]}`, `{"type":"struct","fields":[{"name":"a","type":"long"}]}`, `{"type":"struct","fields":[{"name":"a","type":"long","nullable":1}]}`,
		`{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":[]}]}`,
		`{"type":"array","elementType":"long","containsNull":true}`,
		field(`null`), field(`7`), field(`{"type":null}`), field(`"decimal(39,2)"`), field(`"decimal(5,6)"`), field(`"decimal(5)"`), field(`"decimal(,)"`), field(`"decimal(5,-1)"`),
		field(`{"type":"array","containsNull":true}`), field(`{"type":"array","elementType":"long"}`), field(`{"type":"map","keyType":"long","valueContainsNull":true}`),
		field(`{"type":"map","keyType":"long","valueType":"long"}`), field(`{"type":"map","valueType":"long","valueContainsNull":true}`),
		everything + "x", everything[:len(everything)-1],
		field(strings.Repeat(`{"type":"array","containsNull":true,"elementType":`, 300) + `"long"` + strings.Repeat("}", 300)),
	} {
		if s, err := schema.Parse(text); !errors.Is(err, schema.ErrInvalid) {
			t.Errorf("%.200s: %v, %v", text, s, err)
		}
	}
}

func TestNames(t *testing.T) {
	long := schema.Type{Kind: schema.Long}
	f := func(names ...string) (out []schema.Field) {
		for _, n := range names {
			out = append(out, schema.Field{Name: n, Type: long})
		}
		return out
	}
	deep := schema.Type{Kind: schema.Array, Element: &schema.Type{Kind: schema.Struct, Fields: f("ok", "not;ok", "OK")}}
	for _, c := range []struct {
		fields []schema.Field
		wants  []string
	}{
		{f("a", "b.c", "ü", "a`b", "x-y", "9"), nil},
		{nil, []string{"needs a column"}},
		{f("a", "A"), []string{`"a" and "A" of the table`}},
		{f("straße", "STRAßE"), []string{"differ in case only"}},
		{f("k", "\u212a"), []string{"differ in case only"}},
		{f(""), []string{"empty name"}},
		{[]schema.Field{{Name: "d", Type: deep}}, []string{"d.element.`not;ok`", `"ok" and "OK" of d.element`}},
		{[]schema.Field{{Name: "e", Type: schema.Type{Kind: schema.Struct}}}, []string{"column e is a struct without fields"}},
	} {
		err := (&schema.Schema{Fields: c.fields}).CheckNames()
		if (err == nil) != (c.wants == nil) {
			t.Errorf("%v: %v", c.fields, err)
		}
		for _, want := range c.wants {
			if err == nil || !errors.Is(err, schema.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", c.fields, err, want)
			}
		}
	}
	for _, r := range schema.Refused {
		if err := (&schema.Schema{Fields: f("a" + string(r) + "b")}).CheckNames(); err == nil {
			t.Errorf("%q is not refused", r)
		}
	}
}

func TestPartitionColumns(t *testing.T) {
	s := parse(t, everything)
	types, err := s.Partition([]string{"t", "s"})
	if err != nil || len(types) != 2 || types[0].Kind != schema.Date || types[1].Kind != schema.String {
		t.Errorf("%v, %v", types, err)
	}
	one := parse(t, field(`"long"`))
	for _, c := range []struct {
		s       *schema.Schema
		columns []string
		want    string
	}{
		{s, []string{"none"}, "not a column"},
		{s, []string{"T"}, "not a column"},
		{s, []string{"a"}, "of type array<array<long>>"},
		{s, []string{"s", "s"}, "twice"},
		{one, []string{"c"}, "all 1 columns"},
	} {
		if _, err := c.s.Partition(c.columns); !errors.Is(err, schema.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.columns, err)
		}
	}
	if f, ok := s.Field("T"); !ok || f.Name != "t" {
		t.Errorf("column T: %v", f)
	}
}

func TestUses(t *testing.T) {
	s := parse(t, `{"type":"struct","fields":[`+
		`{"name":"a","type":"long","nullable":true,"metadata":{"delta.identity.step":1,"delta.identity.start":1,"comment":"x"}},`+
		`{"name":"b","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"c","type":"long","nullable":true,"metadata":{"delta.invariants":"{}"}}]},"containsNull":true},"nullable":true,"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"x"}},`+
		`{"name":"d","type":"string","nullable":true,"metadata":{"CURRENT_DEFAULT":"1","delta.generationExpression":"a + 1","__CHAR_VARCHAR_TYPE_STRING":"char(3)","__COLLATIONS":{},"delta.typeChanges":[]}},`+
		`{"name":"e","type":"long","nullable":true,"metadata":{"delta.identityless":1}}]}`)
	var got []string
	for _, u := range s.Uses() {
		got = append(got, u.Column+": "+u.What)
	}
	want := []string{
		"a: " + schema.Identity, "b: " + schema.ColumnMapping, "b.element.c: " + schema.Invariant, "d: " + schema.Default, "d: " + schema.CharVarchar, "d: " + schema.Collation,
		"d: " + schema.Generated, "d: " + schema.TypeWidening,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func types() *rapid.Generator[schema.Type] {
	return rapid.Custom(func(t *rapid.T) schema.Type { return drawType(t, 3) })
}

func drawType(t *rapid.T, depth int) schema.Type {
	most := int(schema.Map)
	if depth == 0 {
		most = int(schema.TimestampNTZ)
	}
	u := schema.Type{Kind: schema.Kind(rapid.IntRange(int(schema.String), most).Draw(t, "kind"))}
	sub := func() *schema.Type { s := drawType(t, depth-1); return &s }
	switch u.Kind {
	case schema.Decimal:
		u.Precision = rapid.IntRange(1, 38).Draw(t, "precision")
		u.Scale = rapid.IntRange(0, u.Precision).Draw(t, "scale")
	case schema.Array:
		u.Element, u.Nulls = sub(), rapid.Bool().Draw(t, "nulls")
	case schema.Map:
		u.Key, u.Element, u.Nulls = sub(), sub(), rapid.Bool().Draw(t, "nulls")
	case schema.Struct:
		u.Fields = []schema.Field{}
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			f := schema.Field{Name: rapid.String().Draw(t, "name"), Type: *sub(), Nullable: rapid.Bool().Draw(t, "nullable")}
			if comment := rapid.String().Draw(t, "comment"); f.SetComment(comment) != nil || f.Comment() != comment {
				t.Fatalf("comment %q is %q", comment, f.Comment())
			}
			u.Fields = append(u.Fields, f)
		}
	}
	return u
}

func TestEverySchemaRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schema.Schema{Fields: []schema.Field{{Name: "c", Type: types().Draw(t, "type")}}}
		text := s.String()
		back, err := schema.Parse(text)
		if err != nil || back.String() != text || !back.Type().Equal(s.Type()) {
			t.Fatalf("%s\n%v, %v", text, back, err)
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add(everything)
	f.Add(field(`"decimal(38,18)"`))
	f.Add(field(`"void"`))
	f.Add(`{"type":"struct","fields":[{"name":"a","type":"decimal","nullable":true,"metadata":{"comment":"\ud800"},"x":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schema.Parse(text)
		if err != nil {
			if !errors.Is(err, schema.ErrInvalid) && !errors.Is(err, schema.ErrUnsupported) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		out := s.String()
		back, err := schema.Parse(out)
		if err != nil || back.String() != out {
			t.Fatalf("%q becomes %q, %v", text, out, err)
		}
		_, _ = s.CheckNames(), s.Uses()
	})
}
