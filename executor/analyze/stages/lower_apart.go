package stages

import (
	"slices"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// takeApart finds the partials of aggregates; nil if one of them has none.
func (p *planner) takeApart(f *frag, aggs []item) ([]taken, error) {
	var probe []ast.Value
	for _, a := range aggs {
		o, _ := a.expr.(*ast.Object)
		if _, ok := merging[aggName(a)]; !ok || len(o.List("children")) > 1 || len(o.Obj("order_bys").List("orders")) > 0 && !blindCall(o) {
			return nil, nil
		}
		probe = append(probe, a.expr, argumentOf(o))
	}
	if len(probe) == 0 {
		return []taken{}, nil
	}
	types, err := p.typesOf(selection{items: probe, from: f.ref()})
	if err != nil {
		return nil, err
	}
	out := make([]taken, 0, len(aggs))
	args := map[string]*item{}
	for i, a := range aggs {
		p.typed[a.id] = types[2*i]
		t, err := p.takeOne(a, types[2*i], types[2*i+1], args)
		if t == nil || err != nil {
			return nil, err
		}
		out = append(out, *t)
	}
	return out, nil
}

// argumentOf is an expression of the argument's type that can stand beside aggregates.
func argumentOf(o *ast.Object) ast.Value {
	if args := o.List("children"); len(args) == 1 {
		return call("min", args[0])
	}
	return call("count_star")
}

func blindCall(o *ast.Object) bool { return slices.Contains(blind, o.Str("function_name")) }

func (p *planner) takeOne(a item, typ, arg string, args map[string]*item) (*taken, error) {
	o, _ := a.expr.(*ast.Object)
	name := aggName(a)
	t := &taken{item: a}
	fn, _ := ast.Clone(o).(*ast.Object)
	fn.Set("order_bys", orderModifier(list()))
	if blindCall(o) {
		fn.Set("distinct", no)
	}
	if isDistinct(fn) {
		if !slices.Contains([]string{"count", "sum", "avg", "mean"}, name) {
			return nil, nil
		}
		t.distinct = p.distinctArgument(fn, args)
		fn.Set("children", list(column(t.distinct.id)))
		fn.Set("filter", null)
	}
	switch {
	case name == "avg" || name == "mean":
		if typ != "DOUBLE" || !isNumber(arg) || arg == "UHUGEINT" {
			return nil, nil
		}
		sum, count := renamedCall(fn, "sum"), renamedCall(fn, "count")
		t.partials = []partial{{p.fresh("sum"), sum, "sum"}, {p.fresh("count"), count, "sum"}}
		t.final = func(m []ast.Value) (ast.Value, error) {
			return operator("/", cast(m[0], plainType("DOUBLE")), m[1]), nil
		}
		return t, nil
	case name == "sum" && !isNumber(typ), name == "product" && typ != "DOUBLE":
		return nil, nil
	}
	t.partials = []partial{{p.fresh(name), fn, merging[name]}}
	t.final = func(m []ast.Value) (ast.Value, error) {
		if slices.Contains(counting, name) {
			return p.castTo(coalesce(m[0], integer(0)), typ)
		}
		return p.castTo(m[0], typ)
	}
	return t, nil
}

// distinctArgument is the argument as a key: NULL where the FILTER leaves the row out, which no aggregate counts.
func (p *planner) distinctArgument(fn *ast.Object, args map[string]*item) *item {
	e := fn.List("children")[0]
	if f := fn.Get("filter"); !ast.IsNull(f) {
		e = caseWhen(f, e)
	}
	if it, ok := args[form(e)]; ok {
		return it
	}
	it := &item{p.fresh("distinct"), e}
	args[form(e)] = it
	return it
}

func renamedCall(fn *ast.Object, name string) *ast.Object {
	c, _ := ast.Clone(fn).(*ast.Object)
	c.Set("function_name", ast.String(name))
	return c
}
