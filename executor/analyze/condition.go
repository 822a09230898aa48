package analyze

import (
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
)

// condition turns SQL conditions into predicates over one table. What it does not understand becomes TRUE, and the result is then not exact: it is true
// wherever the condition is, and maybe elsewhere.
type condition struct {
	from      *fromClause
	table     *fromTable
	constants *constants
}

var comparisons = map[string]planv1.CompareOp{
	"COMPARE_EQUAL": planv1.CompareOp_COMPARE_OP_EQ, "COMPARE_NOTEQUAL": planv1.CompareOp_COMPARE_OP_NE,
	"COMPARE_LESSTHAN": planv1.CompareOp_COMPARE_OP_LT, "COMPARE_LESSTHANOREQUALTO": planv1.CompareOp_COMPARE_OP_LE,
	"COMPARE_GREATERTHAN": planv1.CompareOp_COMPARE_OP_GT, "COMPARE_GREATERTHANOREQUALTO": planv1.CompareOp_COMPARE_OP_GE,
}

// mirrored are the operators with their sides changed.
var mirrored = map[planv1.CompareOp]planv1.CompareOp{
	planv1.CompareOp_COMPARE_OP_EQ: planv1.CompareOp_COMPARE_OP_EQ, planv1.CompareOp_COMPARE_OP_NE: planv1.CompareOp_COMPARE_OP_NE,
	planv1.CompareOp_COMPARE_OP_LT: planv1.CompareOp_COMPARE_OP_GT, planv1.CompareOp_COMPARE_OP_LE: planv1.CompareOp_COMPARE_OP_GE,
	planv1.CompareOp_COMPARE_OP_GT: planv1.CompareOp_COMPARE_OP_LT, planv1.CompareOp_COMPARE_OP_GE: planv1.CompareOp_COMPARE_OP_LE,
}

func unknown() (*planv1.Predicate, bool) { return allTrue(), false }

// of answers the predicate and whether it says all that the condition says.
func (c *condition) of(v ast.Value) (*planv1.Predicate, bool) {
	o, ok := v.(*ast.Object)
	if !ok {
		return c.literal(v)
	}
	switch o.Str("class") {
	case "CONJUNCTION":
		return c.connective(o)
	case "COMPARISON":
		return c.comparison(o)
	case "BETWEEN":
		return c.between(o)
	case "OPERATOR":
		return c.operator(o)
	case "FUNCTION":
		return c.function(o)
	case "CAST":
		return c.literal(o)
	case "COLUMN_REF":
		if f := c.leaf(o); f != nil && f.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_BOOLEAN {
			return compared(f, planv1.CompareOp_COMPARE_OP_EQ, &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: true}}), true
		}
	}
	return unknown()
}

// literal is a constant condition: TRUE, FALSE.
func (c *condition) literal(v ast.Value) (*planv1.Predicate, bool) {
	if o, ok := v.(*ast.Object); ok && o.Str("class") == "CAST" && o.Obj("cast_type").Str("id") == "BOOLEAN" {
		if text, isString, isNull, ok := ast.Constant(o.Get("child")); ok && isString && !isNull {
			switch strings.ToLower(text) {
			case "t", "true":
				return allTrue(), true
			case "f", "false":
				return constant(false), true
			}
		}
	}
	return unknown()
}

func (c *condition) connective(o *ast.Object) (*planv1.Predicate, bool) {
	var terms []*planv1.Predicate
	exact := true
	for _, child := range o.List("children") {
		p, whole := c.of(child)
		terms, exact = append(terms, p), exact && whole
	}
	if o.Str("type") == "CONJUNCTION_AND" {
		return allOf(terms), exact
	}
	return anyOf(terms), exact
}

func (c *condition) comparison(o *ast.Object) (*planv1.Predicate, bool) {
	op, ok := comparisons[o.Str("type")]
	if !ok {
		return unknown()
	}
	left, right := o.Get("left"), o.Get("right")
	if f := c.leaf(left); f != nil {
		return c.compare(f, op, right)
	}
	if f := c.leaf(right); f != nil {
		return c.compare(f, mirrored[op], left)
	}
	return unknown()
}

// compare leaves the constant to be evaluated with all the others.
func (c *condition) compare(f *planv1.Field, op planv1.CompareOp, exprs ...ast.Value) (*planv1.Predicate, bool) {
	if len(exprs) > maxListed {
		return unknown()
	}
	cmp := &planv1.Comparison{FieldId: f.GetId(), Op: op}
	for _, e := range exprs {
		if !c.constants.add(cmp, f.GetType(), e) {
			return unknown()
		}
	}
	return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: cmp}}, true
}

func compared(f *planv1.Field, op planv1.CompareOp, v *planv1.Value) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: &planv1.Comparison{FieldId: f.GetId(), Op: op, Values: []*planv1.Value{v}}}}
}

func (c *condition) between(o *ast.Object) (*planv1.Predicate, bool) {
	f := c.leaf(o.Get("input"))
	if f == nil || o.Str("type") != "COMPARE_BETWEEN" {
		return unknown()
	}
	low, lowWhole := c.compare(f, planv1.CompareOp_COMPARE_OP_GE, o.Get("lower"))
	high, highWhole := c.compare(f, planv1.CompareOp_COMPARE_OP_LE, o.Get("upper"))
	return allOf([]*planv1.Predicate{low, high}), lowWhole && highWhole
}

func (c *condition) operator(o *ast.Object) (*planv1.Predicate, bool) {
	children := o.List("children")
	if len(children) == 0 {
		return unknown()
	}
	switch typ := o.Str("type"); typ {
	case "OPERATOR_NOT":
		if p, whole := c.of(children[0]); whole { // of a part, the negation would say too much
			return notOf(p), true
		}
	case "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL":
		f := c.field(children[0])
		if f == nil {
			break
		}
		p := &planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: f.GetId()}}}
		if typ == "OPERATOR_IS_NOT_NULL" {
			p = notOf(p)
		}
		return p, true
	case "COMPARE_IN", "COMPARE_NOT_IN":
		f := c.leaf(children[0])
		if f == nil || len(children) < 2 {
			break
		}
		p, whole := c.compare(f, planv1.CompareOp_COMPARE_OP_IN, children[1:]...)
		switch {
		case !whole:
		case typ == "COMPARE_NOT_IN":
			return notOf(p), true
		default:
			return p, true
		}
	}
	return unknown()
}

// function understands patterns that begin with fixed text.
func (c *condition) function(o *ast.Object) (*planv1.Predicate, bool) {
	args := o.List("children")
	if len(args) != 2 {
		return unknown()
	}
	f := c.leaf(args[0])
	text, isString, isNull, ok := ast.Constant(args[1])
	if f == nil || f.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRING || !ok || !isString || isNull {
		return unknown()
	}
	value := func(s string) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }
	name := strings.ToLower(o.Str("function_name"))
	switch {
	case slices.Contains([]string{"starts_with", "prefix", "^@"}, name):
		return compared(f, planv1.CompareOp_COMPARE_OP_STARTS_WITH, value(text)), true
	case name == "~~" || name == "!~~":
		p, whole := like(f, text, value)
		switch {
		case name == "~~":
			return p, whole
		case whole:
			return notOf(p), true
		}
	}
	return unknown()
}

// like turns a LIKE pattern without an escape into a comparison.
func like(f *planv1.Field, pattern string, value func(string) *planv1.Value) (*planv1.Predicate, bool) {
	n := strings.IndexAny(pattern, `%_\`)
	switch {
	case n < 0:
		return compared(f, planv1.CompareOp_COMPARE_OP_EQ, value(pattern)), true
	case n == 0:
		return unknown()
	}
	return compared(f, planv1.CompareOp_COMPARE_OP_STARTS_WITH, value(pattern[:n])), pattern[n:] == "%"
}

// field is the table's field that an expression refers to.
func (c *condition) field(v ast.Value) *planv1.Field {
	o, ok := v.(*ast.Object)
	if !ok || o.Str("class") != "COLUMN_REF" || c.table.schema == nil {
		return nil
	}
	f := c.from.column(o, c.table)
	if f == nil || f.GetId() == 0 {
		return nil
	}
	return f
}

// leaf is field for those that have values to compare.
func (c *condition) leaf(v ast.Value) *planv1.Field {
	f := c.field(v)
	if f == nil || len(f.GetType().GetFields()) > 0 {
		return nil
	}
	return f
}
