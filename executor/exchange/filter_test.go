package exchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/duckdb"
)

// Filters are pushed into the parts, whose statistics decide which row groups are read at all: they must not hide NaNs, zeros of either
// sign, infinities, UUIDs or anything else. The rows are spread over parts of one or two values each.
func TestFilters_SeeWhatTheySawBefore(t *testing.T) {
	n := newNode(t)
	for _, v := range values {
		if carrier, _ := duckdb.Carrier(v.typ); carrier != v.typ || strings.HasPrefix(v.typ, "UNION") {
			continue // filters are computed behind the cast
		}
		t.Run(v.typ, func(t *testing.T) {
			rowsSQL := "SELECT x FROM (SELECT " + column(v.typ, v.list) + ") t(x)"
			cols, parts := n.produce(hashed(40, 0), 0, rowsSQL)
			inst := n.consume(input("v", cols, parts))
			constants := rows(t, inst, "SELECT DISTINCT CAST(x AS VARCHAR) FROM ("+rowsSQL+") WHERE x IS NOT NULL AND length(CAST(x AS VARCHAR)) < 1000 AND NOT contains(CAST(x AS VARCHAR), chr(0)) AND TRY_CAST(CAST(x AS VARCHAR) AS "+v.typ+") IS NOT NULL")
			require.NotEmpty(t, constants)
			for _, c := range constants {
				c = strings.TrimSuffix(strings.TrimPrefix(c, "("), ")")
				if strings.HasPrefix(c, "'") { // as it is printed in a row
					c = strings.ReplaceAll(strings.Trim(c, "'"), `\'`, "'")
				}
				var same []string
				for _, op := range []string{"=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM"} {
					where := fmt.Sprintf(" WHERE x %s CAST(%s AS %s)", op, duckdb.Literal(c), v.typ)
					same = append(same, "(SELECT count(*) FROM v"+where+") = (SELECT count(*) FROM ("+rowsSQL+")"+where+")")
				}
				require.Equal(t, "(true)", one(t, inst, strings.Join(same, " AND ")), "%s", c)
			}
			require.Equal(t, "(1, true)", one(t, inst, "(SELECT count(*) FROM v WHERE x IS NULL), (SELECT count(*) FROM v WHERE x IS NOT NULL) = (SELECT count(x) FROM ("+rowsSQL+"))"))
		})
	}
}
