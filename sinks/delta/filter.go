package delta

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// errPredicate is wrapped by errors about predicates that do not fit the table.
var errPredicate = errors.New("condition does not fit the table")

// maxDepth bounds nested predicates.
const maxDepth = 500

// filter decides what a predicate says of the rows of a file, by its partition values and its statistics. What is not known may be anything. It is
// safe for concurrent use.
type filter struct {
	text    string // as SQL, for histories
	eval    func(*held) outcomes
	columns map[int32]*column
	layout  *stats.Layout
	parts   partition.Columns
}

// column is what a predicate may name.
type column struct {
	name     string
	typ      schema.Type
	required bool // it never is NULL
	top      bool
	part     int // place among the partition columns; -1: none
	stat     int // place in the statistics; -1: none
}

// held is a file, its partition values and statistics read.
type held struct {
	values []value.Value // nil: they cannot be read
	stats  *stats.File   // nil: there are none
}

func (p *plan) filter(pred *planv1.Predicate) (*filter, error) {
	return newFilter(p.schema, p.columns, pred)
}

func newFilter(s *schema.Schema, parts partition.Columns, pred *planv1.Predicate) (*filter, error) {
	f := &filter{columns: map[int32]*column{}, layout: stats.All(s, parts.Names), parts: parts}
	fields := schemaOf(s)
	for i := range s.Fields {
		f.name(fields.GetFields()[i], &s.Fields[i], "")
	}
	for i, field := range leafFields(fields, f.layout) {
		if c := f.columns[field.GetId()]; c != nil {
			c.stat = i
		}
	}
	var err error
	f.eval, f.text, err = f.bind(pred, 0)
	return f, err
}

// name takes a field and those below it into the columns. Elements of lists and maps have no single value.
func (f *filter) name(field *planv1.Field, of *schema.Field, prefix string) {
	c := &column{name: prefix + of.Name, typ: of.Type, required: !of.Nullable && prefix == "", top: prefix == "", part: -1, stat: -1}
	if c.top {
		c.part = slices.Index(f.parts.Names, of.Name)
	}
	f.columns[field.GetId()] = c
	if of.Type.Kind == schema.Struct {
		for i, sub := range field.GetType().GetFields() {
			f.name(sub, &of.Type.Fields[i], c.name+".")
		}
	}
}

// bind checks a predicate, and gives what evaluates it and its text. None is TRUE.
func (f *filter) bind(p *planv1.Predicate, depth int) (func(*held) outcomes, string, error) {
	if depth > maxDepth {
		return nil, "", fmt.Errorf("%w: it is nested deeper than %d", errPredicate, maxDepth)
	}
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_Constant:
		if !k.Constant {
			return func(*held) outcomes { return isFalseSome }, "FALSE", nil
		}
	case *planv1.Predicate_All:
		return f.fold(k.All.GetTerms(), depth, isTrueSome, outcomes.and, " AND ")
	case *planv1.Predicate_Any:
		return f.fold(k.Any.GetTerms(), depth, isFalseSome, outcomes.or, " OR ")
	case *planv1.Predicate_Not:
		eval, text, err := f.bind(k.Not, depth+1)
		return func(h *held) outcomes { return eval(h).not() }, "NOT " + text, err
	case *planv1.Predicate_IsNull:
		c := f.columns[k.IsNull.GetFieldId()]
		if c == nil {
			return nil, "", fmt.Errorf("%w: no column with a single value has the field id %d", errPredicate, k.IsNull.GetFieldId())
		}
		return func(h *held) outcomes { return c.span(h).isNull() }, c.name + " IS NULL", nil
	case *planv1.Predicate_Comparison:
		return f.comparison(k.Comparison)
	}
	return func(*held) outcomes { return isTrueSome }, "TRUE", nil
}

func (f *filter) fold(terms []*planv1.Predicate, depth int, start outcomes, op func(a, b outcomes) outcomes, word string) (func(*held) outcomes, string, error) {
	evals, texts := make([]func(*held) outcomes, len(terms)), make([]string, len(terms))
	for i, t := range terms {
		var err error
		if evals[i], texts[i], err = f.bind(t, depth+1); err != nil {
			return nil, "", err
		}
	}
	return func(h *held) outcomes {
		out := start
		for _, eval := range evals {
			out = op(out, eval(h))
		}
		return out
	}, "(" + strings.Join(texts, word) + ")", nil
}

// operators as SQL has them.
var operators = map[planv1.CompareOp]string{
	planv1.CompareOp_COMPARE_OP_EQ: "=", planv1.CompareOp_COMPARE_OP_NE: "<>", planv1.CompareOp_COMPARE_OP_LT: "<", planv1.CompareOp_COMPARE_OP_LE: "<=",
	planv1.CompareOp_COMPARE_OP_GT: ">", planv1.CompareOp_COMPARE_OP_GE: ">=", planv1.CompareOp_COMPARE_OP_IN: "IN", planv1.CompareOp_COMPARE_OP_STARTS_WITH: "LIKE",
}

func (f *filter) comparison(p *planv1.Comparison) (func(*held) outcomes, string, error) {
	c, op := f.columns[p.GetFieldId()], p.GetOp()
	switch {
	case c == nil || !c.typ.Primitive():
		return nil, "", fmt.Errorf("%w: no column with a single value has the field id %d", errPredicate, p.GetFieldId())
	case operators[op] == "":
		return nil, "", fmt.Errorf("%w: column %s: comparison %s", errPredicate, c.name, op)
	case op != planv1.CompareOp_COMPARE_OP_IN && len(p.GetValues()) != 1:
		return nil, "", fmt.Errorf("%w: column %s: comparison with %d values", errPredicate, c.name, len(p.GetValues()))
	case op == planv1.CompareOp_COMPARE_OP_STARTS_WITH && c.typ.Kind != schema.String:
		return nil, "", fmt.Errorf("%w: column %s is no string and has no prefix", errPredicate, c.name)
	}
	values, texts := make([]value.Value, len(p.GetValues())), make([]string, len(p.GetValues()))
	for i, v := range p.GetValues() {
		var err error
		if values[i], err = compareValue(c.typ, v); err != nil {
			return nil, "", fmt.Errorf("%w: column %s: %w", errPredicate, c.name, err)
		}
		texts[i] = values[i].String()
	}
	text := c.name + " " + operators[op] + " "
	switch op {
	case planv1.CompareOp_COMPARE_OP_IN:
		return func(h *held) outcomes { return c.span(h).in(values) }, text + "(" + strings.Join(texts, ", ") + ")", nil
	case planv1.CompareOp_COMPARE_OP_STARTS_WITH:
		return func(h *held) outcomes { return c.span(h).startsWith(values[0]) }, text + texts[0], nil
	}
	return func(h *held) outcomes { return c.span(h).compared(op, values[0]) }, text + texts[0], nil
}

// compareValue reads a value that a column is compared with. It may be a time that no table holds.
func compareValue(t schema.Type, v *planv1.Value) (value.Value, error) {
	out, err := valueOf(t, v)
	if out.IsNull() && err == nil {
		err = errors.New("comparison with NULL")
	}
	if temporal := t.Kind == schema.Date || t.Kind == schema.Timestamp || t.Kind == schema.TimestampNTZ; temporal && out.Kind() == value.Integer {
		err = nil
	}
	return out, err
}

// span is what is known of the column in a file.
func (c *column) span(h *held) span {
	s := unknown()
	s.nan = c.typ.Kind == schema.Float || c.typ.Kind == schema.Double
	s.null = !c.required
	if c.part >= 0 {
		if h.values == nil {
			return unknown()
		}
		return only(h.values[c.part])
	}
	if c.stat < 0 || h.stats == nil {
		return s
	}
	m := h.stats.Columns[c.stat]
	switch {
	case m.Nulls == 0 && c.top: // below a struct not every writer counts the rows whose struct is NULL
		s.null = false
	case m.Nulls > 0 && m.Nulls == h.stats.Records:
		return span{null: true}
	}
	s.lower, s.upper = m.Min, m.Max
	return s
}

// outcomes are the values that the predicate may have for rows of the file.
func (f *filter) outcomes(a *log.Add) outcomes {
	h := &held{}
	if values, err := f.parts.Parse(a.PartitionValues); err == nil {
		h.values = values
	}
	if a.Stats != nil {
		file := f.layout.Parse(*a.Stats)
		h.stats = &file
		if file.Records == 0 {
			return 0
		}
	}
	return f.eval(h)
}

// inclusive reports whether the predicate may be true for a row of the file.
func (f *filter) inclusive(a *log.Add) bool { return f.outcomes(a).has(isTrueSome) }

// strict reports whether the predicate is surely true for every row of the file.
func (f *filter) strict(a *log.Add) bool { return f.outcomes(a)&^isTrueSome == 0 }
