package stages

import (
	"fmt"
	"slices"

	"github.com/signet-io/signet/executor/analyze/ast"
)

func (p *planner) lowerFilter(n *filter, need idset) (*lowered, error) {
	conds := slices.Clone(n.conds)
	in := n.in
	for {
		f, ok := in.(*filter)
		if !ok {
			break
		}
		conds = append(conds, f.conds...)
		in = f.in
	}
	if j, ok := in.(*join); ok && j.kind == "INNER" {
		return p.lowerInner(j, conds, need)
	}
	conds = pushed(in, conds)
	if len(conds) == 0 {
		return p.lower(in, need)
	}
	low, err := p.lower(in, need.plus(refs(conds...)))
	if err != nil {
		return nil, err
	}
	return p.filtered(low, conds)
}

// pushed puts conditions below a join that keeps the rows of its left side, and answers the others.
func pushed(in relation, conds []ast.Value) []ast.Value {
	j, ok := in.(*join)
	if !ok || j.kind == "FULL" || j.kind == "INNER" {
		return conds
	}
	left := setOf(j.left.columns()...)
	var down, rest []ast.Value
	for _, c := range conds {
		if r := refs(c); len(r) > 0 && left.has(r) {
			down = append(down, c)
		} else {
			rest = append(rest, c)
		}
	}
	if len(down) > 0 {
		j.left = &filter{j.left, down}
	}
	return rest
}

func (p *planner) filtered(low *lowered, conds []ast.Value) (*lowered, error) {
	out := &lowered{}
	for _, f := range low.frags {
		c := *f
		if len(f.orders) > 0 || f.limit != nil || f.offset != nil {
			c = *f.over(selection{items: references(f.cols)}, f.cols, "")
		}
		c.plain = false
		c.where = slices.Clone(c.where)
		for _, cond := range conds {
			e, err := p.placed(&c, cond)
			if err != nil {
				return nil, err
			}
			c.where = append(c.where, e)
		}
		c.bytes = c.bytes/2 + 1
		c.ops = withOp(c.ops, "filter")
		out.frags = append(out.frags, &c)
	}
	return out, nil
}

// placed puts the rows of embedded subqueries into an expression, and their inputs into the fragment that evaluates it.
func (p *planner) placed(f *frag, v ast.Value) (ast.Value, error) {
	if !hasSubquery(v) {
		return v, nil
	}
	return ast.Rewrite(v, func(o *ast.Object) (ast.Value, error) {
		if o.Str("class") != subqueryClass {
			return nil, nil
		}
		sub := p.embeddedAt(o)
		if sub == nil {
			return nil, fmt.Errorf("a subquery was lost")
		}
		w, err := p.wholeBeside(f, sub.low)
		if err != nil {
			return nil, err
		}
		child, err := p.placed(f, o.Get("child"))
		if err != nil {
			return nil, err
		}
		item := named(column(sub.res.outs[0].id), sub.res.outs[0].id)
		if sub.node.Str("subquery_type") == "EXISTS" {
			item = integer(1)
		}
		s := selection{items: []ast.Value{item}, from: w.ref()}
		return ast.New("class", "SUBQUERY", "type", "SUBQUERY", "alias", o.Get("alias"), "query_location", place,
			"subquery_type", sub.node.Get("subquery_type"), "subquery", ast.New("node", s.node(), "named_param_map", list()), "child", child,
			"comparison_type", sub.node.Get("comparison_type")), nil
	}, nil)
}
