package stages

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values that DuckDB finds equal are the same value, with one hash, in the type that both sides of a join are cast to.
func TestKeyType_EqualValuesHashAlike(t *testing.T) {
	b := newBench(t)
	values := map[string]string{
		"TINYINT": "0 1 -1 127 -128", "SMALLINT": "0 1 -1 127 32767", "INTEGER": "0 1 -1 127 2147483647", "BIGINT": "0 1 -1 2147483647 9007199254740993 9223372036854775807",
		"HUGEINT": "0 1 -1 9223372036854775807 9007199254740993 170141183460469231731687303715884105727", "UTINYINT": "0 1 127 255", "USMALLINT": "0 1 255 65535",
		"UINTEGER": "0 1 2147483647 4294967295", "UBIGINT": "0 1 9223372036854775807 18446744073709551615", "UHUGEINT": "0 1 170141183460469231731687303715884105727",
		"DECIMAL(4,1)": "0 1 -1 127 127.5", "DECIMAL(10,2)": "0 1 127.5 127.55", "DECIMAL(18,6)": "0 1 127.5 9007199.000001", "DECIMAL(38,0)": "0 1 9223372036854775807",
		"DECIMAL(38,30)": "0 1 0.000000000000000000000000000001", "FLOAT": "0 -0.0 1 127.5 0.1 nan inf", "DOUBLE": "0 -0.0 1 127.5 127.55 0.1 nan inf 9007199254740992",
		"DATE": "2020-01-01 1969-12-31 infinity", "TIMESTAMP": "2020-01-01 1969-12-31", "VARCHAR": "0 1 2020-01-01", "BOOLEAN": "true false",
	}
	compared := 0
	for a, av := range values {
		for c, cv := range values {
			typ := keyType(a, c)
			require.Equal(t, typ, keyType(c, a), "%s %s", a, c)
			if typ == "" {
				continue
			}
			sql := fmt.Sprintf(`SELECT count(*), count(*) FILTER (WHERE hash(CAST(x AS %[1]s)) <> hash(CAST(y AS %[1]s)) OR CAST(x AS %[1]s) <> CAST(y AS %[1]s))
				FROM (SELECT CAST(unnest(string_split('%[2]s', ' ')) AS %[3]s) AS x), (SELECT CAST(unnest(string_split('%[4]s', ' ')) AS %[5]s) AS y) WHERE x = y`, typ, av, a, cv, c)
			var equal, wrong int
			require.NoError(t, b.inst.Conn().QueryRowContext(t.Context(), sql).Scan(&equal, &wrong), sql)
			require.Zero(t, wrong, "%s and %s in %s", a, c, typ)
			compared += equal
		}
	}
	require.Greater(t, compared, 400)
	for _, none := range [][2]string{{"VARCHAR", "INTEGER"}, {"BOOLEAN", "INTEGER"}, {"DATE", "VARCHAR"}, {"UHUGEINT", "HUGEINT"}, {"DECIMAL(38,0)", "DECIMAL(38,30)"}, {"INTEGER[]", "INTEGER[]"}} {
		require.Empty(t, keyType(none[0], none[1]), none)
	}
}
