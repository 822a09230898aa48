package duckdb

import (
	"context"
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Untyped says which of a query's columns, as Describe gives them, are nothing but NULL and have no type: DuckDB describes them as INTEGER, but lets them be
// anything. What tells them apart is that a NULL of no type has none either when text is put behind it.
func (i *Instance) Untyped(ctx context.Context, query string, cols []*planv1.Column) ([]bool, error) {
	out := make([]bool, len(cols))
	var probes []string
	var at []int
	names := make([]string, len(cols))
	for n, c := range cols {
		names[n] = fmt.Sprintf("c%d", n) // several may have one name
		if c.GetEngineType() == "INTEGER" {
			probes = append(probes, names[n]+" || ''")
			at = append(at, n)
		}
	}
	if len(at) == 0 {
		return out, nil
	}
	probe := "SELECT " + strings.Join(probes, ", ") + " FROM (" + query + ") q(" + strings.Join(names, ", ") + ")"
	types, err := i.Describe(ctx, probe)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, probe)
	}
	for n, k := range at {
		out[k] = types[n].GetEngineType() != "VARCHAR"
	}
	return out, nil
}
