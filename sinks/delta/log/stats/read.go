package stats

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signet-io/signet/internal/rawjson"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// Parse reads the statistics of a file, whoever wrote them, for readers that leave out files by them. What is not there, not understood or not sure to hold is unknown;
// of a text that is no JSON everything is. Upper bounds of floats are always unknown: many writers take them from Parquet's footers, which leave out NaN, and NaN is
// above every number.
func (l *Layout) Parse(text string) File {
	f := File{Records: -1, Columns: make([]Column, len(l.leaves))}
	for i := range f.Columns {
		f.Columns[i].Nulls = -1
	}
	if !json.Valid([]byte(text)) {
		return f
	}
	top := members([]byte(text))
	if n, err := strconv.ParseInt(string(find(top, "numRecords")), 10, 64); err == nil && n >= 0 {
		f.Records = n
	}
	switch string(find(top, "tightBounds")) {
	case "", "null", "true":
	default:
		f.Loose = true
	}
	l.read(l.tree, find(top, "nullCount"), func(i int, raw []byte) {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		switch {
		case err != nil || n < 0 || f.Records >= 0 && n > f.Records:
		case f.Loose && n != 0 && n != f.Records: // it says nothing then
		default:
			f.Columns[i].Nulls = n
		}
	})
	l.read(l.tree, find(top, "minValues"), func(i int, raw []byte) { f.Columns[i].Min = bound(l.leaves[i].Type, raw, false) })
	l.read(l.tree, find(top, "maxValues"), func(i int, raw []byte) { f.Columns[i].Max = bound(l.leaves[i].Type, raw, true) })
	for i := range f.Columns {
		c := &f.Columns[i]
		if !c.Min.IsNull() && !c.Max.IsNull() && value.Compare(c.Min, c.Max) > 0 || f.Records >= 0 && c.Nulls == f.Records {
			c.Min, c.Max = value.Value{}, value.Value{}
		}
	}
	return f
}

// members takes an object apart, and gives nothing for anything else. Of a name that comes twice the last counts.
func members(object []byte) []rawjson.Member {
	if list, err := rawjson.Object(object); err == nil {
		return list
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil {
		return nil
	}
	var list []rawjson.Member
	for name, text := range m {
		list = append(list, rawjson.Member{Key: name, Value: text})
	}
	return list
}

func find(list []rawjson.Member, name string) []byte {
	for i := range list {
		if list[i].Key == name {
			return list[i].Value
		}
	}
	return nil
}

func (l *Layout) read(tree []node, object []byte, leaf func(int, []byte)) {
	if len(object) == 0 || object[0] != '{' {
		return
	}
	list := members(object)
	for i := range tree {
		n := &tree[i]
		switch raw := find(list, n.name); {
		case len(raw) == 0:
		case n.leaf >= 0:
			leaf(n.leaf, raw)
		default:
			l.read(n.sub, raw, leaf)
		}
	}
}

// bound reads one bound; NULL: unknown.
func bound(t schema.Type, raw []byte, upper bool) (v value.Value) {
	if !bounded(t.Kind) {
		return v
	}
	text := string(raw)
	quoted := raw[0] == '"'
	if quoted {
		if json.Unmarshal(raw, &text) != nil {
			return v
		}
	}
	switch t.Kind {
	case schema.Float, schema.Double:
		v = float(t.Kind, text, upper)
	case schema.String:
		// The replacement character stands for what was cut in its middle, and old writers end upper bounds with it, above which characters are.
		if quoted && !strings.ContainsRune(text, utf8.RuneError) {
			v = value.OfString(text)
		}
	case schema.Decimal:
		v = decimal(t, text, upper)
	case schema.Date:
		if day, err := value.ParseDate(text); err == nil && quoted {
			v = value.OfInt(day)
		}
	case schema.Timestamp, schema.TimestampNTZ:
		v = instant(t.Kind, text, quoted, upper)
	default:
		if i, err := strconv.ParseInt(text, 10, 64); err == nil && !quoted {
			v = value.OfInt(i)
		}
	}
	if value.Check(t, v) != nil {
		return value.Value{}
	}
	return v
}

func float(k schema.Kind, text string, upper bool) (v value.Value) {
	bits := 64
	if k == schema.Float {
		bits = 32
	}
	f, err := value.ParseFloat(text, bits)
	if upper || err != nil || math.IsNaN(f) {
		return v
	}
	if k == schema.Float {
		return value.OfFloat32(float32(f))
	}
	// The file may have been written when the column was a float, whose digits stand for another double.
	return value.OfFloat64(min(f, float64(float32(f))))
}

// doubleBits is how many bits of a whole number a double keeps.
const doubleBits = 52

// decimal widens what may have gone through a double, as it does in some writers: by as much as such a one may be off.
func decimal(t schema.Type, text string, upper bool) (v value.Value) {
	unscaled, scale, err := value.ParseDecimal(text)
	if err != nil {
		return v
	}
	unscaled, _ = value.Rescale(unscaled, scale, t.Scale, upper)
	if unscaled.BitLen() > doubleBits {
		off := new(big.Int).Abs(unscaled)
		off.Rsh(off, doubleBits).Add(off, big.NewInt(1))
		if upper {
			unscaled.Add(unscaled, off)
		} else {
			unscaled.Sub(unscaled, off)
		}
	}
	return value.OfDecimal(unscaled, t.Scale)
}

// instant reads a timestamp. Most writers cut the digits behind the third, so that an upper bound may be up to a millisecond above what is written.
func instant(k schema.Kind, text string, quoted, upper bool) (v value.Value) {
	at, err := value.ParseTimestamp(text)
	switch {
	case err != nil || !quoted || at.DateOnly:
		return v
	case k == schema.Timestamp && !at.Zoned: // nobody knows whose time it is
		return v
	case k == schema.TimestampNTZ && at.Zoned && !strings.HasSuffix(text, "Z"):
		return v
	}
	if upper {
		switch {
		case at.Digits <= 3:
			at.Micros += 999
		case at.Digits != 6:
			at.Micros++
		}
	}
	return value.OfInt(at.Micros)
}
