package stages

import (
	"fmt"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// scope is what a query's expressions may name: the tables in its FROM, and, around it, those of the outer query.
type scope struct {
	tables  []binding
	visible []visible // what * stands for, and what an unqualified name may mean
	outer   *scope
}

type binding struct {
	alias string
	cols  []visible
}

type visible struct {
	name string
	expr ast.Value // a reference, or the COALESCE of a FULL JOIN's USING column
}

func newScope(alias string, cols []visible) *scope {
	return &scope{tables: []binding{{alias, cols}}, visible: cols}
}

func find(cols []visible, name string) []visible {
	var out []visible
	for _, c := range cols {
		if strings.EqualFold(c.name, name) {
			out = append(out, c)
		}
	}
	return out
}

// lookup resolves the parts of a reference in this scope alone; fields are what is left for structs. It answers nil if nothing has that name.
func (s *scope) lookup(parts []string) (expr ast.Value, fields []string, err error) {
	if len(parts) > 1 {
		var found []ast.Value
		for _, t := range s.tables {
			if !strings.EqualFold(t.alias, parts[0]) {
				continue
			}
			for _, c := range find(t.cols, parts[1]) {
				found = append(found, c.expr)
			}
		}
		if len(found) > 1 {
			return nil, nil, unstaged("the name %s is ambiguous to the planner", strings.Join(parts, "."))
		}
		if len(found) == 1 {
			return found[0], parts[2:], nil
		}
	}
	switch hits := find(s.visible, parts[0]); len(hits) {
	case 0:
		return nil, nil, nil
	case 1:
		return hits[0].expr, parts[1:], nil
	default:
		return nil, nil, unstaged("the name %s is ambiguous to the planner", parts[0])
	}
}

func (s *scope) hasTable(alias string) bool {
	for _, t := range s.tables {
		if strings.EqualFold(t.alias, alias) {
			return true
		}
	}
	return false
}

// beside is the scope of a join of two tables without common columns.
func beside(l, r *scope) *scope {
	return &scope{tables: append(l.tables[:len(l.tables):len(l.tables)], r.tables...), visible: append(l.visible[:len(l.visible):len(l.visible)], r.visible...)}
}

// using is the scope of a join USING names, and its conditions.
func using(kind string, l, r *scope, names []string) (*scope, []ast.Value, error) {
	out := beside(l, r)
	out.visible = nil
	var conds []ast.Value
	merged := map[string]ast.Value{}
	for _, n := range names {
		left, right := find(l.visible, n), find(r.visible, n)
		if len(left) != 1 || len(right) != 1 {
			return nil, nil, unstaged("the name %s in USING is ambiguous to the planner", n)
		}
		conds = append(conds, equals(left[0].expr, right[0].expr))
		switch kind {
		case "RIGHT":
			merged[strings.ToLower(n)] = right[0].expr
		case "FULL":
			merged[strings.ToLower(n)] = coalesce(left[0].expr, right[0].expr)
		default:
			merged[strings.ToLower(n)] = left[0].expr
		}
	}
	for _, c := range l.visible {
		if e, ok := merged[strings.ToLower(c.name)]; ok {
			c.expr = e
		}
		out.visible = append(out.visible, c)
	}
	for _, c := range r.visible {
		if _, ok := merged[strings.ToLower(c.name)]; !ok {
			out.visible = append(out.visible, c)
		}
	}
	return out, conds, nil
}

// common are the names that a NATURAL JOIN joins on.
func common(l, r *scope) []string {
	var out []string
	for _, c := range l.visible {
		if len(find(r.visible, c.name)) > 0 {
			out = append(out, c.name)
		}
	}
	return out
}

// distinctNames names the columns of a subquery as DuckDB does: a name that was there already gets a number.
func distinctNames(names []string) []string {
	seen := map[string]bool{}
	out := make([]string, len(names))
	for i, n := range names {
		for k := 1; seen[strings.ToLower(n)]; k++ {
			n = fmt.Sprintf("%s_%d", names[i], k)
		}
		seen[strings.ToLower(n)] = true
		out[i] = n
	}
	return out
}
