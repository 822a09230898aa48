package querygen

import (
	"fmt"
	"slices"
	"strings"
)

// mostRows bounds what joins may give, should they connect every row with every other one.
const mostRows = 60_000

// from fills FROM, and answers the columns and an order that tells all rows apart, if there is one.
func (g *Generator) from(q *Query, depth int, ctes []cte) (scope, []string) {
	var s scope
	var unique []string
	var using scope
	known, commas := true, g.one(4)
	q.most = 1
	for i := range pick(g, 1, 1, 1, 2, 2, 2, 3, 4) {
		if q.most > mostRows/4 {
			break
		}
		f := From{Alias: g.alias()}
		var own scope
		var sub *Query
		if depth > 0 && g.one(5) {
			sub, own = g.query(depth-1, ctes)
		}
		var named *cte
		if len(ctes) > 0 && g.one(2) {
			named = &ctes[g.n(len(ctes))]
		}
		var rows int
		switch {
		case sub != nil && q.most*sub.most <= mostRows:
			f.Sub, known, rows = sub, false, sub.most
		case named != nil && q.most*named.most <= mostRows:
			f.Table, own, known, rows = named.name, named.cols, false, named.most
		default:
			own = nil
			n := pick(g, 0, 0, 0, 1, 1, 1, 2, 2, 3)
			if g.one(15) {
				n = 4 // no rows
			}
			for n < 3 && q.most*g.tables[n].Rows > mostRows {
				n++
			}
			t := g.tables[n]
			f.Table, rows = t.Name, max(1, t.Rows)
			for _, c := range t.Columns {
				own = append(own, ref{c.Name, c.Kind})
			}
			unique = append(unique, f.Alias+".id")
		}
		own = own.under(f.Alias)
		if i > 0 {
			if i == 1 && f.Table != "" && f.Table[0] == 't' && q.From[0].Table != "" && q.From[0].Table[0] == 't' && !commas && g.one(4) {
				f.Using = pick(g, []string{"k"}, []string{"s"}, []string{"k", "s"}, []string{"j", "d"})
			}
			visible := g.joinTo(&f, s, own, commas)
			if len(f.Using) > 0 && visible {
				for _, c := range g.columns {
					if slices.Contains(f.Using, c.Name) {
						using = append(using, ref{c.Name, c.Kind})
					}
				}
			}
			if !visible {
				own = nil
				if f.Sub == nil && len(unique) > 0 && unique[len(unique)-1] == f.Alias+".id" {
					unique = unique[:len(unique)-1]
				}
			}
			if f.Join == "" {
				q.Where = append(q.Where, f.On...)
				f.On = nil
			}
		}
		q.most *= rows
		s = append(s, own...)
		q.From = append(q.From, f)
	}
	if !known {
		unique = nil
	}
	if len(q.From) == 2 {
		s = append(s, using...)
	}
	return s, unique
}

// joinTo picks how a table is joined; it answers whether its columns can be read afterwards.
func (g *Generator) joinTo(f *From, left, right scope, comma bool) bool {
	if !comma {
		f.Join = pick(g, "JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
	}
	if len(f.Using) > 0 {
		return f.Join != "SEMI JOIN" && f.Join != "ANTI JOIN"
	}
	for range pick(g, 1, 1, 1, 1, 2) {
		if c := g.equality(left, right); c != "" {
			f.On = append(f.On, c)
		}
	}
	if f.Join != "FULL JOIN" && (len(f.On) == 0 || g.one(8)) {
		both := append(left[:len(left):len(left)], right...)
		f.On = append(f.On, "("+g.cond(both, 1)+")")
	}
	if len(f.On) == 0 {
		f.On = []string{"true"}
	}
	return f.Join != "SEMI JOIN" && f.Join != "ANTI JOIN"
}

// equality joins two columns of comparable kinds.
func (g *Generator) equality(left, right scope) string {
	kinds := []Kind{pick(g, Int, Int, Big, Big, String, String, Dec, Date, Double)}
	if kinds[0] != String && kinds[0] != Date && g.one(2) {
		kinds = numeric
	}
	l, r := left.of(kinds...), right.of(kinds...)
	if len(l) == 0 || len(r) == 0 {
		return ""
	}
	op := "="
	if g.one(12) {
		op = "IS NOT DISTINCT FROM"
	}
	a, b := pick(g, l...), pick(g, r...)
	for range 8 { // columns of the same name have the same values
		if g.n(4) > 0 && nameOf(a) != nameOf(b) {
			a, b = pick(g, l...), pick(g, r...)
		}
	}
	if g.one(8) && a.kind == b.kind {
		return fmt.Sprintf("%s %s %s", g.expr(scope{a}, a.kind, 1), op, g.expr(scope{b}, b.kind, 1))
	}
	return fmt.Sprintf("%s %s %s", a.sql, op, b.sql)
}

func nameOf(r ref) string { return r.sql[strings.IndexByte(r.sql, '.')+1:] }

func (g *Generator) where(q *Query, s scope, depth int) {
	for range pick(g, 0, 0, 0, 0, 1, 1) {
		if depth > 0 && g.one(4) {
			q.Where = append(q.Where, g.subqueryCond(s))
			continue
		}
		q.Where = append(q.Where, g.cond(s, 2))
	}
}

// subqueryCond is a condition with a subquery over one table, correlated or not.
func (g *Generator) subqueryCond(s scope) string {
	t := pick(g, g.tables[1:]...)
	a := g.alias()
	var own scope
	for _, c := range t.Columns {
		own = append(own, ref{a + "." + c.Name, c.Kind})
	}
	where := ""
	if g.one(2) {
		where = g.cond(own, 1)
	}
	k := pick(g, Int, Big, String, Dec, Date)
	link := func() string {
		l, r := s.of(k), own.of(k)
		if len(l) == 0 {
			return g.literal(k) + " = " + pick(g, r...).sql
		}
		return pick(g, l...).sql + " = " + pick(g, r...).sql
	}
	and := func(more string) string {
		switch {
		case where == "" && more == "":
			return ""
		case where == "":
			return " WHERE " + more
		case more == "":
			return " WHERE " + where
		default:
			return " WHERE " + where + " AND " + more
		}
	}
	from := " FROM " + t.Name + " " + a
	switch g.n(7) {
	case 0:
		return fmt.Sprintf("%s IN (SELECT %s%s%s)", g.column(s, k), g.column(own, k), from, and(""))
	case 1:
		return fmt.Sprintf("%s NOT IN (SELECT %s%s%s)", g.column(s, k), g.column(own, k), from, and(""))
	case 2:
		return fmt.Sprintf("EXISTS (SELECT 1%s%s)", from, and(link()))
	case 3:
		return fmt.Sprintf("NOT EXISTS (SELECT 1%s%s)", from, and(link()))
	case 4:
		return fmt.Sprintf("%s %s (SELECT %s(%s)%s%s)", g.column(s, k), pick(g, "<", ">", "="), pick(g, "min", "max"), g.column(own, k), from, and(""))
	case 5:
		return fmt.Sprintf("%s %s (SELECT %s(%s)%s%s)", g.column(s, k), pick(g, "<", ">=", "="), pick(g, "min", "max"), g.column(own, k), from, and(link()))
	default:
		return fmt.Sprintf("(%s IN (SELECT %s%s%s) OR %s)", g.column(s, k), g.column(own, k), from, and(""), g.cond(s, 1))
	}
}
