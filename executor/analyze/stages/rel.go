package stages

import (
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// A relation is a step of the query as relational algebra. Columns have names that are unique in the whole query (name#17), so that expressions
// need no qualification and keep their meaning wherever they are evaluated.
type relation interface {
	columns() []string
	parts() []relation
	exprs() []ast.Value
}

type item struct {
	id   string
	expr ast.Value
}

// scan reads a source.
type scan struct {
	source *Source
	cols   []item // expr: the source's column
}

// constants are rows that depend on no source: VALUES, range(), nothing at all.
type constants struct {
	table ast.Value
	cols  []item
}

// stored reads rows that are computed once for several readers.
type stored struct {
	from *frag
	cols []item
}

type filter struct {
	in    relation
	conds []ast.Value
}

type project struct {
	in    relation
	items []item
	many  bool // an item makes several rows of one
}

// join has the kinds INNER, LEFT, SEMI, ANTI and FULL.
type join struct {
	kind        string
	left, right relation
	conds       []ast.Value
}

type aggregate struct {
	in   relation
	keys []item
	aggs []item
	sets ast.Value // GROUPING SETS over the keys; nil: all keys
}

type window struct {
	in    relation
	items []item
}

type order struct {
	id          string
	kind, nulls ast.Value
}

type sorted struct {
	in      relation
	orders  []order
	limit   ast.Value // nil: none
	offset  ast.Value
	percent bool
}

// union is UNION ALL of two relations; ids are those of the result, by position.
type union struct {
	left, right []string
	l, r        relation
	ids         []string
}

// setop is EXCEPT or INTERSECT.
type setop struct {
	union
	kind string
	all  bool
}

func (r *scan) columns() []string      { return ids(r.cols) }
func (r *constants) columns() []string { return ids(r.cols) }
func (r *stored) columns() []string    { return ids(r.cols) }
func (r *filter) columns() []string    { return r.in.columns() }
func (r *project) columns() []string   { return ids(r.items) }
func (r *aggregate) columns() []string { return append(ids(r.keys), ids(r.aggs)...) }
func (r *window) columns() []string    { return append(r.in.columns(), ids(r.items)...) }
func (r *sorted) columns() []string    { return r.in.columns() }
func (r *union) columns() []string     { return r.ids }

func (r *join) columns() []string {
	if r.kind == "SEMI" || r.kind == "ANTI" {
		return r.left.columns()
	}
	return append(r.left.columns(), r.right.columns()...)
}

func (r *scan) parts() []relation      { return nil }
func (r *constants) parts() []relation { return nil }
func (r *stored) parts() []relation    { return nil }
func (r *filter) parts() []relation    { return []relation{r.in} }
func (r *project) parts() []relation   { return []relation{r.in} }
func (r *join) parts() []relation      { return []relation{r.left, r.right} }
func (r *aggregate) parts() []relation { return []relation{r.in} }
func (r *window) parts() []relation    { return []relation{r.in} }
func (r *sorted) parts() []relation    { return []relation{r.in} }
func (r *union) parts() []relation     { return []relation{r.l, r.r} }

func (r *scan) exprs() []ast.Value      { return nil }
func (r *constants) exprs() []ast.Value { return nil }
func (r *stored) exprs() []ast.Value    { return nil }
func (r *filter) exprs() []ast.Value    { return r.conds }
func (r *project) exprs() []ast.Value   { return exprsOf(r.items) }
func (r *join) exprs() []ast.Value      { return r.conds }
func (r *aggregate) exprs() []ast.Value { return append(exprsOf(r.keys), exprsOf(r.aggs)...) }
func (r *window) exprs() []ast.Value    { return exprsOf(r.items) }
func (r *sorted) exprs() []ast.Value    { return nil }
func (r *union) exprs() []ast.Value     { return nil }

func ids(items []item) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.id
	}
	return out
}

func exprsOf(items []item) []ast.Value {
	out := make([]ast.Value, len(items))
	for i, it := range items {
		out[i] = it.expr
	}
	return out
}

type idset map[string]bool

func setOf(names ...string) idset {
	s := idset{}
	s.add(names...)
	return s
}

func (s idset) add(names ...string) {
	for _, n := range names {
		s[n] = true
	}
}

func (s idset) has(other idset) bool {
	for n := range other {
		if !s[n] {
			return false
		}
	}
	return true
}

func (s idset) meets(other idset) bool {
	for n := range other {
		if s[n] {
			return true
		}
	}
	return false
}

func (s idset) plus(others ...idset) idset {
	out := idset{}
	for n := range s {
		out[n] = true
	}
	for _, o := range others {
		for n := range o {
			out[n] = true
		}
	}
	return out
}

// kept are the names that the set has, in their order.
func (s idset) kept(names []string) []string {
	var out []string
	for _, n := range names {
		if s[n] {
			out = append(out, n)
		}
	}
	return out
}

// isID tells our names of columns from those of the user.
func isID(name string) bool { return len(plainName(name)) < len(name) }

// plainName is one of our names without its number.
func plainName(name string) string {
	if cut := strings.TrimRight(name, "0123456789"); len(cut) < len(name) && strings.HasSuffix(cut, "#") {
		return cut[:len(cut)-1]
	}
	return name
}

// refs are the columns that expressions read.
func refs(exprs ...ast.Value) idset {
	out := idset{}
	for _, e := range exprs {
		ast.Visit(e, func(o *ast.Object) bool {
			if n, ok := columnOf(o); ok && isID(n) {
				out[n] = true
			}
			return true
		})
	}
	return out
}

// free are the columns that a relation reads and does not have: those of the query around it.
func free(r relation) idset {
	read, made := idset{}, idset{}
	var walk func(relation)
	walk = func(r relation) {
		for n := range refs(r.exprs()...) {
			read[n] = true
		}
		made.add(r.columns()...)
		for _, p := range r.parts() {
			walk(p)
		}
	}
	walk(r)
	for n := range made {
		delete(read, n)
	}
	return read
}

func hasSubquery(v ast.Value) bool {
	found := false
	ast.Visit(v, func(o *ast.Object) bool {
		found = found || o.Str("class") == subqueryClass
		return !found
	})
	return found
}
