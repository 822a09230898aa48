package partition_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

const null = "\x00null" // no text of the table is this

func kind(k schema.Kind) schema.Type { return schema.Type{Kind: k} }

func dec(unscaled string) value.Value {
	i, _ := new(big.Int).SetString(unscaled, 10)
	return value.OfDecimal(i, 18)
}

// The table of delta-kernel-rs (kernel/src/partition/mod.rs, taken from tables that Spark wrote): row, type, value, directory, path in the log, text. Where rows differ from
// it, the row says why.
func TestSparksTable(t *testing.T) {
	decimal := schema.Type{Kind: schema.Decimal, Precision: 38, Scale: 18}
	const minute = int64(60_000_000)
	for _, row := range []struct {
		row        int
		t          schema.Type
		v          value.Value
		dir, path  string // path "": same
		serialized string
	}{
		{1, kind(schema.Integer), value.OfInt(0), "p=0", "", "0"},
		{2, kind(schema.Integer), value.OfInt(-1), "p=-1", "", "-1"},
		{3, kind(schema.Integer), value.OfInt(math.MaxInt32), "p=2147483647", "", "2147483647"},
		{4, kind(schema.Integer), value.OfInt(math.MinInt32), "p=-2147483648", "", "-2147483648"},
		{5, kind(schema.Integer), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{6, kind(schema.Long), value.OfInt(math.MaxInt64), "p=9223372036854775807", "", "9223372036854775807"},
		{7, kind(schema.Long), value.OfInt(math.MinInt64), "p=-9223372036854775808", "", "-9223372036854775808"},
		{8, kind(schema.Long), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{9, kind(schema.Byte), value.OfInt(127), "p=127", "", "127"},
		{10, kind(schema.Byte), value.OfInt(-128), "p=-128", "", "-128"},
		{11, kind(schema.Byte), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{12, kind(schema.Short), value.OfInt(32767), "p=32767", "", "32767"},
		{13, kind(schema.Short), value.OfInt(-32768), "p=-32768", "", "-32768"},
		{14, kind(schema.Short), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{15, kind(schema.Double), value.OfFloat64(0), "p=0.0", "", "0.0"},
		{16, kind(schema.Double), value.OfFloat64(math.Copysign(0, -1)), "p=0.0", "", "0.0"},
		{17, kind(schema.Double), value.OfFloat64(math.MaxFloat64), "p=1.7976931348623157E308", "", "1.7976931348623157E308"},
		{18, kind(schema.Double), value.OfFloat64(math.SmallestNonzeroFloat64), "p=4.9E-324", "", "4.9E-324"},
		{19, kind(schema.Double), value.OfFloat64(math.NaN()), "p=NaN", "", "NaN"},
		{20, kind(schema.Double), value.OfFloat64(math.Inf(1)), "p=Infinity", "", "Infinity"},
		{21, kind(schema.Double), value.OfFloat64(math.Inf(-1)), "p=-Infinity", "", "-Infinity"},
		{22, kind(schema.Double), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{23, kind(schema.Float), value.OfFloat32(0), "p=0.0", "", "0.0"},
		{24, kind(schema.Float), value.OfFloat32(float32(math.NaN())), "p=NaN", "", "NaN"},
		{25, kind(schema.Float), value.OfFloat32(float32(math.Inf(1))), "p=Infinity", "", "Infinity"},
		{26, kind(schema.Float), value.OfFloat32(float32(math.Inf(-1))), "p=-Infinity", "", "-Infinity"},
		{27, kind(schema.Float), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{28, kind(schema.Boolean), value.OfBool(true), "p=true", "", "true"},
		{29, kind(schema.Boolean), value.OfBool(false), "p=false", "", "false"},
		{30, kind(schema.Boolean), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{31, decimal, dec("0"), "p=0.000000000000000000", "", "0.000000000000000000"},
		{32, decimal, dec("1230000000000000000"), "p=1.230000000000000000", "", "1.230000000000000000"},
		{33, decimal, dec("-1230000000000000000"), "p=-1.230000000000000000", "", "-1.230000000000000000"},
		{34, decimal, value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{35, kind(schema.Date), value.OfInt(19723), "p=2024-01-01", "", "2024-01-01"},
		{36, kind(schema.Date), value.OfInt(0), "p=1970-01-01", "", "1970-01-01"},
		{37, kind(schema.Date), value.OfInt(-719162), "p=0001-01-01", "", "0001-01-01"},
		{38, kind(schema.Date), value.OfInt(2932896), "p=9999-12-31", "", "9999-12-31"},
		{39, kind(schema.Date), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		// Spark's directories hold the time of its session's zone. Ours hold the text, which is as good: directories mean nothing.
		{
			40, kind(schema.Timestamp), value.OfInt(1_718_479_845_000_000), "p=2024-06-15T19%3A30%3A45.000000Z", "p=2024-06-15T19%253A30%253A45.000000Z",
			"2024-06-15T19:30:45.000000Z",
		},
		{
			41, kind(schema.Timestamp), value.OfInt(480 * minute), "p=1970-01-01T08%3A00%3A00.000000Z", "p=1970-01-01T08%253A00%253A00.000000Z",
			"1970-01-01T08:00:00.000000Z",
		},
		{
			42, kind(schema.Timestamp), value.OfInt(1_718_521_199_999_999), "p=2024-06-16T06%3A59%3A59.999999Z", "p=2024-06-16T06%253A59%253A59.999999Z",
			"2024-06-16T06:59:59.999999Z",
		},
		{43, kind(schema.Timestamp), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		// Spark leaves out zeros behind the point here; all read them.
		{
			44, kind(schema.TimestampNTZ), value.OfInt(1_718_454_645_000_000), "p=2024-06-15 12%3A30%3A45.000000", "p=2024-06-15%2012%253A30%253A45.000000",
			"2024-06-15 12:30:45.000000",
		},
		{
			45, kind(schema.TimestampNTZ), value.OfInt(0), "p=1970-01-01 00%3A00%3A00.000000", "p=1970-01-01%2000%253A00%253A00.000000",
			"1970-01-01 00:00:00.000000",
		},
		{46, kind(schema.TimestampNTZ), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		// Spark cannot make these directories; the texts are right, and nothing of ours makes directories of them.
		{47, kind(schema.String), value.OfString("\x00"), "p=%00", "p=%2500", "\x00"},
		{48, kind(schema.String), value.OfString("before\x00after"), "p=before%00after", "p=before%2500after", "before\x00after"},
		{49, kind(schema.Binary), value.OfBinary([]byte{}), "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{51, kind(schema.Binary), value.OfBinary([]byte("HELLO")), "p=HELLO", "", "HELLO"},
		{53, kind(schema.Binary), value.OfBinary([]byte("/=%")), "p=%2F%3D%25", "p=%252F%253D%2525", "/=%"},
		{54, kind(schema.String), value.OfString("a{b"), "p=a%7Bb", "p=a%257Bb", "a{b"},
		{55, kind(schema.String), value.OfString("a}b"), "p=a}b", "p=a%7Db", "a}b"},
		{56, kind(schema.String), value.OfString("hello world"), "p=hello world", "p=hello%20world", "hello world"},
		{57, kind(schema.String), value.OfString("M\u00fcnchen"), "p=M\u00fcnchen", "", "M\u00fcnchen"},
		{58, kind(schema.String), value.OfString("\u65e5\u672c\u8a9e"), "p=\u65e5\u672c\u8a9e", "", "\u65e5\u672c\u8a9e"},
		{59, kind(schema.String), value.OfString("\U0001F3B5\U0001F3B6"), "p=\U0001F3B5\U0001F3B6", "", "\U0001F3B5\U0001F3B6"},
		{60, kind(schema.String), value.OfString("a<b>c|d"), "p=a<b>c|d", "p=a%3Cb%3Ec%7Cd", "a<b>c|d"},
		{61, kind(schema.String), value.OfString("a@b!c(d)"), "p=a@b!c(d)", "", "a@b!c(d)"},
		{62, kind(schema.String), value.OfString("a&b+c$d;e,f"), "p=a&b+c$d;e,f", "", "a&b+c$d;e,f"},
		{63, kind(schema.String), value.OfString("Serbia/srb%"), "p=Serbia%2Fsrb%25", "p=Serbia%252Fsrb%2525", "Serbia/srb%"},
		{64, kind(schema.String), value.OfString("100%25"), "p=100%2525", "p=100%252525", "100%25"},
		{65, kind(schema.String), value.OfString(""), "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{66, kind(schema.String), value.Value{}, "p=__HIVE_DEFAULT_PARTITION__", "", null},
		{67, kind(schema.String), value.OfString(" "), "p= ", "p=%20", " "},
		{68, kind(schema.String), value.OfString("  "), "p=  ", "p=%20%20", "  "},
	} {
		text, err := partition.Serialize(row.t, row.v)
		if err != nil {
			t.Errorf("row %d: %v", row.row, err)
			continue
		}
		if got := orNull(text); got != row.serialized {
			t.Errorf("row %d: text %q, want %q", row.row, got, row.serialized)
		}
		dir := partition.DirName("p", text)
		if dir != row.dir {
			t.Errorf("row %d: directory %q, want %q", row.row, dir, row.dir)
		}
		path := row.path
		if path == "" {
			path = row.dir
		}
		if got := partition.EncodePath(dir); got != path {
			t.Errorf("row %d: path %q, want %q", row.row, got, path)
		}
		if back, err := partition.DecodePath(path); err != nil || back != dir {
			t.Errorf("row %d: path %q decodes to %q, %v", row.row, path, back, err)
		}
		if back, err := partition.Parse(row.t, text); err != nil || value.Compare(back, row.v) != 0 && text != nil {
			t.Errorf("row %d: %q reads as %v, %v", row.row, orNull(text), back, err)
		}
	}
}

func orNull(text *string) string {
	if text == nil {
		return null
	}
	return *text
}

// Rows 50 and 52: bytes that are not UTF-8 would make a log that nobody can read.
func TestBytesThatAreNotTextAreRefused(t *testing.T) {
	for _, b := range [][]byte{{0xde, 0xad, 0xbe, 0xef}, {0, 0xff}} {
		if text, err := partition.Serialize(kind(schema.Binary), value.OfBinary(b)); !errors.Is(err, partition.ErrValue) {
			t.Errorf("%x: %v, %v", b, text, err)
		}
	}
}

func TestValuesWithoutAText(t *testing.T) {
	array := schema.Type{Kind: schema.Array, Element: &schema.Type{Kind: schema.Long}}
	for name, c := range map[string]struct {
		t schema.Type
		v value.Value
	}{
		"year 10000":           {kind(schema.Date), value.OfInt(2932897)},
		"year 0":               {kind(schema.Date), value.OfInt(-719163)},
		"timestamp too late":   {kind(schema.Timestamp), value.OfInt(math.MaxInt64)},
		"timestamp too early":  {kind(schema.TimestampNTZ), value.OfInt(math.MinInt64)},
		"too wide":             {kind(schema.Byte), value.OfInt(128)},
		"another kind":         {kind(schema.Long), value.OfString("1")},
		"another scale":        {schema.Type{Kind: schema.Decimal, Precision: 10, Scale: 2}, dec("1")},
		"too many digits":      {schema.Type{Kind: schema.Decimal, Precision: 20, Scale: 18}, dec("100000000000000000000")},
		"a value of an array":  {array, value.OfInt(1)},
		"a string not of text": {kind(schema.String), value.OfString("\xff")},
	} {
		if text, err := partition.Serialize(c.t, c.v); !errors.Is(err, partition.ErrValue) {
			t.Errorf("%s: %v, %v", name, text, err)
		}
	}
}
