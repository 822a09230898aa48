package plan

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// Guard is a condition that all rows of a write must satisfy, as the table will have them. A task that meets another row fails and names it, so
// that nothing is committed.
type Guard struct {
	Predicate *planv1.Predicate
	Text      string // for messages: REPLACE WHERE day = '2026-01-31'
}

// guardShown bounds how many columns a message about a row shows.
const guardShown = 5

// guard puts the request's condition on top of a stage's query. It stands in the select list, not in a WHERE clause, which an optimizer could
// evaluate for rows that the query itself leaves out.
func (b *builder) guard(st *Stage) error {
	g := b.req.Guard
	if g == nil {
		return nil
	}
	used := -1
	for _, c := range b.req.Output {
		if used = int(c.GetInput()); used >= 0 {
			break
		}
	}
	if used < 0 {
		return fmt.Errorf("%s: no column of the table comes from the query", g.Text)
	}
	e := guardExpression{output: b.req.Output, columns: st.columns}
	ok := predicateSQL(g.Predicate, e.column, e.value)
	if e.err != nil {
		return &Error{Message: g.Text + ": " + e.err.Error()}
	}
	message := sql.QuoteString(g.Text + ": the query gives a row with ")
	for i, shown := range e.shown {
		if i == guardShown {
			break
		}
		if i > 0 {
			message += " || ', '"
		}
		message += " || " + sql.QuoteString(shown.name+" = ") + " || coalesce(CAST(" + shown.expr + " AS VARCHAR), 'NULL')"
	}
	conditions := append([]string{"(" + ok + ")"}, e.refused...)
	st.sql, st.columns = numbered(st.sql, st.columns)
	list := make([]string, len(st.columns))
	for i := range list {
		list[i] = fmt.Sprintf("c%d", i)
		if i == used {
			list[i] = fmt.Sprintf("CASE WHEN %s THEN c%d ELSE error(%s) END AS c%d", strings.Join(conditions, " OR "), i, message, i)
		}
	}
	st.sql = "SELECT " + strings.Join(list, ", ") + " FROM (\n" + st.sql + "\n) AS g"
	st.Notes = append(st.Notes, "every row is checked against "+g.Text)
	return nil
}

// guardExpression writes a predicate over the columns c0, c1, … of a query, as the table's columns are made of them.
type guardExpression struct {
	output  []*planv1.OutputColumn
	columns []*planv1.Column // of the query
	shown   []shownColumn
	refused []string // is true for rows that the cast to the column's type refuses: it says more than this
	err     error
}

type shownColumn struct{ name, expr string }

func (e *guardExpression) column(id int32) (string, *planv1.Type) {
	for _, c := range e.output {
		path := fieldPath([]*planv1.Field{c.GetField()}, id)
		if path == nil {
			continue
		}
		leaf := path[len(path)-1]
		expr := e.input(c)
		for _, f := range path[1:] {
			expr = "struct_extract(" + expr + ", " + sql.QuoteString(f.GetName()) + ")"
		}
		names := make([]string, len(path))
		for i, f := range path {
			names[i] = f.GetName()
		}
		e.show(sql.JoinName(names), expr)
		return expr, leaf.GetType()
	}
	e.err = fmt.Errorf("the table has no column #%d", id)
	return "NULL", nil
}

// input is the whole column of the table, over those of the query.
func (e *guardExpression) input(c *planv1.OutputColumn) string {
	at := int(c.GetInput())
	if at < 0 {
		if c.GetField().GetWriteDefault().GetKind() == nil {
			return "CAST(NULL AS " + c.GetCastType() + ")"
		}
		return e.value(c.GetField().GetWriteDefault(), c.GetField().GetType())
	}
	col := fmt.Sprintf("c%d", at)
	if at < len(e.columns) && e.columns[at].GetEngineType() == c.GetCastType() {
		return col
	}
	cast := "TRY_CAST(" + col + " AS " + c.GetCastType() + ")"
	if refused := "(" + col + " IS NOT NULL AND " + cast + " IS NULL)"; !slices.Contains(e.refused, refused) {
		e.refused = append(e.refused, refused)
	}
	return cast
}

func (e *guardExpression) show(name, expr string) {
	for _, s := range e.shown {
		if s.name == name {
			return
		}
	}
	e.shown = append(e.shown, shownColumn{name, expr})
}

func (e *guardExpression) value(v *planv1.Value, t *planv1.Type) string {
	name, err := CastType(t)
	if err != nil {
		e.err = err
		return "NULL"
	}
	text := valueText(v, t)
	if !strings.HasPrefix(text, "'") && v.GetKind() != nil { // a number as text is read exactly, whatever type it has
		text = "'" + text + "'"
	}
	return "CAST(" + text + " AS " + name + ")"
}
