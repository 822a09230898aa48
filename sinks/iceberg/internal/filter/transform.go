package filter

import (
	"encoding/binary"
	"math"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/twmb/murmur3"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// source is the span of the source column's values whose partition value is p. ok is false where the transform says nothing.
func source(t meta.Transform, typ *planv1.Type, p *planv1.Value) (s span, ok bool) {
	if t.Kind == planv1.TransformKind_TRANSFORM_KIND_VOID || t.Kind == planv1.TransformKind_TRANSFORM_KIND_UNSPECIFIED {
		return unknown(), false
	}
	switch {
	case value.IsNull(p):
		return span{null: true}, true
	case value.IsNaN(p):
		return span{nan: true}, true
	}
	s = span{plain: true}
	if t.Kind == planv1.TransformKind_TRANSFORM_KIND_BUCKET {
		want := p.GetInteger()
		s.bucket = func(v *planv1.Value) bool {
			h, ok := hash(typ, v)
			return !ok || int64(h)%int64(t.Param) == want
		}
		return s, true
	}
	s.lower, _, _ = image(t, typ, p)
	_, s.upper, s.open = image(t, typ, p)
	return s, true
}

// image is the smallest and the greatest value with the partition value p; nil where there is no bound.
func image(t meta.Transform, typ *planv1.Type, p *planv1.Value) (lower, upper *planv1.Value, open bool) {
	switch t.Kind {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		return p, p, false
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return truncated(typ, int64(t.Param), p)
	case planv1.TransformKind_TRANSFORM_KIND_YEAR, planv1.TransformKind_TRANSFORM_KIND_MONTH, planv1.TransformKind_TRANSFORM_KIND_DAY, planv1.TransformKind_TRANSFORM_KIND_HOUR:
		n := p.GetInteger()
		first := n
		if n <= 0 && (typ.GetKind() != planv1.TypeKind_TYPE_KIND_DATE || t.Kind != planv1.TransformKind_TRANSFORM_KIND_DAY) {
			first-- // early writers rounded what is before 1970 up
		}
		lower, upper = begin(t.Kind, typ, first), begin(t.Kind, typ, n+1)
		if upper != nil {
			upper = integer(upper.GetInteger() - 1)
		}
		return lower, upper, false
	}
	return nil, nil, false
}

func integer(n int64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}} }

func truncated(typ *planv1.Type, width int64, p *planv1.Value) (lower, upper *planv1.Value, open bool) {
	switch k := p.GetKind().(type) {
	case *planv1.Value_Integer:
		greatest := int64(math.MaxInt64)
		if typ.GetKind() == planv1.TypeKind_TYPE_KIND_INT32 {
			greatest = math.MaxInt32
		}
		if k.Integer > greatest-width+1 { // or the values at the low end of the type, whose truncation overflowed
			return nil, nil, false
		}
		return p, integer(k.Integer + width - 1), false
	case *planv1.Value_Decimal:
		n := meta.FromTwosComplement(k.Decimal.GetUnscaled())
		n.Add(n, big.NewInt(width-1))
		return p, &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: meta.TwosComplement(n), Scale: k.Decimal.GetScale()}}}, false
	case *planv1.Value_String_:
		return p, p, int64(utf8.RuneCountInString(k.String_)) >= width
	case *planv1.Value_Binary:
		return p, p, int64(len(k.Binary)) >= width
	}
	return nil, nil, false
}

// farthest keeps what follows from overflowing: years that int64 microseconds hold, and few enough nanoseconds.
const farthest = 200_000

// begin is the first value of the nth unit since 1970, in the unit of the type; nil if it is out of range.
func begin(kind planv1.TransformKind, typ *planv1.Type, n int64) *planv1.Value {
	var days int64
	switch kind {
	case planv1.TransformKind_TRANSFORM_KIND_YEAR:
		if n < -farthest || n > farthest {
			return nil
		}
		days = time.Date(1970+int(n), 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 86400
	case planv1.TransformKind_TRANSFORM_KIND_MONTH:
		if n < -12*farthest || n > 12*farthest {
			return nil
		}
		days = time.Date(1970, time.Month(1+n), 1, 0, 0, 0, 0, time.UTC).Unix() / 86400
	case planv1.TransformKind_TRANSFORM_KIND_DAY:
		days = n
	case planv1.TransformKind_TRANSFORM_KIND_HOUR:
		return scaled(n, 3600, typ)
	}
	if typ.GetKind() == planv1.TypeKind_TYPE_KIND_DATE {
		if int64(int32(days)) != days {
			return nil
		}
		return integer(days)
	}
	return scaled(days, 86400, typ)
}

// scaled is n units of so many seconds in the unit of a timestamp type.
func scaled(n, seconds int64, typ *planv1.Type) *planv1.Value {
	per := int64(1_000_000)
	if isNanos(typ) {
		per = 1_000_000_000
	}
	per *= seconds
	if n > math.MaxInt64/per || n < math.MinInt64/per {
		return nil
	}
	return integer(n * per)
}

func isNanos(t *planv1.Type) bool {
	return t.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS || t.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS
}

// hash is the bucket hash of a value, murmur3_x86_32 without its sign bit. ok is false for types that have none.
func hash(t *planv1.Type, v *planv1.Value) (h int32, ok bool) {
	var b []byte
	switch k := v.GetKind().(type) {
	case *planv1.Value_Integer:
		n := k.Integer
		if isNanos(t) { // hashed as microseconds
			n = floorDiv(n, 1000)
		}
		b = binary.LittleEndian.AppendUint64(nil, uint64(n))
	case *planv1.Value_String_:
		b = []byte(k.String_)
	case *planv1.Value_Binary:
		b = k.Binary
	case *planv1.Value_Decimal:
		b = value.Shorten(k.Decimal.GetUnscaled())
	default:
		return 0, false
	}
	return int32(murmur3.Sum32(b) & 0x7fffffff), true
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
