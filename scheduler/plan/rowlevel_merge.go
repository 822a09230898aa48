package plan

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// mergeChanges joins the table with the source. Of each pair the first clause whose condition holds applies.
func (r *RowLevel) mergeChanges() (*Changes, error) {
	m := r.Merge
	out := &Changes{r: r}
	var clauses []sql.MergeClause // those with a number, in its order
	branches := map[sql.MergeMatch]string{}
	for _, c := range m.When {
		then := "NULL"
		if c.Action != sql.MergeNothing {
			then = fmt.Sprint(len(clauses))
			clauses = append(clauses, c)
		}
		cond := "true"
		if c.And != nil {
			cond = "(" + c.And.Text + ")"
		}
		branches[c.Match] += " WHEN " + cond + " THEN " + then
	}
	choice := func(match sql.MergeMatch) string {
		if branches[match] == "" {
			return "NULL"
		}
		return "CASE" + branches[match] + " END"
	}
	file, mark := r.column("_file"), sql.QuoteIdent(m.Name)+"."+matchedMark
	choose := "CASE WHEN " + file + " IS NULL THEN " + choice(sql.NotMatched) + " WHEN " + mark + " THEN " + choice(sql.Matched) +
		" ELSE " + choice(sql.NotMatchedBySource) + " END"
	clause, lateral := choose+" AS "+clauseName, ""
	if slices.ContainsFunc(m.When, func(c sql.MergeClause) bool { return c.And.HasQuery() }) { // DuckDB does not take a name for such an expression within one SELECT
		clause, lateral = clauseName, ", LATERAL (SELECT "+choose+" AS "+clauseName+") AS signet_choice"
	}
	items := r.head(clause)
	for n, c := range clauses {
		cc := changeClause{op: planv1.RowOp_ROW_OP_DELETE}
		var err error
		guard := func(text string) string { return fmt.Sprintf("CASE WHEN %s = %d THEN %s END", clauseName, n, text) }
		switch c.Action {
		case sql.MergeUpdate:
			items, cc, err = r.mergeUpdate(items, c, guard)
		case sql.MergeInsert:
			items, cc, err = r.mergeInsert(items, c, guard)
		}
		if err != nil {
			return nil, err
		}
		out.clauses = append(out.clauses, cc)
	}
	out.SQL = "SELECT " + strings.Join(items, ", ") + " FROM " + r.from() + " " + r.join() + " JOIN (SELECT true AS " + matchedMark + ", * FROM " + m.Source.Text + ") AS " +
		sql.QuoteIdent(m.Name) + " ON (" + m.On.Text + ")" + lateral
	return out, nil
}

// join keeps the unmatched rows that some clause is about.
func (r *RowLevel) join() string {
	has := func(match sql.MergeMatch) bool {
		return slices.ContainsFunc(r.Merge.When, func(c sql.MergeClause) bool { return c.Match == match && c.Action != sql.MergeNothing })
	}
	table, source := has(sql.NotMatchedBySource), has(sql.NotMatched)
	switch {
	case table && source:
		return "FULL"
	case table:
		return "LEFT"
	case source:
		return "RIGHT"
	}
	return "INNER"
}

// sourceColumn is a column of the source, for *.
func (r *RowLevel) sourceColumn(name string) sql.Fragment {
	return sql.Fragment{Text: sql.QuoteIdent(r.Merge.Name) + "." + sql.QuoteIdent(name)}
}

func (r *RowLevel) allOfSource() map[int]sql.Fragment {
	out := map[int]sql.Fragment{}
	for n, f := range r.Schema.GetFields() {
		out[n] = r.sourceColumn(f.GetName())
	}
	return out
}

func (r *RowLevel) mergeUpdate(items []string, c sql.MergeClause, guard func(string) string) ([]string, changeClause, error) {
	cc := changeClause{op: planv1.RowOp_ROW_OP_UPDATE, what: "UPDATE SET"}
	set := r.allOfSource()
	if !c.All {
		var err error
		if set, err = r.assigned(c.Set); err != nil {
			return nil, cc, err
		}
	}
	items, cc.values = r.values(items, set, guard)
	return items, cc, nil
}

func (r *RowLevel) mergeInsert(items []string, c sql.MergeClause, guard func(string) string) ([]string, changeClause, error) {
	cc := changeClause{op: planv1.RowOp_ROW_OP_INSERT, what: "INSERT"}
	set := r.allOfSource()
	if !c.All {
		var err error
		if set, err = r.inserted(c); err != nil {
			return nil, cc, err
		}
	}
	for n := range r.Schema.GetFields() {
		v, given := set[n]
		value := changeValue{input: -1, text: v, given: given, missing: !given}
		if given && !v.Default && !v.Null {
			value.input = len(items)
			items = append(items, guard("("+v.Text+")"))
		}
		cc.values = append(cc.values, value)
	}
	return items, cc, nil
}

// inserted finds the column of each value.
func (r *RowLevel) inserted(c sql.MergeClause) (map[int]sql.Fragment, error) {
	set := map[int]sql.Fragment{}
	if c.Columns == nil {
		if len(c.Values) != len(r.Schema.GetFields()) {
			return nil, &Error{
				Message: fmt.Sprintf("INSERT gives %s and %s has %d", count(len(c.Values), "value"), r.Table, len(r.Schema.GetFields())),
				Hint:    "name the columns: INSERT (a, b) VALUES (…)",
			}
		}
		for n, v := range c.Values {
			set[n] = v
		}
		return set, nil
	}
	if len(c.Columns) != len(c.Values) {
		return nil, &Error{Message: fmt.Sprintf("INSERT names %s and gives %s", count(len(c.Columns), "column"), count(len(c.Values), "value")), Hint: "give one value for each named column"}
	}
	pairs := make([]sql.Assignment, len(c.Columns))
	for i := range pairs {
		pairs[i] = sql.Assignment{Column: c.Columns[i], Value: c.Values[i]}
	}
	return r.assigned(pairs)
}
