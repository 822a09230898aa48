package stages

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// grouping is the aggregation of a block: its keys and its aggregates, each computed once.
type grouping struct {
	b    *block
	keys []item
	aggs []item
	sets ast.Value
}

// aggregates reports whether a resolved expression has an aggregate function in it.
func (b *block) aggregates(v ast.Value) bool {
	found := false
	ast.Visit(v, func(o *ast.Object) bool {
		found = found || isCall(o)
		return !found
	})
	return found
}

// isCall reports a call of an aggregate; windows are of another class.
func isCall(o *ast.Object) bool {
	return o.Str("class") == "FUNCTION" && isAggregate(o.Str("function_name"))
}

// isSortedList reports list(x ORDER BY x), which parses as list_sort(list(x)): an aggregate whose result has an order of its own.
func isSortedList(o *ast.Object) bool {
	if o.Str("class") != "FUNCTION" || !slices.Contains([]string{"list_sort", "list_reverse_sort"}, o.Str("function_name")) || len(o.List("children")) == 0 {
		return false
	}
	inner, ok := o.List("children")[0].(*ast.Object)
	return ok && isCall(inner) && slices.Contains([]string{"list", "array_agg"}, inner.Str("function_name"))
}

// aggregation finds out whether the block groups, and replaces keys and aggregates in its items.
func (b *block) aggregation() error {
	force := b.node.Str("aggregate_handling") == "FORCE_AGGREGATES"
	written := b.node.List("group_expressions")
	grouped := force || len(written) > 0 || !ast.IsNull(b.node.Get("having"))
	for _, it := range b.items {
		grouped = grouped || b.aggregates(it.expr)
	}
	ast.Visit(b.node.Get("modifiers"), func(o *ast.Object) bool {
		grouped = grouped || isCall(o)
		return o.Str("class") != "SUBQUERY"
	})
	ast.Visit(b.node.Get("qualify"), func(o *ast.Object) bool {
		grouped = grouped || isCall(o)
		return o.Str("class") != "SUBQUERY"
	})
	if !grouped {
		return nil
	}
	g := &grouping{b: b}
	if err := g.findKeys(force, written); err != nil {
		return err
	}
	b.groups = g
	for _, it := range b.items {
		e, err := g.replace(it.expr)
		if err != nil {
			return err
		}
		it.expr = e
	}
	return nil
}

func (g *grouping) findKeys(force bool, written []ast.Value) error {
	var exprs []ast.Value
	if force {
		for _, it := range g.b.items {
			// DuckDB groups by what reads columns: over no rows, constants alone make no group, and so do not keep count(*) from being 0.
			if !g.b.aggregates(it.expr) && !hasWindow(it.expr) && len(refs(it.expr)) > 0 {
				exprs = append(exprs, it.expr)
			}
		}
		if len(exprs) == 0 && !slices.ContainsFunc(g.b.items, func(it *selectItem) bool { return g.b.aggregates(it.expr) }) {
			return unstaged("it groups by constants alone")
		}
		if len(written) > 0 {
			return unstaged("it has a GROUP BY of an unknown form")
		}
	}
	for _, w := range written {
		e, err := g.keyExpr(w)
		if err != nil {
			return err
		}
		exprs = append(exprs, e)
	}
	sets := g.b.node.Get("group_sets")
	simple := force || len(g.b.node.List("group_sets")) == 0 ||
		len(g.b.node.List("group_sets")) == 1 && len(listOf(g.b.node.List("group_sets")[0])) == len(written)
	for _, e := range exprs {
		if g.b.aggregates(e) || hasWindow(e) || hasMany(e) || hasSubquery(e) {
			return unstaged("it groups by an expression of an unusual kind")
		}
		if g.keyOf(e) != "" {
			if !simple {
				return unstaged("it has GROUPING SETS with a repeated key")
			}
			continue
		}
		id, plain := columnOf(e)
		if !plain || !setOf(g.b.rel.columns()...)[id] || !simple { // with sets a key is NULL where the column is not
			id = g.b.p.fresh("key")
		}
		g.keys = append(g.keys, item{id, e})
	}
	if !simple {
		g.sets = sets
	}
	return nil
}

func listOf(v ast.Value) []ast.Value {
	if a, ok := v.(*ast.Array); ok {
		return a.Items
	}
	return nil
}

func (g *grouping) keyExpr(w ast.Value) (ast.Value, error) {
	if n, ok := ordinal(w); ok {
		if n < 1 || n > len(g.b.items) {
			return nil, unstaged("GROUP BY %d is not in the select list", n)
		}
		return g.b.items[n-1].expr, nil
	}
	return g.b.resolver(false).expr(w)
}

func (g *grouping) keyOf(e ast.Value) string {
	f := form(e)
	for _, k := range g.keys {
		if form(k.expr) == f {
			return k.id
		}
	}
	return ""
}

// replace puts the columns of the aggregation in the place of its keys and aggregates. What else refers to rows before the aggregation is an error.
func (g *grouping) replace(v ast.Value) (ast.Value, error) {
	if id := g.keyOf(v); id != "" {
		return column(id), nil
	}
	known := setOf(g.b.rel.columns()...)
	return ast.Rewrite(v, func(o *ast.Object) (ast.Value, error) {
		if id := g.keyOf(o); id != "" {
			return keepAlias(column(id), o), nil
		}
		if isCall(o) || isSortedList(o) {
			return keepAlias(column(g.register(o)), o), nil
		}
		if n, ok := columnOf(o); ok && known[n] && !g.made(n) {
			return nil, unstaged("the planner does not see how %s is grouped", plainName(n))
		}
		if o.Str("type") == "GROUPING_FUNCTION" {
			return nil, unstaged("it calls GROUPING()")
		}
		return nil, nil
	}, nil)
}

func keepAlias(c *ast.Object, o *ast.Object) ast.Value {
	if a := o.Str("alias"); a != "" {
		c.Set("alias", ast.String(a))
	}
	return c
}

func (g *grouping) made(id string) bool {
	return slices.ContainsFunc(g.keys, func(k item) bool { return k.id == id }) || slices.ContainsFunc(g.aggs, func(k item) bool { return k.id == id })
}

func (g *grouping) register(o *ast.Object) string {
	f := form(o)
	for _, a := range g.aggs {
		if form(a.expr) == f {
			return a.id
		}
	}
	id := g.b.p.fresh(strings.ToLower(o.Str("function_name")))
	g.aggs = append(g.aggs, item{id, named(o, "")})
	return id
}

// late resolves what is evaluated after the aggregation, and then closes it: from there on expressions read its columns.
func (b *block) late() error {
	b.fixed = b.fixed || b.groups != nil
	for _, part := range []struct {
		key string
		to  *[]ast.Value
	}{{"having", &b.havings}, {"qualify", &b.qualifies}} {
		v := b.node.Get(part.key)
		if ast.IsNull(v) {
			continue
		}
		if b.shadowed(v) {
			return unstaged("a name in %s is both a column and an alias", strings.ToUpper(part.key))
		}
		e, err := b.lateExpr(v, true)
		if err != nil {
			return err
		}
		*part.to = conjuncts(e)
	}
	if err := b.resolveOrders(); err != nil || b.groups == nil {
		return err
	}
	g := b.groups
	for _, a := range g.aggs {
		o, _ := a.expr.(*ast.Object)
		args := o.List("children")
		if isSortedList(o) {
			inner, _ := args[0].(*ast.Object)
			args = inner.List("children")
		}
		if hasSubquery(a.expr) || hasMany(a.expr) || hasWindow(a.expr) || slices.ContainsFunc(args, b.aggregates) {
			return unstaged("it has an aggregate of an unusual kind")
		}
	}
	b.rel = &aggregate{in: b.rel, keys: g.keys, aggs: g.aggs, sets: g.sets}
	if len(b.havings) > 0 {
		b.rel = &filter{b.rel, b.havings}
	}
	return nil
}

// lateExpr resolves an expression that is evaluated after the aggregation, if there is one.
func (b *block) lateExpr(v ast.Value, aliasFirst bool) (ast.Value, error) {
	e, err := b.resolver(aliasFirst).expr(v)
	if err != nil || b.groups == nil {
		return e, err
	}
	return b.groups.replace(e)
}

// shadowed reports whether an unqualified name in an expression is a column of FROM and, with another meaning, an alias of the select list.
func (b *block) shadowed(v ast.Value) bool {
	found := false
	ast.Visit(v, func(o *ast.Object) bool {
		n, ok := columnOf(o)
		if !ok {
			return o.Str("class") != "SUBQUERY"
		}
		cols := find(b.sc.visible, n)
		for _, it := range b.items {
			if len(cols) > 0 && strings.EqualFold(it.alias, n) && (len(cols) > 1 || it.expr == nil || form(it.expr) != form(cols[0].expr)) {
				found = true
			}
		}
		return !found
	})
	return found
}
