package meta

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Layouts of Iceberg's JSON single-value form.
const (
	layoutDate      = "2006-01-02"
	layoutTime      = "15:04:05.999999"
	layoutTimestamp = "2006-01-02T15:04:05.999999999"
	layoutInstant   = "2006-01-02T15:04:05.999999999-07:00"
)

var errValue = errors.New("not a value of the column's type")

// ParseValue reads a value in Iceberg's JSON single-value form (column defaults).
func ParseValue(t *planv1.Type, raw json.RawMessage) (*planv1.Value, error) {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		var b bool
		err := json.Unmarshal(raw, &b)
		return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: b}}, err
	case planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_INT64:
		var n int64
		err := json.Unmarshal(raw, &n)
		if err == nil && t.GetKind() == planv1.TypeKind_TYPE_KIND_INT32 && int64(int32(n)) != n {
			err = errValue
		}
		return integer(n), err
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		var f float32
		err := json.Unmarshal(raw, &f)
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: f}}, err
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		var f float64
		err := json.Unmarshal(raw, &f)
		return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}}, err
	}
	if IsNested(t) {
		return nil, fmt.Errorf("a default of a nested column is %w", ErrUnsupported)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	return parseText(t, text)
}

func integer(n int64) *planv1.Value {
	return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}
}

func parseText(t *planv1.Type, text string) (*planv1.Value, error) {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_STRING:
		return &planv1.Value{Kind: &planv1.Value_String_{String_: text}}, nil
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return parseDecimal(t, text)
	case planv1.TypeKind_TYPE_KIND_UUID:
		u, err := uuid.Parse(text)
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: u[:]}}, err
	case planv1.TypeKind_TYPE_KIND_FIXED, planv1.TypeKind_TYPE_KIND_BINARY:
		b, err := hex.DecodeString(text)
		if err == nil && t.GetKind() == planv1.TypeKind_TYPE_KIND_FIXED && len(b) != int(t.GetLength()) {
			err = errValue
		}
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, err
	case planv1.TypeKind_TYPE_KIND_DATE:
		d, err := time.Parse(layoutDate, text)
		return integer(floorDiv(d.Unix(), 86400)), err
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		d, err := time.Parse(layoutTime, text)
		return integer(int64(d.Hour())*3_600_000_000 + int64(d.Minute())*60_000_000 + int64(d.Second())*1_000_000 + int64(d.Nanosecond())/1000), err
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		d, err := time.Parse(layoutTimestamp, text)
		return instant(t, d), err
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		d, err := time.Parse(layoutInstant, text)
		return instant(t, d), err
	}
	return nil, fmt.Errorf("type %s is %w", t.GetKind(), ErrUnsupported)
}

func instant(t *planv1.Type, d time.Time) *planv1.Value {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return integer(d.UnixNano())
	}
	return integer(d.UnixMicro())
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func parseDecimal(t *planv1.Type, text string) (*planv1.Value, error) {
	whole, frac, _ := strings.Cut(text, ".")
	if len(frac) != int(t.GetScale()) {
		return nil, errValue
	}
	n, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok {
		return nil, errValue
	}
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: TwosComplement(n), Scale: t.GetScale()}}}, nil
}

// FormatValue writes a value in Iceberg's JSON single-value form.
func FormatValue(t *planv1.Type, v *planv1.Value) (json.RawMessage, error) {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Boolean:
		return json.Marshal(k.Boolean)
	case *planv1.Value_Float32:
		return json.Marshal(k.Float32)
	case *planv1.Value_Float64:
		return json.Marshal(k.Float64)
	case *planv1.Value_String_:
		return json.Marshal(k.String_)
	case *planv1.Value_Decimal:
		return json.Marshal(formatDecimal(FromTwosComplement(k.Decimal.GetUnscaled()), int(k.Decimal.GetScale())))
	case *planv1.Value_Binary:
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_UUID {
			u, err := uuid.FromBytes(k.Binary)
			if err != nil {
				return nil, err
			}
			return json.Marshal(u.String())
		}
		return json.Marshal(hex.EncodeToString(k.Binary))
	case *planv1.Value_Integer:
		return formatInteger(t, k.Integer)
	}
	return nil, errValue
}

func formatInteger(t *planv1.Type, n int64) (json.RawMessage, error) {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DATE:
		if n > math.MaxInt32 || n < math.MinInt32 {
			return nil, errValue
		}
		return json.Marshal(time.Unix(n*86400, 0).UTC().Format(layoutDate))
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return json.Marshal(time.UnixMicro(n).UTC().Format("15:04:05.000000"))
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:
		return json.Marshal(time.UnixMicro(n).UTC().Format("2006-01-02T15:04:05.000000"))
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return json.Marshal(time.UnixMicro(n).UTC().Format("2006-01-02T15:04:05.000000-07:00"))
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return json.Marshal(time.Unix(0, n).UTC().Format("2006-01-02T15:04:05.000000000"))
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return json.Marshal(time.Unix(0, n).UTC().Format("2006-01-02T15:04:05.000000000-07:00"))
	}
	return json.Marshal(n)
}

func formatDecimal(n *big.Int, scale int) string {
	digits := new(big.Int).Abs(n).String()
	if scale > 0 {
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale-len(digits)+1) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// TwosComplement is the shortest big-endian two's complement of n.
func TwosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	// -n-1 has the inverted bits of n.
	b := new(big.Int).Not(n).Bytes()
	if len(b) == 0 || b[0]&0x80 != 0 {
		b = append([]byte{0}, b...)
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

// FromTwosComplement reads a big-endian two's complement of any length.
func FromTwosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}
