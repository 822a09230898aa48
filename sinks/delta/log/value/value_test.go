package value_test

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// What java.lang.Double.toString and Float.toString give (JDK 19 and later).
func TestFloatsAsJavaWritesThem(t *testing.T) {
	for _, c := range []struct {
		f    float64
		bits int
		want string
	}{
		{1, 64, "1.0"},
		{-1.5, 64, "-1.5"},
		{0.001, 64, "0.001"},
		{0.0001, 64, "1.0E-4"},
		{9999999, 64, "9999999.0"},
		{1e7, 64, "1.0E7"},
		{1e23, 64, "1.0E23"},
		{2e-323, 64, "2.0E-323"},
		{math.SmallestNonzeroFloat64, 64, "4.9E-324"},
		{2.2250738585072014e-308, 64, "2.2250738585072014E-308"},
		{-123456789, 64, "-1.23456789E8"},
		{math.SmallestNonzeroFloat32, 32, "1.4E-45"},
		{math.MaxFloat32, 32, "3.4028235E38"},
		{float64(float32(0.1)), 32, "0.1"},
		{1e8, 32, "1.0E8"},
	} {
		if got := value.FormatFloat(c.f, c.bits); got != c.want {
			t.Errorf("%v: %s, want %s", c.f, got, c.want)
		}
	}
}

func TestFloatsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		back, err := value.ParseFloat(value.FormatFloat(f, 64), 64)
		if err != nil || value.Compare(value.OfFloat64(f), value.OfFloat64(back)) != 0 {
			t.Fatalf("%v, %v, %v", f, back, err)
		}
		g := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		back, err = value.ParseFloat(value.FormatFloat(float64(g), 32), 32)
		if err != nil || value.Compare(value.OfFloat32(g), value.OfFloat32(float32(back))) != 0 {
			t.Fatalf("%v, %v, %v", g, back, err)
		}
	})
}

func TestDecimals(t *testing.T) {
	for _, c := range []struct{ in, digits, scale string }{
		{"0", "0", "0"},
		{"-12.50", "-1250", "2"},
		{".5", "5", "1"},
		{"5.", "5", "0"},
		{"1e2", "100", "0"},
		{"1.5E-3", "15", "4"},
		{"+7", "7", "0"},
		{"99999999999999999999999999999999999999", "99999999999999999999999999999999999999", "0"},
	} {
		u, scale, err := value.ParseDecimal(c.in)
		if err != nil || u.String() != c.digits || strconv.Itoa(scale) != c.scale {
			t.Errorf("%s: %v, %d, %v", c.in, u, scale, err)
		}
	}
	for _, s := range []string{"", "-", "+-1", "1-", "1..2", "1e", "e1", "1e1e1", "1_0", "0x1", "NaN", "1e1000", "\u0661"} {
		if u, scale, err := value.ParseDecimal(s); err == nil {
			t.Errorf("%q: %v, %d", s, u, scale)
		}
	}
	for _, c := range []struct {
		from      int64
		scale, to int
		down, up  int64
	}{{125, 2, 1, 12, 13}, {-125, 2, 1, -13, -12}, {120, 2, 1, 12, 12}, {5, 0, 2, 500, 500}, {-1, 30, 0, -1, 0}} {
		down, exact := value.Rescale(big.NewInt(c.from), c.scale, c.to, false)
		up, _ := value.Rescale(big.NewInt(c.from), c.scale, c.to, true)
		if down.Int64() != c.down || up.Int64() != c.up || exact != (c.down == c.up) {
			t.Errorf("%d of scale %d to %d: %v, %v, %v", c.from, c.scale, c.to, down, up, exact)
		}
	}
}

func TestDecimalsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.IntRange(0, 38).Draw(t, "scale")
		text := rapid.StringMatching(`-?[0-9]{1,38}`).Draw(t, "digits")
		unscaled, _ := new(big.Int).SetString(text, 10)
		v := value.OfDecimal(unscaled, scale)
		u, s, err := value.ParseDecimal(v.String())
		if err != nil || s != scale || u.Cmp(unscaled) != 0 {
			t.Fatalf("%v: %v, %d, %v", v, u, s, err)
		}
	})
}

func TestOrder(t *testing.T) {
	d := func(u int64, scale int) value.Value { return value.OfDecimal(big.NewInt(u), scale) }
	for name, list := range map[string][]value.Value{
		"doubles":  {{}, value.OfFloat64(math.Inf(-1)), value.OfFloat64(-1), value.OfFloat64(0), value.OfFloat64(1), value.OfFloat64(math.Inf(1)), value.OfFloat64(math.NaN())},
		"floats":   {value.OfFloat32(-1), value.OfFloat32(0.1), value.OfFloat32(float32(math.NaN()))},
		"strings":  {value.OfString(""), value.OfString("Z"), value.OfString("a"), value.OfString("\uffff"), value.OfString("\U00010000")},
		"bytes":    {value.OfBinary(nil), value.OfBinary([]byte{0x7f}), value.OfBinary([]byte{0x80})},
		"decimals": {d(-101, 2), d(-1, 0), d(99, 2), d(1, 0), d(101, 2)},
		"integers": {value.OfInt(math.MinInt64), value.OfInt(0), value.OfInt(math.MaxInt64)},
		"booleans": {value.OfBool(false), value.OfBool(true)},
	} {
		for i, a := range list {
			for j, b := range list {
				if got, want := value.Compare(a, b), sign(i-j); got != want {
					t.Errorf("%s: %v and %v: %d, want %d", name, a, b, got, want)
				}
			}
		}
	}
	if value.Compare(value.OfFloat64(0), value.OfFloat64(math.Copysign(0, -1))) != 0 || value.Compare(d(10, 1), d(1, 0)) != 0 {
		t.Error("equal values are not")
	}
}

func sign(i int) int {
	switch {
	case i < 0:
		return -1
	case i > 0:
		return 1
	}
	return 0
}

func TestDaysAndInstantsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		day := rapid.Int64Range(-719162, 2932896).Draw(t, "day")
		if err := value.Check(schema.Type{Kind: schema.Date}, value.OfInt(day)); err != nil {
			t.Fatal(err)
		}
		text := string(value.AppendDate(nil, day))
		if back, err := value.ParseDate(text); err != nil || back != day {
			t.Fatalf("%s: %d, %v; want %d", text, back, err, day)
		}
		micros := day*86_400_000_000 + rapid.Int64Range(0, 86_399_999_999).Draw(t, "time")
		text = string(value.AppendTime(nil, micros, "2006-01-02T15:04:05.000000Z"))
		if back, err := value.ParseTimestamp(text); err != nil || back != (value.Instant{Micros: micros, Digits: 6, Zoned: true}) {
			t.Fatalf("%s: %v, %v; want %d", text, back, err, micros)
		}
	})
}
