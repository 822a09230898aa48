package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// Layouts of timestamps in statistics, which are of milliseconds.
const (
	timestampLayout    = "2006-01-02T15:04:05.000Z"
	timestampNTZLayout = "2006-01-02T15:04:05.000"
)

// JSON writes the statistics of a file. A bound that is no value of its column, or bounds that are the wrong way round, are an error.
func (l *Layout) JSON(f *File) (string, error) {
	out, err := l.AppendJSON(make([]byte, 0, 64+48*len(l.leaves)), f)
	return string(out), err
}

// AppendJSON is JSON to the end of dst, which comes back as it was with an error.
func (l *Layout) AppendJSON(dst []byte, f *File) ([]byte, error) {
	if len(f.Columns) != len(l.leaves) || f.Records < 0 {
		return dst, fmt.Errorf("statistics of %d columns and %d rows; the table's have %d columns", len(f.Columns), f.Records, len(l.leaves))
	}
	for i, c := range f.Columns {
		if err := l.check(i, c, f.Records); err != nil {
			return dst, fmt.Errorf("column %s: %w", l.leaves[i].Name(), err)
		}
	}
	out := strconv.AppendInt(append(dst, `{"numRecords":`...), f.Records, 10)
	member := func(name string, write func([]byte, int) []byte) {
		start := len(out)
		out = append(append(append(out, `,"`...), name...), `":`...)
		mark := len(out)
		if out = l.nested(out, l.tree, write); len(out) == mark {
			out = out[:start]
		}
	}
	member("minValues", func(dst []byte, i int) []byte { return l.bound(dst, i, &f.Columns[i], f.Records, false) })
	member("maxValues", func(dst []byte, i int) []byte { return l.bound(dst, i, &f.Columns[i], f.Records, true) })
	member("nullCount", func(dst []byte, i int) []byte {
		if f.Columns[i].Nulls < 0 {
			return dst
		}
		return strconv.AppendInt(dst, f.Columns[i].Nulls, 10)
	})
	if f.Loose {
		out = append(out, `,"tightBounds":false`...)
	}
	return append(out, '}'), nil
}

func (l *Layout) check(i int, c Column, records int64) error {
	if c.Nulls > records {
		return fmt.Errorf("%d NULLs in %d rows", c.Nulls, records)
	}
	if !bounded(l.leaves[i].Type.Kind) {
		return nil
	}
	for _, v := range []value.Value{c.Min, c.Max} {
		// A time that no text can hold has no bound; that is no error.
		if err := value.Check(l.leaves[i].Type, v); err != nil && (v.Kind() != value.Integer || !temporal(l.leaves[i].Type.Kind)) {
			return err
		}
	}
	if !c.Min.IsNull() && !c.Max.IsNull() && !c.Min.IsNaN() && !c.Max.IsNaN() && value.Compare(c.Min, c.Max) > 0 {
		return fmt.Errorf("its least value %s is above its greatest, %s", c.Min, c.Max)
	}
	return nil
}

func temporal(k schema.Kind) bool {
	return k == schema.Date || k == schema.Timestamp || k == schema.TimestampNTZ
}

// bounded reports whether a type has bounds in statistics.
func bounded(k schema.Kind) bool {
	switch k {
	case schema.Boolean, schema.Binary, schema.Array, schema.Map, schema.Struct:
		return false
	}
	return true
}

// nested writes an object of those members of which write writes something, and nothing if there is none.
func (l *Layout) nested(dst []byte, members []node, write func([]byte, int) []byte) []byte {
	start := len(dst)
	for i := range members {
		n := &members[i]
		before := len(dst)
		dst = append(append(dst, ','), n.text...)
		mark := len(dst)
		if n.leaf >= 0 {
			dst = write(dst, n.leaf)
		} else {
			dst = l.nested(dst, n.sub, write)
		}
		if len(dst) == mark {
			dst = dst[:before]
		}
	}
	if len(dst) == start {
		return dst
	}
	dst[start] = '{'
	return append(dst, '}')
}

// bound writes one bound, or nothing where there is none that is sure to hold.
func (l *Layout) bound(dst []byte, i int, c *Column, records int64, upper bool) []byte {
	t, v := l.leaves[i].Type, c.Min
	if upper {
		v = c.Max
	}
	if v.IsNull() || !bounded(t.Kind) || c.Nulls >= records {
		return dst
	}
	switch t.Kind {
	case schema.Float, schema.Double:
		return appendFloat(dst, t.Kind, v.Float(), c.NaNFree, upper)
	case schema.Decimal:
		return append(dst, v.String()...)
	case schema.String:
		text, ok := l.cut(v.Text(), upper)
		if !ok {
			return dst
		}
		return appendString(dst, text)
	case schema.Date:
		if value.Check(t, v) != nil {
			return dst
		}
		return append(value.AppendDate(append(dst, '"'), v.Int()), '"')
	case schema.Timestamp, schema.TimestampNTZ:
		micros := roundMillis(v.Int(), upper)
		if value.Check(t, value.OfInt(micros)) != nil {
			return dst
		}
		layout := timestampLayout
		if t.Kind == schema.TimestampNTZ {
			layout = timestampNTZLayout
		}
		return append(value.AppendTime(append(dst, '"'), micros, layout), '"')
	}
	return strconv.AppendInt(dst, v.Int(), 10)
}

// appendFloat leaves out what JSON has no number for. Bounds that are zero get the sign that no zero lies outside of, since some readers tell the two apart.
func appendFloat(dst []byte, k schema.Kind, f float64, nanFree, upper bool) []byte {
	if !nanFree || math.IsNaN(f) || math.IsInf(f, 0) {
		return dst
	}
	if f == 0 {
		if upper {
			return append(dst, "0.0"...)
		}
		return append(dst, "-0.0"...)
	}
	bits := 64
	if k == schema.Float {
		bits = 32
	}
	return append(dst, value.FormatFloat(f, bits)...)
}

// roundMillis rounds to milliseconds: down, or up for an upper bound.
func roundMillis(micros int64, upper bool) int64 {
	rest := ((micros % 1000) + 1000) % 1000
	if rest == 0 {
		return micros
	}
	if upper {
		if micros > math.MaxInt64-1000 {
			return math.MaxInt64
		}
		return micros - rest + 1000
	}
	if micros < math.MinInt64+1000 {
		return math.MinInt64
	}
	return micros - rest
}

const (
	lastASCII     = '\x7f'
	lastCodePoint = utf8.MaxRune
)

// cut shortens a string to a bound of so many characters. An upper bound ends with a character that is above the one that was cut off; where that is the last one there is, it
// is kept, up to twice the length.
func (l *Layout) cut(s string, upper bool) (string, bool) {
	if len(s) <= l.prefix { // bytes; characters are no more
		return s, true
	}
	characters := 0
	for at, r := range s {
		switch {
		case characters < l.prefix:
		case !upper:
			return s[:at], l.prefix > 0
		case characters > 2*l.prefix || l.prefix <= 0:
			return "", false
		case r < lastASCII:
			return s[:at] + string(lastASCII), true
		case r < lastCodePoint:
			return s[:at] + string(lastCodePoint), true
		}
		characters++
	}
	return s, characters <= l.prefix || upper && l.prefix > 0
}

func appendString(dst []byte, s string) []byte {
	plain := 0
	for plain < len(s) && s[plain] >= ' ' && s[plain] <= '~' && s[plain] != '"' && s[plain] != '\\' {
		plain++
	}
	if plain == len(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a form
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
}
