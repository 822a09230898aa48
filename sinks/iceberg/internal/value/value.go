package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// ErrMismatch: a value is not one of its column's type.
var ErrMismatch = errors.New("value does not fit the type")

const maxTimeMicros = 24*60*60*1_000_000 - 1

// Check reports why v is not a value of type t. NULL is a value of no type.
func Check(t *planv1.Type, v *planv1.Value) error {
	if !fits(t, v) {
		return fmt.Errorf("%w: %s for %s", ErrMismatch, describe(v), meta.TypeName(t))
	}
	return nil
}

func fits(t *planv1.Type, v *planv1.Value) bool {
	kind := t.GetKind()
	switch k := v.GetKind().(type) {
	case *planv1.Value_Boolean:
		return kind == planv1.TypeKind_TYPE_KIND_BOOLEAN
	case *planv1.Value_Float32:
		return kind == planv1.TypeKind_TYPE_KIND_FLOAT32
	case *planv1.Value_Float64:
		return kind == planv1.TypeKind_TYPE_KIND_FLOAT64
	case *planv1.Value_String_:
		return kind == planv1.TypeKind_TYPE_KIND_STRING && utf8.ValidString(k.String_)
	case *planv1.Value_Binary:
		switch kind {
		case planv1.TypeKind_TYPE_KIND_BINARY:
			return true
		case planv1.TypeKind_TYPE_KIND_UUID:
			return len(k.Binary) == 16
		case planv1.TypeKind_TYPE_KIND_FIXED:
			return len(k.Binary) == int(t.GetLength())
		}
	case *planv1.Value_Decimal:
		return kind == planv1.TypeKind_TYPE_KIND_DECIMAL && k.Decimal.GetScale() == t.GetScale() && digitsFit(k.Decimal.GetUnscaled(), t.GetPrecision())
	case *planv1.Value_Integer:
		switch kind {
		case planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_DATE:
			return int64(int32(k.Integer)) == k.Integer
		case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
			return k.Integer >= 0 && k.Integer <= maxTimeMicros
		case planv1.TypeKind_TYPE_KIND_INT64, planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS,
			planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
			return true
		}
	}
	return false
}

var powersOfTen = func() (p [39]*big.Int) {
	p[0] = big.NewInt(1)
	for i := 1; i < len(p); i++ {
		p[i] = new(big.Int).Mul(p[i-1], big.NewInt(10))
	}
	return p
}()

func digitsFit(unscaled []byte, precision int32) bool {
	if len(unscaled) == 0 || len(unscaled) > 17 || precision < 1 || int(precision) >= len(powersOfTen) {
		return false
	}
	if len(unscaled) <= 8 && precision >= 19 {
		return true
	}
	return meta.FromTwosComplement(unscaled).CmpAbs(powersOfTen[precision]) < 0
}

func describe(v *planv1.Value) string {
	switch k := v.GetKind().(type) {
	case nil:
		return "NULL"
	case *planv1.Value_String_:
		return fmt.Sprintf("string of %d bytes", len(k.String_))
	case *planv1.Value_Binary:
		return fmt.Sprintf("%d bytes", len(k.Binary))
	case *planv1.Value_Decimal:
		return fmt.Sprintf("decimal of scale %d with %d bytes", k.Decimal.GetScale(), len(k.Decimal.GetUnscaled()))
	case *planv1.Value_Integer:
		return fmt.Sprintf("integer %d", k.Integer)
	default:
		return fmt.Sprint(v)
	}
}

// IsNull reports whether v is NULL.
func IsNull(v *planv1.Value) bool { return v.GetKind() == nil }

// IsNaN reports whether v is a NaN.
func IsNaN(v *planv1.Value) bool {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Float32:
		return k.Float32 != k.Float32 //nolint:gocritic // NaN differs from itself
	case *planv1.Value_Float64:
		return math.IsNaN(k.Float64)
	}
	return false
}

// Append appends the binary single-value form of v, which has passed Check for t.
func Append(dst []byte, t *planv1.Type, v *planv1.Value) []byte {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Boolean:
		if k.Boolean {
			return append(dst, 1)
		}
		return append(dst, 0)
	case *planv1.Value_Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(k.Float32))
	case *planv1.Value_Float64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(k.Float64))
	case *planv1.Value_String_:
		return append(dst, k.String_...)
	case *planv1.Value_Binary:
		return append(dst, k.Binary...)
	case *planv1.Value_Decimal:
		return append(dst, Shorten(k.Decimal.GetUnscaled())...)
	case *planv1.Value_Integer:
		switch t.GetKind() {
		case planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_DATE:
			return binary.LittleEndian.AppendUint32(dst, uint32(int32(k.Integer)))
		}
		return binary.LittleEndian.AppendUint64(dst, uint64(k.Integer))
	}
	return dst
}

// Shorten drops the bytes of a two's complement that say nothing.
func Shorten(b []byte) []byte {
	for len(b) > 1 && ((b[0] == 0 && b[1]&0x80 == 0) || (b[0] == 0xff && b[1]&0x80 != 0)) {
		b = b[1:]
	}
	return b
}

// Compare orders two values of one type: strings by code points, binaries and UUIDs by unsigned bytes, -0.0 before +0.0. Not for NaN.
func Compare(a, b *planv1.Value) int {
	switch x := a.GetKind().(type) {
	case *planv1.Value_Boolean:
		return boolInt(x.Boolean) - boolInt(b.GetBoolean())
	case *planv1.Value_Float32:
		return compareFloat(float64(x.Float32), float64(b.GetFloat32()))
	case *planv1.Value_Float64:
		return compareFloat(x.Float64, b.GetFloat64())
	case *planv1.Value_String_:
		y := b.GetString_()
		switch { // the order of UTF-8 bytes is the order of code points
		case x.String_ < y:
			return -1
		case x.String_ > y:
			return 1
		}
		return 0
	case *planv1.Value_Binary:
		return slices.Compare(x.Binary, b.GetBinary())
	case *planv1.Value_Decimal:
		return meta.FromTwosComplement(x.Decimal.GetUnscaled()).Cmp(meta.FromTwosComplement(b.GetDecimal().GetUnscaled()))
	case *planv1.Value_Integer:
		y := b.GetInteger()
		switch {
		case x.Integer < y:
			return -1
		case x.Integer > y:
			return 1
		}
	}
	return 0
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return boolInt(math.Signbit(b)) - boolInt(math.Signbit(a))
}

// PlusZero gives a value with -0.0 made +0.0, so that a predicate on zero finds either as a partition value.
func PlusZero(v *planv1.Value) *planv1.Value { return zero(v, 0) }

func zero(v *planv1.Value, as float64) *planv1.Value {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Float32:
		if k.Float32 == 0 {
			return &planv1.Value{Kind: &planv1.Value_Float32{Float32: float32(as)}}
		}
	case *planv1.Value_Float64:
		if k.Float64 == 0 {
			return &planv1.Value{Kind: &planv1.Value_Float64{Float64: as}}
		}
	}
	return v
}
