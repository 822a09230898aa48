package plan

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// LiteralValue reads a literal of a statement as a value of a column's type, exactly: a constant that no value of the type is equal to is
// refused. NULL is a value without a kind.
func LiteralValue(l sql.Literal, t *planv1.Type) (*planv1.Value, error) {
	if l.Kind == sql.LiteralNull {
		return &planv1.Value{}, nil
	}
	v, err := literalValue(l, t)
	if err != nil {
		return nil, fmt.Errorf("%s is no %s: %w", clipText(l.Source), TypeText(t), err)
	}
	return v, nil
}

var (
	errNotText    = errors.New("write it as a string in single quotes")
	errWrongWord  = errors.New("the word in front of it names another type")
	errOutOfRange = errors.New("it is out of range")
)

// literalWords are the words that may stand in front of a string, by the type that they mean.
var literalWords = map[string][]planv1.TypeKind{
	"DATE": {planv1.TypeKind_TYPE_KIND_DATE},
	"TIME": {planv1.TypeKind_TYPE_KIND_TIME_MICROS},
	"UUID": {planv1.TypeKind_TYPE_KIND_UUID},
	"TIMESTAMP": {
		planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS,
		planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS,
	},
	"TIMESTAMPTZ": {planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS},
}

func literalValue(l sql.Literal, t *planv1.Type) (*planv1.Value, error) {
	kind := t.GetKind()
	if l.Type != "" && !containsKind(literalWords[l.Type], kind) {
		return nil, errWrongWord
	}
	integer := func(n int64, err error) (*planv1.Value, error) {
		return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}, err
	}
	switch {
	case isInteger(kind):
		return integer(integerOf(l, kind))
	case kind == planv1.TypeKind_TYPE_KIND_BOOLEAN:
		return booleanOf(l)
	case kind == planv1.TypeKind_TYPE_KIND_FLOAT32, kind == planv1.TypeKind_TYPE_KIND_FLOAT64:
		return floatOf(l, kind)
	case kind == planv1.TypeKind_TYPE_KIND_DECIMAL:
		return decimalOf(l, t)
	case l.Kind != sql.LiteralString && kind < planv1.TypeKind_TYPE_KIND_STRUCT:
		return nil, errNotText
	}
	switch kind {
	case planv1.TypeKind_TYPE_KIND_STRING:
		return &planv1.Value{Kind: &planv1.Value_String_{String_: l.Text}}, nil
	case planv1.TypeKind_TYPE_KIND_DATE:
		return integer(dateOf(l.Text))
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return integer(timeOf(l.Text))
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return integer(timestampOf(l.Text, kind == planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, false))
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return integer(timestampOf(l.Text, kind == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS, true))
	case planv1.TypeKind_TYPE_KIND_UUID:
		id, err := uuid.Parse(l.Text)
		if err != nil || len(l.Text) != 36 {
			return nil, errors.New("want xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
		}
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: id[:]}}, nil
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		b, err := blobOf(l.Text)
		if err == nil && kind == planv1.TypeKind_TYPE_KIND_FIXED && len(b) != int(t.GetLength()) {
			err = fmt.Errorf("it has %s", count(len(b), "byte"))
		}
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, err
	}
	return nil, errors.New("only columns without fields can be compared")
}

func containsKind(list []planv1.TypeKind, k planv1.TypeKind) bool {
	for _, have := range list {
		if have == k {
			return true
		}
	}
	return false
}

func integerOf(l sql.Literal, kind planv1.TypeKind) (int64, error) {
	bits := map[planv1.TypeKind]int{planv1.TypeKind_TYPE_KIND_INT8: 8, planv1.TypeKind_TYPE_KIND_INT16: 16, planv1.TypeKind_TYPE_KIND_INT32: 32}[kind]
	if bits == 0 {
		bits = 64
	}
	r, err := rational(l)
	if err != nil {
		return 0, err
	}
	if !r.IsInt() {
		return 0, errors.New("it has a fraction")
	}
	if !r.Num().IsInt64() || r.Num().Int64() < -1<<(bits-1) || r.Num().Int64() > 1<<(bits-1)-1 {
		return 0, errOutOfRange
	}
	return r.Num().Int64(), nil
}

// rational reads a decimal constant exactly. Exponents are bounded, so that none takes all memory.
func rational(l sql.Literal) (*big.Rat, error) {
	text := strings.TrimSpace(l.Text)
	if l.Kind == sql.LiteralBoolean {
		return nil, errors.New("want a number")
	}
	if _, e, ok := strings.Cut(strings.ToLower(text), "e"); ok {
		if n, err := strconv.Atoi(e); err != nil || n > 400 || n < -400 {
			return nil, errors.New("want a number")
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/_xXbBoOpP") || len(text) > 1000 {
		return nil, errors.New("want a number")
	}
	return r, nil
}

func booleanOf(l sql.Literal) (*planv1.Value, error) {
	switch text := strings.ToLower(l.Text); {
	case l.Kind == sql.LiteralNumber:
	case text == "true", text == "false":
		return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: text == "true"}}, nil
	}
	return nil, errors.New("want TRUE or FALSE")
}

func floatOf(l sql.Literal, kind planv1.TypeKind) (*planv1.Value, error) {
	r, err := rational(l)
	if err != nil { // NaN and the infinities: what is equal to them differs between engines
		return nil, err
	}
	if kind == planv1.TypeKind_TYPE_KIND_FLOAT32 {
		f, _ := r.Float32()
		if math.IsInf(float64(f), 0) {
			return nil, errOutOfRange
		}
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: f}}, nil
	}
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		return nil, errOutOfRange
	}
	return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}}, nil
}

func decimalOf(l sql.Literal, t *planv1.Type) (*planv1.Value, error) {
	r, err := rational(l)
	if err != nil {
		return nil, err
	}
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(powerOfTen(t.GetScale())))
	if !scaled.IsInt() {
		return nil, errors.New("it has more digits behind the point")
	}
	if scaled.Num().CmpAbs(powerOfTen(t.GetPrecision())) >= 0 {
		return nil, errOutOfRange
	}
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: twosComplement(scaled.Num()), Scale: t.GetScale()}}}, nil
}

func powerOfTen(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// twosComplement is the shortest big-endian form of a number.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	size := new(big.Int).Not(n).BitLen()/8 + 1
	b := new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size))).Bytes() //nolint:gosec // a few bytes
	return append(make([]byte, size-len(b)), b...)
}

func dateOf(text string) (int64, error) {
	d, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, errors.New("want YYYY-MM-DD")
	}
	return d.Unix() / 86400, nil // years 0 to 9999 only, so that it divides
}

func timeOf(text string) (int64, error) {
	for _, layout := range []string{"15:04:05", "15:04"} {
		if d, err := time.Parse(layout, text); err == nil {
			n := d.Sub(d.Truncate(24 * time.Hour))
			if n%time.Microsecond != 0 {
				return 0, errors.New("it is finer than microseconds")
			}
			return n.Microseconds(), nil
		}
	}
	return 0, errors.New("want HH:MM:SS")
}

// timestampOf reads a date with a time, or a date alone. zoned: an offset may follow; without one it is UTC.
func timestampOf(text string, nanos, zoned bool) (int64, error) {
	text = strings.Replace(text, "T", " ", 1)
	layouts := []string{"2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}
	if zoned {
		layouts = append(layouts, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-07", "2006-01-02 15:04Z07:00")
	}
	for _, layout := range layouts {
		d, err := time.Parse(layout, text)
		switch {
		case err != nil:
			continue
		case nanos:
			if y := d.Year(); y < 1678 || y > 2261 {
				return 0, errOutOfRange
			}
			return d.UnixNano(), nil
		case d.Nanosecond()%1000 != 0:
			return 0, errors.New("it is finer than microseconds")
		}
		return d.UnixMicro(), nil
	}
	if zoned {
		return 0, errors.New("want YYYY-MM-DD HH:MM:SS, with an offset such as +02:00 or Z")
	}
	return 0, errors.New("want YYYY-MM-DD HH:MM:SS")
}

// blobOf reads DuckDB's text form of a BLOB: bytes beyond ASCII as \xAB.
func blobOf(text string) ([]byte, error) {
	var out []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			return nil, errors.New(`write bytes beyond ASCII as \xAB`)
		case c != '\\':
			out = append(out, c)
		default:
			if i+3 >= len(text) || text[i+1] != 'x' {
				return nil, errors.New(`want \x and two hexadecimal digits behind a backslash`)
			}
			n, err := strconv.ParseUint(text[i+2:i+4], 16, 8)
			if err != nil {
				return nil, errors.New(`want \x and two hexadecimal digits behind a backslash`)
			}
			out = append(out, byte(n))
			i += 3
		}
	}
	return out, nil
}

// clipText keeps messages small.
func clipText(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
