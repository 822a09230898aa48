package analyze

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

const (
	maxListed    = 200  // values of one IN list that are worth a look
	maxConstants = 1000 // of one statement
)

// constants are the values that conditions compare columns with, evaluated by DuckDB all at once.
type constants struct {
	a       *analysis
	pending []pendingConstant
	bad     map[*planv1.Comparison]bool // a value is none of the column's type
}

type pendingConstant struct {
	cmp  *planv1.Comparison
	typ  *planv1.Type
	expr ast.Value
}

// add takes a constant expression; false: it is none.
func (c *constants) add(cmp *planv1.Comparison, t *planv1.Type, expr ast.Value) bool {
	if !constantExpr(expr) || len(c.pending) >= maxConstants {
		return false
	}
	c.pending = append(c.pending, pendingConstant{cmp, t, expr})
	return true
}

// evaluate fills in the values. A comparison with a constant that is no value of the column's type, or that DuckDB would compare in another type, is marked: the
// column's own order says nothing about it.
func (c *constants) evaluate() error {
	if len(c.pending) == 0 {
		return nil
	}
	c.bad = map[*planv1.Comparison]bool{}
	var asked []pendingConstant
	var columns []string
	for _, p := range c.pending {
		text, literal, err := c.text(p.expr)
		if err != nil {
			return err
		}
		if text == "" {
			c.bad[p.cmp] = true
			continue
		}
		col, ok := valueColumns(text, literal, p.typ)
		if !ok {
			c.bad[p.cmp] = true
			continue
		}
		asked, columns = append(asked, p), append(columns, col)
	}
	if len(asked) == 0 {
		return nil
	}
	texts := make([]sql.NullString, len(asked))
	dest := make([]any, len(asked))
	for i := range texts {
		dest[i] = &texts[i]
	}
	if err := c.a.inst.Conn().QueryRowContext(c.a.ctx, "SELECT "+strings.Join(columns, ", ")).Scan(dest...); err != nil {
		if c.a.ctx.Err() != nil {
			return err
		}
		for _, p := range asked { // the statement itself will say what is wrong with them
			c.bad[p.cmp] = true
		}
		return nil
	}
	for i, p := range asked {
		if v, ok := parsed(p.typ, texts[i]); ok {
			p.cmp.Values = append(p.cmp.Values, v)
		} else {
			c.bad[p.cmp] = true
		}
	}
	return nil
}

// text is a constant as SQL; literal: it is a string of the query's text, which takes the type of what it is compared with. Empty: it is not looked at. DuckDB
// renders a DOUBLE as a DECIMAL, which is compared otherwise.
func (c *constants) text(expr ast.Value) (text string, literal bool, err error) {
	s, isString, isNull, ok := ast.Constant(expr)
	switch double := bytes.Contains(ast.Bytes(expr), []byte(`"id":"DOUBLE"`)); {
	case ok && isString && !isNull:
		return duckdb.Literal(s), true, nil
	case ok && double:
		return "CAST(" + duckdb.Literal(s) + " AS DOUBLE)", false, nil
	case double:
		return "", false, nil
	}
	text, err = c.a.expressionText(expr)
	return text, false, err
}

// class is equal for types whose values DuckDB compares by value.
func class(t *planv1.Type) string {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16, planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_INT64:
		return "integer"
	case planv1.TypeKind_TYPE_KIND_FLOAT32, planv1.TypeKind_TYPE_KIND_FLOAT64:
		return "float"
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return "decimal"
	case planv1.TypeKind_TYPE_KIND_DATE, planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return "time"
	}
	return ""
}

// valueColumns is the expression for a constant's value as text: NULL where it is none of the column's type. ok is false for types that are not looked at.
func valueColumns(text string, literal bool, t *planv1.Type) (expr string, ok bool) {
	name, err := duckdb.SQLType(t)
	if err != nil {
		return "", false
	}
	v := "TRY_CAST(" + text + " AS " + name + ")"
	var out string
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DATE:
		out = "CASE WHEN isfinite(" + v + ") THEN CAST(" + v + " - DATE '1970-01-01' AS VARCHAR) END"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		out = "CASE WHEN isfinite(" + v + ") THEN CAST(epoch_us(" + v + ") AS VARCHAR) END"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		out = "CAST(epoch_ns(" + v + ") AS VARCHAR)"
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		out = "CAST(epoch_us(" + v + ") AS VARCHAR)"
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		out = "hex(" + v + ")"
	default:
		out = "CAST(" + v + " AS VARCHAR)"
	}
	if literal {
		return out, true
	}
	from := "typeof(" + text + ")"
	same := v + " = " + text
	var fits string
	switch class(t) {
	case "integer":
		fits = "(" + from + " IN ('TINYINT','SMALLINT','INTEGER','BIGINT','HUGEINT','UTINYINT','USMALLINT','UINTEGER','UBIGINT') OR " + from + " LIKE 'DECIMAL%' OR " +
			from + " IN ('FLOAT','DOUBLE') AND abs(" + v + ") < 9007199254740992) AND " + same
	case "decimal":
		fits = "(" + from + " IN ('TINYINT','SMALLINT','INTEGER','BIGINT','HUGEINT') OR " + from + " LIKE 'DECIMAL%') AND " + same
	case "float":
		fits = "(" + from + " IN ('TINYINT','SMALLINT','INTEGER','BIGINT','FLOAT','DOUBLE') OR " + from + " LIKE 'DECIMAL%') AND " + same
	case "time":
		fits = from + " IN ('DATE','TIMESTAMP','TIMESTAMP WITH TIME ZONE','TIMESTAMP_NS','TIMESTAMP_MS','TIMESTAMP_S') AND " + same
	default:
		fits = from + " = " + duckdb.Literal(name)
	}
	return "CASE WHEN " + fits + " THEN " + out + " END", true
}

// parsed reads what valueColumns gives.
func parsed(t *planv1.Type, text sql.NullString) (*planv1.Value, bool) {
	if !text.Valid {
		return nil, false
	}
	s := text.String
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: s == "true"}}, true
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		f, err := strconv.ParseFloat(s, 32)
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: float32(f)}}, err == nil
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		f, err := strconv.ParseFloat(s, 64)
		return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}}, err == nil
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return parsedDecimal(t, s)
	case planv1.TypeKind_TYPE_KIND_STRING:
		return &planv1.Value{Kind: &planv1.Value_String_{String_: s}}, true
	case planv1.TypeKind_TYPE_KIND_UUID:
		b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, err == nil && len(b) == 16
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		b, err := hex.DecodeString(s)
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, err == nil && (t.GetKind() == planv1.TypeKind_TYPE_KIND_BINARY || len(b) == int(t.GetLength()))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}, err == nil
}

func parsedDecimal(t *planv1.Type, s string) (*planv1.Value, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	if len(frac) != int(t.GetScale()) {
		return nil, false
	}
	n, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok {
		return nil, false
	}
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: twosComplement(n), Scale: t.GetScale()}}}, true
}

// twosComplement is the shortest big-endian two's complement of n.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	b := new(big.Int).Not(n).Bytes() // -n-1 has the inverted bits of n
	if len(b) == 0 || b[0]&0x80 != 0 {
		b = append([]byte{0}, b...)
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

// resolve drops the comparisons that were marked; whole: there were none.
func (c *constants) resolve(p *planv1.Predicate) (out *planv1.Predicate, whole bool) {
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_Comparison:
		if c.bad[k.Comparison] {
			return unknown()
		}
	case *planv1.Predicate_Not:
		in, whole := c.resolve(k.Not)
		if !whole {
			return unknown()
		}
		return notOf(in), true
	case *planv1.Predicate_All:
		terms, whole := c.resolveAll(k.All.GetTerms())
		return allOf(terms), whole
	case *planv1.Predicate_Any:
		terms, whole := c.resolveAll(k.Any.GetTerms())
		return anyOf(terms), whole
	}
	return p, true
}

func (c *constants) resolveAll(in []*planv1.Predicate) (out []*planv1.Predicate, whole bool) {
	whole = true
	for _, t := range in {
		p, w := c.resolve(t)
		out, whole = append(out, p), whole && w
	}
	return out, whole
}
