package write

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// Places in ChangedRows.sql.
const (
	changedFile = iota
	changedPos
	changedClause
	changedRowID // with row lineage
)

// keepChanged finds the rows that the statement changes, once, with the values that it gives them, each cast as an INSERT casts.
func (r *rewrite) keepChanged(ctx context.Context) error {
	c := r.spec.GetChanged()
	if c == nil {
		return nil
	}
	inputs, err := describe(ctx, r.inst, c.GetSql())
	if err != nil {
		return err
	}
	plans, err := r.clausePlans(c, inputs)
	if err != nil {
		return err
	}
	query, err := r.changedQuery(c, plans, len(inputs))
	if err != nil {
		return err
	}
	if err := r.inst.CheckInt96(ctx, c.GetSql()); err != nil {
		return err
	}
	if _, err := r.inst.Conn().ExecContext(ctx, "CREATE TEMP TABLE "+duckdb.Ident(c.GetTable())+" AS "+query); err != nil {
		return explainClauses(ctx, r.inst, plans, err)
	}
	if err := r.inst.CheckPins(); err != nil {
		return err
	}
	return r.inst.Conn().QueryRowContext(ctx, "SELECT count(*) FROM "+duckdb.Ident(c.GetTable())+" WHERE _op <> "+opText(planv1.RowOp_ROW_OP_DELETE)).Scan(&r.added)
}

func opText(op planv1.RowOp) string { return strconv.Itoa(int(op)) }

// clausePlans work out the columns of each clause; nil: it gives none.
func (r *rewrite) clausePlans(c *planv1.ChangedRows, inputs []*planv1.Column) ([]*plan, error) {
	var out []*plan
	for n, clause := range c.GetClauses() {
		if clause.GetOp() == planv1.RowOp_ROW_OP_DELETE {
			out = append(out, nil)
			continue
		}
		if len(clause.GetColumns()) != len(r.task.GetWrite().GetColumns()) {
			return nil, fmt.Errorf("clause %d gives %d columns of %d", n, len(clause.GetColumns()), len(r.task.GetWrite().GetColumns()))
		}
		p := &plan{task: &planv1.Task{Sql: c.GetSql()}, inputs: len(inputs)}
		if err := p.addColumns(clause.GetColumns(), inputs); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// changedQuery is ChangedRows.sql with its columns named and cast.
func (r *rewrite) changedQuery(c *planv1.ChangedRows, plans []*plan, inputs int) (string, error) {
	lineage := r.task.GetWrite().GetRowLineage()
	if least := changedRowID; inputs < least || lineage && inputs < least+1 {
		return "", fmt.Errorf("the query of the changes has %d columns", inputs)
	}
	names := make([]string, inputs)
	for i := range names {
		names[i] = "i" + strconv.Itoa(i)
	}
	clause := names[changedClause]
	ops := make([]string, len(plans))
	for n, cl := range c.GetClauses() {
		ops[n] = fmt.Sprintf(" WHEN %d THEN %s", n, opText(cl.GetOp()))
	}
	op := "CAST(NULL AS INTEGER)" // clauses that do nothing have no number
	if len(ops) > 0 {
		op = "CASE " + clause + strings.Join(ops, "") + " END"
	}
	cols := []string{names[changedFile] + " AS _file", names[changedPos] + " AS _pos", op + " AS _op"}
	if lineage {
		cols = append(cols, names[changedRowID]+" AS _row_id")
	}
	for n := range r.task.GetWrite().GetColumns() {
		expr := valueOf(plans, n, clause)
		if expr == "" { // nothing but deletes
			break
		}
		cols = append(cols, fmt.Sprintf("%s AS c%d", expr, n))
	}
	return "SELECT " + strings.Join(cols, ", ") + " FROM (\n" + c.GetSql() + "\n) AS q(" + strings.Join(names, ", ") + ") WHERE " + clause + " IS NOT NULL", nil
}

// valueOf is one column of the table as the clause that applies gives it.
func valueOf(plans []*plan, column int, clause string) string {
	var whens []string
	for n, p := range plans {
		if p != nil {
			whens = append(whens, fmt.Sprintf(" WHEN %d THEN %s", n, p.columns[column].expr))
		}
	}
	switch {
	case len(whens) == 0:
		return ""
	case len(plans) == 1:
		return plans[0].columns[column].expr
	}
	return "CASE " + clause + strings.Join(whens, "") + " END"
}

// explainClauses finds the column and the value behind an error.
func explainClauses(ctx context.Context, inst *duckdb.Instance, plans []*plan, cause error) error {
	for _, p := range plans {
		if p == nil {
			continue
		}
		if err := p.explain(ctx, inst, cause); err != cause { //nolint:errorlint // it is the same error if nothing was found
			return err
		}
	}
	return cause
}
