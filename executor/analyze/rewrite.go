package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

// source is one thing that the query reads, under the view name that replaces it.
type source struct {
	view     string
	alias    string // what the query's text calls it
	table    []string
	path     string
	function string
	paths    []string
	options  []option
	travel   travel
}

type option struct {
	name string
	expr ast.Value // constant expression; its SQL text is made later
}

// rewriter walks a statement, replaces its sources by views, and its time functions by constants.
type rewriter struct {
	sources []*source
	given   map[string]bool // views that are there already, lower case
	byKey   map[string]*source
	aliases map[string]bool // every table alias in the statement, lower case
	columns map[string]bool // column names that hide current_date and the like, lower case
	clock   clock
	travels map[int]travel // by the place of their table's name; those that are found are taken out

	renamed    []renamed // select list items whose name would change with the time
	qualified  []qualified
	edits      []edit
	changed    bool
	sampled    bool // TABLESAMPLE, USING SAMPLE
	seeded     bool // setseed
	references []*ast.Object
}

// qualified is a table that references may qualify fully.
type qualified struct {
	parts []string
	alias string
}

// renamed keeps the original text of a select list item that holds a time function.
type renamed struct {
	item     *ast.Object
	original ast.Raw
	at       string // query_location of its first token
}

// scope lists the names of common table expressions that a node sees.
type scope struct {
	names []string
	outer *scope
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if slices.ContainsFunc(s.names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return true
		}
	}
	return false
}

func (r *rewriter) statement(node *ast.Object) error {
	if err := r.walk(node, nil); err != nil {
		return err
	}
	for _, ref := range r.references {
		r.unqualify(ref)
	}
	return nil
}

func (r *rewriter) walk(v ast.Value, sc *scope) error {
	switch n := v.(type) {
	case *ast.Array:
		for _, item := range n.Items {
			if err := r.walk(item, sc); err != nil {
				return err
			}
		}
	case *ast.Object:
		return r.object(n, sc)
	}
	return nil
}

func (r *rewriter) object(o *ast.Object, sc *scope) error {
	if o.Get("cte_map") != nil {
		return r.query(o, sc)
	}
	if !ast.IsNull(o.Get("sample")) {
		r.sampled = true
	}
	if a := o.Str("alias"); a != "" && o.Get("class") == nil {
		r.aliases[strings.ToLower(a)] = true
	}
	switch {
	case o.Str("type") == "BASE_TABLE":
		return r.baseTable(o, sc)
	case o.Str("type") == "TABLE_FUNCTION" && o.Obj("function") != nil:
		return r.tableFunction(o, sc)
	case o.Str("type") == "SHOW_REF":
		return refuse("DESCRIBE and SHOW are statements of their own; SUMMARIZE is not supported: select count(*), min(a), max(a), …", "DESCRIBE, SHOW and SUMMARIZE cannot be part of a query")
	case o.Str("class") == "FUNCTION":
		return r.function(o, sc)
	case o.Str("class") == "COLUMN_REF":
		r.columnRef(o)
		return nil
	}
	return r.members(o, sc)
}

func (r *rewriter) members(o *ast.Object, sc *scope) error {
	return o.Each(func(_ string, v ast.Value) error { return r.walk(v, sc) })
}

// query handles a query node: its common table expressions are seen by those after them and by the rest of the node; by themselves only if recursive.
func (r *rewriter) query(o *ast.Object, sc *scope) error {
	inner := &scope{outer: sc}
	for _, entry := range o.Obj("cte_map").List("map") {
		e, ok := entry.(*ast.Object)
		if !ok {
			continue
		}
		if err := r.walk(e.Get("value"), inner); err != nil {
			return err
		}
		inner.names = append(inner.names, e.Str("key"))
	}
	if name := o.Str("cte_name"); name != "" {
		inner = &scope{names: []string{name}, outer: inner}
	}
	if !ast.IsNull(o.Get("sample")) {
		r.sampled = true
	}
	before := r.selectItems(o)
	err := o.Each(func(key string, v ast.Value) error {
		if key == "cte_map" {
			return nil
		}
		return r.walk(v, inner)
	})
	r.keepNames(before)
	return err
}

// selectItems remembers the select list as it is before time functions are replaced in it.
func (r *rewriter) selectItems(o *ast.Object) []renamed {
	var out []renamed
	for _, item := range o.List("select_list") {
		if n, ok := item.(*ast.Object); ok && n.Str("alias") == "" && mentionsTime(n) {
			out = append(out, renamed{n, ast.Bytes(n), firstLocation(n)})
		}
	}
	return out
}

// firstLocation is the place of the leftmost node that has one.
func firstLocation(v ast.Value) string {
	first := ""
	visit(v, func(o *ast.Object) {
		if at, ok := o.Get("query_location").(ast.Raw); ok && (first == "" || len(at) < len(first) || len(at) == len(first) && string(at) < first) {
			first = string(at)
		}
	})
	return first
}

// visit calls f for every object.
func visit(v ast.Value, f func(*ast.Object)) {
	switch n := v.(type) {
	case *ast.Array:
		for _, item := range n.Items {
			visit(item, f)
		}
	case *ast.Object:
		f(n)
		_ = n.Each(func(_ string, m ast.Value) error { // the callback never fails
			visit(m, f)
			return nil
		})
	}
}

// keepNames keeps those that changed: DuckDB names a column after its expression, and the name must not tell the time.
func (r *rewriter) keepNames(items []renamed) {
	for _, it := range items {
		if string(ast.Bytes(it.item)) != string(it.original) {
			r.renamed = append(r.renamed, it)
		}
	}
}

// add finds or makes the source for key.
func (r *rewriter) add(key string, s source) *source {
	if old, ok := r.byKey[key]; ok {
		return old
	}
	s.view = fmt.Sprintf("signet_source_%d", len(r.sources)+1)
	r.byKey[key] = &s
	r.sources = append(r.sources, &s)
	return &s
}

// useView turns a table reference into one of the source's view, under the name that the query's text uses.
func (r *rewriter) useView(o *ast.Object, s *source, defaultAlias string, kind editKind, parts int) {
	alias, text := o.Str("alias"), duckdb.Ident(s.view)
	if alias == "" && defaultAlias != "" {
		alias = defaultAlias
		text += " AS " + duckdb.Ident(alias)
	}
	r.edit(kind, o.Get("query_location"), parts, text)
	o.Replace(ast.New("type", "BASE_TABLE", "alias", alias, "sample", o.Get("sample"), "query_location", o.Get("query_location"),
		"schema_name", "", "table_name", s.view, "column_name_alias", o.Get("column_name_alias"), "catalog_name", "", "at_clause", ast.Raw("null")))
}

// unqualify shortens lake.demo.flights.carrier to flights.carrier: the view has no schema and no catalog.
func (r *rewriter) unqualify(ref *ast.Object) {
	names := ref.List("column_names")
	for _, q := range r.qualified {
		if len(names) <= len(q.parts) || r.aliases[strings.ToLower(q.parts[0])] {
			continue
		}
		match := true
		for i, p := range q.parts {
			match = match && strings.EqualFold(ast.Text(names[i]), p)
		}
		if match {
			r.edit(editName, ref.Get("query_location"), len(q.parts), duckdb.Ident(q.alias))
			rest := append([]ast.Value{ast.String(q.alias)}, names[len(q.parts):]...)
			ref.Set("column_names", &ast.Array{Items: rest})
			return
		}
	}
}
