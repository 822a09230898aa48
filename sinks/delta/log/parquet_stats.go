package log

import (
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// parsedStats makes the JSON of statistics from their columns, where a checkpoint has no JSON of its own (delta.checkpoint.writeStatsAsJson is false).
func (g *rowGroup) parsedStats(columns []int) error {
	need := false
	for i := range g.actions {
		need = need || g.actions[i].Add != nil && g.actions[i].Add.Stats == nil
	}
	if !need {
		return nil
	}
	type leaf struct {
		path  []string
		texts []string // by row; empty: null
	}
	var leaves []leaf
	for _, i := range columns {
		c := g.in.MetaData().Schema.Column(i)
		if c.MaxRepetitionLevel() > 0 {
			continue // no statistics are kept of what is in arrays and maps
		}
		l := leaf{path: c.ColumnPath()[2:], texts: make([]string, 0, len(g.actions))}
		format := statFormat(c)
		err := eachCell(g.in, i, func(c *cell) error {
			text := ""
			if c.row < len(g.actions) && !c.null && format != nil {
				text = format(c)
			}
			l.texts = append(l.texts, text)
			return nil
		})
		if err != nil {
			return err
		}
		leaves = append(leaves, l)
	}
	for row := range g.actions {
		a := g.actions[row].Add
		if a == nil || a.Stats != nil {
			continue
		}
		root := &statNode{}
		for _, l := range leaves {
			if row < len(l.texts) && l.texts[row] != "" {
				root.put(l.path, l.texts[row])
			}
		}
		if len(root.names) > 0 {
			text := string(root.append(nil))
			a.Stats = &text
		}
	}
	return nil
}

// statNode is an object of statistics with its members in the order of the columns, or a value.
type statNode struct {
	names   []string
	members map[string]*statNode
	value   string
}

func (n *statNode) put(path []string, value string) {
	for _, name := range path {
		next := n.members[name]
		if next == nil {
			if n.members == nil {
				n.members = map[string]*statNode{}
			}
			next = &statNode{}
			n.members[name] = next
			n.names = append(n.names, name)
		}
		n = next
	}
	n.value = value
}

func (n *statNode) append(dst []byte) []byte {
	if n.members == nil {
		return append(dst, n.value...)
	}
	dst = append(dst, '{')
	for i, name := range n.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		w := jsonWriter{out: dst}
		w.quote(name)
		dst = n.members[name].append(append(w.out, ':'))
	}
	return append(dst, '}')
}

// statFormat gives how values of a column are written in statistics ("Per-file Statistics"), nil if they are not known. What has no such text is left out.
func statFormat(c *schema.Column) func(*cell) string {
	logical := c.LogicalType()
	switch l := logical.(type) {
	case schema.DecimalLogicalType:
		return decimalFormat(c, int(l.Scale()))
	case schema.DateLogicalType:
		return func(c *cell) string { return quoted(time.Unix(c.number*86400, 0).UTC().Format(time.DateOnly)) }
	case schema.TimestampLogicalType:
		unit := map[schema.TimeUnitType]time.Duration{schema.TimeUnitMillis: time.Millisecond, schema.TimeUnitMicros: time.Microsecond, schema.TimeUnitNanos: time.Nanosecond}[l.TimeUnit()]
		return timestampFormat(unit, l.IsAdjustedToUTC())
	}
	switch c.PhysicalType() {
	case parquet.Types.Boolean:
		return func(c *cell) string { return strconv.FormatBool(c.number != 0) }
	case parquet.Types.Int32, parquet.Types.Int64:
		return func(c *cell) string { return strconv.FormatInt(c.number, 10) }
	case parquet.Types.Int96:
		return timestampFormat(time.Microsecond, true)
	case parquet.Types.Float:
		return func(c *cell) string { return floatText(c.float, 32) }
	case parquet.Types.Double:
		return func(c *cell) string { return floatText(c.float, 64) }
	case parquet.Types.ByteArray:
		return func(c *cell) string {
			if !utf8.Valid(c.bytes) {
				return ""
			}
			return quoted(string(c.bytes))
		}
	}
	return nil
}

func quoted(s string) string {
	w := jsonWriter{}
	w.quote(s)
	return string(w.out)
}

func floatText(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return `"NaN"`
	case math.IsInf(f, 1):
		return `"Infinity"`
	case math.IsInf(f, -1):
		return `"-Infinity"`
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// timestampFormat writes milliseconds, and what is finer only if there is something: a bound must not be rounded.
func timestampFormat(unit time.Duration, utc bool) func(*cell) string {
	if unit == 0 {
		return nil
	}
	zone := ""
	if utc {
		zone = "Z"
	}
	perSecond := int64(time.Second / unit)
	return func(c *cell) string {
		seconds, rest := c.number/perSecond, c.number%perSecond
		if rest < 0 {
			seconds, rest = seconds-1, rest+perSecond
		}
		nanos := rest * int64(unit)
		layout := "2006-01-02T15:04:05.000"
		switch {
		case nanos%1000 != 0:
			layout += "000000"
		case nanos%1000000 != 0:
			layout += "000"
		}
		return quoted(time.Unix(seconds, nanos).UTC().Format(layout) + zone)
	}
}

func decimalFormat(column *schema.Column, scale int) func(*cell) string {
	if scale < 0 || scale > 38 {
		return nil
	}
	physical := column.PhysicalType()
	return func(c *cell) string {
		unscaled := new(big.Int)
		switch physical {
		case parquet.Types.Int32, parquet.Types.Int64:
			unscaled.SetInt64(c.number)
		default:
			if len(c.bytes) == 0 || len(c.bytes) > 32 {
				return ""
			}
			unscaled.SetBytes(c.bytes)
			if c.bytes[0]&0x80 != 0 {
				unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(c.bytes))))
			}
		}
		return decimalText(unscaled, scale)
	}
}

func decimalText(unscaled *big.Int, scale int) string {
	digits, sign := new(big.Int).Abs(unscaled).String(), ""
	if unscaled.Sign() < 0 {
		sign = "-"
	}
	if scale == 0 {
		return sign + digits
	}
	for len(digits) <= scale {
		digits = "0" + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}
