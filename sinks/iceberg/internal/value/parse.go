package value

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Parse reads the binary single-value form of a value of type t, also as it was written before the column's type was widened: int for long, float for
// double, date for timestamp. ok is false for nil and for bytes that are no such value.
func Parse(t *planv1.Type, b []byte) (v *planv1.Value, ok bool) {
	if b == nil {
		return nil, false
	}
	v = &planv1.Value{}
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		if len(b) != 1 {
			return nil, false
		}
		v.Kind = &planv1.Value_Boolean{Boolean: b[0] != 0}
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		if len(b) != 4 {
			return nil, false
		}
		v.Kind = &planv1.Value_Float32{Float32: math.Float32frombits(binary.LittleEndian.Uint32(b))}
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		switch len(b) {
		case 4:
			v.Kind = &planv1.Value_Float64{Float64: float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))}
		case 8:
			v.Kind = &planv1.Value_Float64{Float64: math.Float64frombits(binary.LittleEndian.Uint64(b))}
		default:
			return nil, false
		}
	case planv1.TypeKind_TYPE_KIND_STRING:
		if !utf8.Valid(b) {
			return nil, false
		}
		v.Kind = &planv1.Value_String_{String_: string(b)}
	case planv1.TypeKind_TYPE_KIND_UUID, planv1.TypeKind_TYPE_KIND_FIXED, planv1.TypeKind_TYPE_KIND_BINARY:
		v.Kind = &planv1.Value_Binary{Binary: b}
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		if len(b) == 0 {
			return nil, false
		}
		v.Kind = &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: Shorten(b), Scale: t.GetScale()}}
	default:
		n, ok := parseInteger(t.GetKind(), b)
		if !ok {
			return nil, false
		}
		v.Kind = &planv1.Value_Integer{Integer: n}
	}
	return v, true
}

func parseInteger(kind planv1.TypeKind, b []byte) (int64, bool) {
	const microsPerDay = 86_400_000_000
	switch len(b) {
	case 8:
		n := int64(binary.LittleEndian.Uint64(b))
		if kind == planv1.TypeKind_TYPE_KIND_INT32 || kind == planv1.TypeKind_TYPE_KIND_DATE {
			return n, int64(int32(n)) == n
		}
		return n, true
	case 4:
		n := int64(int32(binary.LittleEndian.Uint32(b)))
		switch kind {
		case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
			return n * microsPerDay, true
		case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
			if n > math.MaxInt64/(1000*microsPerDay) || n < math.MinInt64/(1000*microsPerDay) {
				return 0, false
			}
			return n * 1000 * microsPerDay, true
		}
		return n, true
	}
	return 0, false
}
