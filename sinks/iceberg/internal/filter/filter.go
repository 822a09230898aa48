package filter

import (
	"errors"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// ErrPredicate is wrapped by errors about predicates that do not fit the table.
var ErrPredicate = errors.New("condition does not fit the table")

// maxDepth bounds nested predicates.
const maxDepth = 500

// Filter is a predicate over the columns of one schema.
type Filter struct {
	schema *meta.Schema
	pred   *planv1.Predicate
	fields []int32
}

// New checks a predicate against a schema. nil is TRUE.
func New(schema *meta.Schema, pred *planv1.Predicate) (*Filter, error) {
	f := &Filter{schema: schema, pred: pred}
	return f, f.check(pred, 0)
}

// Trivial reports whether the predicate is TRUE for every row of every table.
func (f *Filter) Trivial() bool {
	return len(f.fields) == 0 && f.eval(f.pred, func(*meta.Node) span { return unknown() }) == True
}

// Fields are the ids of the columns that the predicate compares.
func (f *Filter) Fields() []int32 { return f.fields }

func (f *Filter) check(p *planv1.Predicate, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: it is nested deeper than %d", ErrPredicate, maxDepth)
	}
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_All:
		return f.checkAll(k.All.GetTerms(), depth)
	case *planv1.Predicate_Any:
		return f.checkAll(k.Any.GetTerms(), depth)
	case *planv1.Predicate_Not:
		return f.check(k.Not, depth+1)
	case *planv1.Predicate_IsNull:
		return f.field(k.IsNull.GetFieldId(), true)
	case *planv1.Predicate_Comparison:
		return f.checkComparison(k.Comparison)
	}
	return nil
}

func (f *Filter) checkAll(terms []*planv1.Predicate, depth int) error {
	for _, t := range terms {
		if err := f.check(t, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (f *Filter) field(id int32, nested bool) error {
	n := f.schema.Node(id)
	switch {
	case n == nil:
		return fmt.Errorf("%w: no column has the field id %d", ErrPredicate, id)
	case n.Repeated || !n.Leaf() && !nested:
		return fmt.Errorf("%w: column %s has no single value to compare", ErrPredicate, n.Path)
	}
	f.fields = append(f.fields, id)
	return nil
}

func (f *Filter) checkComparison(c *planv1.Comparison) error {
	if err := f.field(c.GetFieldId(), false); err != nil {
		return err
	}
	n := f.schema.Node(c.GetFieldId())
	switch {
	case c.GetOp() == planv1.CompareOp_COMPARE_OP_UNSPECIFIED:
		return fmt.Errorf("%w: column %s: comparison of no kind", ErrPredicate, n.Path)
	case c.GetOp() != planv1.CompareOp_COMPARE_OP_IN && len(c.GetValues()) != 1:
		return fmt.Errorf("%w: column %s: comparison with %d values", ErrPredicate, n.Path, len(c.GetValues()))
	case c.GetOp() == planv1.CompareOp_COMPARE_OP_STARTS_WITH && n.Field.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRING:
		return fmt.Errorf("%w: column %s is no string and has no prefix", ErrPredicate, n.Path)
	}
	for _, v := range c.GetValues() {
		if err := value.Check(n.Field.GetType(), v); err != nil {
			return fmt.Errorf("%w: column %s: %w", ErrPredicate, n.Path, err)
		}
	}
	return nil
}

func (f *Filter) eval(p *planv1.Predicate, column func(*meta.Node) span) Outcomes {
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_Constant:
		if !k.Constant {
			return False
		}
		return True
	case *planv1.Predicate_All:
		return f.fold(k.All.GetTerms(), True, and, column)
	case *planv1.Predicate_Any:
		return f.fold(k.Any.GetTerms(), False, or, column)
	case *planv1.Predicate_Not:
		return f.eval(k.Not, column).not()
	case *planv1.Predicate_IsNull:
		return column(f.schema.Node(k.IsNull.GetFieldId())).isNull()
	case *planv1.Predicate_Comparison:
		return compareAll(k.Comparison, column(f.schema.Node(k.Comparison.GetFieldId())))
	}
	return True
}

func (f *Filter) fold(terms []*planv1.Predicate, start Outcomes, op func(x, y Outcomes) Outcomes, column func(*meta.Node) span) Outcomes {
	for _, t := range terms {
		start = combine(start, f.eval(t, column), op)
	}
	return start
}

func compareAll(c *planv1.Comparison, s span) Outcomes {
	switch c.GetOp() {
	case planv1.CompareOp_COMPARE_OP_STARTS_WITH:
		return s.startsWith(c.GetValues()[0])
	case planv1.CompareOp_COMPARE_OP_IN:
		return s.in(c.GetValues())
	}
	return s.compared(c.GetOp(), c.GetValues()[0])
}

func (s span) in(values []*planv1.Value) Outcomes {
	out := Outcomes(0)
	sure := false // every value is one of the list
	for _, v := range values {
		o := s.compared(planv1.CompareOp_COMPARE_OP_EQ, v)
		out |= o
		sure = sure || !o.has(False)
	}
	if len(values) == 0 {
		return False
	}
	if sure {
		out &^= False
	}
	return out
}

// Bind prepares the filter for files of one partition spec.
func (f *Filter) Bind(spec *meta.Spec) *Bound {
	b := &Bound{filter: f, fields: map[int32][]bound{}}
	for i, p := range spec.Fields {
		n := f.schema.Node(p.SourceID)
		if n == nil || !n.Leaf() {
			continue
		}
		result, err := p.Transform.Result(n.Field.GetType())
		if err != nil {
			continue
		}
		b.fields[p.SourceID] = append(b.fields[p.SourceID], bound{place: i, id: p.ID, transform: p.Transform, source: n.Field.GetType(), result: result})
	}
	return b
}

// Bound is a filter for files of one partition spec. It is safe for concurrent use.
type Bound struct {
	filter *Filter
	fields map[int32][]bound // by source column
}

type bound struct {
	place          int
	id             int32
	transform      meta.Transform
	source, result *planv1.Type
}

// Inclusive reports whether the predicate may be true for a row of the file.
func (b *Bound) Inclusive(file File) bool { return file.Rows() != 0 && b.Outcomes(file).has(True) }

// Strict reports whether the predicate is surely true for every row of the file.
func (b *Bound) Strict(file File) bool { return file.Rows() == 0 || b.Outcomes(file) == True }

// Outcomes are the values that the predicate may have for the rows of the file.
func (b *Bound) Outcomes(file File) Outcomes {
	return b.filter.eval(b.filter.pred, func(n *meta.Node) span {
		s := unknown()
		if n.Leaf() {
			s = metricsSpan(n, file)
		} else if !n.Optional {
			s.null = false
		}
		for _, p := range b.fields[n.Field.GetId()] {
			v, ok := file.Partition(p.id, p.result)
			if !ok {
				continue
			}
			if from, ok := source(p.transform, p.source, v); ok {
				s = s.meet(from)
			}
		}
		return s
	})
}

// Manifest reports whether a file of the manifest may have a row for which the predicate is true.
func (b *Bound) Manifest(m *icefile.Manifest) bool {
	if m.Partitions == nil {
		return true
	}
	return b.filter.eval(b.filter.pred, func(n *meta.Node) span {
		s := unknown()
		for _, p := range b.fields[n.Field.GetId()] {
			if p.place < len(m.Partitions) {
				s = s.meet(p.summary(m.Partitions[p.place]))
			}
		}
		return s
	}).has(True)
}

// summary is what the summary of a partition field says about the source column. Missing bounds say nothing: some writers leave out the empty string.
func (p bound) summary(f icefile.FieldSummary) span {
	s := unknown()
	if p.transform.Kind == planv1.TransformKind_TRANSFORM_KIND_VOID {
		return s
	}
	s.null = f.ContainsNull
	s.nan = f.ContainsNaN == nil || *f.ContainsNaN
	lo, okLo := value.Parse(p.result, f.Lower)
	hi, okHi := value.Parse(p.result, f.Upper)
	if p.transform.Kind == planv1.TransformKind_TRANSFORM_KIND_BUCKET {
		if okLo && okHi && lo.GetInteger() == hi.GetInteger() {
			from, _ := source(p.transform, p.source, lo)
			s.bucket = from.bucket
		}
		return s
	}
	if okLo && !value.IsNaN(lo) {
		s.lower, _, _ = image(p.transform, p.source, lo)
	}
	if okHi && !value.IsNaN(hi) {
		var first *planv1.Value
		if first, s.upper, s.open = image(p.transform, p.source, hi); first == nil {
			s.lower = nil // the greatest partition may hold anything
		}
	}
	return s
}

// metricsSpan is what a file's metrics say about a column.
func metricsSpan(n *meta.Node, file File) span {
	s := unknown()
	t := n.Field.GetType()
	floating := t.GetKind() == planv1.TypeKind_TYPE_KIND_FLOAT32 || t.GetKind() == planv1.TypeKind_TYPE_KIND_FLOAT64
	s.nan = floating
	if !n.Optional {
		s.null = false
	}
	m := file.Metrics(n.Field.GetId(), t)
	if m == nil {
		return s
	}
	if m.NullCount != nil {
		// Below a struct not every writer counts the rows whose struct is NULL.
		if m.GetNullCount() == 0 && n.Parent == 0 {
			s.null = false
		}
		if m.ValueCount != nil && m.GetValueCount() >= 0 && m.GetNullCount() == m.GetValueCount() {
			return span{null: true}
		}
	}
	if floating && m.NanCount != nil {
		s.nan = m.GetNanCount() > 0
		if m.ValueCount != nil && m.NullCount != nil && m.GetNanCount() > 0 && m.GetNanCount()+m.GetNullCount() == m.GetValueCount() {
			s.plain = false
			return s
		}
	}
	if t.GetKind() == planv1.TypeKind_TYPE_KIND_UUID {
		return s
	}
	if v := m.GetLower().GetValue(); usable(v) {
		s.lower = v
	}
	if v := m.GetUpper().GetValue(); usable(v) {
		s.upper = v
	}
	return s
}

func usable(v *planv1.Value) bool { return !value.IsNull(v) && !value.IsNaN(v) }
