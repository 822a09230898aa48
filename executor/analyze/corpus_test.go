package analyze

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every form of query keeps its meaning when its tables are replaced: the spliced text parses to the changed tree (or the statement is refused,
// which none of these is). DuckDB 1.5.6's own rendering fails the first three.
func TestRewrite_Corpus(t *testing.T) {
	for _, sql := range []string{
		"SELECT 1e3, 1.5e-300, 5., 1e400 FROM t",
		"SELECT * FROM a CROSS JOIN b NATURAL JOIN c",
		"SELECT * FROM a CROSS JOIN b JOIN c USING (x)",
		"SELECT * FROM a NATURAL JOIN (b JOIN c ON b.x = c.x)",
		"SELECT * FROM a LEFT JOIN (b CROSS JOIN c) ON a.x = b.x",
		"SELECT * FROM a JOIN b USING (x, y) LEFT JOIN c ON a.x = c.x RIGHT JOIN d ON true FULL OUTER JOIN e USING (z), f SEMI JOIN h USING (x) ANTI JOIN i USING (x)",
		"SELECT * FROM a ASOF JOIN b ON a.x = b.x AND a.t >= b.t ASOF LEFT JOIN c USING (x, t)",
		"SELECT * FROM a POSITIONAL JOIN b",
		"SELECT * FROM t TABLESAMPLE 10%", "SELECT * FROM t TABLESAMPLE reservoir(20)", "SELECT * FROM demo.t TABLESAMPLE bernoulli(10%) REPEATABLE (42)",
		"SELECT * FROM t USING SAMPLE 10 PERCENT (system, 377)",
		"FROM t", "TABLE t", "TABLE lake.demo.t", "FROM lake.demo.t SELECT a WHERE b", "FROM f: t SELECT f.a",
		"SELECT * FROM (VALUES (1, 'a')) v(x, y), t", "SELECT * FROM t AS q(a, b) WHERE q.a IN (FROM u)",
		"WITH a AS (FROM t), b(x, y) AS MATERIALIZED (SELECT a.p, a.q FROM a) SELECT * FROM b, a, c",
		"WITH RECURSIVE r(a, b) USING KEY (a) AS (SELECT x, y FROM t UNION SELECT a + 1, b FROM r) FROM r",
		"SELECT a FROM t UNION BY NAME SELECT b FROM u", "(SELECT a FROM t ORDER BY 1 LIMIT 1) UNION ALL (SELECT b FROM u LIMIT 1) ORDER BY 1",
		"SELECT * FROM (PIVOT t ON y IN (2000, 2010) USING sum(p) AS s, avg(q) GROUP BY c)", "SELECT * FROM t PIVOT (sum(p) AS s FOR y IN (2000 AS a, 2010) GROUP BY c)",
		"SELECT * FROM (UNPIVOT t ON a, b INTO NAME n VALUE v)", "SELECT * FROM demo.t UNPIVOT INCLUDE NULLS (v FOR n IN (a, b AS 'bb'))",
		"SELECT * EXCLUDE (a, b), * REPLACE (a + 1 AS a), t.* EXCLUDE a, COLUMNS('x.*'), COLUMNS(c -> c LIKE 'a%'), * LIKE 'a%' FROM t",
		"SELECT count(*) FILTER (WHERE a > 1), string_agg(a, ',' ORDER BY b DESC NULLS FIRST), percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t GROUP BY ROLLUP (a), CUBE (b)",
		"SELECT sum(a) OVER (PARTITION BY b ORDER BY c RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW EXCLUDE TIES), lag(a, 1, 0) OVER w FROM t WINDOW w AS (ORDER BY d)",
		"SELECT list_transform(l, lambda x: x + 1), [x * 2 FOR x IN l IF x > 1], l[1:2], s.a.b, (s).a, m['k'] FROM t",
		"SELECT a, b FROM t GROUP BY ALL ORDER BY ALL LIMIT 10% OFFSET 3", "SELECT DISTINCT ON (a, b) a, c FROM t ORDER BY a COLLATE nocase",
		"SELECT a BETWEEN 1 AND 2, a IN (SELECT 1), a LIKE 'x' ESCAPE '!', a SIMILAR TO 'x', a ^@ 'x', a IS DISTINCT FROM b, a = ANY (SELECT 1), NOT a > ALL (SELECT 2) FROM t",
		"SELECT -a, ~a, a // b, a ** b, a << 1, a || b, a -> 'x', a ->> '$.y', a::INT::VARCHAR, -a::INT, CAST(a AS \"my type\") FROM t",
		"SELECT extract(year FROM d), position('a' IN b), substring(a FROM 1 FOR 2), trim(BOTH 'x' FROM a), d AT TIME ZONE 'UTC' FROM t",
		"SELECT \"select\", \"from\" AS \"where\", q.\"order by\" FROM \"weird table\" q", "SELECT \"fl\"\"ights\".x FROM lake.\"demo x\".\"fl\"\"ights\"",
		"SELECT lake.\"demo x\".\"fl\"\"ights\".x, \"fl\"\"ights\".y FROM lake.\"demo x\".\"fl\"\"ights\"",
		"SELECT /* c /* nested */ */ t.a, -- 'x\n 'FROM t', $$ FROM t $$, $a$ ' $a$, E'\\' FROM t' FROM demo.t -- end",
		"SELECT unnest({'a': 1}, recursive := true), a: b FROM t, unnest([1, 2]) u(x), generate_series(1, 3) g WHERE u.x = g.generate_series",
		"SELECT 'ü日本', \"日本\".größe FROM \"日本\" WHERE größe = 'ü'", "SELECT * FROM 'ü x.parquet' JOIN \"日本.csv\" ON true",
		"SELECT t.a,\u00a0t.b FROM\u00a0t", // DuckDB's lexer takes such blanks for blanks
		"SELECT now(), now() AS n, now()::DATE + 1, (now()), extract(year FROM now()), a IS DISTINCT FROM now(), age(a), main.now(), [now()] FROM t",
		"SELECT now(), * FROM demo.t WHERE demo.t.a < current_date GROUP BY current_date HAVING max(b) > now() ORDER BY now() - a LIMIT 1",
		"SELECT case when now() > a then 1 end, now() between a and b FROM t",
		"WITH x AS (SELECT now() FROM t) SELECT \"now()\" FROM x UNION ALL SELECT now() FROM u",
		"SELECT read_csv.a FROM read_csv('a''b(.csv', delim=')', columns={'a': 'INT'}), main.read_parquet(['x', 'y']) p, parquet_scan('z', union_by_name := true) AS q(a, b)",
	} {
		parsed := &analysis{ctx: t.Context(), req: req(sql), text: sql}
		inst, done, err := testPool.Bare(t.Context())
		require.NoError(t, err)
		parsed.inst = inst
		node, err := parsed.parse(sql)
		require.NoError(t, err, sql)
		parsed.rewriter = newRewriter(nowMicros)
		require.NoError(t, parsed.rewriter.statement(node), sql)
		text, err := parsed.rewritten(node)
		require.NoError(t, err, sql)
		require.Contains(t, text, "signet_source_1", sql)
		done(true)
	}
}
