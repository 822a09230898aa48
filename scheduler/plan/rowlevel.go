package plan

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// Names in the queries of row-level writes.
const (
	TargetView   = "signet_target"  // the table that is written, with positions
	changedTable = "signet_changed" // what of it changes
	matchedMark  = "signet_matched"
	clauseName   = "signet_clause"
)

// RowLevel is DELETE, UPDATE or MERGE over a table that is known. It becomes one query that finds what changes, whose text an executor analyses as it does
// any other; the rest follows from that.
type RowLevel struct {
	Table   string // for messages
	Name    []string
	Schema  *planv1.Schema
	Lineage bool // rows have _row_id and _last_updated_sequence_number
	// The statement is one of these.
	Delete *sql.Delete
	Update *sql.Update
	Merge  *sql.Merge
}

// Changes is the query that finds changes.
type Changes struct {
	SQL     string
	clauses []changeClause
	r       *RowLevel
}

// changeClause is what becomes of the rows of a clause: for each column of the table where its value comes from.
type changeClause struct {
	op     planv1.RowOp
	what   string // SET, INSERT
	values []changeValue
}

// changeValue is one column's.
type changeValue struct {
	input   int // of the query; -1: none
	text    sql.Fragment
	given   bool // by the statement: it is checked as an INSERT's is
	missing bool // INSERT leaves the column out
}

// Operation is how the sink calls the statement.
func (r *RowLevel) Operation() string {
	switch {
	case r.Delete != nil:
		return "delete"
	case r.Update != nil:
		return "update"
	}
	return "merge"
}

// Alias is the name by which the statement's text qualifies the table's columns.
func (r *RowLevel) Alias() string {
	var alias string
	switch {
	case r.Delete != nil:
		alias = r.Delete.Alias
	case r.Update != nil:
		alias = r.Update.Alias
	default:
		alias = r.Merge.Alias
	}
	if alias == "" {
		return r.Name[len(r.Name)-1]
	}
	return alias
}

// Aliased: the statement gives the table another name, so that its own names nothing.
func (r *RowLevel) Aliased() bool {
	return r.Delete != nil && r.Delete.Alias != "" || r.Update != nil && r.Update.Alias != "" || r.Merge != nil && r.Merge.Alias != ""
}

// Inserts: MERGE adds rows that are not in the table.
func (r *RowLevel) Inserts() bool {
	return r.Merge != nil && slices.ContainsFunc(r.Merge.When, func(c sql.MergeClause) bool { return c.Match == sql.NotMatched && c.Action == sql.MergeInsert })
}

func (r *RowLevel) column(name string) string {
	return sql.QuoteIdent(r.Alias()) + "." + sql.QuoteIdent(name)
}

// head is what every query of changes begins with.
func (r *RowLevel) head(clause string) []string {
	out := []string{r.column("_file"), r.column("_pos"), clause}
	if r.Lineage {
		out = append(out, r.column("_row_id"))
	}
	return out
}

// Changes writes the query.
func (r *RowLevel) Changes() (*Changes, error) {
	switch {
	case r.Delete != nil:
		return r.deleteChanges(), nil
	case r.Update != nil:
		return r.updateChanges()
	}
	return r.mergeChanges()
}

func (r *RowLevel) from() string {
	return sql.QuoteIdent(TargetView) + " AS " + sql.QuoteIdent(r.Alias())
}

func (r *RowLevel) deleteChanges() *Changes {
	q := "SELECT " + strings.Join(r.head("0"), ", ") + " FROM " + r.from() + where(r.Delete.Where)
	return &Changes{SQL: q, clauses: []changeClause{{op: planv1.RowOp_ROW_OP_DELETE}}, r: r}
}

func where(f *sql.Fragment) string {
	if f == nil {
		return ""
	}
	return " WHERE (" + f.Text + ")"
}

func (r *RowLevel) updateChanges() (*Changes, error) {
	set, err := r.assigned(r.Update.Set)
	if err != nil {
		return nil, err
	}
	items := r.head("0")
	c := changeClause{op: planv1.RowOp_ROW_OP_UPDATE, what: "SET"}
	items, c.values = r.values(items, set, func(text string) string { return text })
	from := r.from()
	if r.Update.From != nil {
		from += ", " + r.Update.From.Text
	}
	q := "SELECT " + strings.Join(items, ", ") + " FROM " + from + where(r.Update.Where)
	return &Changes{SQL: q, clauses: []changeClause{c}, r: r}, nil
}

// assigned finds the column of each assignment. One that is assigned twice is refused.
func (r *RowLevel) assigned(set []sql.Assignment) (map[int]sql.Fragment, error) {
	t := Target{Table: r.Table, Schema: r.Schema}
	for _, a := range set {
		t.List = append(t.List, a.Column.Text)
	}
	at, err := t.resolveList()
	if err != nil {
		return nil, err
	}
	out := make(map[int]sql.Fragment, len(set))
	for i, n := range at {
		out[n] = set[i].Value
	}
	return out, nil
}

// values adds an item for every column of the table: what it is set to, or what it is.
func (r *RowLevel) values(items []string, set map[int]sql.Fragment, guard func(string) string) ([]string, []changeValue) {
	values := make([]changeValue, len(r.Schema.GetFields()))
	for n, f := range r.Schema.GetFields() {
		v, given := set[n]
		values[n] = changeValue{input: len(items), text: v, given: given}
		switch {
		case given && (v.Default || v.Null):
			values[n].input = -1
			continue
		case given:
			items = append(items, guard("("+v.Text+")"))
		default:
			items = append(items, guard(r.column(f.GetName())))
		}
	}
	return items, values
}

// Clauses checks what the clauses give, by the analysed query's columns, and says how the table's columns are made of them.
func (c *Changes) Clauses(query []*planv1.Column) ([]*planv1.ChangeClause, error) {
	var bad problems
	var out []*planv1.ChangeClause
	for _, cl := range c.clauses {
		one := &planv1.ChangeClause{Op: cl.op}
		if cl.op != planv1.RowOp_ROW_OP_DELETE {
			for n, f := range c.r.Schema.GetFields() {
				one.Columns = append(one.Columns, c.output(&bad, cl, f, cl.values[n], query))
			}
		}
		out = append(out, one)
	}
	return out, bad.err()
}

func (c *Changes) output(bad *problems, cl changeClause, f *planv1.Field, v changeValue, query []*planv1.Column) *planv1.OutputColumn {
	out := &planv1.OutputColumn{Field: f, Input: int32(v.input)} //nolint:gosec // few
	name := sql.DisplayIdent(f.GetName())
	text, err := CastType(f.GetType())
	if err != nil {
		bad.add(f.GetName(), fmt.Sprintf("column %s of %s cannot be written: %v", name, c.r.Table, err), "")
		return out
	}
	out.CastType = text
	switch {
	case v.missing || v.text.Default:
		if f.GetRequired() && f.GetWriteDefault().GetKind() == nil {
			bad.add(f.GetName(), fmt.Sprintf("column %s of %s is required and %s gives it no value", name, c.r.Table, cl.what), "")
		}
		return out
	case v.text.Null:
		if f.GetRequired() {
			bad.add(f.GetName(), fmt.Sprintf("column %s of %s is required and %s gives NULL", name, c.r.Table, cl.what), "")
		}
		out.Field = &planv1.Field{Id: f.GetId(), Name: f.GetName(), Type: f.GetType(), Required: f.GetRequired(), Doc: f.GetDoc()} // without its default
		return out
	case v.input >= len(query):
		bad.add(f.GetName(), fmt.Sprintf("column %s of %s: the analysed query has %d columns", name, c.r.Table, len(query)), "")
		return out
	}
	if v.given {
		c.checkValue(bad, cl, f, v, query[v.input])
	}
	return out
}

// checkValue holds a value against the same rules as an INSERT's.
func (c *Changes) checkValue(bad *problems, cl changeClause, f *planv1.Field, v changeValue, given *planv1.Column) {
	if v.text.String && assignLiteral(f.GetType()) {
		return
	}
	col := &planv1.Column{Name: v.text.Text, Type: given.GetType(), EngineType: given.GetEngineType()}
	from, err := engineTypeOf(col)
	if err != nil {
		bad.add(f.GetName(), fmt.Sprintf("the value of column %s: %v", sql.DisplayIdent(f.GetName()), err), "")
		return
	}
	if err := assignable(from, f.GetType(), ""); err != nil {
		message := fmt.Sprintf("column %s of %s is %s and %s gives %s", sql.DisplayIdent(f.GetName()), c.r.Table, TypeText(f.GetType()), cl.what, from)
		if err.Error() != errNoCast.Error() {
			message += ": " + err.Error()
		}
		text, _ := CastType(f.GetType()) // it was written before
		bad.add(f.GetName(), message, castHint(from, f.GetType(), shortened(v.text.Text), text))
	}
}

func shortened(text string) string {
	if len(text) > 60 {
		return "…"
	}
	return text
}
