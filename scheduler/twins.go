package scheduler

import (
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// distinctColumns refuses to write to a table that no query could read: other engines make columns that differ only in case, and SQL here ignores
// case.
func distinctColumns(t *target, fields []*planv1.Field) error {
	seen := map[string]string{}
	for _, f := range fields {
		lower := strings.ToLower(f.GetName())
		if other, dup := seen[lower]; dup {
			return fail(codeUser, "rename one of them with the engine that made the table; SQL here ignores case", "table %s: columns %q and %q differ only in case", t, other, f.GetName())
		}
		seen[lower] = f.GetName()
	}
	return nil
}
