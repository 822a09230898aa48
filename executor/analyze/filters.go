package analyze

import (
	"slices"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
)

// filters fills in what the query's conditions say about the rows that it needs of its tables. A table that is read in several places gets what holds for
// any of them. What is not understood says nothing: the filters prune files, they do not replace conditions.
func (a *analysis) filters(node queryNode) error {
	tables := map[string]*planv1.Schema{}
	for _, s := range a.req.GetSources() {
		if t := s.GetTable(); t != nil {
			tables[s.GetView()] = t.GetSchema()
		}
	}
	if len(tables) == 0 || a.rewriter.sampled {
		return nil
	}
	f := &filterFinder{tables: tables, found: map[*ast.Object]*executorv1.SourceFilter{}, constants: &constants{a: a}}
	visit(node, f.query)
	if err := f.constants.evaluate(); err != nil {
		return err
	}
	uses := map[string][]*executorv1.SourceFilter{}
	visit(node, func(o *ast.Object) {
		if view := o.Str("table_name"); o.Str("type") == "BASE_TABLE" && tables[view] != nil {
			uses[view] = append(uses[view], f.found[o])
		}
	})
	for view, all := range uses {
		if filter := merged(f.constants, all); filter != nil {
			if a.out.Filters == nil {
				a.out.Filters = map[string]*executorv1.SourceFilter{}
			}
			a.out.Filters[view] = filter
		}
	}
	return nil
}

// merged is the filter of a table that is read in several places; nil where one of them needs all of it, or nothing is known.
func merged(c *constants, uses []*executorv1.SourceFilter) *executorv1.SourceFilter {
	var terms []*planv1.Predicate
	exact := len(uses) == 1
	for _, u := range uses {
		if u == nil {
			return nil
		}
		p, whole := c.resolve(u.GetPredicate())
		exact = exact && whole && u.GetExact()
		if isTrue(p) && !exact {
			return nil
		}
		terms = append(terms, p)
	}
	return &executorv1.SourceFilter{Predicate: anyOf(terms), Exact: exact}
}

// filterFinder finds the conditions over tables, query by query.
type filterFinder struct {
	tables    map[string]*planv1.Schema // by view
	found     map[*ast.Object]*executorv1.SourceFilter
	constants *constants
}

// query looks at one SELECT: its WHERE clause, for the tables of its FROM clause whose rows it decides about.
func (f *filterFinder) query(o *ast.Object) {
	if o.Str("type") != "SELECT_NODE" {
		return
	}
	from := &fromClause{finder: f}
	if !from.collect(o.Obj("from_table"), deciding{where: true}) {
		return
	}
	for _, t := range from.tables {
		if t.schema == nil || !t.where && len(t.on) == 0 {
			continue
		}
		c := &condition{from: from, table: t, constants: f.constants}
		pred, exact := allTrue(), true
		if where := o.Get("where_clause"); t.where && !ast.IsNull(where) {
			pred, exact = c.of(where)
		}
		for _, on := range t.on {
			p, _ := c.of(on)
			pred, exact = allOf([]*planv1.Predicate{pred, p}), false
		}
		f.found[t.node] = &executorv1.SourceFilter{Predicate: pred, Exact: exact && len(from.tables) == 1 && f.wholeQuery(o)}
	}
}

// wholeQuery reports whether nothing but the WHERE clause decides which rows a query needs.
func (f *filterFinder) wholeQuery(o *ast.Object) bool {
	return len(o.List("modifiers")) == 0 && ast.IsNull(o.Get("sample"))
}

// fromClause is what a query reads.
type fromClause struct {
	finder *filterFinder
	tables []*fromTable
}

type fromTable struct {
	node   *ast.Object
	alias  string
	schema *planv1.Schema // nil: not a table, and its columns are not known
	deciding
}

// deciding are the conditions that decide about the rows of a part of the FROM clause: a row for which one of them is not true has no effect on the result.
type deciding struct {
	where bool        // the WHERE clause
	on    []ast.Value // ON clauses of joins
}

// sides of a join by its type: whether what decides about the joined rows decides about those of the left, and of the right side; and the same of its ON
// clause, which decides about the rows of a side that has no effect by itself where it matches nothing.
var sides = map[string]struct{ left, right, onLeft, onRight bool }{
	"INNER": {true, true, true, true},
	"LEFT":  {left: true, onRight: true},
	"RIGHT": {right: true, onLeft: true},
	"SEMI":  {left: true, onLeft: true, onRight: true},
	"ANTI":  {left: true, onRight: true},
}

// of are the conditions that decide about the rows of one side of a join.
func (d deciding) of(passes, on bool, condition ast.Value) deciding {
	var out deciding
	if passes {
		out.where, out.on = d.where, slices.Clone(d.on)
	}
	if on && !ast.IsNull(condition) {
		out.on = append(out.on, condition)
	}
	return out
}

// collect lists the items; false: nothing may be said about any. by decides about the rows of this part.
func (c *fromClause) collect(o *ast.Object, by deciding) bool {
	switch {
	case o == nil:
		return false
	case o.Str("type") == "EMPTY":
		return true
	case o.Str("type") == "BASE_TABLE":
		t := &fromTable{node: o, alias: o.Str("alias"), deciding: by}
		if t.alias == "" {
			t.alias = o.Str("table_name")
		}
		if len(o.List("column_name_alias")) == 0 && o.Str("schema_name") == "" {
			t.schema = c.finder.tables[o.Str("table_name")]
		}
		c.tables = append(c.tables, t)
		return ast.IsNull(o.Get("sample"))
	case o.Str("type") == "JOIN":
		switch o.Str("ref_type") {
		case "REGULAR", "CROSS", "NATURAL":
		default: // POSITIONAL pairs rows by their place, ASOF takes the nearest
			return false
		}
		join, on := sides[o.Str("join_type")], o.Get("condition") // of other joins every row counts
		return c.collect(o.Obj("left"), by.of(join.left, join.onLeft, on)) && c.collect(o.Obj("right"), by.of(join.right, join.onRight, on))
	default:
		c.tables = append(c.tables, &fromTable{node: o, alias: o.Str("alias")})
		return true
	}
}

// column finds the field of the table that a reference means; nil: something else, or nobody can tell.
func (c *fromClause) column(ref *ast.Object, of *fromTable) *planv1.Field {
	names := ref.List("column_names")
	if len(names) == 0 {
		return nil
	}
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = ast.Text(n)
	}
	if len(parts) > 1 {
		matches := 0
		for _, t := range c.tables {
			if strings.EqualFold(t.alias, parts[0]) {
				matches++
			}
		}
		switch {
		case matches > 1:
			return nil
		case matches == 1 && !strings.EqualFold(of.alias, parts[0]):
			return nil
		case matches == 1:
			return fieldAt(of.schema.GetFields(), parts[1:])
		}
	}
	holders := 0
	for _, t := range c.tables {
		if t.schema == nil { // its columns may have the name
			return nil
		}
		if fieldNamed(t.schema.GetFields(), parts[0]) != nil {
			holders++
		}
	}
	if holders != 1 {
		return nil
	}
	return fieldAt(of.schema.GetFields(), parts)
}

func fieldNamed(fields []*planv1.Field, name string) *planv1.Field {
	var found *planv1.Field
	for _, f := range fields {
		if strings.EqualFold(f.GetName(), name) {
			if found != nil {
				return nil
			}
			found = f
		}
	}
	return found
}

// fieldAt walks through structs.
func fieldAt(fields []*planv1.Field, path []string) *planv1.Field {
	f := fieldNamed(fields, path[0])
	for _, name := range path[1:] {
		if f == nil || f.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT {
			return nil
		}
		f = fieldNamed(f.GetType().GetFields(), name)
	}
	return f
}

func constant(b bool) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Constant{Constant: b}}
}

func allTrue() *planv1.Predicate { return constant(true) }

func isTrue(p *planv1.Predicate) bool { return p.GetKind() == nil || p.GetConstant() }

func notOf(p *planv1.Predicate) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Not{Not: p}}
}

func allOf(terms []*planv1.Predicate) *planv1.Predicate {
	kept := terms[:0:0]
	for _, t := range terms {
		if !isTrue(t) {
			kept = append(kept, t)
		}
	}
	switch len(kept) {
	case 0:
		return allTrue()
	case 1:
		return kept[0]
	}
	return &planv1.Predicate{Kind: &planv1.Predicate_All{All: &planv1.Predicates{Terms: kept}}}
}

func anyOf(terms []*planv1.Predicate) *planv1.Predicate {
	for _, t := range terms {
		if isTrue(t) {
			return allTrue()
		}
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return &planv1.Predicate{Kind: &planv1.Predicate_Any{Any: &planv1.Predicates{Terms: terms}}}
}
