package delta

import (
	"fmt"
	"math/big"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// valueOf reads a value that is to be one of type t.
func valueOf(t schema.Type, v *planv1.Value) (value.Value, error) {
	var out value.Value
	switch k := v.GetKind().(type) {
	case nil:
		return out, nil
	case *planv1.Value_Boolean:
		out = value.OfBool(k.Boolean)
	case *planv1.Value_Integer:
		out = value.OfInt(k.Integer)
	case *planv1.Value_Float32:
		out = value.OfFloat32(k.Float32)
	case *planv1.Value_Float64:
		out = value.OfFloat64(k.Float64)
	case *planv1.Value_String_:
		out = value.OfString(k.String_)
	case *planv1.Value_Binary:
		out = value.OfBinary(k.Binary)
	case *planv1.Value_Decimal:
		if n := len(k.Decimal.GetUnscaled()); n == 0 || n > maxUnscaled {
			return out, fmt.Errorf("a decimal of %d bytes for %s", n, t)
		}
		out = value.OfDecimal(fromTwosComplement(k.Decimal.GetUnscaled()), int(k.Decimal.GetScale()))
	default:
		return out, fmt.Errorf("a value of an unknown kind for %s", t)
	}
	return out, value.Check(t, out)
}

// maxUnscaled is the size of the largest decimal, with a sign byte to spare.
const maxUnscaled = 17

// planValue is a value as the other protocols have it.
func planValue(v value.Value) *planv1.Value {
	switch v.Kind() {
	case value.Boolean:
		return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: v.Bool()}}
	case value.Integer:
		return &planv1.Value{Kind: &planv1.Value_Integer{Integer: v.Int()}}
	case value.Float32:
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: float32(v.Float())}}
	case value.Float64:
		return &planv1.Value{Kind: &planv1.Value_Float64{Float64: v.Float()}}
	case value.String:
		return &planv1.Value{Kind: &planv1.Value_String_{String_: v.Text()}}
	case value.Binary:
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: []byte(v.Text())}}
	case value.Decimal:
		unscaled, scale := v.Decimal()
		return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: twosComplement(unscaled), Scale: int32(scale)}}}
	}
	return &planv1.Value{}
}

func fromTwosComplement(b []byte) *big.Int {
	out := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		out.Sub(out, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return out
}

// twosComplement is the shortest form, big-endian.
func twosComplement(i *big.Int) []byte {
	n := i.BitLen()/8 + 1
	if i.Sign() < 0 { // -128 has seven bits besides its sign, as 127 has
		n = new(big.Int).Not(i).BitLen()/8 + 1
	}
	out := make([]byte, n)
	if i.Sign() < 0 {
		i = new(big.Int).Add(i, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return i.FillBytes(out)
}
