package duckdb

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// LiteralOf writes a value as an SQL expression that a cast to its type turns into exactly that value.
func LiteralOf(v *planv1.Value, t *planv1.Type) (string, error) {
	switch k := v.GetKind().(type) {
	case nil:
		return "NULL", nil
	case *planv1.Value_Boolean:
		return strconv.FormatBool(k.Boolean), nil
	case *planv1.Value_Integer:
		return integerLiteral(k.Integer, t)
	case *planv1.Value_Float32:
		return floatLiteral(float64(k.Float32), 32), nil
	case *planv1.Value_Float64:
		return floatLiteral(k.Float64, 64), nil
	case *planv1.Value_String_:
		return Literal(k.String_), nil
	case *planv1.Value_Binary:
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_UUID {
			return Literal(hex.EncodeToString(k.Binary)), nil
		}
		return "from_hex('" + hex.EncodeToString(k.Binary) + "')", nil
	case *planv1.Value_Decimal:
		return decimalLiteral(k.Decimal), nil
	default:
		return "", fmt.Errorf("%T is not a constant", k)
	}
}

func integerLiteral(n int64, t *planv1.Type) (string, error) {
	num := fmt.Sprintf("CAST('%d' AS BIGINT)", n)
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DATE:
		return "(DATE '1970-01-01' + CAST('" + strconv.FormatInt(n, 10) + "' AS INTEGER))", nil
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return "CAST(make_timestamp(" + num + ") AS TIME)", nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return "make_timestamp(" + num + ")", nil // the session's zone is UTC
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return "make_timestamp_ns(" + num + ")", nil
	default:
		return num, nil
	}
}

func floatLiteral(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "'NaN'"
	case math.IsInf(f, 1):
		return "'Infinity'"
	case math.IsInf(f, -1):
		return "'-Infinity'"
	default:
		return "'" + strconv.FormatFloat(f, 'g', -1, bits) + "'"
	}
}

func decimalLiteral(d *planv1.Decimal) string {
	n := new(big.Int).SetBytes(d.GetUnscaled())
	if u := d.GetUnscaled(); len(u) > 0 && u[0]&0x80 != 0 { // two's complement
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(u))))
	}
	neg := n.Sign() < 0
	digits := n.Abs(n).String()
	if s := int(d.GetScale()); s > 0 {
		for len(digits) <= s {
			digits = "0" + digits
		}
		digits = digits[:len(digits)-s] + "." + digits[len(digits)-s:]
	}
	if neg {
		digits = "-" + digits
	}
	return "'" + digits + "'"
}
