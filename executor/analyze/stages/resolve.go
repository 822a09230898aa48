package stages

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// resolver turns the names in expressions into columns of relations.
type resolver struct {
	b      *block
	sc     *scope
	alias  func(name string) (ast.Value, error) // select list items by alias; nil, nil: none
	first  bool                                 // aliases come before columns (HAVING, QUALIFY)
	lambda []string
}

func (r *resolver) expr(v ast.Value) (ast.Value, error) {
	out, err := ast.Rewrite(v, r.object, exactConstant)
	if err != nil {
		return nil, err
	}
	if o, ok := out.(*ast.Object); ok && o.Str("alias") != "" {
		return named(o, ""), nil
	}
	return ast.Unname(out), nil
}

func (r *resolver) object(o *ast.Object) (ast.Value, error) {
	switch o.Str("class") {
	case "COLUMN_REF":
		return r.reference(o)
	case "LAMBDA":
		return r.lambdaExpr(o)
	case "SUBQUERY":
		return r.b.subquery(r, o)
	case "STAR":
		return nil, unstaged("a * stands inside an expression")
	case "POSITIONAL_REFERENCE", "PARAMETER", "DEFAULT":
		return nil, unstaged("it refers to columns by position")
	case "FUNCTION":
		return r.function(o)
	}
	return nil, nil
}

// function keeps what a function calls the fields that it makes of columns.
func (r *resolver) function(o *ast.Object) (ast.Value, error) {
	if !slices.Contains(namesFields, strings.ToLower(o.Str("function_name"))) {
		return nil, nil
	}
	args := list()
	for _, a := range o.List("children") {
		alias := ast.Alias(a)
		if ref, ok := a.(*ast.Object); ok && alias == "" && ref.Str("class") == "COLUMN_REF" && o.Str("function_name") != "row" {
			names := ref.List("column_names")
			alias = ast.Text(names[len(names)-1])
		}
		e, err := r.expr(a)
		if err != nil {
			return nil, err
		}
		if alias != "" {
			e = named(e, alias)
		}
		args.Items = append(args.Items, e)
	}
	c := ast.New()
	_ = o.Each(func(k string, v ast.Value) error { // the callback never fails
		c.Set(k, v)
		return nil
	})
	c.Set("children", args)
	return c, nil
}

func (r *resolver) reference(o *ast.Object) (ast.Value, error) {
	var parts []string
	for _, n := range o.List("column_names") {
		parts = append(parts, ast.Text(n))
	}
	if slices.ContainsFunc(r.lambda, func(p string) bool { return strings.EqualFold(p, parts[0]) }) {
		return o, nil
	}
	expr, fields, err := r.resolve(parts)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		expr = call("struct_extract", expr, text(f))
	}
	if a := o.Str("alias"); a != "" {
		return named(expr, a), nil
	}
	return expr, nil
}

func (r *resolver) resolve(parts []string) (ast.Value, []string, error) {
	alias := func() (ast.Value, error) {
		if len(parts) != 1 || r.alias == nil {
			return nil, nil
		}
		return r.alias(parts[0])
	}
	if r.first {
		if e, err := alias(); e != nil || err != nil {
			return e, nil, err
		}
	}
	if e, fields, err := r.sc.lookup(parts); e != nil || err != nil {
		return e, fields, err
	}
	if e, err := alias(); e != nil || err != nil {
		return e, nil, err
	}
	for s := r.sc.outer; s != nil; s = s.outer {
		if e, fields, err := s.lookup(parts); e != nil || err != nil {
			return e, fields, err
		}
	}
	if r.sc.hasTable(parts[0]) {
		return nil, nil, unstaged("it reads whole rows of %s as a value", parts[0])
	}
	return nil, nil, unstaged("the planner cannot tell what %s is", strings.Join(parts, "."))
}

func (r *resolver) lambdaExpr(o *ast.Object) (ast.Value, error) {
	inner := *r
	inner.lambda = slices.Clone(r.lambda)
	ast.Visit(o.Get("lhs"), func(n *ast.Object) bool {
		if p, ok := columnOf(n); ok {
			inner.lambda = append(inner.lambda, p)
		}
		return true
	})
	body, err := ast.Rewrite(o.Get("expr"), inner.object, exactConstant)
	if err != nil {
		return nil, err
	}
	c := ast.New()
	_ = o.Each(func(k string, v ast.Value) error { // the callback never fails
		if k == "expr" {
			v = body
		}
		c.Set(k, v)
		return nil
	})
	return c, nil
}

// conjuncts takes a condition apart. What all branches of an OR have in common is added to them: it may join two tables.
func conjuncts(v ast.Value) []ast.Value {
	o, ok := v.(*ast.Object)
	if !ok || o.Str("class") != "CONJUNCTION" {
		return []ast.Value{v}
	}
	if o.Str("type") == "CONJUNCTION_AND" {
		var out []ast.Value
		for _, c := range o.List("children") {
			out = append(out, conjuncts(c)...)
		}
		return out
	}
	return []ast.Value{v}
}

// implied are the conditions that every branch of an OR has.
func implied(v ast.Value) []ast.Value {
	o, ok := v.(*ast.Object)
	if !ok || o.Str("type") != "CONJUNCTION_OR" {
		return nil
	}
	var out []ast.Value
	for i, branch := range o.List("children") {
		cs := conjuncts(branch)
		if i == 0 {
			out = cs
			continue
		}
		out = slices.DeleteFunc(out, func(c ast.Value) bool {
			return !slices.ContainsFunc(cs, func(d ast.Value) bool { return form(c) == form(d) })
		})
	}
	return out
}
