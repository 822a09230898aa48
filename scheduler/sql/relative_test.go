package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/sql"
)

func TestNamesRelativeFile(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO t SELECT * FROM 'a.csv'",
		"INSERT INTO t FROM 'a'",
		`INSERT INTO t FROM "a.csv"`,
		"INSERT INTO t SELECT * FROM read_csv('a', delim = ';')",
		"INSERT INTO t SELECT * FROM read_csv(['/a', 'b'])",
		"INSERT INTO t SELECT * FROM u, 'a.csv' WHERE x = 1",
		"INSERT INTO t SELECT * FROM u JOIN v ON u.a = v.a, 'a.csv'",
		"INSERT INTO t SELECT * FROM u LEFT JOIN 'a.csv' v USING (a)",
		"INSERT INTO t SELECT (SELECT max(x) FROM 'a.csv')",
		"INSERT INTO t SELECT * FROM u WHERE x IN (SELECT y FROM ('a.csv'))",
		"INSERT INTO t WITH c AS (FROM 'a.csv') SELECT * FROM c",
		"INSERT INTO t SELECT * FROM u AS values, 'a.csv'",
		"INSERT INTO t SELECT * FROM (PIVOT 'a.csv' ON x IN (1))",
		"SELECT * FROM u WHERE a = 1 UNION SELECT * FROM './a.csv'",
		"SELECT 'never closed",
	} {
		require.True(t, sql.NamesRelativeFile(text), text)
	}
	for _, text := range []string{
		"INSERT INTO t VALUES (1, 'a.csv')",
		"INSERT INTO t SELECT 'a', 'b' WHERE 'c' = 'd'",
		"INSERT INTO t SELECT * FROM '/a.csv' WHERE name = 'b' AND x IN ('c', 'd') ORDER BY 'e'",
		"INSERT INTO t SELECT * FROM 'file:///a.csv'",
		"INSERT INTO t SELECT * FROM read_csv(['/a', '/b'], delim = ';', nullstr = ['x', 'y'], columns = {'a': 'INT'}, quote := '\"')",
		"INSERT INTO t SELECT 'x' || i FROM lake.demo.u",
		"INSERT INTO t SELECT * FROM (VALUES ('a', 'b')) v(x, y)",
		`INSERT INTO t SELECT * FROM lake."a/b"."c.d" WHERE x IS DISTINCT FROM 'y'`,
		"SELECT * FROM u UNION VALUES ('a')",
		"DROP TABLE t",
	} {
		require.False(t, sql.NamesRelativeFile(text), text)
	}
}
