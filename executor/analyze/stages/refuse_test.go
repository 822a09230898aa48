package stages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is not staged says why, in words that mean something to whoever wrote the query, and is one task over all of its sources.
func TestPlan_NotStaged(t *testing.T) {
	b := corpus(t)
	b.table("x", "SELECT i AS a, union_value(num := i) AS un, i AS \"b#1\" FROM range(5) r(i)")
	for sql, why := range map[string]string{
		"WITH RECURSIVE r(n) AS (SELECT a FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT count(*) FROM r": "recursive",
		"SELECT k, random() FROM t GROUP BY k":                               "it calls random()",
		"SELECT count(*) FROM t WHERE uuid() IS NOT NULL":                    "it calls uuid()",
		"SELECT setseed(0.5), count(*) FROM t":                               "it calls setseed()",
		"SELECT count(*) FROM t TABLESAMPLE 50%":                             "sample",
		"SELECT s COLLATE nocase, count(*) FROM t GROUP BY 1":                "COLLATE",
		"SELECT DISTINCT ON (k) k, a FROM t ORDER BY k, a":                   "DISTINCT ON",
		"SELECT t.a, v.c FROM t ASOF JOIN v ON t.a >= v.uid":                 "asof join",
		"SELECT t.a, v.c FROM t POSITIONAL JOIN v":                           "positional join",
		"SELECT t.a, q.y FROM t, LATERAL (SELECT t.a + 1 AS y) q":            "cannot tell what t.a is",
		"SELECT t FROM t LIMIT 1":                                            "whole rows",
		"SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k) FROM t":          "correlated subquery",
		"SELECT k FROM t WHERE a > (SELECT min(uid) FROM u WHERE u.k < t.k)": "correlated subquery",
		"SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.c = t.a)":   "correlated subquery",
		"SELECT * REPLACE (a + 1 AS a) FROM t ORDER BY a LIMIT 3":            "REPLACE",
		"SELECT COLUMNS('[ak]') FROM t ORDER BY a LIMIT 3":                   "pattern",
		"SELECT k, n, GROUPING(k) FROM t GROUP BY CUBE (k, n)":               "GROUPING()",
		"SELECT a FROM t UNION BY NAME SELECT c AS a FROM u":                 "UNION BY NAME",
		"SELECT median(a) FROM t":                                            "median() needs all rows",
		"SELECT first(a) FROM t":                                             "first() depends on the order",
		"SELECT a FROM t ORDER BY a":                                         "ORDER BY needs all rows",
		"SELECT sum(a) OVER (ORDER BY a) FROM t":                             "without a common PARTITION BY",
		"SELECT row_number() OVER (PARTITION BY k) FROM t":                   "without a common PARTITION BY",
		"SELECT uid FROM w":                                                  "CSV and JSON",
		"SELECT k, count(*) FROM w GROUP BY k":                               "CSV and JSON",
		"SELECT range, count(*) FROM range(5) GROUP BY 1":                    "nothing in it",
		"SELECT un, count(*) FROM x GROUP BY un":                             "cannot be hashed",
		"SELECT \"b#1\", count(*) FROM x GROUP BY 1":                         "ends as",
		"SELECT a AS \"a#1\" FROM x ORDER BY a LIMIT 3":                      "ends as",
		"SELECT 1 AS k, count(*) FROM t GROUP BY alias(a)":                   "it calls alias()",
		"SELECT count(*) FROM t WHERE current_schema() = s":                  "it calls current_schema()",
		"SELECT a, unnest(l) + 1 FROM t ORDER BY 1":                          "unnest() inside",
		"SELECT count(*) FROM t, range(t.a)":                                 "table function over columns",
		"SELECT * FROM (PIVOT t ON k IN (1, 2) USING sum(a) GROUP BY s)":     "pivot",
		"SELECT a FROM t LIMIT 10%":                                          "one task has the first rows", "SELECT a FROM t LIMIT 3": "one task has the first rows",
	} {
		staged := b.plan(sql, DefaultOptions)
		require.Contains(t, staged.NotStaged, why, sql)
		require.Len(t, staged.Stages, 1, sql)
		require.Equal(t, sql, staged.Stages[0].Sql)
		require.True(t, staged.Stages[0].Single)
		for _, in := range staged.Stages[0].Inputs {
			require.False(t, in.Split, sql)
		}
		if !strings.Contains(why, "it calls") && why != "sample" {
			require.NoError(t, b.same(sql, staged, true, layouts[0]), sql)
		}
	}
}

// A function that DuckDB gives another value each time, or that aggregates, is known to the planner.
func TestNames_CoverDuckDB(t *testing.T) {
	b := newBench(t)
	names := func(where string) (out []string) {
		rs, err := b.inst.Conn().QueryContext(t.Context(), "SELECT DISTINCT function_name FROM duckdb_functions() WHERE "+where+" ORDER BY 1")
		require.NoError(t, err)
		defer rs.Close()
		for rs.Next() {
			var s string
			require.NoError(t, rs.Scan(&s))
			out = append(out, s)
		}
		require.NoError(t, rs.Err())
		require.NotEmpty(t, out)
		return out
	}
	for _, n := range names("function_type = 'scalar' AND stability <> 'CONSISTENT'") {
		require.True(t, isVolatile(n), n)
	}
	known := setOf(windowOnly...)
	for _, n := range names("function_type = 'aggregate'") {
		require.True(t, isAggregate(n) || known[n], n)
	}
	for _, n := range names(`function_type = 'macro' AND (macro_definition LIKE '%sum(%' OR macro_definition LIKE '%list(%' OR macro_definition LIKE '%exp(avg%' OR macro_definition LIKE '%group_%')
		AND macro_definition NOT LIKE '%list_%' AND function_name NOT LIKE 'list_%'`) {
		require.True(t, isAggregate(n), n)
	}
	for _, n := range names("function_type = 'macro' AND (macro_definition LIKE '%random%' OR macro_definition LIKE '%now()%' OR macro_definition LIKE '%current_%')") {
		require.True(t, isVolatile(n) || n == "user", n) // user is a constant
	}
}
