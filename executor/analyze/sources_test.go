package analyze

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

func describe(us []*executorv1.UnresolvedSource) string {
	var out []string
	for _, u := range us {
		s := u.View[len("signet_source_"):] + ":"
		switch {
		case len(u.Table) > 0:
			s += "table " + strings.Join(u.Table, ".")
		case u.Path != "":
			s += "path " + u.Path
		default:
			s += u.Function + " " + strings.Join(u.Paths, ",")
			for _, k := range []string{"columns", "delim", "filename", "hive_partitioning", "skip", "types", "union_by_name"} {
				if v, ok := u.Options[k]; ok {
					s += " " + k + "=" + v
				}
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestAnalyze_FindsSources(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT * FROM flights":                                                                     "1:table flights",
		"FROM demo.flights":                                                                         "1:table demo.flights",
		"TABLE lake.demo.flights":                                                                   "1:table lake.demo.flights",
		`SELECT * FROM "Lake"."demo x"."fl""ights"`:                                                 `1:table Lake.demo x.fl"ights`,
		"SELECT * FROM a JOIN b USING (x) LEFT JOIN a AS a2 USING (x)":                              "1:table a; 2:table b",
		"SELECT * FROM 'a/b.parquet'":                                                               "1:path a/b.parquet",
		"SELECT * FROM 'x.csv.gz', 'y.JSON', 'z.ndjson', 'w.jsonl', \"q.tsv\"":                      "1:path x.csv.gz; 2:path y.JSON; 3:path z.ndjson; 4:path w.jsonl; 5:path q.tsv",
		"SELECT * FROM 's3://bucket/*.parquet'":                                                     "1:path s3://bucket/*.parquet",
		"SELECT * FROM read_parquet(['a', 'b'], filename=true)":                                     "1:read_parquet a,b filename=CAST('t' AS BOOLEAN)",
		"SELECT * FROM parquet_scan('a', union_by_name := true)":                                    "1:parquet_scan a union_by_name=CAST('t' AS BOOLEAN)",
		"SELECT * FROM read_csv('a', delim=';', skip=1, columns={'x': 'INT', 'y''z': 'VARCHAR'})":   "1:read_csv a columns=main.struct_pack(x := 'INT', \"y'z\" := 'VARCHAR') delim=';' skip=1",
		"SELECT * FROM read_csv('a', types=['INT'])":                                                "1:read_csv a types=main.list_value('INT')",
		"SELECT * FROM read_json_auto('a') UNION ALL SELECT * FROM read_json_auto('b')":             "1:read_json_auto a; 2:read_json_auto b",
		"SELECT * FROM read_csv('a'), read_csv('a'), read_csv('a', delim=';')":                      "1:read_csv a; 2:read_csv a delim=';'",
		"SELECT (SELECT max(x) FROM u WHERE u.y = t.y) FROM t WHERE x IN (FROM w)":                  "1:table u; 2:table t; 3:table w",
		"WITH c AS (SELECT * FROM t) SELECT * FROM c, c AS d":                                       "1:table t",
		"WITH t AS (SELECT * FROM t) SELECT * FROM t":                                               "1:table t",
		"WITH a AS (FROM t), b AS (FROM a) SELECT * FROM b, a, c":                                   "1:table t; 2:table c",
		"WITH b AS (FROM a), a AS (FROM t) SELECT * FROM b":                                         "1:table a; 2:table t",
		"WITH RECURSIVE r(n) AS (SELECT x FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r": "1:table t",
		"SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), c":                                   "1:table c",
		"WITH c AS (SELECT 1) SELECT * FROM demo.c":                                                 "1:table demo.c",
		"SELECT * FROM (PIVOT t ON y IN (1, 2) USING sum(x))":                                       "1:table t",
		"SELECT * FROM (UNPIVOT t ON a, b)":                                                         "1:table t",
		"SELECT * FROM t TABLESAMPLE 10%":                                                           "1:table t",
		"SELECT * FROM t, LATERAL (SELECT * FROM u WHERE u.i = t.i)":                                "1:table t; 2:table u",
		"SELECT * FROM t ORDER BY (SELECT max(x) FROM u)":                                           "1:table t; 2:table u",
		"SELECT * FROM t QUALIFY row_number() OVER (ORDER BY (SELECT 1 FROM u)) = 1":                "1:table t; 2:table u",
		"SELECT * FROM t POSITIONAL JOIN u":                                                         "1:table t; 2:table u",
	} {
		out := ok(t, sql)
		require.ElementsMatch(t, strip(want), strip(describe(out.Unresolved)), sql)
		require.Empty(t, out.Columns)
		again := ok(t, sql)
		require.Equal(t, describe(out.Unresolved), describe(again.Unresolved), "views are numbered alike every time")
	}
}

// strip drops the numbers: which of two sources comes first is not part of the contract.
func strip(s string) []string {
	parts := strings.Split(s, "; ")
	for i, p := range parts {
		_, parts[i], _ = strings.Cut(p, ":")
	}
	return parts
}
