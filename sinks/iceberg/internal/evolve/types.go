package evolve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

func missing(err error) bool {
	m := new(missingError)
	return errors.As(err, &m)
}

// typeText is a type for messages.
func typeText(t *Type) string { return t.Name }

// changeType widens a column's type. The ones that Iceberg allows keep every value, so that files with the narrower type stay readable.
func (e *editor) changeType(p *place, to *planv1.Type) error {
	if err := e.fits(to, p.path); err != nil {
		return err
	}
	name := meta.TypeName(to)
	if p.Type.nested() || meta.IsNested(to) {
		if p.Type.nested() && sameShape(p.Type, to) {
			return nil
		}
		return fmt.Errorf("column %s: the type of a %s column cannot be changed as a whole; change, add or drop its fields", p.path, p.Type.Name)
	}
	if p.Type.Name == name {
		return nil
	}
	if p.parent != nil && p.parent.Type.Name == mapName && p.Name == "key" {
		return fmt.Errorf("column %s: the type of a map's key cannot be changed", p.path)
	}
	from, err := meta.ParseType(p.Type.Name)
	if err != nil {
		return fmt.Errorf("column %s: %w", p.path, err)
	}
	if !widens(from, to) {
		return fmt.Errorf("column %s: type %s cannot become %s: an int can become long, a float double, and a decimal one of the same scale and more digits", p.path, p.Type.Name, name)
	}
	p.Type = &Type{Name: name}
	return nil
}

func widens(from, to *planv1.Type) bool {
	switch from.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT32:
		return to.GetKind() == planv1.TypeKind_TYPE_KIND_INT64
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		return to.GetKind() == planv1.TypeKind_TYPE_KIND_FLOAT64
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return to.GetKind() == planv1.TypeKind_TYPE_KIND_DECIMAL && to.GetScale() == from.GetScale() && to.GetPrecision() > from.GetPrecision()
	}
	return false
}

// maxExact is the largest integer that every reader of JSON keeps as it is.
const maxExact = 1 << 53

// defaultOf is a literal as the column's default, nil for none.
func (e *editor) defaultOf(t *planv1.Type, v *planv1.Value, path string) (json.RawMessage, error) {
	if v.GetKind() == nil {
		return nil, nil
	}
	if e.version() < 3 {
		return nil, fmt.Errorf("column %s: a default needs table format version 3, and the table has %d; ALTER TABLE … SET TBLPROPERTIES ('format-version' = '3') upgrades it", path, e.version())
	}
	typed, err := Literal(t, v)
	if err != nil {
		return nil, fmt.Errorf("column %s: its default: %w", path, err)
	}
	raw, err := meta.FormatValue(t, typed)
	if err != nil {
		return nil, fmt.Errorf("column %s: its default: %w", path, err)
	}
	return raw, nil
}

// Literal makes a literal as SQL has it a value of the type: a number any number type that holds it exactly, a string also a date, a time and so on.
func Literal(t *planv1.Type, v *planv1.Value) (*planv1.Value, error) {
	refuse := func() (*planv1.Value, error) {
		return nil, fmt.Errorf("%s is not a value of type %s", literalText(v), meta.TypeName(t))
	}
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		if _, ok := v.GetKind().(*planv1.Value_Boolean); ok {
			return v, nil
		}
		return refuse()
	case planv1.TypeKind_TYPE_KIND_STRUCT, planv1.TypeKind_TYPE_KIND_LIST, planv1.TypeKind_TYPE_KIND_MAP:
		return nil, fmt.Errorf("a default of a nested column is %w", meta.ErrUnsupported)
	case planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_INT64, planv1.TypeKind_TYPE_KIND_FLOAT32, planv1.TypeKind_TYPE_KIND_FLOAT64, planv1.TypeKind_TYPE_KIND_DECIMAL:
		r, ok := rational(v)
		if !ok {
			return refuse()
		}
		return number(t, r, refuse)
	}
	switch k := v.GetKind().(type) {
	case *planv1.Value_String_:
		return fromText(t, k.String_, refuse)
	case *planv1.Value_Binary:
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_BINARY || t.GetKind() == planv1.TypeKind_TYPE_KIND_FIXED && len(k.Binary) == int(t.GetLength()) {
			return v, nil
		}
	}
	return refuse()
}

func rational(v *planv1.Value) (*big.Rat, bool) {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Integer:
		return new(big.Rat).SetInt64(k.Integer), true
	case *planv1.Value_Decimal:
		if k.Decimal.GetScale() < 0 || k.Decimal.GetScale() > 1000 {
			return nil, false
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k.Decimal.GetScale())), nil)
		return new(big.Rat).SetFrac(meta.FromTwosComplement(k.Decimal.GetUnscaled()), scale), true
	case *planv1.Value_Float64:
		r := new(big.Rat).SetFloat64(k.Float64)
		return r, r != nil
	}
	return nil, false
}

func number(t *planv1.Type, r *big.Rat, refuse func() (*planv1.Value, error)) (*planv1.Value, error) {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		f, _ := r.Float32()
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: f}}, nil
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		f, _ := r.Float64()
		return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}}, nil
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.GetScale())), nil)
		scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(scale))
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.GetPrecision())), nil)
		if !scaled.IsInt() || scaled.Num().CmpAbs(limit) >= 0 {
			return refuse()
		}
		return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: meta.TwosComplement(scaled.Num()), Scale: t.GetScale()}}}, nil
	}
	if !r.IsInt() || !r.Num().IsInt64() {
		return refuse()
	}
	n := r.Num().Int64()
	if t.GetKind() == planv1.TypeKind_TYPE_KIND_INT32 && int64(int32(n)) != n {
		return refuse()
	}
	if n > maxExact || n < -maxExact {
		return nil, fmt.Errorf("%d is beyond 2^53: metadata that is read as JSON would not keep it exactly", n)
	}
	return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}, nil
}

// fromText reads dates, times and so on as SQL writes them, besides strings.
func fromText(t *planv1.Type, text string, refuse func() (*planv1.Value, error)) (*planv1.Value, error) {
	form := text
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		form = instantForm(strings.TrimSpace(text), t)
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		_, err := refuse()
		return nil, fmt.Errorf("%w; bytes are written X'00ff'", err)
	}
	raw, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	v, err := meta.ParseValue(t, raw)
	if err != nil {
		return refuse()
	}
	return v, nil
}

// instantForm makes 2026-01-02 03:04:05+00 the form that Iceberg's documents have.
func instantForm(text string, t *planv1.Type) string {
	if len(text) == len("2026-01-02") {
		text += "T00:00:00"
	}
	if len(text) > 10 && text[10] == ' ' {
		text = text[:10] + "T" + text[11:]
	}
	zoned := t.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS || t.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS
	if !zoned || len(text) < 19 {
		return text
	}
	if z, ok := strings.CutSuffix(text, "Z"); ok {
		return z + "+00:00"
	}
	at := strings.LastIndexAny(text, "+-")
	switch {
	case at < 11: // without a zone it is UTC, as sessions are
		return text + "+00:00"
	case len(text)-at == 3:
		return text + ":00"
	}
	return text
}

func literalText(v *planv1.Value) string {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Boolean:
		return fmt.Sprint(k.Boolean)
	case *planv1.Value_Integer:
		return fmt.Sprint(k.Integer)
	case *planv1.Value_String_:
		return fmt.Sprintf("'%s'", k.String_)
	case *planv1.Value_Binary:
		return fmt.Sprintf("X'%x'", k.Binary)
	case *planv1.Value_Decimal:
		if r, ok := rational(v); ok {
			return r.FloatString(int(k.Decimal.GetScale()))
		}
	}
	return "this"
}
