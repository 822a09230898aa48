package plan

import (
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

var compareOps = map[string]planv1.CompareOp{
	"=": planv1.CompareOp_COMPARE_OP_EQ, "<>": planv1.CompareOp_COMPARE_OP_NE, "<": planv1.CompareOp_COMPARE_OP_LT,
	"<=": planv1.CompareOp_COMPARE_OP_LE, ">": planv1.CompareOp_COMPARE_OP_GT, ">=": planv1.CompareOp_COMPARE_OP_GE,
}

// BindCondition makes a predicate of a condition on a table's columns. clause names it in errors, which are *Error.
func BindCondition(c *sql.Condition, schema *planv1.Schema, table, clause string) (*planv1.Predicate, error) {
	b := binder{fields: schema.GetFields(), table: table, clause: clause}
	return b.bind(c)
}

type binder struct {
	fields        []*planv1.Field
	table, clause string
}

func (b binder) bad(hint, format string, args ...any) error {
	return &Error{Message: b.clause + ": " + fmt.Sprintf(format, args...), Hint: hint}
}

func (b binder) bind(c *sql.Condition) (*planv1.Predicate, error) {
	switch c.Kind {
	case sql.ConditionConstant:
		return &planv1.Predicate{Kind: &planv1.Predicate_Constant{Constant: c.Constant}}, nil
	case sql.ConditionAnd, sql.ConditionOr, sql.ConditionNot:
		return b.combine(c)
	}
	f, err := b.column(c.Column)
	if err != nil {
		return nil, err
	}
	switch c.Kind {
	case sql.ConditionIsNull:
		return IsNullPredicate(f.GetId()), nil
	case sql.ConditionColumn:
		if f.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_BOOLEAN {
			return nil, b.bad("compare it with a constant", "%s is %s, not a condition", c.Text, TypeText(f.GetType()))
		}
		return comparison(f.GetId(), planv1.CompareOp_COMPARE_OP_EQ, &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: true}}), nil
	}
	op, ok := compareOps[c.Operator]
	if c.Kind == sql.ConditionIn {
		op, ok = planv1.CompareOp_COMPARE_OP_IN, true
	}
	if !ok {
		return nil, b.bad("", "%s: there is no operator %s", c.Text, c.Operator)
	}
	values := make([]*planv1.Value, len(c.Values))
	for i, l := range c.Values {
		if values[i], err = LiteralValue(l, f.GetType()); err != nil {
			return nil, b.bad("", "column %s: %v", pathText(c.Column), err)
		}
	}
	return comparison(f.GetId(), op, values...), nil
}

func (b binder) combine(c *sql.Condition) (*planv1.Predicate, error) {
	terms := make([]*planv1.Predicate, len(c.Terms))
	for i, t := range c.Terms {
		var err error
		if terms[i], err = b.bind(t); err != nil {
			return nil, err
		}
	}
	switch c.Kind {
	case sql.ConditionAnd:
		return And(terms...), nil
	case sql.ConditionOr:
		return &planv1.Predicate{Kind: &planv1.Predicate_Any{Any: &planv1.Predicates{Terms: terms}}}, nil
	}
	return &planv1.Predicate{Kind: &planv1.Predicate_Not{Not: terms[0]}}, nil
}

// And is true where all terms are.
func And(terms ...*planv1.Predicate) *planv1.Predicate {
	if len(terms) == 1 {
		return terms[0]
	}
	return &planv1.Predicate{Kind: &planv1.Predicate_All{All: &planv1.Predicates{Terms: terms}}}
}

// Or is true where one of the terms is.
func Or(terms ...*planv1.Predicate) *planv1.Predicate {
	if len(terms) == 1 {
		return terms[0]
	}
	return &planv1.Predicate{Kind: &planv1.Predicate_Any{Any: &planv1.Predicates{Terms: terms}}}
}

// IsNullPredicate is true where a column is NULL.
func IsNullPredicate(id int32) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: id}}}
}

// EqualPredicate is true where a column has a value, or is NULL if that is the value.
func EqualPredicate(id int32, v *planv1.Value) *planv1.Predicate {
	if v.GetKind() == nil {
		return IsNullPredicate(id)
	}
	return comparison(id, planv1.CompareOp_COMPARE_OP_EQ, v)
}

func comparison(id int32, op planv1.CompareOp, values ...*planv1.Value) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: &planv1.Comparison{FieldId: id, Op: op, Values: values}}}
}

// column finds a leaf by its path.
func (b binder) column(path []sql.Ident) (*planv1.Field, error) {
	fields := b.fields
	var f *planv1.Field
	for i, id := range path {
		names := fieldNames(fields)
		at, candidates := sql.Find(id.Text, names)
		if at < 0 {
			t := Target{Table: b.table}
			if i > 0 {
				t.Table = "the struct " + pathText(path[:i])
			}
			return nil, b.bad(t.suggest(id.Text, names, candidates), "%s", t.unknown(id.Text, names, candidates))
		}
		f = fields[at]
		fields = nil
		if f.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_STRUCT {
			fields = f.GetType().GetFields()
		}
	}
	if f.GetType().GetKind() >= planv1.TypeKind_TYPE_KIND_STRUCT {
		return nil, b.bad("compare a column without fields", "column %s is %s", pathText(path), TypeText(f.GetType()))
	}
	return f, nil
}

func pathText(path []sql.Ident) string {
	out := make([]string, len(path))
	for i, id := range path {
		out[i] = id.Text
	}
	return sql.JoinName(out)
}
