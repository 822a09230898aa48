package stages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

func (p *planner) lowerAggregate(n *aggregate, need idset) (*lowered, error) {
	var aggs []item
	for _, a := range n.aggs {
		if need[a.id] || len(n.keys) == 0 {
			aggs = append(aggs, a)
		}
	}
	if len(aggs) == 0 && len(n.keys) == 0 {
		aggs = []item{{p.fresh("count"), call("count_star")}}
	}
	low, err := p.lower(n.in, refs(append(exprsOf(n.keys), exprsOf(aggs)...)...))
	if err != nil {
		return nil, err
	}
	f := low.frags[0]
	switch {
	case low.isWhole():
		return one(p.grouped(f, n.keys, aggs, n.sets)), nil
	case n.sets != nil:
		p.because("GROUPING SETS, ROLLUP and CUBE need all rows in one task")
		return p.groupedWhole(low, n.keys, aggs, n.sets)
	case len(low.frags) == 1 && f.together(n.keys):
		g := p.grouped(f, n.keys, aggs, nil)
		g.parted, g.alts = f.parted, nil
		return one(g), nil
	}
	for _, a := range aggs {
		if name := aggName(a); slices.Contains(ordered, name) && !sortedByArgument(a) {
			p.because("%s() depends on the order of all rows", name)
			return p.groupedWhole(low, n.keys, aggs, nil)
		}
	}
	parts, err := p.takeApart(f, aggs)
	if err != nil {
		return nil, err
	}
	if parts == nil {
		return p.groupedByHash(low, n.keys, aggs)
	}
	return p.twoPhases(low, n.keys, parts)
}

func aggName(a item) string {
	o, _ := a.expr.(*ast.Object)
	return strings.ToLower(o.Str("function_name"))
}

func isDistinct(o *ast.Object) bool { return string(ast.Bytes(o.Get("distinct"))) == "true" }

// sortedByArgument reports an aggregate such as list(x ORDER BY x): the order of what it reads is given.
func sortedByArgument(a item) bool {
	o, _ := a.expr.(*ast.Object)
	args, by := o.List("children"), o.Obj("order_bys").List("orders")
	if len(args) == 0 || !slices.Contains([]string{"list", "array_agg", "string_agg", "group_concat", "listagg"}, aggName(a)) {
		return false
	}
	for _, extra := range args[1:] {
		if _, _, _, constant := ast.Constant(extra); !constant {
			return false
		}
	}
	return slices.ContainsFunc(by, func(v ast.Value) bool {
		e, _ := v.(*ast.Object)
		return form(e.Get("expression")) == form(args[0])
	})
}

// grouped computes the aggregation over all rows that f has of each group.
func (p *planner) grouped(f *frag, keys, aggs []item, sets ast.Value) *frag {
	op := "aggregate"
	if len(aggs) == 0 {
		op = "distinct"
	}
	items := append(slices.Clone(keys), aggs...)
	g := f.over(selection{items: namedItems(items), groups: len(keys), sets: sets}, ids(items), op)
	g.bytes = g.bytes/4 + 1
	g.parted, g.alts = nil, nil
	g.floats = floatsOf(keys, f.floats)
	for _, a := range aggs {
		if p.dependsOnOrder(a) || f.floats.meets(refs(a.expr)) {
			g.floats[a.id] = true
		}
		g.shaky = g.shaky || slices.Contains(ordered, aggName(a)) && !sortedByArgument(a)
	}
	return g
}

// dependsOnOrder reports aggregates that may add up floating-point numbers, whose sum depends on the order.
func (p *planner) dependsOnOrder(a item) bool {
	name := aggName(a)
	if slices.Contains(counting, name) || slices.Contains(blind, name) {
		return false
	}
	t := p.typed[a.id]
	return t == "" || strings.Contains(t, "DOUBLE") || strings.Contains(t, "FLOAT")
}

func (p *planner) groupedWhole(low *lowered, keys, aggs []item, sets ast.Value) (*lowered, error) {
	w, err := p.wholeOf(low)
	if err != nil {
		return nil, err
	}
	return one(p.grouped(w, keys, aggs, sets)), nil
}

// groupedByHash brings all rows of a group together.
func (p *planner) groupedByHash(low *lowered, keys, aggs []item) (*lowered, error) {
	if len(keys) == 0 {
		for _, a := range aggs {
			if _, merges := merging[aggName(a)]; !merges {
				p.because("%s() needs all rows in one task", aggName(a))
			}
		}
		p.because("an aggregate needs all rows in one task")
		return p.groupedWhole(low, keys, aggs, nil)
	}
	ok, err := p.canHash(low, keys)
	if err != nil {
		return nil, err
	}
	if !ok {
		p.because("rows cannot be hashed by the keys of GROUP BY")
		return p.groupedWhole(low, keys, aggs, nil)
	}
	f, err := p.emit(low, refs(exprsOf(aggs)...).kept(low.frags[0].cols), hashed, keys)
	if err != nil {
		return nil, err
	}
	made := columnsOf(keys)
	g := p.grouped(f, made, aggs, nil)
	g.parted = partedBy(keys)
	return one(g), nil
}

func columnsOf(items []item) []item {
	out := make([]item, len(items))
	for i, it := range items {
		out[i] = item{it.id, column(it.id)}
	}
	return out
}

func partedBy(keys []item) [][]string {
	var out [][]string
	for _, k := range keys {
		out = append(out, []string{k.id})
	}
	return out
}

// canHash reports whether the keys' types have one hash per value.
func (p *planner) canHash(low *lowered, keys []item) (bool, error) {
	for _, k := range keys {
		t := p.typeIn(low, k.expr)
		if t == "" {
			return false, fmt.Errorf("the type of %s is unknown", k.id)
		}
		p.typed[k.id] = t
		if !hashable(t) {
			return false, nil
		}
	}
	return true, nil
}
