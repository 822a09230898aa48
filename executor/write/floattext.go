package write

import (
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// inexactFloat is a predicate that is true where text names a number that a floating point type does not hold. The rules are those of
// unquoted constants (casts.md): an integer is held exactly; any other number has no more digits than name every value of the type, and
// the nearest one is meant; what is too large or too small for the type is refused, which DuckDB makes infinite or zero.
func inexactFloat(out *planv1.Type, col, cast string) string {
	digits := 17
	if out.GetKind() == planv1.TypeKind_TYPE_KIND_FLOAT32 {
		digits = 9
	}
	integer := "TRY_CAST(" + col + " AS HUGEINT)"
	significant := `ltrim(regexp_replace(regexp_replace(` + col + `, '[eE].*$', ''), '[^0-9]', '', 'g'), '0')`
	return `CASE WHEN regexp_matches(` + col + `, '^\s*[+-]?[0-9_]+\s*$') THEN ` +
		integer + ` IS NULL OR ` + integer + ` IS DISTINCT FROM TRY_CAST(` + cast + ` AS HUGEINT) ` +
		`ELSE isinf(` + cast + `) AND NOT regexp_matches(` + col + `, '(?i)inf') OR ` + cast + ` = 0 AND ` + significant + ` <> '' OR ` +
		fmt.Sprintf(`length(%s) > %d END`, significant, digits)
}
