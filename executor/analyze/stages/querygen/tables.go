package querygen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Kind is a type of columns and expressions.
type Kind int

// The kinds.
const (
	Int Kind = iota + 1
	Big
	Huge
	Dec
	Wide
	Double
	String
	Date
	Stamp
	Bool
)

// Column is a column of a table.
type Column struct {
	Name string
	Kind Kind
	Type string
}

// Table is a table with a query that makes its rows.
type Table struct {
	Name    string
	Columns []Column
	Rows    int
	SQL     string
}

// columns are those of every table. Keys have few values, so that joins find partners; id is unique.
var columns = []Column{
	{"id", Big, "BIGINT"},
	{"k", Int, "INTEGER"},
	{"j", Big, "BIGINT"},
	{"q", Dec, "DECIMAL(10,2)"},
	{"s", String, "VARCHAR"},
	{"x", Int, "INTEGER"},
	{"m", Dec, "DECIMAL(12,2)"},
	{"w", Wide, "DECIMAL(38,4)"},
	{"h", Huge, "HUGEINT"},
	{"f", Double, "DOUBLE"},
	{"d", Date, "DATE"},
	{"ts", Stamp, "TIMESTAMP"},
	{"b", Bool, "BOOLEAN"},
}

// Generator makes tables and queries of a seed.
type Generator struct {
	rng     *rand.Rand
	columns []Column
	tables  []Table
	next    int
}

// New starts a generator.
func New(seed uint64) *Generator { return start(seed, columns) }

// NewStored is New for tables that lie in files, which have no HUGEINT.
func NewStored(seed uint64) *Generator {
	cols := slices.Clone(columns)
	for i, c := range cols {
		if c.Kind == Huge {
			cols[i].Kind, cols[i].Type = Wide, "DECIMAL(38,0)"
		}
	}
	return start(seed, cols)
}

func start(seed uint64, cols []Column) *Generator {
	g := &Generator{rng: rand.New(rand.NewPCG(seed, 4711)), columns: cols} //nolint:gosec // repeatable on purpose
	for i, rows := range []int{150 + g.n(150), 40 + g.n(60), 5 + g.n(20), 1 + g.n(3), 0} {
		g.tables = append(g.tables, g.table(fmt.Sprintf("t%d", i), rows))
	}
	return g
}

// Tables are the tables that the queries read.
func (g *Generator) Tables() []Table { return g.tables }

func (g *Generator) n(limit int) int { return g.rng.IntN(limit) }

// one in n.
func (g *Generator) one(n int) bool { return g.n(n) == 0 }

func pick[T any](g *Generator, of ...T) T { return of[g.n(len(of))] }

// table writes a query for rows of small domains, with NULLs, skew and extreme values.
func (g *Generator) table(name string, rows int) Table {
	t := Table{Name: name, Columns: g.columns, Rows: rows}
	var items []string
	for _, c := range g.columns {
		e := g.values(c)
		if c.Name != "id" && g.n(3) > 0 {
			e = fmt.Sprintf("CASE WHEN %s %% %d = 0 THEN NULL ELSE %s END", g.mix(), 3+g.n(9), e)
		}
		items = append(items, fmt.Sprintf("CAST(%s AS %s) AS %s", e, c.Type, c.Name))
	}
	t.SQL = fmt.Sprintf("SELECT %s FROM range(%d) r(i)", strings.Join(items, ", "), rows)
	return t
}

// mix is a number from 0 to 1008 that depends on the row.
func (g *Generator) mix() string {
	return fmt.Sprintf("((i * %d + %d) %% 1009)", 1+g.n(1008), g.n(1009))
}

// domain is a number below n, in one of two distributions.
func (g *Generator) domain(n int) string {
	if g.one(3) { // nine of ten rows have one value
		return fmt.Sprintf("CASE WHEN %s < 908 THEN %d ELSE %s %% %d END", g.mix(), g.n(n), g.mix(), n)
	}
	return fmt.Sprintf("%s %% %d", g.mix(), n)
}

func (g *Generator) values(c Column) string {
	switch c.Name {
	case "id":
		return "i"
	case "k", "j":
		return g.domain(pick(g, 3, 12, 40))
	case "q":
		return "(" + g.domain(8) + ") / 2"
	case "s":
		return pick(g, "'v' || (", "'v' || (", "'' || (", "'é日𝄞' || (") + g.domain(6) + ")"
	case "x":
		return "(" + g.mix() + ") - 500"
	case "m":
		return "((" + g.mix() + ") - 300) * 1.25"
	case "w":
		return pick(g, "CAST(9999999999999999999999999999 AS DECIMAL(38,4)) - ", "0.0001 * ") + g.mix()
	case "h":
		return pick(g, "CAST(100000000000000000000000000000 AS HUGEINT) * ", "CAST(-1 AS HUGEINT) * ") + g.mix()
	case "f": // multiples of an eighth: their sums are exact
		return fmt.Sprintf("CASE %s %% %d WHEN 0 THEN CAST('nan' AS DOUBLE) WHEN 1 THEN CAST('-0.0' AS DOUBLE) WHEN 2 THEN 0 WHEN 3 THEN CAST('inf' AS DOUBLE) ELSE (%s) / 8 END",
			g.mix(), pick(g, 7, 100, 1000000), g.mix())
	case "d":
		return "DATE '2020-02-25' + CAST(" + g.domain(20) + " AS INTEGER)"
	case "ts":
		return "TIMESTAMP '2020-02-28 12:00:00' + to_hours(CAST(" + g.domain(60) + " AS INTEGER))"
	default:
		return g.mix() + " % 2 = 0"
	}
}
