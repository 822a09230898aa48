package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// Target is the table that a query's rows go to, and how its columns find theirs.
type Target struct {
	Table  string // for messages
	Schema *planv1.Schema
	List   []string // INSERT INTO t (list); nil: none
	ByName bool
}

// MapColumns says for every column of the table, in its order, which column of the query fills it and by which cast. Columns that
// nothing fills get their write default or NULL.
func MapColumns(t Target, query []*planv1.Column) ([]*planv1.OutputColumn, error) {
	inputs, err := t.inputs(query)
	if err != nil {
		return nil, err
	}
	var bad problems
	out := make([]*planv1.OutputColumn, len(inputs))
	for i, f := range t.Schema.GetFields() {
		out[i] = &planv1.OutputColumn{Field: f, Input: int32(inputs[i])}
		text, err := CastType(f.GetType())
		if err != nil {
			bad.add(f.GetName(), fmt.Sprintf("column %s of %s cannot be written: %v", sql.DisplayIdent(f.GetName()), t.Table, err), "")
			continue
		}
		out[i].CastType = text
		if inputs[i] < 0 {
			checkUnfilled(&bad, t.Table, f)
			continue
		}
		checkCast(&bad, t.Table, f, query, inputs[i], text)
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	return out, nil
}

func checkUnfilled(bad *problems, table string, f *planv1.Field) {
	if f.GetRequired() && f.GetWriteDefault().GetKind() == nil {
		bad.add(f.GetName(), fmt.Sprintf("column %s of %s is required and the INSERT gives it no value", sql.DisplayIdent(f.GetName()), table), "")
	}
}

func checkCast(bad *problems, table string, f *planv1.Field, query []*planv1.Column, input int, castType string) {
	c := query[input]
	from, err := engineTypeOf(c)
	if err != nil {
		bad.add(f.GetName(), fmt.Sprintf("column %s of the query: %v", sql.DisplayIdent(c.GetName()), err), "")
		return
	}
	name := sql.DisplayIdent(f.GetName())
	if from.Name == "NULL" && f.GetRequired() {
		bad.add(f.GetName(), fmt.Sprintf("column %s of %s is required and the query gives NULL", name, table), "")
		return
	}
	if c.GetStringLiteral() && assignLiteral(f.GetType()) {
		return
	}
	err = assignable(from, f.GetType(), "")
	if err == nil {
		return
	}
	message := fmt.Sprintf("column %s of %s is %s and the query gives %s", name, table, TypeText(f.GetType()), from)
	if !errors.Is(err, errNoCast) {
		bad.add(f.GetName(), message+": "+err.Error(), "")
		return
	}
	if err.Error() != errNoCast.Error() {
		message += ": " + err.Error()
	}
	written, where := expression(c, input)
	bad.add(f.GetName(), message, castHint(from, f.GetType(), written, castType)+where)
}

// castHint shows the expression to write.
func castHint(from EngineType, to *planv1.Type, name, castType string) string {
	fromZoned, toZoned := from.Name == "TIMESTAMP WITH TIME ZONE", to.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS
	switch {
	case toZoned && (from.Name == "TIMESTAMP" || from.Name == "TIMESTAMP_S" || from.Name == "TIMESTAMP_MS"), fromZoned && zoneless(to.GetKind()):
		return "say in which time zone: " + name + " AT TIME ZONE 'UTC'"
	}
	return "nothing is rounded, cut or reinterpreted unless the query says so: CAST(" + name + " AS " + castType + ")"
}

// madeUp are the names that DuckDB gives columns of VALUES.
var madeUp = regexp.MustCompile(`^col\d+$`)

// expression is how a hint writes a column of the query: by its name where the query's text can have that, otherwise by its place, which
// then follows the hint.
func expression(c *planv1.Column, at int) (written, where string) {
	if name := c.GetName(); sql.DisplayIdent(name) == name && !madeUp.MatchString(name) {
		return name, ""
	}
	return "…", fmt.Sprintf(", around expression %d of the query", at+1)
}

// inputs gives for every column of the table the ordinal of the query's column, or -1.
func (t Target) inputs(query []*planv1.Column) ([]int, error) {
	switch {
	case t.ByName:
		return t.byName(query)
	case t.List != nil:
		return t.byList(query)
	}
	return t.byPosition(query)
}

func (t Target) byPosition(query []*planv1.Column) ([]int, error) {
	fields := t.Schema.GetFields()
	if len(query) == len(fields) {
		out := make([]int, len(fields))
		for i := range out {
			out[i] = i
		}
		return out, nil
	}
	counts := fmt.Sprintf("%s has %s and the query gives %d", t.Table, count(len(fields), "column"), len(query))
	if len(query) > len(fields) {
		return nil, &Error{
			Message: counts + ": nothing takes " + queryNames(query[len(fields):]),
			Hint:    "select fewer columns, or name the columns to fill: INSERT INTO t (a, b) …, or INSERT INTO t BY NAME …", Columns: columnNames(query[len(fields):]),
		}
	}
	missing := fieldNames(fields[len(query):])
	return nil, &Error{
		Message: counts + ": nothing is given for " + displayNames(missing),
		Hint:    "give all columns, or name those to fill: INSERT INTO t (a, b) …, or INSERT INTO t BY NAME …", Columns: missing,
	}
}

func (t Target) byList(query []*planv1.Column) ([]int, error) {
	targets, err := t.resolveList()
	if err != nil {
		return nil, err
	}
	if len(query) != len(targets) {
		hint := "give one expression for each listed column"
		if len(query) < len(targets) {
			return nil, &Error{
				Message: fmt.Sprintf("the list names %s and the query gives %d: nothing is given for %s", count(len(targets), "column"), len(query), displayNames(t.List[len(query):])),
				Hint:    hint, Columns: t.List[len(query):],
			}
		}
		return nil, &Error{
			Message: fmt.Sprintf("the list names %s and the query gives %d: nothing takes %s", count(len(targets), "column"), len(query), queryNames(query[len(targets):])),
			Hint:    hint, Columns: columnNames(query[len(targets):]),
		}
	}
	out := t.unfilled()
	for i, at := range targets {
		out[at] = i
	}
	return out, nil
}

// resolveList finds the table's column for each name of the list. A column named twice is refused, however it is spelt.
func (t Target) resolveList() ([]int, error) {
	names := fieldNames(t.Schema.GetFields())
	taken := make(map[int]string, len(t.List))
	out := make([]int, len(t.List))
	var bad problems
	for i, want := range t.List {
		at, candidates := sql.Find(want, names)
		if at < 0 {
			bad.add(want, t.unknown(want, names, candidates), t.suggest(want, names, candidates))
			continue
		}
		if before, ok := taken[at]; ok {
			message := "the list names column " + sql.DisplayIdent(names[at]) + " twice"
			if before != want {
				message += fmt.Sprintf(", as %s and as %s", sql.DisplayIdent(before), sql.DisplayIdent(want))
			}
			bad.add(names[at], message, "")
		}
		taken[at] = want
		out[i] = at
	}
	return out, bad.err()
}

// byName finds the table's column for each column of the query.
func (t Target) byName(query []*planv1.Column) ([]int, error) {
	names := fieldNames(t.Schema.GetFields())
	out := t.unfilled()
	var bad problems
	for i, c := range query {
		at, candidates := sql.Find(c.GetName(), names)
		if at < 0 {
			bad.add(c.GetName(), "the query's "+t.unknown(c.GetName(), names, candidates), t.suggest(c.GetName(), names, candidates))
			continue
		}
		if out[at] >= 0 {
			bad.add(names[at], fmt.Sprintf("the query's columns %s (%d) and %s (%d) both go to column %s of %s", sql.DisplayIdent(query[out[at]].GetName()),
				out[at]+1, sql.DisplayIdent(c.GetName()), i+1, sql.DisplayIdent(names[at]), t.Table), "rename one with AS")
			continue
		}
		out[at] = i
	}
	return out, bad.err()
}

func (t Target) unknown(want string, names []string, candidates []int) string {
	if len(candidates) > 0 {
		several := make([]string, len(candidates))
		for i, c := range candidates {
			several[i] = names[c]
		}
		return fmt.Sprintf("column %s could be any of %s of %s", sql.DisplayIdent(want), displayNames(several), t.Table)
	}
	return fmt.Sprintf("column %s is not in %s", sql.DisplayIdent(want), t.Table)
}

func (t Target) suggest(want string, names []string, candidates []int) string {
	if len(candidates) > 0 {
		return "write it exactly, with its case"
	}
	if near := sql.Suggest(want, names); near != "" {
		return "did you mean " + sql.DisplayIdent(near) + "?"
	}
	return "its columns are " + displayNames(names)
}

func (t Target) unfilled() []int {
	out := make([]int, len(t.Schema.GetFields()))
	for i := range out {
		out[i] = -1
	}
	return out
}

func fieldNames(fields []*planv1.Field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.GetName()
	}
	return out
}

func columnNames(columns []*planv1.Column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.GetName()
	}
	return out
}

// queryNames names the query's surplus columns; expressions have long names, so few are shown.
func queryNames(columns []*planv1.Column) string { return displayNames(columnNames(columns)) }

func displayNames(names []string) string {
	out := make([]string, 0, len(names))
	for i, n := range names {
		if i == shown {
			out = append(out, fmt.Sprintf("… (%d more)", len(names)-shown))
			break
		}
		out = append(out, sql.DisplayIdent(n))
	}
	return strings.Join(out, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
