package value

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/signet-io/signet/sinks/delta/log/schema"
)

// ErrMismatch: a value is not one of its column's type.
var ErrMismatch = errors.New("value does not fit the type")

// Kind is how a value is held. Several types share one: dates and timestamps are integers.
type Kind uint8

// The kinds. The zero Value is NULL.
const (
	Null Kind = iota
	Boolean
	Integer // byte to long; date: days since 1970-01-01; timestamps: microseconds since 1970-01-01 00:00:00, in UTC or without a time zone
	Float32
	Float64
	Decimal
	String
	Binary
)

// Value is one value. Values are immutable.
type Value struct {
	kind     Kind
	scale    int32
	bits     int64
	text     string
	unscaled *big.Int
}

// OfBool is a boolean.
func OfBool(b bool) Value {
	if b {
		return Value{kind: Boolean, bits: 1}
	}
	return Value{kind: Boolean}
}

// OfInt is an integer, a date or a timestamp.
func OfInt(i int64) Value { return Value{kind: Integer, bits: i} }

// OfFloat32 is a float.
func OfFloat32(f float32) Value {
	return Value{kind: Float32, bits: int64(math.Float64bits(float64(f)))}
}

// OfFloat64 is a double.
func OfFloat64(f float64) Value { return Value{kind: Float64, bits: int64(math.Float64bits(f))} }

// OfString is a string.
func OfString(s string) Value { return Value{kind: String, text: s} }

// OfBinary is bytes, which are copied.
func OfBinary(b []byte) Value { return Value{kind: Binary, text: string(b)} }

// OfDecimal is unscaled times ten to the minus scale. The value keeps the integer, which must not change any more.
func OfDecimal(unscaled *big.Int, scale int) Value {
	return Value{kind: Decimal, unscaled: unscaled, scale: int32(scale)}
}

// Kind says how the value is held.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is NULL.
func (v Value) IsNull() bool { return v.kind == Null }

// Bool is a boolean's value.
func (v Value) Bool() bool { return v.bits != 0 }

// Int is the value of an integer, a date or a timestamp.
func (v Value) Int() int64 { return v.bits }

// Float is the value of a float or a double.
func (v Value) Float() float64 { return math.Float64frombits(uint64(v.bits)) }

// Text is the value of a string, or a binary's bytes.
func (v Value) Text() string { return v.text }

// Decimal is the unscaled value, which must not be changed, and the scale.
func (v Value) Decimal() (*big.Int, int) { return v.unscaled, int(v.scale) }

// IsNaN reports whether the value is a NaN.
func (v Value) IsNaN() bool { return (v.kind == Float32 || v.kind == Float64) && math.IsNaN(v.Float()) }

// Years of dates and timestamps that every reader's texts can hold, in days and microseconds since 1970-01-01.
const (
	minDay    = -719162
	maxDay    = 2932896
	dayMicros = 24 * 60 * 60 * 1_000_000
)

// Check reports why v is not a value of type t. NULL is a value of every type. Dates and timestamps have to lie in the years 1 to 9999.
func Check(t schema.Type, v Value) error {
	if v.kind == Null || fits(t, v) {
		return nil
	}
	return fmt.Errorf("%w: %s for %s", ErrMismatch, v, t)
}

func fits(t schema.Type, v Value) bool {
	switch t.Kind {
	case schema.Boolean:
		return v.kind == Boolean
	case schema.Byte:
		return v.kind == Integer && v.bits == int64(int8(v.bits))
	case schema.Short:
		return v.kind == Integer && v.bits == int64(int16(v.bits))
	case schema.Integer:
		return v.kind == Integer && v.bits == int64(int32(v.bits))
	case schema.Long:
		return v.kind == Integer
	case schema.Date:
		return v.kind == Integer && v.bits >= minDay && v.bits <= maxDay
	case schema.Timestamp, schema.TimestampNTZ:
		return v.kind == Integer && v.bits >= minDay*dayMicros && v.bits < (maxDay+1)*dayMicros
	case schema.Float:
		return v.kind == Float32
	case schema.Double:
		return v.kind == Float64
	case schema.Decimal:
		return v.kind == Decimal && v.unscaled != nil && int(v.scale) == t.Scale && digitsFit(v.unscaled, t.Precision)
	case schema.String:
		return v.kind == String && utf8.ValidString(v.text)
	case schema.Binary:
		return v.kind == Binary
	}
	return false
}

func digitsFit(unscaled *big.Int, precision int) bool {
	return precision >= 0 && precision < len(powers) && unscaled.CmpAbs(powers[precision]) < 0
}

var powers = func() (p [77]*big.Int) {
	p[0] = big.NewInt(1)
	for i := 1; i < len(p); i++ {
		p[i] = new(big.Int).Mul(p[i-1], big.NewInt(10))
	}
	return p
}()

// String describes the value for messages; long ones are cut.
func (v Value) String() string {
	switch v.kind {
	case Null:
		return "NULL"
	case Boolean:
		return fmt.Sprint(v.Bool())
	case Integer:
		return fmt.Sprint(v.bits)
	case Float32:
		return FormatFloat(v.Float(), 32)
	case Float64:
		return FormatFloat(v.Float(), 64)
	case Decimal:
		return formatDecimal(v.unscaled, int(v.scale))
	case String:
		return fmt.Sprintf("%.60q", v.text)
	}
	return fmt.Sprintf("%d bytes", len(v.text))
}

// Compare orders two values of one kind as Delta's readers do: strings by code points, binaries by unsigned bytes, NaN above everything, the zeros equal,
// decimals by value whatever their scales. NULL is below all. Values of different kinds are in the order of their kinds.
func Compare(a, b Value) int {
	if a.kind != b.kind {
		return cmp.Compare(a.kind, b.kind)
	}
	switch a.kind {
	case Boolean, Integer:
		return cmp.Compare(a.bits, b.bits)
	case Float32, Float64:
		x, y := a.Float(), b.Float()
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(y, x) // cmp has NaN below everything
		}
		return cmp.Compare(x, y)
	case Decimal:
		if a.scale == b.scale {
			return a.unscaled.Cmp(b.unscaled)
		}
		return ratio(a).Cmp(ratio(b))
	}
	return strings.Compare(a.text, b.text) // the order of UTF-8 is the order of code points
}

func ratio(v Value) *big.Rat {
	return new(big.Rat).SetFrac(v.unscaled, power(int(v.scale)))
}

func power(n int) *big.Int {
	if n < len(powers) {
		return powers[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}
