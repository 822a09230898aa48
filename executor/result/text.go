package result

import (
	"context"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// asText are types that DuckDB's Arrow export has no true form for: it drops the offset of TIME WITH TIME ZONE, writes BIT as its internal bytes, and
// UNION as an Arrow type that most readers lack.
var asText = []string{"TIME WITH TIME ZONE", "BIT", "UNION(", "BIGNUM", "UHUGEINT", "VARIANT", "GEOMETRY", "TIME_NS"}

// textColumns answers the query with the columns of such types cast to text, nested ones whole. Order and names stay.
func textColumns(ctx context.Context, inst *duckdb.Instance, sql string) (string, error) {
	cols, err := inst.Describe(ctx, sql)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(cols, needsText) {
		return sql, nil
	}
	names, list := make([]string, len(cols)), make([]string, len(cols))
	for i, c := range cols {
		names[i] = fmt.Sprintf("c%d", i)
		list[i] = names[i] + " AS " + duckdb.Ident(c.GetName())
		if needsText(c) {
			list[i] = "CAST(" + names[i] + " AS VARCHAR) AS " + duckdb.Ident(c.GetName())
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM (" + strings.TrimRight(sql, "; \t\r\n") + "\n) AS q(" + strings.Join(names, ", ") + ")", nil
}

func needsText(c *planv1.Column) bool {
	if c.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_UNSPECIFIED && c.GetEngineType() != "UHUGEINT" {
		return false
	}
	return slices.ContainsFunc(asText, func(t string) bool { return strings.Contains(c.GetEngineType(), t) })
}
