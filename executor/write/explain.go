package write

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// explain finds the column and the value behind an error of the COPY: DuckDB names neither. It runs the query again, once or twice; what it
// cannot find stays DuckDB's error, which is about the query itself then.
func (p *plan) explain(ctx context.Context, inst *duckdb.Instance, cause error) error {
	if ctx.Err() != nil || duckdb.PlanError(cause).GetClass() != planv1.ErrorClass_ERROR_CLASS_USER {
		return cause
	}
	for _, s := range []struct {
		rows     string
		suspects []suspect
	}{{p.inputRows(), p.castSuspects()}, {p.tableRows(), p.keySuspects()}} {
		found, err := guilty(ctx, inst, s.rows, s.suspects)
		if err != nil {
			return cause
		}
		if found != "" {
			return &duckdb.UserError{Message: found, Hint: "convert or filter the value in the SELECT"}
		}
	}
	return cause
}

// suspect is a place where a value may be refused.
type suspect struct {
	value, pred string
	text        string // with a verb for the value
}

func (p *plan) castSuspects() []suspect {
	var out []suspect
	for _, c := range p.columns {
		name, typ := percent(fmt.Sprintf("column %q: value ", c.field.GetName())), percent(duckdb.TypeName(c.field.GetType()))
		col := fmt.Sprintf("i%d", c.input)
		if c.unfit != "" {
			out = append(out, suspect{col, c.unfit, name + "%s does not fit " + typ})
		}
		if c.inexact != "" {
			out = append(out, suspect{col, c.inexact, name + "%s cannot be stored exactly as " + typ})
		}
	}
	return out
}

func (p *plan) keySuspects() []suspect {
	var out []suspect
	for _, k := range p.keys {
		name := percent(fmt.Sprintf("column %q: value ", k.source))
		switch {
		case k.Void:
		case k.finite:
			out = append(out, suspect{k.expr, "isinf(" + k.expr + ")", name + "%s cannot be stored: tables have no infinite dates"})
		default:
			out = append(out, suspect{
				k.expr, k.expr + " IS NOT NULL AND TRY(" + k.SQL + ") IS NULL",
				name + "%s cannot be partitioned: the value of partition field " +
					percent(fmt.Sprintf("%q", k.name)) + " would not fit its type",
			})
		}
	}
	return out
}

// guilty answers the text of the first suspect with a value that its predicate holds for.
func guilty(ctx context.Context, inst *duckdb.Instance, rows string, suspects []suspect) (string, error) {
	if len(suspects) == 0 {
		return "", nil
	}
	sums := make([]string, len(suspects))
	values, dest := make([]sql.NullString, len(suspects)), make([]any, len(suspects))
	for n, s := range suspects {
		sums[n] = "any_value(CAST(" + s.value + " AS VARCHAR)) FILTER (WHERE " + s.pred + ")"
		dest[n] = &values[n]
	}
	if err := inst.Conn().QueryRowContext(ctx, "SELECT "+strings.Join(sums, ", ")+" FROM "+rows).Scan(dest...); err != nil {
		return "", err
	}
	for n, v := range values {
		if v.Valid {
			return fmt.Sprintf(suspects[n].text, shorten(v.String, 200)), nil
		}
	}
	return "", nil
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

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
