package flightsql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/signet-io/signet/scheduler/sql"
)

// template is a statement whose values come later: its text, cut at its placeholders ?, $1 or $name.
type template struct {
	text  string
	stmt  sql.Statement
	query sql.Query // where placeholders may stand; empty if the statement has no query
	marks []mark
	names []string // of $name, in order of their first use
	count int      // of parameters

	valuesAt int // where the rows of a query begin that is a VALUES list and nothing else; 0: it is not
}

// mark is one placeholder: text[start:end] stands for parameter index.
type mark struct {
	start, end, index int
}

// maxParameters of a statement.
const maxParameters = 10_000

func parseTemplate(text string) (*template, error) {
	stmt, err := sql.Parse(text)
	if err != nil {
		return nil, invalid("%v", err)
	}
	toks, err := sql.Tokenize(text)
	if err != nil {
		return nil, invalid("%v", err)
	}
	t := &template{text: text, stmt: stmt, query: queryOf(stmt)}
	if err := t.findMarks(toks); err != nil {
		return nil, err
	}
	t.findValues(toks)
	return t, nil
}

func queryOf(stmt sql.Statement) sql.Query {
	switch st := stmt.(type) {
	case *sql.Select:
		return st.Query
	case *sql.Insert:
		return st.Query
	case *sql.CreateTable:
		if st.Query != nil {
			return *st.Query
		}
	case *sql.Explain:
		return queryOf(st.Statement)
	}
	return sql.Query{}
}

func symbol(t sql.Token, s string) bool { return t.Kind == sql.KindSymbol && t.Value == s }

// findMarks uses the lexer's tokens, so that a question mark in a string, a name or a comment is none.
func (t *template) findMarks(toks []sql.Token) error {
	kinds := map[string]bool{}
	for i := 0; i < len(toks); i++ {
		m := mark{start: toks[i].Start, end: toks[i].End}
		var next *sql.Token
		if i+1 < len(toks) && toks[i+1].Start == toks[i].End {
			next = &toks[i+1]
		}
		var kind string
		switch {
		case symbol(toks[i], "?"):
			if next != nil && next.Kind == sql.KindNumber {
				return t.refuse(m, "write ? or $"+next.Value)
			}
			kind, m.index = "?", t.count
			t.count++
		case symbol(toks[i], "$") && next != nil && next.Kind == sql.KindNumber:
			n, err := strconv.Atoi(next.Value)
			if err != nil || n < 1 || n > maxParameters {
				return t.refuse(m, fmt.Sprintf("numbered parameters go from $1 to $%d", maxParameters))
			}
			kind, m.index, m.end = "$1", n-1, next.End
			t.count = max(t.count, n)
			i++
		case symbol(toks[i], "$") && next != nil && next.Kind == sql.KindIdent:
			kind, m.index, m.end = "$name", t.nameIndex(next.Value), next.End
			t.count = len(t.names)
			i++
		default:
			continue
		}
		kinds[kind] = true
		if len(kinds) > 1 {
			return t.refuse(m, "use one kind of parameter in a statement: ?, $1 or $name")
		}
		if t.count > maxParameters {
			return t.refuse(m, fmt.Sprintf("a statement has at most %d parameters", maxParameters))
		}
		if m.start < t.query.Offset || m.end > t.query.Offset+len(t.query.Text) {
			return t.refuse(m, "parameters stand for values in the query of SELECT, INSERT and CREATE TABLE AS; DELETE, UPDATE and MERGE take none")
		}
		t.marks = append(t.marks, m)
	}
	return t.checkNumbers()
}

func (t *template) refuse(m mark, why string) error {
	line := strings.Count(t.text[:m.start], "\n") + 1
	return invalid("the parameter %s at line %d cannot stand there: %s", t.text[m.start:m.end], line, why)
}

func (t *template) nameIndex(name string) int {
	for i, n := range t.names {
		if strings.EqualFold(n, name) {
			return i
		}
	}
	t.names = append(t.names, name)
	return len(t.names) - 1
}

func (t *template) checkNumbers() error {
	used := make([]bool, t.count)
	for _, m := range t.marks {
		used[m.index] = true
	}
	for i, u := range used {
		if !u {
			return invalid("the statement has $%d and lacks $%d", t.count, i+1)
		}
	}
	return nil
}

// findValues notes where the rows begin if the query is VALUES (…), (…).
func (t *template) findValues(toks []sql.Token) {
	for len(toks) > 0 && toks[0].Start < t.query.Offset {
		toks = toks[1:]
	}
	for len(toks) > 0 && symbol(toks[len(toks)-1], ";") {
		toks = toks[:len(toks)-1]
	}
	if len(toks) < 3 || toks[0].Kind != sql.KindIdent || !strings.EqualFold(toks[0].Value, "VALUES") {
		return
	}
	depth, expectRow := 0, true
	for _, tok := range toks[1:] {
		switch {
		case symbol(tok, "("):
			if depth == 0 && !expectRow {
				return
			}
			depth++
			expectRow = false
		case symbol(tok, ")"):
			depth--
		case depth > 0:
		case symbol(tok, ",") && !expectRow:
			expectRow = true
		default:
			return
		}
	}
	if depth == 0 && !expectRow {
		t.valuesAt = toks[1].Start
	}
}

// with is the statement for rows of values: literals, one for each parameter. Several rows become one statement: a longer VALUES list, or the
// query once for each row, one behind the other.
func (t *template) with(rows [][]string) string {
	if len(t.marks) == 0 {
		return t.text
	}
	var b strings.Builder
	end := t.query.Offset + len(t.query.Text)
	switch {
	case len(rows) == 1:
		t.fill(&b, 0, end, rows[0])
	case t.valuesAt > 0:
		b.WriteString(t.text[:t.valuesAt])
		for i, row := range rows {
			if i > 0 {
				b.WriteString(", ")
			}
			t.fill(&b, t.valuesAt, end, row)
		}
	default:
		b.WriteString(t.text[:t.query.Offset])
		for i, row := range rows {
			if i > 0 {
				b.WriteString("\nUNION ALL ")
			}
			b.WriteByte('(')
			t.fill(&b, t.query.Offset, end, row)
			b.WriteString("\n)")
		}
	}
	b.WriteString(t.text[end:])
	return b.String()
}

func (t *template) fill(b *strings.Builder, from, to int, row []string) {
	for _, m := range t.marks {
		b.WriteString(t.text[from:m.start])
		b.WriteByte('(')
		b.WriteString(row[m.index])
		b.WriteByte(')')
		from = m.end
	}
	b.WriteString(t.text[from:to])
}

// untyped is the statement with NULL for every value, for an analysis before any are known.
func (t *template) untyped() string { return t.with([][]string{t.nulls()}) }

// queryWith is the query with these texts for its parameters.
func (t *template) queryWith(row []string) string {
	var b strings.Builder
	t.fill(&b, t.query.Offset, t.query.Offset+len(t.query.Text), row)
	return b.String()
}

func (t *template) nulls() []string {
	row := make([]string, t.count)
	for i := range row {
		row[i] = "NULL"
	}
	return row
}

// empty is the query for no row of values: its columns and no rows.
func (t *template) empty() string {
	var b strings.Builder
	b.WriteString("SELECT * FROM (")
	t.fill(&b, t.query.Offset, t.query.Offset+len(t.query.Text), t.nulls())
	b.WriteString("\n) AS q LIMIT 0")
	return b.String()
}
