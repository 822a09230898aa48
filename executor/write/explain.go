package write

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// explain finds the column and the value behind an error of the COPY: DuckDB names neither. It runs the query again, once per suspect; what it cannot find stays
// DuckDB's error, which is about the query itself then.
func (p *plan) explain(ctx context.Context, inst *duckdb.Instance, cause error) error {
	if ctx.Err() != nil || duckdb.PlanError(cause).GetClass() != planv1.ErrorClass_ERROR_CLASS_USER {
		return cause
	}
	for _, s := range p.suspects() {
		value, found, err := first(ctx, inst, s.value, s.rows, s.pred)
		if err != nil {
			return cause
		}
		if found {
			return &duckdb.UserError{Message: fmt.Sprintf(s.text, value), Hint: "convert or filter the value in the SELECT"}
		}
	}
	return cause
}

// suspect is a place where a value may be refused.
type suspect struct {
	value, rows, pred string
	text              string // with a verb for the value
}

func (p *plan) suspects() []suspect {
	var out []suspect
	for _, c := range p.columns {
		name, typ := percent(fmt.Sprintf("column %q: value ", c.field.GetName())), percent(duckdb.TypeName(c.field.GetType()))
		col := fmt.Sprintf("i%d", c.input)
		if c.unfit != "" {
			out = append(out, suspect{col, p.inputRows(), c.unfit, name + "%s does not fit " + typ})
		}
		if c.inexact != "" {
			out = append(out, suspect{col, p.inputRows(), c.inexact, name + "%s cannot be stored exactly as " + typ})
		}
	}
	for _, k := range p.keys {
		if !k.Void {
			out = append(out, suspect{
				k.expr, p.tableRows(), k.expr + " IS NOT NULL AND TRY(" + k.SQL + ") IS NULL",
				percent(fmt.Sprintf("column %q: value ", k.source)) + "%s cannot be partitioned: the value of partition field " +
					percent(fmt.Sprintf("%q", k.name)) + " would not fit its type",
			})
		}
	}
	return out
}

func percent(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] == '%' {
			out = append(out, '%')
		}
		out = append(out, s[i])
	}
	return string(out)
}

// first answers one value of expr for which pred holds, as text that fits a message.
func first(ctx context.Context, inst *duckdb.Instance, expr, rows, pred string) (text string, found bool, err error) {
	q := "SELECT CAST(" + expr + " AS VARCHAR) FROM " + rows + " WHERE " + pred + " LIMIT 1"
	err = inst.Conn().QueryRowContext(ctx, q).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return shorten(text, 200), err == nil, err
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
