package partition_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// What other writers leave: each pair is one value.
func TestTextsOfOtherWriters(t *testing.T) {
	money := schema.Type{Kind: schema.Decimal, Precision: 10, Scale: 2}
	for _, c := range []struct {
		t          schema.Type
		text, ours string
	}{
		{kind(schema.Timestamp), "2024-06-15 19:30:45", "2024-06-15T19:30:45.000000Z"},
		{kind(schema.Timestamp), "2024-06-15 19:30:45.1", "2024-06-15T19:30:45.100000Z"},
		{kind(schema.Timestamp), "2024-06-15T19:30:45.123456789Z", "2024-06-15T19:30:45.123456Z"},
		{kind(schema.Timestamp), "2024-06-15T19:30:45Z", "2024-06-15T19:30:45.000000Z"},
		{kind(schema.Timestamp), "2024-06-15T19:30:45.5+02:00", "2024-06-15T17:30:45.500000Z"},
		{kind(schema.Timestamp), "2024-06-15T19:30:45-0130", "2024-06-15T21:00:45.000000Z"},
		{kind(schema.Timestamp), "2024-06-15", "2024-06-15T00:00:00.000000Z"},
		{kind(schema.Timestamp), "1969-12-31 23:59:59.999999", "1969-12-31T23:59:59.999999Z"},
		{kind(schema.TimestampNTZ), "2024-06-15 19:30:45", "2024-06-15 19:30:45.000000"},
		{kind(schema.TimestampNTZ), "2024-06-15T19:30:45.000001Z", "2024-06-15 19:30:45.000001"},
		{kind(schema.Date), "2024-6-5", "2024-06-05"},
		{kind(schema.Boolean), "TRUE", "true"},
		{kind(schema.Boolean), "False", "false"},
		{kind(schema.Double), "1", "1.0"},
		{kind(schema.Double), "5.0E-324", "4.9E-324"},
		{kind(schema.Double), "-0.0", "0.0"},
		{kind(schema.Double), "1e8", "1.0E8"},
		{kind(schema.Float), "0.1", "0.1"},
		{kind(schema.Float), "inf", "Infinity"},
		{money, "1", "1.00"},
		{money, "1.500", "1.50"},
		{money, "-.5", "-0.50"},
		{money, "1.2E3", "1200.00"},
		{money, "5E-2", "0.05"},
	} {
		v, err := partition.Parse(c.t, &c.text)
		if err != nil {
			t.Errorf("%s %q: %v", c.t, c.text, err)
			continue
		}
		if text, err := partition.Serialize(c.t, v); err != nil || orNull(text) != c.ours {
			t.Errorf("%s %q: %q, %v; want %q", c.t, c.text, orNull(text), err, c.ours)
		}
	}
}

func TestTextsThatAreNoValues(t *testing.T) {
	money := schema.Type{Kind: schema.Decimal, Precision: 4, Scale: 2}
	for _, c := range []struct {
		t    schema.Type
		text string
	}{
		{kind(schema.Integer), "2147483648"},
		{kind(schema.Byte), "200"},
		{kind(schema.Long), "1.0"},
		{kind(schema.Long), " 1"},
		{kind(schema.Boolean), "1"},
		{kind(schema.Double), "0x1p3"},
		{kind(schema.Double), "1E400"},
		{kind(schema.Double), "ten"},
		{kind(schema.Date), "2024-02-30"},
		{kind(schema.Date), "24-02-03"},
		{kind(schema.Date), "0000-01-01"},
		{kind(schema.Date), "2024-01-01T00:00:00"},
		{kind(schema.Timestamp), "2024-01-01 25:00:00"},
		{kind(schema.Timestamp), "2024-01-01 10:00"},
		{kind(schema.Timestamp), "2024-01-01T10:00:00.Z"},
		{kind(schema.Timestamp), "2024-01-01T10:00:00z"},
		{kind(schema.Timestamp), "9999-12-31T23:00:00-02:00"},
		{kind(schema.Timestamp), "__HIVE_DEFAULT_PARTITION__"},
		{kind(schema.TimestampNTZ), "2024-01-01T10:00:00+01:00"},
		{money, "1.234"},
		{money, "123.00"},
		{money, "1e99999999"},
		{money, "--1"},
		{money, "."},
		{money, "NaN"},
	} {
		if v, err := partition.Parse(c.t, &c.text); !errors.Is(err, partition.ErrValue) {
			t.Errorf("%s %q: %v, %v", c.t, c.text, v, err)
		}
	}
}

// E1, E2: NULL and the empty string are null in the log, and one partition.
func TestPartition_E1E2NullAndEmptyAreNull(t *testing.T) {
	c := columns(t, "a", schema.String, "b", schema.Long)
	for _, v := range []value.Value{{}, value.OfString("")} {
		texts, err := c.Serialize([]value.Value{v, {}})
		if err != nil || texts["a"] != nil || texts["b"] != nil || len(texts) != 2 {
			t.Fatalf("%v: %v, %v", v, texts, err)
		}
		if dir := c.Directory(texts); dir != "a=__HIVE_DEFAULT_PARTITION__/b=__HIVE_DEFAULT_PARTITION__/" {
			t.Errorf("%v: %s", v, dir)
		}
	}
	empty, written := "", "__HIVE_DEFAULT_PARTITION__"
	none, err := c.Key(map[string]*string{"a": nil, "b": nil})
	if err != nil {
		t.Fatal(err)
	}
	if other, err := c.Key(map[string]*string{"a": &empty, "b": &empty}); err != nil || other != none {
		t.Errorf("the empty text has key %q, %v; NULL has %q", other, err, none)
	}
	if other, err := c.Key(map[string]*string{"a": &written, "b": nil}); err != nil || other == none {
		t.Errorf("a string that is the name of NULL's directory has NULL's key %q, %v", other, err)
	}
}

// E3, E4: directories are escaped once, and the log's paths once more; both ways give what was there.
func TestPartition_E3E4PathsAreEncodedOnce(t *testing.T) {
	for value, path := range map[string]string{"R&D": "p=R&D/f.parquet", "a b": "p=a%20b/f.parquet", "x:y": "p=x%253Ay/f.parquet", "100%25": "p=100%252525/f.parquet"} {
		decoded := partition.DirName("p", &value) + "/f.parquet"
		if got := partition.EncodePath(decoded); got != path {
			t.Errorf("%s: %s, want %s", value, got, path)
		}
		if back, err := partition.DecodePath(path); err != nil || back != decoded {
			t.Errorf("%s: %s, %v; want %s", path, back, err, decoded)
		}
	}
	// Others escape more than Spark does. It is the same path.
	for _, path := range []string{"p=a%20b/f", "p%3Da%20b/f", "p%3da%20b%2ff", "%70=a b/f"} {
		if back, err := partition.DecodePath(path); err != nil || back != "p=a b/f" {
			t.Errorf("%s: %s, %v", path, back, err)
		}
	}
	for _, path := range []string{"", "a%", "a%4", "a%zz", "a%00", "a%ff", "a\xff"} {
		if back, err := partition.DecodePath(path); !errors.Is(err, partition.ErrPath) {
			t.Errorf("%q: %q, %v", path, back, err)
		}
	}
}

// E5: a timestamp is written in UTC with a Z, so that no session's zone shifts it.
func TestPartition_E5TimestampsAreUTC(t *testing.T) {
	text, err := partition.Serialize(kind(schema.Timestamp), value.OfInt(1_718_521_199_999_999))
	if err != nil || *text != "2024-06-16T06:59:59.999999Z" {
		t.Fatalf("%v, %v", orNull(text), err)
	}
}

func columns(t *testing.T, list ...any) partition.Columns {
	t.Helper()
	s := &schema.Schema{Fields: []schema.Field{{Name: "data", Type: kind(schema.Long)}}}
	var names []string
	for i := 0; i < len(list); i += 2 {
		names = append(names, list[i].(string))
		s.Fields = append(s.Fields, schema.Field{Name: list[i].(string), Type: kind(list[i+1].(schema.Kind)), Nullable: true})
	}
	c, err := partition.Of(s, names)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestColumnsOfAnotherTable(t *testing.T) {
	c := columns(t, "a", schema.String, "b", schema.Long)
	one, word := "1", "x"
	for name, texts := range map[string]map[string]*string{
		"fewer":       {"a": &one},
		"others":      {"a": &one, "c": &one},
		"more":        {"a": &one, "b": &one, "c": &one},
		"not a value": {"a": &one, "b": &word},
	} {
		if _, err := c.Key(texts); !errors.Is(err, partition.ErrValue) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Serialize([]value.Value{{}}); !errors.Is(err, partition.ErrValue) {
		t.Errorf("one value for two columns: %v", err)
	}
	if _, err := c.Serialize([]value.Value{{}, value.OfString("x")}); !errors.Is(err, partition.ErrValue) || !strings.Contains(err.Error(), "column b") {
		t.Errorf("a string for a long: %v", err)
	}
}

// Keys tell tuples apart, however their texts run into each other.
func TestKeysAreDistinct(t *testing.T) {
	c := columns(t, "a", schema.String, "b", schema.String)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Ptr(rapid.StringMatching(`[-:1a]{0,3}`), true)
		one := map[string]*string{"a": text.Draw(t, "a"), "b": text.Draw(t, "b")}
		two := map[string]*string{"a": text.Draw(t, "c"), "b": text.Draw(t, "d")}
		k, err := c.Key(one)
		l, err2 := c.Key(two)
		same := same(one["a"], two["a"]) && same(one["b"], two["b"])
		if err != nil || err2 != nil || (k == l) != same {
			t.Fatalf("%q %v, %q %v, same %v", k, err, l, err2, same)
		}
	})
}

func same(a, b *string) bool {
	empty := ""
	if a == nil {
		a = &empty
	}
	if b == nil {
		b = &empty
	}
	return *a == *b
}

func FuzzPartitionPath(f *testing.F) {
	for _, s := range []string{"p=a b/f", "x:y", "100%25", "\x00", "\u00fc", "s3://b/a%20b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := partition.EncodePath(s)
		back, err := partition.DecodePath(encoded)
		if err == nil && back != s {
			t.Fatalf("%q: %q: %q", s, encoded, back)
		}
		if strings.ContainsAny(encoded, " \"#<>?[\\]^`{|}\n") {
			t.Fatalf("%q: %q", s, encoded)
		}
		if again, err := partition.DecodePath(s); err == nil {
			if twice, err := partition.DecodePath(partition.EncodePath(again)); err != nil || twice != again {
				t.Fatalf("%q: %q: %q, %v", s, again, twice, err)
			}
		}
		if dir := partition.DirName("p", &s); strings.Count(dir, "=") != 1 || strings.Contains(dir, "/") {
			t.Fatalf("%q: %q", s, dir)
		}
	})
}

func FuzzPartitionValue(f *testing.F) {
	for _, s := range []string{"1", "-1.50", "2024-06-15T19:30:45.5+02:00", "2024-06-15", "true", "4.9E-324", "x", "1e-7"} {
		for k := range int(schema.Struct) {
			f.Add(k, 10, 2, s)
		}
	}
	f.Fuzz(func(t *testing.T, k, precision, scale int, s string) {
		typ := schema.Type{Kind: schema.Kind(k)}
		if typ.Kind == schema.Decimal {
			if precision < 1 || precision > 38 || scale < 0 || scale > precision {
				return
			}
			typ.Precision, typ.Scale = precision, scale
		}
		v, err := partition.Parse(typ, &s)
		if err != nil {
			return
		}
		text, err := partition.Serialize(typ, v)
		if err != nil {
			t.Fatalf("%s %q is %v, which has no text: %v", typ, s, v, err)
		}
		back, err := partition.Parse(typ, text)
		if err != nil || value.Compare(back, v) != 0 {
			t.Fatalf("%s %q is %v, its text %q is %v, %v", typ, s, v, orNull(text), back, err)
		}
		again, err := partition.Serialize(typ, back)
		if err != nil || orNull(again) != orNull(text) {
			t.Fatalf("%s %q: %q, then %q, %v", typ, s, orNull(text), orNull(again), err)
		}
	})
}
