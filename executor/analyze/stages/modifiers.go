package stages

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// orderItem is one expression of ORDER BY: a select item, by number, or an expression of its own.
type orderItem struct {
	item        int // -1: expr
	expr        ast.Value
	kind, nulls ast.Value
}

func modifiersOf(node *ast.Object) (byType map[string]*ast.Object) {
	byType = map[string]*ast.Object{}
	for _, v := range node.List("modifiers") {
		if m, ok := v.(*ast.Object); ok {
			byType[m.Str("type")] = m
		}
	}
	return byType
}

// resolveOrders reads ORDER BY: an ordinal, an alias of the select list, or an expression over the columns of FROM.
func (b *block) resolveOrders() error {
	m := modifiersOf(b.node)["ORDER_MODIFIER"]
	if m == nil {
		return nil
	}
	for _, v := range m.List("orders") {
		o, _ := v.(*ast.Object)
		expr := o.Get("expression")
		it := orderItem{item: -1, kind: o.Get("type"), nulls: o.Get("null_order")}
		if e, ok := expr.(*ast.Object); ok && e.Str("class") == "STAR" {
			if !ast.IsNull(e.Get("expr")) || len(m.List("orders")) != 1 {
				return unstaged("it has an ORDER BY of an unknown form")
			}
			for i := range b.items {
				it.item = i
				b.orders = append(b.orders, it)
			}
			return nil
		}
		if n, ok := ordinal(expr); ok {
			if n < 1 || n > len(b.items) {
				return unstaged("ORDER BY %d is not in the select list", n)
			}
			it.item = n - 1
			b.orders = append(b.orders, it)
			continue
		}
		if n, ok := columnOf(expr); ok {
			it.item = slices.IndexFunc(b.items, func(s *selectItem) bool { return s.alias != "" && strings.EqualFold(s.alias, n) })
		}
		if it.item < 0 {
			e, err := b.lateExpr(expr, false)
			if err != nil {
				return err
			}
			if _, _, _, constant := ast.Constant(e); constant {
				continue // orders nothing
			}
			it.expr = e
		}
		b.orders = append(b.orders, it)
	}
	return nil
}

// modifiers applies DISTINCT, ORDER BY and LIMIT to the projected items.
func (b *block) modifiers(res *result, pr *project) error {
	mods := modifiersOf(b.node)
	distinct := mods["DISTINCT_MODIFIER"]
	if distinct != nil && len(distinct.List("distinct_on_targets")) > 0 {
		return unstaged("it has DISTINCT ON")
	}
	var orders []order
	for _, o := range b.orders {
		var id string
		if o.item >= 0 {
			id = res.outs[o.item].id
		} else {
			n := len(pr.items)
			if id = b.add(pr, o.expr, "order"); distinct != nil && len(pr.items) > n {
				return unstaged("it orders DISTINCT rows by something else")
			}
			if hasMany(o.expr) {
				return unstaged("it orders by unnest()")
			}
		}
		orders = append(orders, order{id, o.kind, o.nulls})
	}
	if distinct != nil {
		agg := &aggregate{in: pr}
		for _, it := range pr.items {
			agg.keys = append(agg.keys, item{it.id, column(it.id)})
		}
		res.rel = agg
	}
	return limited(res, mods, orders)
}

func limited(res *result, mods map[string]*ast.Object, orders []order) error {
	s := &sorted{in: res.rel, orders: orders}
	m := mods["LIMIT_MODIFIER"]
	if pm := mods["LIMIT_PERCENT_MODIFIER"]; pm != nil {
		m, s.percent = pm, true
	}
	if m != nil {
		s.limit, s.offset = orNil(m.Get("limit")), orNil(m.Get("offset"))
		for _, v := range []ast.Value{s.limit, s.offset} {
			if v != nil && !constantLimit(v) {
				return unstaged("its LIMIT is computed")
			}
		}
	}
	if len(orders) == 0 && s.limit == nil && s.offset == nil {
		return nil
	}
	res.rel = s
	return nil
}

func orNil(v ast.Value) ast.Value {
	if ast.IsNull(v) {
		return nil
	}
	return v
}

func constantLimit(v ast.Value) bool {
	_, _, isNull, ok := ast.Constant(v)
	return ok && !isNull
}

// setNode is a set operation.
func (p *planner) setNode(node *ast.Object, e *env, outer *scope) (*result, error) {
	op := node.Str("setop_type")
	all := string(ast.Bytes(node.Get("setop_all"))) == "true"
	if !slices.Contains([]string{"UNION", "EXCEPT", "INTERSECT"}, op) {
		return nil, unstaged("it has a %s", strings.ReplaceAll(op, "_", " "))
	}
	l, err := p.queryNode(node.Obj("left"), e, outer)
	if err != nil {
		return nil, err
	}
	r, err := p.queryNode(node.Obj("right"), e, outer)
	if err != nil {
		return nil, err
	}
	if len(l.outs) != len(r.outs) {
		return nil, unstaged("the sides of a %s differ in their number of columns", op)
	}
	u := union{l: l.rel, r: r.rel}
	res := &result{}
	for i, o := range l.outs {
		id := p.fresh(o.id)
		u.ids = append(u.ids, id)
		u.left, u.right = append(u.left, o.id), append(u.right, r.outs[i].id)
		res.outs = append(res.outs, output{id, o.name, o.raw})
	}
	if op == "UNION" {
		res.rel = &u
		if !all {
			agg := &aggregate{in: &u}
			for _, id := range u.ids {
				agg.keys = append(agg.keys, item{id, column(id)})
			}
			res.rel = agg
		}
	} else {
		res.rel = &setop{u, op, all}
	}
	orders, err := p.setOrders(node, res)
	if err != nil {
		return nil, err
	}
	return res, limited(res, modifiersOf(node), orders)
}

// setOrders reads the ORDER BY of a set operation, which knows the columns of the result only.
func (p *planner) setOrders(node *ast.Object, res *result) ([]order, error) {
	m := modifiersOf(node)["ORDER_MODIFIER"]
	if m == nil {
		return nil, nil
	}
	names, err := p.names(res)
	if err != nil {
		return nil, err
	}
	var out []order
	for _, v := range m.List("orders") {
		o, _ := v.(*ast.Object)
		expr := o.Get("expression")
		if e, ok := expr.(*ast.Object); ok && e.Str("class") == "STAR" && len(m.List("orders")) == 1 && ast.IsNull(e.Get("expr")) {
			for _, c := range res.outs {
				out = append(out, order{c.id, o.Get("type"), o.Get("null_order")})
			}
			return out, nil
		}
		at := -1
		if n, ok := ordinal(expr); ok {
			at = n - 1
		} else if n, ok := columnOf(expr); ok {
			at = slices.IndexFunc(names, func(s string) bool { return strings.EqualFold(s, n) })
		}
		if at < 0 || at >= len(res.outs) {
			return nil, unstaged("it orders a %s by an expression", node.Str("setop_type"))
		}
		out = append(out, order{res.outs[at].id, o.Get("type"), o.Get("null_order")})
	}
	return out, nil
}
