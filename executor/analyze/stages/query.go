package stages

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// result is a query as a relation, with its columns in order. Two columns may be the same one of the relation.
type result struct {
	rel  relation
	outs []output
}

type output struct {
	id   string
	name string    // empty: what DuckDB makes of raw
	raw  ast.Value // the item as the user wrote it
}

// env holds the common table expressions that a query sees.
type env struct {
	name  string
	query *cte
	outer *env
}

type cte struct {
	node    *ast.Object
	aliases []string
	env     *env
	many    bool // it is read more than once
	res     *result
	names   []string
	stored  *frag
}

func (e *env) find(name string) *cte {
	for ; e != nil; e = e.outer {
		if strings.EqualFold(e.name, name) {
			return e.query
		}
	}
	return nil
}

func (p *planner) queryNode(node *ast.Object, e *env, outer *scope) (*result, error) {
	e = p.ctes(node, e)
	switch node.Str("type") {
	case "SELECT_NODE":
		return p.selectNode(node, e, outer)
	case "SET_OPERATION_NODE":
		return p.setNode(node, e, outer)
	default:
		return nil, unstaged("it has a %s", strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(node.Str("type"), "_NODE"), "_", " ")))
	}
}

func (p *planner) ctes(node *ast.Object, e *env) *env {
	cteMap := node.Obj("cte_map")
	if cteMap == nil {
		return e
	}
	for _, v := range cteMap.List("map") {
		entry, ok := v.(*ast.Object)
		if !ok || entry.Obj("value") == nil || entry.Obj("value").Obj("query") == nil {
			continue
		}
		value := entry.Obj("value")
		c := &cte{node: value.Obj("query").Obj("node"), env: e, many: countReads(node, entry.Str("key")) > 1}
		for _, a := range value.List("aliases") {
			c.aliases = append(c.aliases, ast.Text(a))
		}
		e = &env{entry.Str("key"), c, e}
	}
	return e
}

func countReads(node ast.Value, name string) int {
	n := 0
	ast.Visit(node, func(o *ast.Object) bool {
		if o.Str("type") == "BASE_TABLE" && strings.EqualFold(o.Str("table_name"), name) && o.Str("schema_name") == "" {
			n++
		}
		return true
	})
	return n
}

// block is one SELECT while it is taken apart.
type block struct {
	p     *planner
	env   *env
	node  *ast.Object
	sc    *scope
	rel   relation
	conds []ast.Value
	semis []*join
	items []*selectItem

	groups    *grouping // nil: no aggregation
	havings   []ast.Value
	qualifies []ast.Value
	orders    []orderItem
	fixed     bool // the relation may not be joined with more any longer
}

type selectItem struct {
	raw   ast.Value
	alias string // explicit
	name  string // of a column that * stands for
	expr  ast.Value
	busy  bool
}

func (p *planner) selectNode(node *ast.Object, e *env, outer *scope) (*result, error) {
	b := &block{p: p, env: e, node: node}
	rel, sc, err := p.from(node.Obj("from_table"), e)
	if err != nil {
		return nil, err
	}
	b.rel, b.sc = rel, &scope{tables: sc.tables, visible: sc.visible, outer: outer}
	for _, step := range []func() error{b.expand, b.where, b.resolveItems, b.aggregation, b.late, b.windows} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.output()
}

// where collects the conditions; those that are subqueries become joins.
func (b *block) where() error {
	where := b.node.Get("where_clause")
	if ast.IsNull(where) {
		return nil
	}
	for _, c := range conjuncts(where) {
		done, err := b.semiJoin(c)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		e, err := b.resolver(false).expr(c)
		if err != nil {
			return err
		}
		b.conds = append(b.conds, conjuncts(e)...)
	}
	if slices.ContainsFunc(b.conds, b.aggregates) {
		return unstaged("an aggregate stands in WHERE")
	}
	if len(b.conds) > 0 {
		b.rel = &filter{b.rel, b.conds}
	}
	for _, s := range b.semis {
		s.left = b.rel
		b.rel = s
	}
	return nil
}

func (b *block) resolver(aliasFirst bool) *resolver {
	return &resolver{b: b, sc: b.sc, alias: b.byAlias, first: aliasFirst}
}

// byAlias answers what a select list item of that name computes.
func (b *block) byAlias(name string) (ast.Value, error) {
	for _, it := range b.items {
		if it.alias != "" && strings.EqualFold(it.alias, name) {
			if hasMany(it.raw) {
				return nil, unstaged("it refers to the rows of unnest() by name")
			}
			return b.itemExpr(it)
		}
	}
	return nil, nil
}

func (b *block) itemExpr(it *selectItem) (ast.Value, error) {
	if it.expr != nil {
		return it.expr, nil
	}
	if it.busy {
		return nil, unstaged("the planner cannot tell what %s is", it.alias)
	}
	it.busy = true
	defer func() { it.busy = false }()
	e, err := b.resolver(false).expr(it.raw)
	if err != nil {
		return nil, err
	}
	it.expr = e
	return e, nil
}

func (b *block) resolveItems() error {
	for _, it := range b.items {
		if _, err := b.itemExpr(it); err != nil {
			return err
		}
	}
	return nil
}

func hasMany(v ast.Value) bool {
	found := false
	ast.Visit(v, func(o *ast.Object) bool {
		found = found || slices.Contains(manyRows, strings.ToLower(o.Str("function_name")))
		return !found
	})
	return found
}

// output projects the items, and applies DISTINCT, ORDER BY and LIMIT.
func (b *block) output() (*result, error) {
	pr := &project{in: b.rel}
	res := &result{}
	for _, it := range b.items {
		name := it.alias
		if name == "" {
			name = it.name
		}
		id := b.add(pr, it.expr, name)
		res.outs = append(res.outs, output{id, name, it.raw})
	}
	for _, it := range pr.items {
		if hasMany(it.expr) {
			if o, ok := it.expr.(*ast.Object); !ok || !slices.Contains(manyRows, strings.ToLower(o.Str("function_name"))) || b.groups != nil {
				return nil, unstaged("it has unnest() inside an expression")
			}
			pr.many = true
		}
	}
	res.rel = pr
	return res, b.modifiers(res, pr)
}

// add projects an expression and answers its column: columns that are passed on keep their name.
func (b *block) add(pr *project, expr ast.Value, name string) string {
	for _, it := range pr.items {
		if form(it.expr) == form(expr) && !hasMany(expr) {
			return it.id
		}
	}
	id, plain := columnOf(expr)
	if !plain || !setOf(pr.in.columns()...)[id] {
		if name == "" {
			name = "expr"
		}
		id = b.p.fresh(name)
	}
	pr.items = append(pr.items, item{id, expr})
	return id
}
