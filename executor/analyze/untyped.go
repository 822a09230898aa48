package analyze

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// untyped says which columns are nothing but a NULL without a type that comes from further inside, as that of (SELECT NULL AS s): DuckDB describes
// them as INTEGER, but lets them be anything. What tells them apart is that NULL || ” has no type, either.
func (a *analysis) untyped(cols []*planv1.Column) ([]bool, error) {
	out := make([]bool, len(cols))
	if !strings.Contains(strings.ToLower(a.out.GetSql()), "null") {
		return out, nil
	}
	var probes []string
	var at []int
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = fmt.Sprintf("c%d", i) // several may have one name
		if c.GetEngineType() == "INTEGER" {
			probes = append(probes, names[i]+" || ''")
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return out, nil
	}
	types, err := a.inst.Describe(a.ctx, "SELECT "+strings.Join(probes, ", ")+" FROM ("+a.out.GetSql()+") q("+strings.Join(names, ", ")+")")
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		out[i] = types[n].GetEngineType() != "VARCHAR"
	}
	return out, nil
}
