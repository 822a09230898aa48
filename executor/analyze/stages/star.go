package stages

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// expand lists the select items, with what each * stands for.
func (b *block) expand() error {
	for _, v := range b.node.List("select_list") {
		o, ok := v.(*ast.Object)
		if !ok || o.Str("class") != "STAR" {
			b.items = append(b.items, &selectItem{raw: v, alias: ast.Alias(v)})
			continue
		}
		cols, err := b.starColumns(o)
		if err != nil {
			return err
		}
		for _, c := range cols {
			b.items = append(b.items, &selectItem{name: c.name, expr: c.expr})
		}
	}
	return nil
}

func (b *block) starColumns(o *ast.Object) ([]visible, error) {
	if string(ast.Bytes(o.Get("columns"))) == "true" || !ast.IsNull(o.Get("expr")) || len(o.List("replace_list")) > 0 || len(o.List("rename_list")) > 0 ||
		len(o.List("qualified_exclude_list")) > 0 {
		return nil, unstaged("it has a * with REPLACE, RENAME or a pattern")
	}
	cols := b.sc.visible
	if rel := o.Str("relation_name"); rel != "" {
		var found []binding
		for _, t := range b.sc.tables {
			if strings.EqualFold(t.alias, rel) {
				found = append(found, t)
			}
		}
		if len(found) != 1 {
			return nil, unstaged("the planner cannot tell what %s.* is", rel)
		}
		cols = found[0].cols
	}
	var excluded []string
	for _, x := range o.List("exclude_list") {
		name := ast.Text(x)
		if name == "" {
			return nil, unstaged("it has a * with a qualified EXCLUDE")
		}
		excluded = append(excluded, name)
	}
	var out []visible
	for _, c := range cols {
		if !slices.ContainsFunc(excluded, func(x string) bool { return strings.EqualFold(x, c.name) }) {
			out = append(out, c)
		}
	}
	return out, nil
}
