package stages

import (
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
)

// from makes a relation of a FROM clause.
func (p *planner) from(o *ast.Object, e *env) (relation, *scope, error) {
	if o == nil {
		return nil, nil, unstaged("the planner cannot read its FROM clause")
	}
	switch o.Str("type") {
	case "EMPTY":
		return &constants{}, newScope("", nil), nil
	case "BASE_TABLE":
		return p.baseTable(o, e)
	case "SUBQUERY":
		res, err := p.queryNode(o.Obj("subquery").Obj("node"), e, nil)
		if err != nil {
			return nil, nil, err
		}
		names, err := p.names(res)
		if err != nil {
			return nil, nil, err
		}
		return res.rel, newScope(o.Str("alias"), p.columns(res, renamed(names, o))), nil
	case "JOIN":
		return p.fromJoin(o, e)
	case "TABLE_FUNCTION", "EXPRESSION_LIST":
		return p.constantTable(o)
	default:
		return nil, nil, unstaged("it has a %s in FROM", strings.ToLower(o.Str("type")))
	}
}

// names are what the columns of a subquery are called from outside.
func (p *planner) names(res *result) ([]string, error) {
	names := make([]string, len(res.outs))
	for i, o := range res.outs {
		names[i] = o.name
		if o.name == "" {
			n, err := p.engine.name(o.raw)
			if err != nil {
				return nil, err
			}
			names[i] = n
		}
	}
	return distinctNames(names), nil
}

func (p *planner) columns(res *result, names []string) []visible {
	out := make([]visible, len(res.outs))
	for i, o := range res.outs {
		out[i] = visible{names[i], column(o.id)}
	}
	return out
}

// renamed applies the column names of an alias: t AS q(a, b).
func renamed(names []string, o *ast.Object) []string {
	out := slices.Clone(names)
	for i, n := range o.List("column_name_alias") {
		if i < len(out) {
			out[i] = ast.Text(n)
		}
	}
	return out
}

func (p *planner) baseTable(o *ast.Object, e *env) (relation, *scope, error) {
	name := o.Str("table_name")
	alias := o.Str("alias")
	if alias == "" {
		alias = name
	}
	if o.Str("schema_name") == "" {
		if c := e.find(name); c != nil {
			return p.common(c, o, alias)
		}
	}
	src, ok := p.sources[name]
	if !ok {
		return nil, nil, unstaged("the planner does not know %s", name)
	}
	s := &scan{source: src}
	names := make([]string, len(src.Columns))
	for i, c := range src.Columns {
		names[i] = c.GetName()
		id := p.fresh(c.GetName())
		p.typed[id] = c.GetEngineType()
		s.cols = append(s.cols, item{id, column(c.GetName())})
	}
	names = renamed(names, o)
	cols := make([]visible, len(names))
	for i, n := range names {
		cols[i] = visible{n, column(s.cols[i].id)}
	}
	return s, newScope(alias, cols), nil
}

// common reads a common table expression: planned again for each reader, or, if it would be computed twice, once for all.
func (p *planner) common(c *cte, o *ast.Object, alias string) (relation, *scope, error) {
	if c.res == nil || !c.many || cheap(c.res.rel) {
		res, err := p.queryNode(c.node, c.env, nil)
		if err != nil {
			return nil, nil, err
		}
		if c.res = res; c.names == nil {
			if c.names, err = p.names(res); err != nil {
				return nil, nil, err
			}
			for i, a := range c.aliases {
				if i < len(c.names) {
					c.names[i] = a
				}
			}
		}
	}
	names := renamed(c.names, o)
	if !c.many || cheap(c.res.rel) {
		return c.res.rel, newScope(alias, p.columns(c.res, names)), nil
	}
	if c.stored == nil {
		f, err := p.store(c.res)
		if err != nil {
			return nil, nil, err
		}
		c.stored = f
	}
	s := &stored{from: c.stored}
	again := map[string]string{}
	cols := make([]visible, len(names))
	for i, out := range c.res.outs {
		id, ok := again[out.id]
		if !ok {
			id = p.fresh(out.id)
			again[out.id] = id
			p.typed[id] = p.typed[out.id]
			s.cols = append(s.cols, item{id, column(out.id)})
		}
		cols[i] = visible{names[i], column(id)}
	}
	return s, newScope(alias, cols), nil
}

// cheap relations treat each row by itself: computing them again gives the same rows, and costs little.
func cheap(r relation) bool {
	switch r.(type) {
	case *scan, *constants, *filter, *project, *stored:
	default:
		return false
	}
	return !slices.ContainsFunc(r.parts(), func(p relation) bool { return !cheap(p) }) && !slices.ContainsFunc(r.exprs(), hasSubquery)
}

// constantTable is a VALUES list or a table function over constants.
func (p *planner) constantTable(o *ast.Object) (relation, *scope, error) {
	plain := true
	ast.Visit(o, func(n *ast.Object) bool {
		if c := n.Str("class"); c == "SUBQUERY" || c == "COLUMN_REF" && !p.argumentName(o, n) {
			plain = false
		}
		return plain
	})
	if !plain || o.Str("with_ordinality") != "" && o.Str("with_ordinality") != "WITHOUT_ORDINALITY" {
		return nil, nil, unstaged("it calls a table function over columns")
	}
	made, _ := ast.Rewrite(o, func(*ast.Object) (ast.Value, error) { return nil, nil }, exactConstant) // neither callback fails
	sql, err := p.render(selection{items: []ast.Value{star()}, from: made}.node())
	if err != nil {
		return nil, nil, err
	}
	cols, err := p.describe(sql)
	if err != nil {
		return nil, nil, err
	}
	c, sc := p.constantColumns(made, o, cols)
	return c, sc, nil
}

func (p *planner) constantColumns(made ast.Value, o *ast.Object, cols []*planv1.Column) (relation, *scope) {
	c := &constants{table: made}
	alias := o.Str("alias")
	if fn := o.Obj("function"); fn != nil && alias == "" {
		alias = fn.Str("function_name")
	}
	vis := make([]visible, len(cols))
	for i, col := range cols {
		id := p.fresh(col.GetName())
		p.typed[id] = col.GetEngineType()
		c.cols = append(c.cols, item{id, column(col.GetName())})
		vis[i] = visible{col.GetName(), column(id)}
	}
	return c, newScope(alias, vis)
}

// argumentName tells name = value from a column in the arguments of a table function.
func (p *planner) argumentName(o, ref *ast.Object) bool {
	for _, a := range o.Obj("function").List("children") {
		if c, ok := a.(*ast.Object); ok && c.Str("type") == "COMPARE_EQUAL" && c.Obj("left") == ref {
			return true
		}
	}
	return false
}

func star() *ast.Object {
	return ast.New("class", "STAR", "type", "STAR", "alias", "", "query_location", place, "relation_name", "", "exclude_list", list(), "replace_list", list(),
		"columns", no, "expr", null, "qualified_exclude_list", list(), "rename_list", list())
}

func (p *planner) fromJoin(o *ast.Object, e *env) (relation, *scope, error) {
	left, ls, err := p.from(o.Obj("left"), e)
	if err != nil {
		return nil, nil, err
	}
	right, rs, err := p.from(o.Obj("right"), e)
	if err != nil {
		return nil, nil, err
	}
	kind, names := o.Str("join_type"), []string(nil)
	for _, n := range o.List("using_columns") {
		names = append(names, ast.Text(n))
	}
	switch o.Str("ref_type") {
	case "REGULAR", "CROSS":
	case "NATURAL":
		names = common(ls, rs)
	default:
		return nil, nil, unstaged("it has a %s join", strings.ToLower(o.Str("ref_type")))
	}
	sc, conds, err := using(kind, ls, rs, names)
	if err != nil {
		return nil, nil, err
	}
	if cond := o.Get("condition"); !ast.IsNull(cond) {
		b := &block{p: p, env: e, sc: sc, fixed: true}
		for _, c := range conjuncts(cond) {
			r, err := b.resolver(false).expr(c)
			if err != nil {
				return nil, nil, err
			}
			conds = append(conds, conjuncts(r)...)
		}
	}
	if len(free(&join{kind: kind, left: left, right: right, conds: conds})) > 0 {
		return nil, nil, unstaged("it has a lateral join")
	}
	switch kind {
	case "INNER", "LEFT", "FULL":
		return &join{kind, left, right, conds}, sc, nil
	case "RIGHT":
		return &join{"LEFT", right, left, conds}, sc, nil
	case "SEMI", "ANTI":
		return &join{kind, left, right, conds}, ls, nil
	default:
		return nil, nil, unstaged("it has a %s join", strings.ToLower(kind))
	}
}
