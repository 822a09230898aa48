package skip

import (
	"errors"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// ErrPredicate is wrapped by errors about predicates that do not fit the table.
var ErrPredicate = errors.New("condition does not fit the table")

// maxDepth bounds nested predicates.
const maxDepth = 500

// Filter is a predicate over the columns of one schema. It is immutable and safe for concurrent use.
type Filter struct {
	columns partition.Columns
	layout  *stats.Layout
	root    node
	text    string
}

// column is one that predicates name by its field id.
type column struct {
	path      []string
	t         schema.Type
	required  bool // with all that it lies in
	repeated  bool // it lies in an array or a map
	partition int  // index of the partition column; -1: none
	leaf      int  // in the layout; -1: none
}

// node is a predicate with its values read.
type node struct {
	kind     nodeKind
	terms    []node
	op       planv1.CompareOp
	column   *column
	values   []value.Value
	constant bool
}

type nodeKind int

const (
	constantly nodeKind = iota
	allOf
	anyOf
	notOf
	nullOf
	compared
)

// New reads a predicate over the columns of a table; nil is TRUE. Field ids number the fields of the schema depth first from 1, elements, keys and values included. convert reads a
// value of the predicate as one of a type.
func New(s *schema.Schema, columns partition.Columns, p *planv1.Predicate, convert func(schema.Type, *planv1.Value) (value.Value, error)) (*Filter, error) {
	b := &builder{fields: numbered(s, columns.Names), convert: convert}
	root, err := b.read(p, 0)
	if err != nil {
		return nil, err
	}
	f := &Filter{columns: columns, root: root, text: sql(root)}
	f.layout = stats.Some(s, columns.Names, b.paths())
	for _, c := range b.used {
		if c.partition < 0 {
			c.leaf = slices.IndexFunc(f.layout.Leaves(), func(l schema.Leaf) bool { return slices.Equal(l.Path, c.path) })
		}
	}
	return f, nil
}

// SQL is the predicate as SQL, for people who read the table's history.
func (f *Filter) SQL() string { return f.text }

// Inclusive reports whether the predicate may be true for a row of the file.
func (f *Filter) Inclusive(a *log.Add) bool { return f.outcomes(a)&isTrue != 0 }

// Strict reports whether the predicate is surely true for every row of the file.
func (f *Filter) Strict(a *log.Add) bool { return f.outcomes(a) == isTrue }

func (f *Filter) outcomes(a *log.Add) outcomes {
	e := evaluation{filter: f, add: a}
	return e.eval(&f.root)
}

// evaluation is of one file, whose statistics are read when the first column needs them.
type evaluation struct {
	filter *Filter
	add    *log.Add
	stats  *stats.File
}

func (e *evaluation) eval(n *node) outcomes {
	switch n.kind {
	case allOf:
		out := isTrue
		for i := range n.terms {
			out = out.and(e.eval(&n.terms[i]))
		}
		return out
	case anyOf:
		out := isFalse
		for i := range n.terms {
			out = out.or(e.eval(&n.terms[i]))
		}
		return out
	case notOf:
		return e.eval(&n.terms[0]).not()
	case nullOf:
		return e.span(n.column).isNull()
	case compared:
		s := e.span(n.column)
		switch n.op {
		case planv1.CompareOp_COMPARE_OP_IN:
			return s.in(n.values)
		case planv1.CompareOp_COMPARE_OP_STARTS_WITH:
			return s.startsWith(n.values[0].Text())
		}
		return s.compared(n.op, n.values[0])
	}
	if n.constant {
		return isTrue
	}
	return isFalse
}

func (e *evaluation) span(c *column) span {
	s := unknown()
	s.nulls = !c.required
	if c.partition >= 0 {
		text, ok := e.add.PartitionValues[c.path[0]]
		if v, err := partition.Parse(c.t, text); ok && err == nil {
			return span{nulls: v.IsNull(), others: !v.IsNull(), lower: v, upper: v}
		}
		return unknown()
	}
	// Counts of arrays and maps are not used: writers take them from Parquet's footers, which count the elements.
	if c.leaf < 0 || !c.t.Primitive() || e.add.Stats == nil {
		return s
	}
	if e.stats == nil {
		f := e.filter.layout.Parse(*e.add.Stats)
		e.stats = &f
	}
	known := e.stats.Columns[c.leaf]
	s.lower, s.upper = known.Min, known.Max
	switch {
	case known.Nulls == 0 && len(c.path) == 1: // not every writer counts the rows whose struct is NULL
		s.nulls = false
	case known.Nulls > 0 && known.Nulls == e.stats.Records:
		s.nulls, s.others = true, false
	}
	return s
}

type builder struct {
	fields  []*column // by field id - 1
	used    []*column
	convert func(schema.Type, *planv1.Value) (value.Value, error)
}

func (b *builder) paths() [][]string {
	var out [][]string
	for _, c := range b.used {
		out = append(out, c.path)
	}
	return out
}

// numbered are the fields in the order of their ids.
func numbered(s *schema.Schema, partitionColumns []string) (out []*column) {
	var add func(path []string, t *schema.Type, required, repeated bool)
	fields := func(path []string, list []schema.Field, required, repeated bool) {
		for i := range list {
			add(append(path[:len(path):len(path)], list[i].Name), &list[i].Type, required && !list[i].Nullable, repeated)
		}
	}
	add = func(path []string, t *schema.Type, required, repeated bool) {
		c := &column{path: path, t: *t, required: required, repeated: repeated, partition: -1, leaf: -1}
		if len(path) == 1 && !repeated {
			c.partition = slices.Index(partitionColumns, path[0])
		}
		out = append(out, c)
		fields(path, t.Fields, required, repeated)
		if t.Key != nil {
			add(append(path[:len(path):len(path)], "key"), t.Key, false, true)
		}
		if t.Element != nil {
			add(append(path[:len(path):len(path)], "element"), t.Element, false, true)
		}
	}
	fields(nil, s.Fields, true, false)
	return out
}

func (b *builder) field(id int32) (*column, error) {
	if id < 1 || int(id) > len(b.fields) {
		return nil, fmt.Errorf("%w: no column has the field id %d", ErrPredicate, id)
	}
	c := b.fields[id-1]
	if c.repeated {
		return nil, fmt.Errorf("%w: column %s has no single value to compare", ErrPredicate, schema.PathString(c.path))
	}
	b.used = append(b.used, c)
	return c, nil
}

func (b *builder) read(p *planv1.Predicate, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("%w: it is nested deeper than %d", ErrPredicate, maxDepth)
	}
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_Constant:
		return node{kind: constantly, constant: k.Constant}, nil
	case *planv1.Predicate_All:
		return b.terms(allOf, k.All.GetTerms(), depth)
	case *planv1.Predicate_Any:
		return b.terms(anyOf, k.Any.GetTerms(), depth)
	case *planv1.Predicate_Not:
		return b.terms(notOf, []*planv1.Predicate{k.Not}, depth)
	case *planv1.Predicate_IsNull:
		c, err := b.field(k.IsNull.GetFieldId())
		return node{kind: nullOf, column: c}, err
	case *planv1.Predicate_Comparison:
		return b.comparison(k.Comparison)
	case nil:
		return node{kind: constantly, constant: true}, nil
	}
	return node{}, fmt.Errorf("%w: a condition of an unknown kind", ErrPredicate)
}

func (b *builder) terms(kind nodeKind, terms []*planv1.Predicate, depth int) (node, error) {
	out := node{kind: kind, terms: make([]node, len(terms))}
	for i, p := range terms {
		var err error
		if out.terms[i], err = b.read(p, depth+1); err != nil {
			return node{}, err
		}
	}
	return out, nil
}

func (b *builder) comparison(k *planv1.Comparison) (node, error) {
	c, err := b.field(k.GetFieldId())
	if err != nil {
		return node{}, err
	}
	out := node{kind: compared, op: k.GetOp(), column: c, values: make([]value.Value, len(k.GetValues()))}
	wrong := func(format string, args ...any) (node, error) {
		return node{}, fmt.Errorf("%w: column %s: %s", ErrPredicate, schema.PathString(c.path), fmt.Sprintf(format, args...))
	}
	switch {
	case !c.t.Primitive():
		return wrong("a %s has no single value to compare", c.t)
	case operators[out.op] == "":
		return wrong("comparison of an unknown kind (%v)", out.op)
	case out.op != planv1.CompareOp_COMPARE_OP_IN && len(out.values) != 1:
		return wrong("comparison with %d values", len(out.values))
	case out.op == planv1.CompareOp_COMPARE_OP_STARTS_WITH && c.t.Kind != schema.String:
		return wrong("a %s has no prefix", c.t)
	}
	for i, v := range k.GetValues() {
		out.values[i], err = b.convert(c.t, v)
		if temporal(c.t.Kind) && out.values[i].Kind() == value.Integer {
			err = nil // a time that no table holds can be compared with all the same
		}
		if err != nil || out.values[i].IsNull() {
			return wrong("comparison with a value that is none of a %s (%v)", c.t, err)
		}
	}
	return out, nil
}

func temporal(k schema.Kind) bool {
	return k == schema.Date || k == schema.Timestamp || k == schema.TimestampNTZ
}
