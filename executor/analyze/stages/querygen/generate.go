package querygen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (g *Generator) alias() string {
	g.next++
	return "a" + strconv.Itoa(g.next)
}

// itemAlias is a name for a select item: now and then that of a column, to see which of the two is meant where.
func (g *Generator) itemAlias(q *Query) string {
	if g.one(10) {
		name := pick(g, "k", "s", "x", "m", "j")
		if !slices.ContainsFunc(q.Items, func(it Item) bool { return it.Alias == name }) {
			return name
		}
	}
	return g.alias()
}

// Query makes a query.
func (g *Generator) Query() *Query {
	q, outs := g.query(2, nil)
	g.modifiers(q, outs)
	if len(q.Group) == 0 && q.Set == nil && len(q.Qualify) == 0 && !q.Distinct && len(q.Order) == 0 && g.one(8) {
		q.Items = []Item{{Expr: pick(g, "*", "* EXCLUDE (id)", q.From[0].Alias+".*")}}
	}
	return q
}

// modifiers orders the whole result, so that LIMIT has nothing to choose.
func (g *Generator) modifiers(q *Query, outs scope) {
	if !g.one(3) {
		return
	}
	for i, o := range outs {
		by := strconv.Itoa(i + 1)
		if g.one(4) && q.Set == nil {
			by = o.sql
		}
		q.Order = append(q.Order, by+pick(g, "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
	}
	g.rng.Shuffle(len(q.Order), func(i, k int) { q.Order[i], q.Order[k] = q.Order[k], q.Order[i] })
	q.Total = true
	if g.one(2) {
		q.Limit = 1 + g.n(20)
		if g.one(3) {
			q.Offset = g.n(10)
		}
	}
}

// query makes a SELECT or a set operation; depth bounds its subqueries. ctes are tables that it may read.
func (g *Generator) query(depth int, ctes []cte) (*Query, scope) {
	var with []CTE
	if depth > 1 && g.one(5) {
		sub, outs := g.query(depth-1, ctes)
		c := cte{g.alias(), outs, sub.most}
		with = append(with, CTE{c.name, sub})
		ctes = append(ctes[:len(ctes):len(ctes)], c, c)
	}
	if depth > 0 && g.one(8) {
		q, outs := g.setOperation(depth-1, ctes)
		q.With = with
		return q, outs
	}
	q, outs := g.selection(depth, ctes)
	q.With = with
	return q, outs
}

type cte struct {
	name string
	cols scope
	most int
}

// setOperation makes two SELECTs with the same kinds of columns.
func (g *Generator) setOperation(depth int, ctes []cte) (*Query, scope) {
	kinds := make([]Kind, 1+g.n(3))
	for i := range kinds {
		kinds[i] = pick(g, Int, Big, Dec, String, Date, Bool)
	}
	var sides [2]*Query
	var outs scope
	for i := range sides {
		q := &Query{}
		s, _ := g.from(q, depth, ctes)
		g.where(q, s, depth)
		outs = nil
		for _, k := range kinds {
			name := g.alias()
			if i == 1 && g.one(4) && (k == Int || k == Big) {
				k = pick(g, Int, Big, Dec)
			}
			q.Items = append(q.Items, Item{g.expr(s, k, 1), name})
			outs = append(outs, ref{name, k})
		}
		sides[i] = q
	}
	for i := range outs { // the result has the names of the left side
		outs[i] = ref{sides[0].Items[i].Alias, kinds[i]}
	}
	sides[0].Set = &SetOp{pick(g, "UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"), sides[1]}
	sides[0].most += sides[1].most
	return sides[0], outs
}

// selection makes one SELECT.
func (g *Generator) selection(depth int, ctes []cte) (*Query, scope) {
	q := &Query{}
	s, unique := g.from(q, depth, ctes)
	g.where(q, s, depth)
	if g.one(2) {
		return q, g.grouped(q, s)
	}
	var outs scope
	add := func(e string, k Kind) {
		name := g.itemAlias(q)
		q.Items = append(q.Items, Item{e, name})
		outs = append(outs, ref{name, k})
	}
	for range 1 + g.n(4) {
		k := g.kind()
		seen := s
		if last := len(outs) - 1; last >= 0 && g.one(5) && strings.HasPrefix(outs[last].sql, "a") { // an item may use those before it
			k = outs[last].kind
			seen = scope{outs[last]}
		}
		add(g.expr(seen, k, 2), k)
	}
	if depth > 0 && g.one(7) {
		e, k := g.window(s, unique)
		add(e, k)
		if k == Big && g.one(2) {
			q.Qualify = append(q.Qualify, fmt.Sprintf("%s <= 3", outs[len(outs)-1].sql))
		}
		return q, outs
	}
	q.Distinct = g.one(6)
	return q, outs
}

// grouped adds GROUP BY in one of its spellings.
func (g *Generator) grouped(q *Query, s scope) scope {
	var outs, keys scope
	form := g.n(4)
	for range g.n(3) {
		k := g.kind()
		e, name := g.expr(s, k, 1), g.itemAlias(q)
		keys = append(keys, ref{e, k})
		outs = append(outs, ref{name, k})
		q.Items = append(q.Items, Item{e, name})
		switch form {
		case 0:
			q.Group = append(q.Group, strconv.Itoa(len(q.Items)))
		case 1:
			q.Group = append(q.Group, name)
		case 2:
			q.Group = append(q.Group, e)
		}
	}
	if form == 3 && len(keys) > 0 {
		q.Group = []string{"ALL"}
	}
	var aggs scope
	for range 1 + g.n(3) {
		e, k := g.aggregate(s)
		e = g.named(e, s)
		name := g.itemAlias(q)
		if k != 0 {
			aggs = append(aggs, ref{e, k})
		}
		if g.one(6) && k == Big {
			e = fmt.Sprintf("(%s + %d)", e, g.n(5))
		}
		outs = append(outs, ref{name, k})
		q.Items = append(q.Items, Item{e, name})
	}
	if g.one(3) {
		over := aggs
		for range 1 + g.n(2) {
			q.Having = append(q.Having, g.havingCond(over))
		}
	}
	return outs
}

func (g *Generator) havingCond(aggs scope) string {
	if len(aggs) == 0 {
		return fmt.Sprintf("count(*) > %d", g.n(6))
	}
	a := pick(g, aggs...)
	switch a.kind {
	case Huge, Wide, Big, Int, Dec:
		return fmt.Sprintf("%s %s %d", a.sql, pick(g, "<", ">", "<>"), g.n(300))
	default:
		return a.sql + " IS NOT NULL"
	}
}
