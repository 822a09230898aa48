package write

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
)

// column is one column of the table, and how the query makes it.
type column struct {
	field *planv1.Field
	alias string // its name in the file
	omit  bool   // it is not in the file: a partition field has its value
	conversion
}

// key is one partition field.
type key struct {
	transform.Key
	name   string
	source string // the column's path, for messages
	expr   string // the column, over tableRows
	alias  string // of the derived column; empty for void
	finite bool   // SQL fails on infinite timestamps
}

// plan is a write task worked out: everything that can be known before a row is read.
type plan struct {
	task    *planv1.Task
	spec    *planv1.WriteSpec
	inputs  int
	columns []column
	leaves  []leaf
	keys    []key
	sort    []string // ORDER BY terms over tableRows
	sorted  bool     // the table's sort order applies
	fixed   []leaf   // leaves whose physical type DuckDB cannot write
}

func newPlan(task *planv1.Task, inputs []*planv1.Column) (*plan, error) {
	w := task.GetWrite()
	p := &plan{task: task, spec: w.GetSpec(), inputs: len(inputs)}
	if err := p.addColumns(withLineage(w, len(inputs)), inputs); err != nil {
		return nil, err
	}
	if err := p.omitPartitionColumns(); err != nil {
		return nil, err
	}
	p.leaves = leavesOf(p.columns, p.spec.GetFiles().GetMetrics())
	for _, l := range p.leaves {
		if l.field.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_FIXED {
			p.fixed = append(p.fixed, l)
		}
	}
	if err := p.addKeys(); err != nil {
		return nil, err
	}
	return p, p.addSort(w.GetSortForPartitions())
}

func (p *plan) addColumns(out []*planv1.OutputColumn, inputs []*planv1.Column) error {
	if len(out) == 0 {
		return fmt.Errorf("write task without columns")
	}
	used := map[string]bool{}
	for _, o := range out {
		f := o.GetField()
		if int(o.GetInput()) >= len(inputs) || o.GetInput() < -1 {
			return fmt.Errorf("column %q: the query has %d columns, and the plan wants number %d", f.GetName(), len(inputs), o.GetInput())
		}
		c, err := convert(o, inputs)
		if err != nil {
			return err
		}
		p.columns = append(p.columns, column{field: f, alias: fileName(f, used), conversion: c})
	}
	return nil
}

// omitPartitionColumns marks the columns that the format keeps out of its files, and sees to it that readers find the others by their names.
func (p *plan) omitPartitionColumns() error {
	rules := p.spec.GetFiles()
	sources := map[int32]bool{}
	if rules.GetOmitPartitionColumns() {
		sources = identities(p.spec)
	}
	stored := 0
	for n := range p.columns {
		c := &p.columns[n]
		if c.omit = sources[c.field.GetId()]; !c.omit {
			stored++
		}
		if rules.GetNoFieldIds() && c.alias != c.field.GetName() {
			return &duckdb.UserError{Message: fmt.Sprintf("column %q: another column of the table has the same name but for upper and lower case", c.field.GetName())}
		}
	}
	if stored == 0 {
		return &duckdb.UserError{Message: "all columns of the table are partition columns, which are not written into its files: there is nothing to write", Hint: "partition the table by fewer columns"}
	}
	return nil
}

// ids says whether field ids say anything in the table's files.
func (p *plan) ids() bool { return !p.spec.GetFiles().GetNoFieldIds() }

// fileName is the column's name in the file. DuckDB takes names that differ in case only for one; readers go by field id, so the second may
// differ.
func fileName(f *planv1.Field, used map[string]bool) string {
	name := f.GetName()
	for n := 0; used[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s_%d", f.GetName(), int(f.GetId())+n)
	}
	used[strings.ToLower(name)] = true
	return name
}

func (p *plan) addKeys() error {
	for n, pf := range p.spec.GetPartition() {
		k := key{name: pf.GetName()}
		if pf.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_VOID {
			k.Key, _ = transform.New(pf.GetTransform(), 0, nil, "") // cannot fail
			p.keys = append(p.keys, k)
			continue
		}
		expr, typ, path, err := p.source(pf.GetSourceId())
		if err != nil {
			return fmt.Errorf("partition field %q: %w", pf.GetName(), err)
		}
		if k.Key, err = transform.New(pf.GetTransform(), pf.GetParam(), typ, expr); err != nil {
			return fmt.Errorf("partition field %q: %w", pf.GetName(), err)
		}
		if p.omitted(pf.GetSourceId()) && isTimestamp(typ.GetKind()) { // of infinite ones DuckDB makes NULL, and no statistics tell
			k.finite = true
			k.SQL = "CASE WHEN isinf(" + expr + ") THEN error('infinite timestamp') ELSE " + k.SQL + " END"
		}
		k.source, k.expr, k.alias = path, expr, p.freeAlias(fmt.Sprintf("__p%d", n))
		p.keys = append(p.keys, k)
	}
	return nil
}

func (p *plan) freeAlias(name string) string {
	for p.hasAlias(name) {
		name = "_" + name
	}
	return name
}

func (p *plan) hasAlias(name string) bool {
	for _, c := range p.columns {
		if strings.EqualFold(c.alias, name) {
			return true
		}
	}
	return false
}

// source finds a field by id, at the top or inside structs, as an expression over tableRows.
func (p *plan) source(id int32) (expr string, typ *planv1.Type, path string, err error) {
	for n, c := range p.columns {
		if e, t, pa := findField(rowColumn(n), c.field, "", id); t != nil {
			return e, t, pa, nil
		}
	}
	return "", nil, "", fmt.Errorf("the table has no column with id %d outside of lists and maps", id)
}

func findField(expr string, f *planv1.Field, parent string, id int32) (string, *planv1.Type, string) {
	path := join(parent, f.GetName())
	if f.GetId() == id {
		return expr, f.GetType(), path
	}
	if f.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT {
		return "", nil, ""
	}
	for _, child := range f.GetType().GetFields() {
		e := "struct_extract(" + expr + ", " + duckdb.Literal(child.GetName()) + ")"
		if e, t, pa := findField(e, child, path, id); t != nil {
			return e, t, pa
		}
	}
	return "", nil, ""
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// addSort decides the order of the one pass. Where many partitions are expected their keys come first, so that each one's rows meet in few
// files, and the table's sort order follows, so that most files come out sorted; where few are expected, sorting each file afterwards costs
// less.
func (p *plan) addSort(forPartitions bool) error {
	p.sorted = len(p.spec.GetSort()) > 0 // by the table's order, or by one that a rewrite asks for, which has no id
	if p.partitioned() {
		if !forPartitions {
			return nil
		}
		for _, k := range p.keys {
			if !k.Void {
				p.sort = append(p.sort, k.SQL)
			}
		}
	}
	if !p.sorted {
		return nil
	}
	terms, err := p.sortTerms(rowColumn)
	for _, t := range terms {
		p.sort = append(p.sort, t.expr+" "+t.order)
	}
	return err
}

// sortTerm is one field of the table's sort order.
type sortTerm struct{ expr, order string }

// sortTerms are the table's sort order over columns that name spells.
func (p *plan) sortTerms(name func(int) string) ([]sortTerm, error) {
	var terms []sortTerm
	for _, s := range p.spec.GetSort() {
		if s.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_VOID || p.omitted(s.GetSourceId()) { // which has one value in each file
			continue
		}
		expr, err := p.sortExpr(s, name)
		if err != nil {
			return nil, err
		}
		dir, nulls := "ASC", " NULLS LAST"
		if s.GetDescending() {
			dir = "DESC"
		}
		if s.GetNullsFirst() {
			nulls = " NULLS FIRST"
		}
		terms = append(terms, sortTerm{expr, dir + nulls})
	}
	return terms, nil
}

func (p *plan) omitted(id int32) bool {
	return slices.ContainsFunc(p.columns, func(c column) bool { return c.omit && c.field.GetId() == id })
}

func (p *plan) sortExpr(s *planv1.SortField, name func(int) string) (string, error) {
	for n, c := range p.columns {
		e, t, path := findField(name(n), c.field, "", s.GetSourceId())
		if t == nil {
			continue
		}
		if s.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_IDENTITY {
			return e, nil
		}
		k, err := transform.New(s.GetTransform(), s.GetParam(), t, e)
		if err != nil {
			return "", fmt.Errorf("sort by %q: %w", path, err)
		}
		return k.SQL, nil
	}
	return "", fmt.Errorf("sort order: the table has no column with id %d outside of lists and maps", s.GetSourceId())
}

// partitioned says whether rows are routed to more than one partition.
func (p *plan) partitioned() bool {
	for _, k := range p.keys {
		if !k.Void {
			return true
		}
	}
	return false
}
