package stats_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

func kind(k schema.Kind) schema.Type { return schema.Type{Kind: k} }

func one(t schema.Type) *schema.Schema {
	return &schema.Schema{Fields: []schema.Field{{Name: "c", Type: t, Nullable: true}}}
}

func layout(t testing.TB, s *schema.Schema, partitions []string, configuration map[string]string, always ...[]string) *stats.Layout {
	t.Helper()
	l, err := stats.NewLayout(s, partitions, configuration, always...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// written is the statistics of a file of five rows with one column.
func written(t testing.TB, typ schema.Type, c stats.Column) string {
	t.Helper()
	text, err := layout(t, one(typ), nil, nil).JSON(&stats.File{Records: 5, Columns: []stats.Column{c}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decimalOf(text string) value.Value {
	u, scale, err := value.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return value.OfDecimal(u, scale)
}

func TestJSON(t *testing.T) {
	nested := kind(schema.Struct)
	nested.Fields = []schema.Field{
		{Name: "a", Type: kind(schema.Date)},
		{Name: "in \"it\"", Type: schema.Type{Kind: schema.Struct, Fields: []schema.Field{{Name: "b", Type: kind(schema.TimestampNTZ)}}}},
		{Name: "c", Type: kind(schema.Boolean)},
	}
	s := &schema.Schema{Fields: []schema.Field{
		{Name: "id", Type: kind(schema.Long)},
		{Name: "p", Type: kind(schema.String)},
		{Name: "s", Type: nested},
		{Name: "list", Type: schema.Type{Kind: schema.Array, Element: &schema.Type{Kind: schema.Long}}},
		{Name: "t", Type: kind(schema.String)},
	}}
	l := layout(t, s, []string{"p"}, nil)
	columns := []stats.Column{
		{Min: value.OfInt(-1), Max: value.OfInt(7)},
		{Nulls: 1, Min: value.OfInt(0), Max: value.OfInt(1)},
		{Min: value.OfInt(0), Max: value.OfInt(1)},
		{Nulls: 2, Min: value.OfBool(false), Max: value.OfBool(true)},
		{Nulls: 4},
		{Nulls: -1, Min: value.OfString("a<b"), Max: value.OfString("\u2028é\n")},
	}
	got, err := l.JSON(&stats.File{Records: 9, Columns: columns, Loose: true})
	want := `{"numRecords":9,"minValues":{"id":-1,"s":{"a":"1970-01-01","in \"it\"":{"b":"1970-01-01T00:00:00.000"}},"t":"a<b"},` +
		`"maxValues":{"id":7,"s":{"a":"1970-01-02","in \"it\"":{"b":"1970-01-01T00:00:00.001"}},"t":"\u2028é\n"},` +
		`"nullCount":{"id":0,"s":{"a":1,"in \"it\"":{"b":0},"c":2},"list":4},"tightBounds":false}`
	if err != nil || got != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
	back := stats.All(s, []string{"p"}).Parse(got)
	if back.Records != 9 || !back.Loose || back.Columns[0].Min.Int() != -1 || back.Columns[2].Max.Int() != 1000+999 || back.Columns[5].Max.Text() != "\u2028é\n" {
		t.Errorf("%+v", back)
	}
	if back.Columns[0].Nulls != 0 || back.Columns[1].Nulls != -1 { // of loose ones a count between none and all says nothing
		t.Errorf("%+v", back.Columns)
	}

	empty, err := l.JSON(&stats.File{Columns: make([]stats.Column, 6)})
	if err != nil || empty != `{"numRecords":0,"nullCount":{"id":0,"s":{"a":0,"in \"it\"":{"b":0},"c":0},"list":0,"t":0}}` {
		t.Errorf("%s, %v", empty, err)
	}
	for name, f := range map[string]stats.File{
		"too few columns":   {Records: 1},
		"rows unknown":      {Records: -1, Columns: columns},
		"more NULLs":        {Records: 3, Columns: columns},
		"the wrong way":     {Records: 9, Columns: append([]stats.Column{{Min: value.OfInt(2), Max: value.OfInt(1)}}, columns[1:]...)},
		"of another column": {Records: 9, Columns: append([]stats.Column{{Min: value.OfString("2")}}, columns[1:]...)},
	} {
		if text, err := l.JSON(&f); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestWhichColumns(t *testing.T) {
	s := &schema.Schema{}
	for i := range 40 {
		s.Fields = append(s.Fields, schema.Field{Name: fmt.Sprintf("c%d", i), Type: kind(schema.Long)})
	}
	s.Fields[1].Type = schema.Type{Kind: schema.Struct, Fields: []schema.Field{{Name: "x.y", Type: kind(schema.Long)}, {Name: "z", Type: kind(schema.Long)}}}
	for _, c := range []struct {
		configuration map[string]string
		partitions    []string
		always        [][]string
		want          int
		last          string
	}{
		{want: 32, last: "c30"},
		{partitions: []string{"c0", "c3"}, want: 32, last: "c32"},
		{configuration: map[string]string{"delta.dataSkippingNumIndexedCols": "2"}, want: 2, last: "c1.`x.y`"},
		{configuration: map[string]string{"delta.dataSkippingNumIndexedCols": "0"}},
		{configuration: map[string]string{"delta.dataSkippingNumIndexedCols": "-1"}, want: 41, last: "c39"},
		{configuration: map[string]string{"delta.dataSkippingNumIndexedCols": "1"}, always: [][]string{{"C39"}}, want: 2, last: "c39"},
		{configuration: map[string]string{"delta.dataSkippingStatsColumns": "C5, c1.`x.y`", "delta.dataSkippingNumIndexedCols": "9"}, want: 2, last: "c5"},
		{configuration: map[string]string{"delta.dataSkippingStatsColumns": "`c1`,nosuch"}, want: 2, last: "c1.z"},
		{configuration: map[string]string{"delta.dataSkippingStatsColumns": ""}},
	} {
		leaves := layout(t, s, c.partitions, c.configuration, c.always...).Leaves()
		last := ""
		if len(leaves) > 0 {
			last = leaves[len(leaves)-1].Name()
		}
		if len(leaves) != c.want || last != c.last {
			t.Errorf("%v: %d, last %s; want %d, %s", c.configuration, len(leaves), last, c.want, c.last)
		}
	}
	for key, values := range map[string][]string{
		"delta.dataSkippingNumIndexedCols": {"", "x", "-2", "1.5"},
		"delta.dataSkippingStatsColumns":   {",", "a,", "a..b", "`a", "`a`b", "a`b`", "``"},
	} {
		for _, v := range values {
			if _, err := stats.NewLayout(s, nil, map[string]string{key: v}); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s=%q: %v", key, v, err)
			}
		}
	}
	columns, err := stats.Clustering(`{"clusteringColumns":[["a"],["b","c"]],"domainName":"delta.clustering"}`)
	if err != nil || len(columns) != 2 || columns[1][1] != "c" {
		t.Errorf("%v, %v", columns, err)
	}
}

// E6: all digits of a decimal are there, and come back.
func TestStatistics_E6DecimalsAreExact(t *testing.T) {
	typ := schema.Type{Kind: schema.Decimal, Precision: 38, Scale: 10}
	least, greatest := decimalOf("-1234567890123456789012345678.0123456789"), decimalOf("1234567890123456789012345678.0123456780")
	text := written(t, typ, stats.Column{Min: least, Max: greatest})
	if want := `"minValues":{"c":-1234567890123456789012345678.0123456789},"maxValues":{"c":1234567890123456789012345678.0123456780}`; !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
	// Other writers take them through doubles: what is read is at least as wide as what was in the file.
	for _, exact := range []string{"-1234567890123456789012345678.0123456789", "99999999999999999.9999999999", "0.1", "-123456.7890123457"} {
		v := decimalOf(exact)
		u, scale := v.Decimal()
		scaled, _ := value.Rescale(u, scale, typ.Scale, false)
		v = value.OfDecimal(scaled, typ.Scale)
		f, _ := new(big.Rat).SetFrac(scaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(10), nil)).Float64()
		number, _ := json.Marshal(f)
		c := stats.All(one(typ), nil).Parse(fmt.Sprintf(`{"numRecords":5,"minValues":{"c":%s},"maxValues":{"c":%s}}`, number, number)).Columns[0]
		if c.Min.IsNull() || c.Max.IsNull() || value.Compare(c.Min, v) > 0 || value.Compare(c.Max, v) < 0 {
			t.Errorf("%s as %s is read as %v to %v", exact, number, c.Min, c.Max)
		}
	}
}

// E7: an infinity makes no statistics that cannot be read.
func TestStatistics_E7InfinitiesAreLeftOut(t *testing.T) {
	text := written(t, kind(schema.Double), stats.Column{Min: value.OfFloat64(math.Inf(-1)), Max: value.OfFloat64(math.Inf(1)), NaNFree: true})
	if text != `{"numRecords":5,"nullCount":{"c":0}}` {
		t.Error(text)
	}
	c := stats.All(one(kind(schema.Double)), nil).Parse(`{"numRecords":5,"minValues":{"c":"-Infinity"},"maxValues":{"c":"Infinity"}}`).Columns[0]
	if !math.IsInf(c.Min.Float(), -1) || !c.Max.IsNull() {
		t.Errorf("%v to %v", c.Min, c.Max)
	}
}

// E8: bounds that do not know of NaN are neither written nor, for the upper one, believed.
func TestStatistics_E8FloatBoundsNeedToBeFreeOfNaN(t *testing.T) {
	for _, typ := range []schema.Kind{schema.Float, schema.Double} {
		least, greatest := value.OfFloat64(-1.5), value.OfFloat64(0)
		if typ == schema.Float {
			least, greatest = value.OfFloat32(-1.5), value.OfFloat32(0)
		}
		if text := written(t, kind(typ), stats.Column{Min: least, Max: greatest}); strings.Contains(text, "Values") {
			t.Error(text)
		}
		text := written(t, kind(typ), stats.Column{Min: least, Max: greatest, NaNFree: true})
		if !strings.Contains(text, `"minValues":{"c":-1.5},"maxValues":{"c":0.0}`) {
			t.Error(text)
		}
		c := stats.All(one(kind(typ)), nil).Parse(text).Columns[0]
		if c.Min.Float() != -1.5 || !c.Max.IsNull() {
			t.Errorf("%v to %v", c.Min, c.Max)
		}
	}
	if text := written(t, kind(schema.Double), stats.Column{Min: value.OfFloat64(0), Max: value.OfFloat64(math.NaN()), NaNFree: true}); !strings.HasPrefix(text, `{"numRecords":5,"minValues":{"c":-0.0},"nullCount"`) {
		t.Error(text)
	}
}

// E9: the upper bound of a timestamp is rounded up, and one that another writer has cut is read as what it may have been.
func TestStatistics_E9TimestampsAreRoundedOutwards(t *testing.T) {
	for _, c := range []struct {
		micros     int64
		down, up   string
		typ        schema.Kind
		whatToFind string
	}{
		{1_718_479_845_123_456, "2024-06-15T19:30:45.123Z", "2024-06-15T19:30:45.124Z", schema.Timestamp, ""},
		{1_718_479_845_123_000, "2024-06-15T19:30:45.123Z", "2024-06-15T19:30:45.123Z", schema.Timestamp, ""},
		{-1, "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000", schema.TimestampNTZ, ""},
		{-1000, "1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999", schema.TimestampNTZ, ""},
		{999, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z", schema.Timestamp, ""},
	} {
		text := written(t, kind(c.typ), stats.Column{Min: value.OfInt(c.micros), Max: value.OfInt(c.micros)})
		if !strings.Contains(text, fmt.Sprintf(`"minValues":{"c":%q},"maxValues":{"c":%q}`, c.down, c.up)) {
			t.Errorf("%d: %s", c.micros, text)
		}
	}
	for _, micros := range []int64{math.MinInt64, math.MaxInt64, 253402300799_999_999} { // years that no text holds, and one that rounding makes so
		text := written(t, kind(schema.Timestamp), stats.Column{Max: value.OfInt(micros)})
		if strings.Contains(text, "maxValues") {
			t.Error(text)
		}
	}
	l := stats.All(one(kind(schema.Timestamp)), nil)
	for text, want := range map[string]int64{
		`"1970-01-01T00:00:01.123Z"`: 1_123_999, `"1970-01-01T00:00:01.123456Z"`: 1_123_456, `"1970-01-01T00:00:01Z"`: 1_000_999, `"1970-01-01T00:00:01.1234567Z"`: 1_123_457,
		`"1970-01-01T01:00:01.123+01:00"`: 1_123_999,
	} {
		c := l.Parse(`{"numRecords":5,"maxValues":{"c":` + text + `}}`).Columns[0]
		if c.Max.Int() != want {
			t.Errorf("%s: %v, want %d", text, c.Max, want)
		}
	}
}

func TestStringsAreCut(t *testing.T) {
	a := strings.Repeat("a", 31)
	last, over := "\U0010FFFF", "\u00e9"
	for _, c := range []struct {
		name, s, down, up string
		none              bool
	}{
		{"short", "abc", "abc", "abc", false},
		{"just so", a + "b", a + "b", a + "b", false},
		{"ascii follows", a + "bc", a + "b", a + "b\x7f", false},
		{"more follows", a + "b" + over, a + "b", a + "b" + last, false},
		{"DEL follows", a + "b\x7f", a + "b", a + "b" + last, false},
		{"the last one follows", a + "b" + last + "c", a + "b", a + "b" + last + "\x7f", false},
		{"only the last ones follow", a + "b" + last, a + "b", a + "b" + last, false},
		{"too many of the last one", a + "b" + strings.Repeat(last, 40), a + "b", "", true},
		{"characters and not bytes", strings.Repeat("\u4e00", 33), strings.Repeat("\u4e00", 32), strings.Repeat("\u4e00", 32) + last, false},
		{"32 of several bytes", strings.Repeat("\U0001F3B5", 32), strings.Repeat("\U0001F3B5", 32), strings.Repeat("\U0001F3B5", 32), false},
	} {
		var got struct {
			MinValues, MaxValues struct{ C *string }
		}
		text := written(t, kind(schema.String), stats.Column{Min: value.OfString(c.s), Max: value.OfString(c.s)})
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if *got.MinValues.C != c.down || (got.MaxValues.C == nil) != c.none || !c.none && (*got.MaxValues.C != c.up || c.up < c.s) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
	l := layout(t, one(kind(schema.String)), nil, map[string]string{"delta.dataSkippingStringPrefixLength": "0"})
	text, err := l.JSON(&stats.File{Records: 1, Columns: []stats.Column{{Min: value.OfString("a"), Max: value.OfString("a")}}})
	if err != nil || text != `{"numRecords":1,"nullCount":{"c":0}}` {
		t.Errorf("%s, %v", text, err)
	}
}

// What cannot be understood, or not believed, is unknown.
func TestStatisticsOfOtherWriters(t *testing.T) {
	money := schema.Type{Kind: schema.Decimal, Precision: 5, Scale: 2}
	for _, c := range []struct {
		t           schema.Type
		text        string
		nulls       int64
		least, most string
	}{
		{kind(schema.Long), ``, -1, "NULL", "NULL"},
		{kind(schema.Long), `[]`, -1, "NULL", "NULL"},
		{kind(schema.Long), `{"minValues":{"c":1},"maxValues":{"c":2},"nullCount":{"c":0}`, -1, "NULL", "NULL"},
		{kind(schema.Long), `{"minValues":{"c":1},"maxValues":{"c":2},"nullCount":{"c":0}}`, 0, "1", "2"},
		{kind(schema.Long), `{"numRecords":1,"minValues":{"c":3},"maxValues":{"c":2}}`, -1, "NULL", "NULL"},
		{kind(schema.Long), `{"numRecords":1,"minValues":{"c":"3"},"maxValues":{"c":4.5},"nullCount":{"c":2}}`, -1, "NULL", "NULL"},
		{kind(schema.Long), `{"numRecords":2,"minValues":{"c":3},"maxValues":{"c":4},"nullCount":{"c":2}}`, 2, "NULL", "NULL"},
		{kind(schema.Long), `{"numRecords":9,"minValues":{"c":3},"nullCount":{"c":2},"tightBounds":false}`, -1, "3", "NULL"},
		{kind(schema.Long), `{"numRecords":9,"minValues":3,"maxValues":null,"nullCount":{"c":{"d":1}}}`, -1, "NULL", "NULL"},
		{kind(schema.Long), `{"numRecords":9,"minValues":{"\u0063":3,"d":[{}]}}`, -1, "3", "NULL"},
		{kind(schema.Byte), `{"minValues":{"c":-129},"maxValues":{"c":127}}`, -1, "NULL", "127"},
		{kind(schema.Boolean), `{"minValues":{"c":false},"maxValues":{"c":true},"nullCount":{"c":1}}`, 1, "NULL", "NULL"},
		{kind(schema.String), `{"minValues":{"c":"a\ud83d"},"maxValues":{"c":"b\ufffd"}}`, -1, "NULL", "NULL"},
		{kind(schema.String), `{"minValues":{"c":1},"maxValues":{"c":""}}`, -1, "NULL", `""`},
		{kind(schema.Date), `{"minValues":{"c":"2024-01-01"},"maxValues":{"c":20000}}`, -1, "19723", "NULL"},
		{kind(schema.Timestamp), `{"minValues":{"c":"2024-01-01 00:00:00"},"maxValues":{"c":"2024-01-01"}}`, -1, "NULL", "NULL"},
		{kind(schema.TimestampNTZ), `{"minValues":{"c":"1970-01-01T00:00:00.001Z"},"maxValues":{"c":"1970-01-01 00:00:00.002"}}`, -1, "1000", "2999"},
		{kind(schema.Double), `{"minValues":{"c":"NaN"},"maxValues":{"c":"NaN"}}`, -1, "NULL", "NULL"},
		{money, `{"minValues":{"c":1.239},"maxValues":{"c":1.231}}`, -1, "1.23", "1.24"},
		{money, `{"minValues":{"c":-1.239},"maxValues":{"c":"1E1"}}`, -1, "-1.24", "10.00"},
		{money, `{"minValues":{"c":"x"},"maxValues":{"c":1E9}}`, -1, "NULL", "NULL"},
	} {
		got := stats.All(one(c.t), nil).Parse(c.text).Columns[0]
		if got.Nulls != c.nulls || got.Min.String() != c.least || got.Max.String() != c.most {
			t.Errorf("%s %s: %d, %v to %v; want %d, %s to %s", c.t, c.text, got.Nulls, got.Min, got.Max, c.nulls, c.least, c.most)
		}
	}
}

func TestRecords(t *testing.T) {
	for text, want := range map[string]int64{
		`{"numRecords":12}`: 12, `{"numRecords":0,"x":1}`: 0, `{ "x":{"numRecords":3}, "numRecords" : 7 }`: 7,
		``: -1, `{}`: -1, `{"numRecords":-1}`: -1, `{"numRecords":"3"}`: -1, `{"numRecords":1.5}`: -1, `{"numRecords":`: -1,
	} {
		if got, ok := stats.Records(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
}

func drawValue(t *rapid.T, typ schema.Type) value.Value {
	switch typ.Kind {
	case schema.Long:
		return value.OfInt(rapid.Int64().Draw(t, "v"))
	case schema.Byte:
		return value.OfInt(int64(rapid.Int8().Draw(t, "v")))
	case schema.Date:
		return value.OfInt(rapid.Int64Range(-719162, 2932896).Draw(t, "v"))
	case schema.Timestamp, schema.TimestampNTZ:
		return value.OfInt(rapid.Int64Range(-62135596800_000_000, 253402300799_999_999).Draw(t, "v"))
	case schema.Float:
		return value.OfFloat32(rapid.Float32().Draw(t, "v"))
	case schema.Double:
		return value.OfFloat64(rapid.Float64().Draw(t, "v"))
	case schema.Decimal:
		u, _ := new(big.Int).SetString(rapid.StringMatching(fmt.Sprintf(`-?[0-9]{1,%d}`, typ.Precision)).Draw(t, "v"), 10)
		return value.OfDecimal(u, typ.Scale)
	}
	return value.OfString(rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'b', '\x7e', '\x7f', 0xe9, 0xffff, utf8.MaxRune}), -1, -1, 300).Draw(t, "v"))
}

// Whatever is in a file lies within what is read of its statistics.
func TestNoBoundIsTooNarrow(t *testing.T) {
	for _, typ := range []schema.Type{
		kind(schema.Long), kind(schema.Byte), kind(schema.Date), kind(schema.Timestamp), kind(schema.TimestampNTZ), kind(schema.Float), kind(schema.Double), kind(schema.String),
		{Kind: schema.Decimal, Precision: 38, Scale: 7},
		{Kind: schema.Decimal, Precision: 5, Scale: 5},
	} {
		t.Run(typ.String(), func(t *testing.T) {
			l := layout(t, one(typ), nil, nil)
			rapid.Check(t, func(t *rapid.T) {
				a, b := drawValue(t, typ), drawValue(t, typ)
				if value.Compare(a, b) > 0 {
					a, b = b, a
				}
				text, err := l.JSON(&stats.File{Records: 5, Columns: []stats.Column{{Nulls: 1, Min: a, Max: b, NaNFree: true}}})
				if err != nil {
					t.Fatal(err)
				}
				c := l.Parse(text).Columns[0]
				if c.Nulls != 1 || !c.Min.IsNull() && value.Compare(c.Min, a) > 0 || !c.Max.IsNull() && value.Compare(c.Max, b) < 0 {
					t.Fatalf("%v to %v is written as %s and read as %v to %v", a, b, text, c.Min, c.Max)
				}
			})
		})
	}
}

func FuzzStats(f *testing.F) {
	f.Add(int(schema.Long), 5, 2, `{"numRecords":1,"minValues":{"c":3},"maxValues":{"c":4},"nullCount":{"c":0},"tightBounds":true}`)
	f.Add(int(schema.String), 5, 2, `{"numRecords":1,"minValues":{"c":"a\u2028"},"maxValues":{"c":"b"}}`)
	f.Add(int(schema.Decimal), 38, 2, `{"minValues":{"c":-1.5e3},"maxValues":{"c":99999999999999999999.99}}`)
	f.Add(int(schema.Timestamp), 5, 2, `{"minValues":{"c":"1970-01-01T00:00:01.123Z"},"maxValues":{"c":"1970-01-01T00:00:01.123Z"}}`)
	f.Fuzz(func(t *testing.T, k, precision, scale int, text string) {
		typ := schema.Type{Kind: schema.Kind(k)}
		if typ.Kind == schema.Decimal {
			if precision < 1 || precision > 38 || scale < 0 || scale > precision {
				return
			}
			typ.Precision, typ.Scale = precision, scale
		} else if !typ.Primitive() {
			return
		}
		l := stats.All(one(typ), nil)
		got := l.Parse(text)
		stats.Records(text)
		if got.Records < 0 {
			return
		}
		// What was read can be written, and is no narrower when it is read again.
		got.Columns[0].NaNFree = true
		out, err := l.JSON(&got)
		if err != nil {
			t.Fatalf("%s %q: %v", typ, text, err)
		}
		if !json.Valid([]byte(out)) {
			t.Fatalf("%s %q: %s", typ, text, out)
		}
		a, b := got.Columns[0], l.Parse(out).Columns[0]
		if !b.Min.IsNull() && value.Compare(b.Min, a.Min) > 0 && !a.Min.IsNull() || !b.Max.IsNull() && value.Compare(b.Max, a.Max) < 0 {
			t.Fatalf("%s %q: %v to %v is written as %s and read as %v to %v", typ, text, a.Min, a.Max, out, b.Min, b.Max)
		}
	})
}
