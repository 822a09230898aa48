package stages

import (
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// subqueryClass marks a subquery whose rows are computed before the expression that it stands in. Wherever the expression is evaluated, those rows are read
// as a whole.
const subqueryClass = "SIGNET_SUBQUERY"

type embedded struct {
	node *ast.Object // the expression, as parsed
	res  *result
	low  *lowered
}

func (p *planner) embed(o *ast.Object, child ast.Value, res *result) (ast.Value, error) {
	low, err := p.lower(res.rel, setOf(res.outs[0].id))
	if err != nil {
		return nil, err
	}
	p.subs = append(p.subs, &embedded{o, res, low})
	return ast.New("class", subqueryClass, "alias", o.Get("alias"), "index", ast.Raw(strconv.Itoa(len(p.subs)-1)), "child", child), nil
}

func (p *planner) embeddedAt(o *ast.Object) *embedded {
	n, err := strconv.Atoi(string(ast.Bytes(o.Get("index"))))
	if err != nil || n < 0 || n >= len(p.subs) {
		return nil
	}
	return p.subs[n]
}

// subquery resolves a subquery inside an expression.
func (b *block) subquery(r *resolver, o *ast.Object) (ast.Value, error) {
	if len(r.lambda) > 0 {
		return nil, unstaged("it has a subquery inside a lambda")
	}
	kind := o.Str("subquery_type")
	if !slices.Contains([]string{"SCALAR", "EXISTS", "ANY", "NOT_EXISTS"}, kind) {
		return nil, unstaged("it has a subquery of an unknown kind")
	}
	res, err := b.p.queryNode(o.Obj("subquery").Obj("node"), b.env, r.sc)
	if err != nil {
		return nil, err
	}
	if len(res.outs) != 1 && !strings.HasSuffix(kind, "EXISTS") {
		return nil, unstaged("it has a subquery with several columns")
	}
	child := ast.Value(null)
	if c := o.Get("child"); !ast.IsNull(c) {
		if child, err = r.expr(c); err != nil {
			return nil, err
		}
	}
	if len(free(res.rel)) == 0 {
		return b.p.embed(o, child, res)
	}
	if kind == "SCALAR" && !b.fixed {
		v, err := b.decorrelate(res)
		if err != nil {
			return nil, err
		}
		if a := o.Str("alias"); a != "" {
			return named(v, a), nil
		}
		return v, nil
	}
	return nil, unstaged("it has a correlated subquery")
}

// semiJoin turns [NOT] EXISTS (...) and x IN (...), as conditions of their own, into joins: there it does not matter whether they are false or NULL.
// NOT IN stays an expression, where it does.
func (b *block) semiJoin(v ast.Value) (bool, error) {
	o, ok := v.(*ast.Object)
	if !ok {
		return false, nil
	}
	kind := "SEMI"
	if o.Str("type") == "OPERATOR_NOT" && len(o.List("children")) == 1 {
		if o, ok = o.List("children")[0].(*ast.Object); !ok || o.Str("subquery_type") != "EXISTS" {
			return false, nil
		}
		kind = "ANTI"
	}
	in := o.Str("subquery_type") == "ANY" && o.Str("comparison_type") == "COMPARE_EQUAL"
	if o.Str("class") != "SUBQUERY" || !in && o.Str("subquery_type") != "EXISTS" {
		return false, nil
	}
	res, err := b.p.queryNode(o.Obj("subquery").Obj("node"), b.env, b.sc)
	if err != nil {
		return false, err
	}
	correlated := len(free(res.rel)) > 0
	if !in && !correlated { // all rows or none
		e, err := b.p.embed(o, null, res)
		if err != nil {
			return false, err
		}
		if kind == "ANTI" {
			e = ast.New("class", "OPERATOR", "type", "OPERATOR_NOT", "alias", "", "query_location", place, "children", list(e))
		}
		b.conds = append(b.conds, e)
		return true, nil
	}
	if len(res.outs) != 1 && in {
		return false, unstaged("it has a subquery with several columns")
	}
	j := &join{kind: kind, right: res.rel}
	if correlated {
		if s, ok := j.right.(*sorted); ok && !in && s.offset == nil && !s.percent {
			if n, ok := ordinal(s.limit); s.limit == nil || ok && n > 0 {
				j.right = s.in
			}
		}
		j.right, j.conds = hoist(j.right, free(res.rel))
		if len(free(j.right)) > 0 {
			return false, unstaged("it has a correlated subquery")
		}
	}
	if in {
		x, err := b.resolver(false).expr(o.Get("child"))
		if err != nil {
			return false, err
		}
		if hasSubquery(x) {
			return false, unstaged("it has a subquery inside a subquery's condition")
		}
		j.conds = append(j.conds, equals(x, column(res.outs[0].id)))
	}
	b.semis = append(b.semis, j)
	return true, nil
}

// hoist takes the conditions that read columns of the outer query out of a relation. Those that it cannot take out stay.
func hoist(r relation, outer idset) (relation, []ast.Value) {
	switch n := r.(type) {
	case *filter:
		in, out := hoist(n.in, outer)
		var kept []ast.Value
		for _, c := range n.conds {
			if outer.meets(refs(c)) && !hasSubquery(c) {
				out = append(out, c)
			} else {
				kept = append(kept, c)
			}
		}
		if len(kept) == 0 {
			return in, out
		}
		return &filter{in, kept}, out
	case *project:
		in, out := hoist(n.in, outer)
		p := &project{in: in, items: slices.Clone(n.items), many: n.many}
		have := setOf(ids(p.items)...)
		for _, id := range refs(out...).kept(in.columns()) {
			if !have[id] {
				p.items = append(p.items, item{id, column(id)})
			}
		}
		return p, out
	case *join:
		j := &join{kind: n.kind, left: n.left, right: n.right, conds: n.conds}
		var out, more []ast.Value
		if n.kind != "FULL" {
			j.left, out = hoist(n.left, outer)
		}
		if n.kind == "INNER" {
			j.right, more = hoist(n.right, outer)
			j.conds = nil
			for _, c := range n.conds {
				if outer.meets(refs(c)) && !hasSubquery(c) {
					more = append(more, c)
				} else {
					j.conds = append(j.conds, c)
				}
			}
		}
		return j, append(out, more...)
	default:
		return r, nil
	}
}

// decorrelate makes a scalar subquery that aggregates the rows whose keys are those of the outer row a LEFT JOIN with the aggregates of all keys. It does
// so only where an outer row without a partner gets the NULL that the subquery would give it.
func (b *block) decorrelate(res *result) (ast.Value, error) {
	refused := unstaged("it has a correlated subquery")
	pr, ok := res.rel.(*project)
	if !ok || len(pr.items) != 1 || pr.many {
		return nil, refused
	}
	agg, ok := pr.in.(*aggregate)
	if !ok || len(agg.keys) > 0 || agg.sets != nil || !nullOverNothing(pr.items[0].expr, agg) {
		return nil, refused
	}
	in, conds := hoist(agg.in, free(res.rel))
	if len(free(in)) > 0 || len(conds) == 0 {
		return nil, refused
	}
	inner := setOf(in.columns()...)
	grouped := &aggregate{in: in, aggs: agg.aggs}
	out := &project{in: grouped, items: slices.Clone(pr.items)}
	j := &join{kind: "LEFT", left: b.rel, right: out}
	for _, c := range conds {
		mine, theirs, ok := sides(c, inner)
		if !ok || !b.p.sameValues(mine, theirs) {
			return nil, refused
		}
		id := b.p.fresh("key")
		if name, plain := columnOf(mine); plain {
			b.p.typed[id] = b.p.typed[name]
		}
		grouped.keys = append(grouped.keys, item{id, mine})
		out.items = append(out.items, item{id, column(id)})
		j.conds = append(j.conds, equals(theirs, column(id)))
	}
	for _, a := range agg.aggs {
		if len(free(&project{in: in, items: []item{a}})) > 0 {
			return nil, refused
		}
	}
	b.rel = j
	return column(pr.items[0].id), nil
}

// sides takes an equality apart: what reads the inner columns only, and what reads none of them.
func sides(c ast.Value, inner idset) (mine, theirs ast.Value, ok bool) {
	o, isObj := c.(*ast.Object)
	if !isObj || o.Str("type") != "COMPARE_EQUAL" {
		return nil, nil, false
	}
	l, r := o.Get("left"), o.Get("right")
	if !inner.has(refs(l)) || len(refs(l)) == 0 {
		l, r = r, l
	}
	return l, r, len(refs(l)) > 0 && inner.has(refs(l)) && !inner.meets(refs(r)) && len(refs(r)) > 0
}

// sameValues reports whether two columns have types of which different values never compare as equal: then at most one group joins an outer row.
func (p *planner) sameValues(a, b ast.Value) bool {
	an, aok := columnOf(a)
	bn, bok := columnOf(b)
	if !aok || !bok {
		return false
	}
	at, bt := p.typed[an], p.typed[bn]
	return at != "" && (at == bt || integers[at] > 0 && integers[bt] > 0)
}

// nullOverNothing reports whether an expression over aggregates is NULL if there are no rows.
func nullOverNothing(v ast.Value, agg *aggregate) bool {
	o, ok := v.(*ast.Object)
	if !ok {
		return false
	}
	switch o.Str("class") {
	case "COLUMN_REF":
		n, _ := columnOf(o)
		for _, a := range agg.aggs {
			if c, ok := a.expr.(*ast.Object); ok && a.id == n {
				return slices.Contains([]string{"sum", "avg", "mean", "min", "max"}, c.Str("function_name"))
			}
		}
		return false
	case "CAST":
		return nullOverNothing(o.Get("child"), agg)
	case "FUNCTION":
		return slices.Contains([]string{"+", "-", "*", "/"}, o.Str("function_name")) &&
			slices.ContainsFunc(o.List("children"), func(c ast.Value) bool { return nullOverNothing(c, agg) }) &&
			!slices.ContainsFunc(o.List("children"), hasSubquery)
	default:
		return false
	}
}
