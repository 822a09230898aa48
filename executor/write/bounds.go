package write

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/transform"
)

// cutAt is where DuckDB cuts minima and maxima of strings and blobs, without saying so.
const cutAt = 256

// bounds reads DuckDB's minimum and maximum. What does not parse is no bound.
func bounds(l leaf, s *colStats) (lower, upper *planv1.Bound) {
	if l.repeated || l.mode.GetKind() < planv1.MetricsKind_METRICS_KIND_TRUNCATE {
		return nil, nil
	}
	switch {
	case s.spliced:
		lower, upper = typedBound(l, s.low, false), typedBound(l, s.high, true)
	default:
		if s.min != nil {
			lower = bound(l, *s.min, false)
		}
		if s.max != nil {
			upper = bound(l, *s.max, true)
		}
	}
	// Java compares the halves of a UUID as signed numbers, the specification its bytes: a range that one of them reads wrongly would lose
	// rows there. A single value is safe for both.
	if l.field.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_UUID && !proto.Equal(lower, upper) {
		return nil, nil
	}
	return lower, upper
}

func bound(l leaf, text string, upper bool) *planv1.Bound {
	width := math.MaxInt
	if l.mode.GetKind() == planv1.MetricsKind_METRICS_KIND_TRUNCATE {
		width = int(l.mode.GetLength())
	}
	switch l.field.GetType().GetKind() {
	case planv1.TypeKind_TYPE_KIND_STRING:
		if !utf8.ValidString(text) {
			return nil
		}
		return stringBound(text, width, upper)
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		b, err := hex.DecodeString(text)
		if err != nil {
			return nil
		}
		return binaryBound(b, width, upper)
	}
	v := scalarBound(l.field.GetType(), text, upper)
	if v == nil {
		return nil
	}
	return &planv1.Bound{Value: v, Exact: true}
}

// stringBound cuts to width code points. A cut upper bound is rounded up over the surrogates, which no UTF-8 holds; where nothing can be
// rounded up there is no bound (V4).
func stringBound(s string, width int, upper bool) *planv1.Bound {
	exact := len(s) < cutAt
	if cut := prefix(s, width); len(cut) < len(s) {
		exact = false
		if upper {
			next, ok := successor(cut)
			if !ok {
				return nil
			}
			cut = next
		}
		s = cut
	}
	return &planv1.Bound{Value: &planv1.Value{Kind: &planv1.Value_String_{String_: s}}, Exact: exact}
}

func prefix(s string, width int) string {
	if width >= len(s) {
		return s
	}
	for i := range s {
		if width == 0 {
			return s[:i]
		}
		width--
	}
	return s
}

// successor is the shortest-cut string that is greater than every string with this prefix.
func successor(s string) (string, bool) {
	r := []rune(s)
	for i := len(r) - 1; i >= 0; i-- {
		switch next := r[i] + 1; {
		case next == 0xD800:
			r[i] = 0xE000
		case next > utf8.MaxRune:
			continue
		default:
			r[i] = next
		}
		return string(r[:i+1]), true
	}
	return "", false
}

func binaryBound(b []byte, width int, upper bool) *planv1.Bound {
	exact := len(b) < cutAt
	if width < len(b) {
		exact = false
		b = b[:width:width]
		if upper {
			for len(b) > 0 && b[len(b)-1] == 0xFF {
				b = b[:len(b)-1]
			}
			if len(b) == 0 {
				return nil
			}
			b[len(b)-1]++
		}
	}
	return &planv1.Bound{Value: &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, Exact: exact}
}

// scalarBound reads a value of fixed width; nil if it is none that the column can store.
func scalarBound(t *planv1.Type, text string, upper bool) *planv1.Value {
	switch k := t.GetKind(); k {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil
		}
		return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: b}}
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		f, err := strconv.ParseFloat(text, 32)
		if err != nil || math.IsNaN(f) {
			return nil
		}
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: float32(outward(f, upper))}}
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) {
			return nil
		}
		return &planv1.Value{Kind: &planv1.Value_Float64{Float64: outward(f, upper)}}
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		v, err := transform.ParseDecimal(text, t.GetScale())
		if err != nil {
			return nil
		}
		return v
	case planv1.TypeKind_TYPE_KIND_UUID:
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(b) != 16 {
			return nil
		}
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}
	default:
		n, ok := integer(k, text)
		if !ok {
			return nil
		}
		return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}
	}
}

// outward: a column with both zeros must include both, and readers may order -0.0 before 0.0.
func outward(f float64, upper bool) float64 {
	if f != 0 {
		return f
	}
	if upper {
		return 0
	}
	return math.Copysign(0, -1)
}

func integer(k planv1.TypeKind, text string) (int64, bool) {
	switch k {
	case planv1.TypeKind_TYPE_KIND_DATE:
		day, rest, ok := parseDate(text)
		return day, ok && rest == ""
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return parseTime(text, 1_000_000)
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return parseTimestamp(text, 1_000_000)
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return parseTimestamp(text, 1_000_000_000)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// typedBound gives a bound out of a footer the length that the column's mode asks for. Values below lists have none, and NaN is counted first.
func typedBound(l leaf, b *planv1.Bound, upper bool) *planv1.Bound {
	if b == nil || isFloat(l.field.GetType().GetKind()) {
		return nil
	}
	width := math.MaxInt
	if l.mode.GetKind() == planv1.MetricsKind_METRICS_KIND_TRUNCATE {
		width = int(l.mode.GetLength())
	}
	var out *planv1.Bound
	switch l.field.GetType().GetKind() {
	case planv1.TypeKind_TYPE_KIND_STRING:
		if !utf8.ValidString(b.GetValue().GetString_()) {
			return nil
		}
		out = stringBound(b.GetValue().GetString_(), width, upper)
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		out = binaryBound(b.GetValue().GetBinary(), width, upper)
	default:
		return b
	}
	if out != nil {
		out.Exact = out.GetExact() && b.GetExact()
	}
	return out
}
