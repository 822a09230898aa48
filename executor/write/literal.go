package write

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// literal writes a value as SQL of (or castable to) its type.
func literal(v *planv1.Value, t *planv1.Type) (string, error) {
	switch k := v.GetKind().(type) {
	case nil:
		return "NULL", nil
	case *planv1.Value_Boolean:
		return strconv.FormatBool(k.Boolean), nil
	case *planv1.Value_Integer:
		return integerLiteral(k.Integer, t)
	case *planv1.Value_Float32:
		return "'" + strconv.FormatFloat(float64(k.Float32), 'g', -1, 32) + "'::FLOAT", nil
	case *planv1.Value_Float64:
		return "'" + strconv.FormatFloat(k.Float64, 'g', -1, 64) + "'::DOUBLE", nil
	case *planv1.Value_String_:
		return duckdb.Literal(k.String_), nil
	case *planv1.Value_Binary:
		h := hex.EncodeToString(k.Binary)
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_UUID && len(h) == 32 {
			return "'" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:] + "'::UUID", nil
		}
		return "unhex('" + h + "')", nil
	case *planv1.Value_Decimal:
		return fmt.Sprintf("'%s'::DECIMAL(%d,%d)", decimalText(k.Decimal), t.GetPrecision(), t.GetScale()), nil
	}
	return "", fmt.Errorf("unknown kind of value %T", v.GetKind())
}

func integerLiteral(n int64, t *planv1.Type) (string, error) {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DATE:
		return fmt.Sprintf("(DATE '1970-01-01' + (%d)::INTEGER)", n), nil
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return fmt.Sprintf("(TIME '00:00:00' + to_microseconds((%d)::BIGINT))", n), nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:
		return fmt.Sprintf("make_timestamp((%d)::BIGINT)", n), nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return fmt.Sprintf("(make_timestamp((%d)::BIGINT) AT TIME ZONE 'UTC')", n), nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return fmt.Sprintf("make_timestamp_ns((%d)::BIGINT)", n), nil
	}
	if isInt(t.GetKind()) {
		return fmt.Sprintf("(%d)::HUGEINT", n), nil
	}
	return "", fmt.Errorf("an integer is no value of type %s", duckdb.TypeName(t))
}

func decimalText(d *planv1.Decimal) string {
	n := new(big.Int).SetBytes(d.GetUnscaled())
	if b := d.GetUnscaled(); len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	digits := new(big.Int).Abs(n).String()
	scale := int(d.GetScale())
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	text := digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	if n.Sign() < 0 {
		return "-" + text
	}
	return text
}
