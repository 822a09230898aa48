package duckdb

import (
	"context"
	"errors"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// ErrNotSelect is returned for statements other than one SELECT or VALUES.
var ErrNotSelect = errors.New("want exactly one SELECT or VALUES statement")

// Describe binds a query without running it and answers its columns. It refuses anything but a single SELECT or VALUES statement, and
// statement parameters.
func (i *Instance) Describe(ctx context.Context, query string) ([]*planv1.Column, error) {
	var cols []*planv1.Column
	err := i.WithSelect(ctx, query, func(_ mapping.Connection, stmt mapping.PreparedStatement) error {
		cols = columnsOf(stmt)
		return nil
	})
	return cols, err
}

// WithSelect prepares a query, checks that it is a single SELECT or VALUES statement without parameters, and calls f with the handles, which are
// valid until f returns.
func (i *Instance) WithSelect(ctx context.Context, query string, f func(mapping.Connection, mapping.PreparedStatement) error) error {
	return i.withStatement(ctx, query, func(conn mapping.Connection, stmt mapping.PreparedStatement) error {
		if mapping.NParams(stmt) != 0 {
			return &duckdb.Error{Type: duckdb.ErrorTypeParameterNotAllowed, Msg: "Parameter Not Allowed Error: the statement has parameters, but no values came with it"}
		}
		return f(conn, stmt)
	})
}

// Parameters are the types that DuckDB takes the parameters $1, $2, ... of a query for; empty where it does not say.
func (i *Instance) Parameters(ctx context.Context, query string) ([]string, error) {
	var out []string
	err := i.withStatement(ctx, query, func(_ mapping.Connection, stmt mapping.PreparedStatement) error {
		for n := range mapping.NParams(stmt) {
			lt := mapping.ParamLogicalType(stmt, n+1)
			engine := ""
			if lt.Ptr != nil && mapping.GetTypeId(lt) != mapping.TypeInvalid {
				_, engine = TypeOf(lt)
			}
			mapping.DestroyLogicalType(&lt)
			out = append(out, engine)
		}
		return nil
	})
	return out, err
}

func (i *Instance) withStatement(ctx context.Context, query string, f func(mapping.Connection, mapping.PreparedStatement) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.Raw(func(conn mapping.Connection) error {
		var extracted mapping.ExtractedStatements
		count := mapping.ExtractStatements(conn, query, &extracted)
		defer mapping.DestroyExtracted(&extracted)
		if count == 0 {
			if msg := mapping.ExtractStatementsError(extracted); msg != "" {
				return errorFromText(msg)
			}
			return ErrNotSelect
		}
		if count != 1 {
			return ErrNotSelect
		}
		var stmt mapping.PreparedStatement
		defer mapping.DestroyPrepare(&stmt)
		if mapping.PrepareExtractedStatement(conn, extracted, 0, &stmt) == mapping.StateError {
			return errorFromText(mapping.PrepareError(stmt))
		}
		if mapping.PreparedStatementType(stmt) != mapping.StatementTypeSelect {
			return ErrNotSelect
		}
		return f(conn, stmt)
	})
}

func columnsOf(stmt mapping.PreparedStatement) []*planv1.Column {
	n := mapping.PreparedStatementColumnCount(stmt)
	cols := make([]*planv1.Column, n)
	for i := range n {
		lt := mapping.PreparedStatementColumnLogicalType(stmt, i)
		t, engine := TypeOf(lt)
		mapping.DestroyLogicalType(&lt)
		cols[i] = &planv1.Column{Name: mapping.PreparedStatementColumnName(stmt, i), Type: t, EngineType: engine}
	}
	return cols
}
