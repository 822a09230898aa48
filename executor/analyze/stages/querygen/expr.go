package querygen

import (
	"fmt"
	"strings"
)

// ref is something that an expression may read.
type ref struct {
	sql  string
	kind Kind
}

type scope []ref

func (s scope) of(kinds ...Kind) scope {
	var out scope
	for _, r := range s {
		for _, k := range kinds {
			if r.kind == k {
				out = append(out, r)
			}
		}
	}
	return out
}

// under puts the names into a table.
func (s scope) under(alias string) scope {
	out := make(scope, len(s))
	for i, r := range s {
		out[i] = ref{alias + "." + r.sql, r.kind}
	}
	return out
}

var numeric = []Kind{Int, Big, Dec}

func (g *Generator) kind() Kind {
	return pick(g, Int, Int, Big, Dec, String, String, Date, Bool, Double, Stamp, Huge, Wide)
}

func (g *Generator) literal(k Kind) string {
	switch k {
	case Int, Big:
		return fmt.Sprint(g.n(60) - 10)
	case Huge:
		return fmt.Sprintf("CAST(%d AS HUGEINT)", g.n(100)-20)
	case Dec, Wide:
		return fmt.Sprintf("%d.%02d", g.n(40), g.n(4)*25)
	case Double:
		return pick(g, "0.5e0", "1e1", "-2.5e0", "CAST('nan' AS DOUBLE)")
	case String:
		return pick(g, "'v1'", "'v3'", "''", "'x''y'", "'2'")
	case Date:
		return fmt.Sprintf("DATE '2020-03-%02d'", 1+g.n(12))
	case Stamp:
		return fmt.Sprintf("TIMESTAMP '2020-02-29 %02d:00:00'", g.n(24))
	default:
		return pick(g, "true", "false")
	}
}

// column answers a column of a kind, or a constant where there is none.
func (g *Generator) column(s scope, k Kind) string {
	if c := s.of(k); len(c) > 0 && g.n(12) > 0 {
		return pick(g, c...).sql
	}
	return g.literal(k)
}

// expr is an expression of a kind. Numbers stay small, so that few queries overflow.
func (g *Generator) expr(s scope, k Kind, depth int) string {
	if depth <= 0 || g.one(3) {
		return g.column(s, k)
	}
	sub := func(k Kind) string { return g.expr(s, k, depth-1) }
	switch g.n(6) {
	case 0:
		return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", g.cond(s, depth-1), sub(k), sub(k))
	case 1:
		return fmt.Sprintf("coalesce(%s, %s)", sub(k), g.column(s, k))
	case 2:
		return fmt.Sprintf("nullif(%s, %s)", sub(k), g.literal(k))
	}
	switch k {
	case Int:
		return pick(g, fmt.Sprintf("(%s %% 7)", sub(Int)), fmt.Sprintf("(%s + %d)", sub(Int), g.n(9)), fmt.Sprintf("CAST(length(%s) AS INTEGER)", sub(String)),
			fmt.Sprintf("CAST(year(%s) AS INTEGER)", sub(Date)), fmt.Sprintf("-(%s)", sub(Int)), fmt.Sprintf("abs(%s)", sub(Int)))
	case Big:
		return pick(g, fmt.Sprintf("(%s + %s)", sub(Big), sub(Int)), fmt.Sprintf("(%s * 3)", sub(Big)), fmt.Sprintf("CAST(%s AS BIGINT)", sub(Int)),
			fmt.Sprintf("(%s // 2)", sub(Big)), fmt.Sprintf("datediff('day', DATE '2020-01-01', %s)", sub(Date)))
	case Dec:
		return pick(g, fmt.Sprintf("(%s + %s)", g.column(s, Dec), g.column(s, Dec)), fmt.Sprintf("(%s * 2)", g.column(s, Dec)), fmt.Sprintf("CAST(%s AS DECIMAL(12,2))", g.column(s, Int)))
	case Double:
		return pick(g, fmt.Sprintf("(%s + 0.5e0)", sub(Double)), fmt.Sprintf("CAST(%s AS DOUBLE)", sub(Int)), fmt.Sprintf("(%s * 2)", sub(Double)))
	case String:
		return pick(g, fmt.Sprintf("upper(%s)", sub(String)), fmt.Sprintf("(%s || %s)", sub(String), g.literal(String)), fmt.Sprintf("CAST(%s AS VARCHAR)", sub(Int)),
			fmt.Sprintf("substring(%s, 1, 2)", sub(String)))
	case Date:
		return pick(g, fmt.Sprintf("(%s + %d)", sub(Date), g.n(9)), fmt.Sprintf("CAST(%s AS DATE)", sub(Stamp)))
	case Stamp:
		return fmt.Sprintf("date_trunc('day', %s)", g.column(s, Stamp))
	case Bool:
		return "(" + g.cond(s, depth-1) + ")"
	default:
		return g.column(s, k)
	}
}

// cond is a condition.
func (g *Generator) cond(s scope, depth int) string {
	k := g.kind()
	switch g.n(9) {
	case 0:
		return fmt.Sprintf("%s IS %sNULL", g.expr(s, k, depth-1), pick(g, "", "NOT "))
	case 1:
		return fmt.Sprintf("%s %sIN (%s, %s, %s)", g.expr(s, k, depth-1), pick(g, "", "NOT "), g.literal(k), g.literal(k), g.literal(k))
	case 2:
		return fmt.Sprintf("%s BETWEEN %s AND %s", g.expr(s, k, depth-1), g.literal(k), g.literal(k))
	case 3:
		return fmt.Sprintf("%s LIKE %s", g.expr(s, String, depth-1), pick(g, "'v%'", "'%1'", "'_2%'"))
	case 4:
		if depth > 0 {
			return fmt.Sprintf("(%s %s %s)", g.cond(s, depth-1), pick(g, "OR", "AND"), g.cond(s, depth-1))
		}
	case 5:
		if depth > 0 {
			return fmt.Sprintf("NOT (%s)", g.cond(s, depth-1))
		}
	case 6:
		return fmt.Sprintf("%s IS %sDISTINCT FROM %s", g.expr(s, k, depth-1), pick(g, "", "NOT "), g.expr(s, k, depth-1))
	}
	return fmt.Sprintf("%s %s %s", g.expr(s, k, depth-1), pick(g, "=", "<", ">", "<=", ">=", "<>", "<>"), g.expr(s, k, 0))
}

// aggregate is an aggregate over rows of a scope, and its kind.
func (g *Generator) aggregate(s scope) (string, Kind) {
	filter := ""
	if g.one(5) {
		filter = " FILTER (WHERE " + g.cond(s, 1) + ")"
	}
	distinct := ""
	if g.one(5) {
		distinct = "DISTINCT "
	}
	k := g.kind()
	switch g.n(10) {
	case 0, 1:
		return "count(*)" + filter, Big
	case 2:
		return fmt.Sprintf("count(%s%s)%s", distinct, g.expr(s, k, 1), filter), Big
	case 3, 4:
		n := pick(g, Int, Big, Dec)
		out := Huge
		if n == Dec {
			out = Wide
		}
		return fmt.Sprintf("sum(%s%s)%s", distinct, g.expr(s, n, 1), filter), out
	case 5:
		return fmt.Sprintf("%s(%s)%s", pick(g, "min", "max"), g.expr(s, k, 1), filter), k
	case 6:
		return fmt.Sprintf("avg(%s%s)%s", distinct, g.expr(s, pick(g, Int, Dec, Double), 1), filter), 0 // its last bits are not compared with anything
	case 7:
		return fmt.Sprintf("sum(%s)%s", g.expr(s, pick(g, Huge, Wide, Double), 0), filter), 0
	case 8:
		return fmt.Sprintf("%s(%s)%s", pick(g, "bool_and", "bool_or"), g.cond(s, 1), filter), Bool
	default:
		return pick(g, fmt.Sprintf("median(%s)", g.expr(s, Int, 1)), fmt.Sprintf("string_agg(%s, ',' ORDER BY %s)", "S", "S"),
			fmt.Sprintf("list(%s ORDER BY %s)", "S", "S"), fmt.Sprintf("count_if(%s)", g.cond(s, 1)), fmt.Sprintf("bit_xor(%s)", g.expr(s, Int, 0))), 0
	}
}

// named puts one string column into the place of S.
func (g *Generator) named(sql string, s scope) string {
	if !strings.Contains(sql, "(S") {
		return sql
	}
	c := g.column(s, String)
	return strings.NewReplacer("(S", "("+c, "BY S", "BY "+c).Replace(sql)
}

// window is a window function that does not depend on which of equal rows comes first.
func (g *Generator) window(s scope, unique []string) (string, Kind) {
	part := ""
	if g.n(5) > 0 {
		part = "PARTITION BY " + g.expr(s, g.kind(), 1)
	}
	by := fmt.Sprintf("ORDER BY %s%s", g.expr(s, g.kind(), 0), pick(g, "", " DESC", " NULLS FIRST"))
	switch g.n(4) {
	case 0:
		return fmt.Sprintf("%s OVER (%s)", pick(g, "count(*)", "sum("+g.column(s, Int)+")", "max("+g.column(s, String)+")"), part), 0
	case 1:
		return fmt.Sprintf("%s() OVER (%s %s)", pick(g, "rank", "dense_rank"), part, by), Big
	case 2:
		return fmt.Sprintf("sum(%s) OVER (%s %s)", g.column(s, Int), part, by), Huge
	default:
		if len(unique) == 0 {
			return fmt.Sprintf("rank() OVER (%s %s)", part, by), Big
		}
		return fmt.Sprintf("%s OVER (%s %s, %s)", pick(g, "row_number()", "lag("+g.column(s, Int)+")"), part, by, strings.Join(unique, ", ")), Big
	}
}
