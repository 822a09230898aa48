package stages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// tables of the corpus: t is the large one; e has no rows; every kind of value that is easily got wrong is somewhere.
func corpus(t testing.TB) *bench {
	b := newBench(t)
	b.table("t", `SELECT i::INTEGER AS a, (i % 7)::BIGINT AS k, CASE WHEN i % 4 = 0 THEN NULL ELSE i % 3 END AS n, 'x' || (i % 5) AS s,
		(i * 1.25)::DECIMAL(10,2) AS m, (i * 12345678901234567890123456::HUGEINT) AS h, i / 8.0::DOUBLE AS f,
		CASE i % 11 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN -0.0 WHEN 2 THEN 0.0 WHEN 3 THEN NULL ELSE i % 2 END AS z,
		DATE '2020-01-01' + (i % 40)::INTEGER AS d, i % 2 = 0 AS b, [i, i % 3] AS l, {'x': i % 4, 'y': 'q' || i % 3} AS st FROM range(120) r(i)`)
	b.table("u", `SELECT (i % 9)::INTEGER AS k, i AS uid, CASE WHEN i % 5 = 0 THEN NULL ELSE 'x' || i % 6 END AS s, (i % 4)::DECIMAL(12,3) AS m, (i * 3) % 10 AS c FROM range(30) r(i)`)
	b.table("v", "SELECT i AS uid, i * 2 AS c, CASE WHEN i % 3 = 0 THEN NULL ELSE i % 5 END AS n FROM range(25) r(i)")
	b.table("e", "SELECT i::BIGINT AS k, 'x' AS s, 1.5::DECIMAL(8,2) AS m, i AS uid FROM range(0) r(i)")
	b.table("o", "SELECT i % 3 AS \"Order #\", i AS \"b#1x\", i AS \"c#1\" FROM range(9) r(i)")
	b.table("w", "SELECT i % 3 AS k, i AS uid FROM range(6) r(i)")
	b.whole["w"] = "the schema of CSV and JSON is inferred over all files together"
	return b
}

// staged queries, by subject. Those that begin with ! are compared row by row: their order is total. Those that begin
// with ? go to one task in the end, and are not staged if their sources are small.
var stagedQueries = `
-- row-wise
SELECT "Order #", "b#1x" FROM o WHERE "Order #" > 1
SELECT "Order #", count(*) FROM o GROUP BY ALL
SELECT * FROM t WHERE a > 5
SELECT a + 1 AS x, x * 2 AS y, upper(s) FROM t WHERE x > 10
SELECT st.x, (st).y, l[1], list_transform(l, lambda q: q + a) FROM t
SELECT t.* EXCLUDE (l, st), a AS a2 FROM t
SELECT unnest(l), a FROM t WHERE a < 50
SELECT q.x FROM (SELECT a * 2 AS x FROM t) q WHERE q.x > 7
SELECT x FROM t AS r(x, y) WHERE y = 3
SELECT 1e3 + a, 1.5e0, 'it''s', NULL, a::VARCHAR, {'p': a, 'q': s} FROM t
SELECT struct_pack(a, s) FROM t
-- aggregates
SELECT count(*) FROM t
SELECT count(*), count(n), sum(a), min(s), max(m), avg(a), avg(m), sum(h), sum(m), avg(f), sum(f) FROM t
SELECT count(*), count(k), sum(k), min(s), max(m), avg(k), sum(m), count(DISTINCT k), sum(DISTINCT m) FROM e
SELECT k, count(*) FROM e GROUP BY k
SELECT count(*) FROM t WHERE a < 0
SELECT k, sum(m) FROM t WHERE a < 0 GROUP BY k
SELECT k, count(*), count(n), sum(a), min(s), max(m), avg(a), avg(m), sum(h), sum(f), bool_and(b), bool_or(b), bit_and(a), bit_or(a), bit_xor(a), count_if(b) FROM t GROUP BY k
SELECT n, count(*), sum(n) FROM t GROUP BY n
SELECT z, count(*), min(z), max(z) FROM t GROUP BY z
SELECT min(z), max(z), sum(z) FROM t
SELECT max(d), min(d), max(b), max(l), min(st) FROM t
SELECT k + 1, s || '!', count(*) FROM t GROUP BY k + 1, s || '!'
SELECT k, s, count(*) FROM t GROUP BY ALL
SELECT k AS g, s, sum(a) + count(*) * 2 - min(k) AS x FROM t GROUP BY 1, 2
SELECT upper(s) AS g, count(*) FROM t GROUP BY g
SELECT a % 3 AS g, sum(a) FROM t GROUP BY g HAVING sum(a) > 5 AND g < 2
SELECT k, sum(a) AS total FROM t GROUP BY k HAVING total > 900
SELECT k FROM t GROUP BY k HAVING count(*) > 17 AND max(f) > 3
SELECT sum(a) FROM t HAVING count(*) > 1000
SELECT sum(a) FROM t HAVING count(*) > 10
SELECT k, s AS s2, count(*) FROM t GROUP BY ALL HAVING s2 > 'x1'
SELECT k, sum(a) FILTER (WHERE n = 1), count(*) FILTER (WHERE b), avg(m) FILTER (WHERE a > 30), max(s) FILTER (WHERE false) FROM t GROUP BY k
SELECT k, count(DISTINCT s), sum(DISTINCT n), avg(DISTINCT a), count(*), max(m) FROM t GROUP BY k
SELECT count(DISTINCT s), sum(DISTINCT s[2:]::INTEGER), avg(DISTINCT n) FROM t
SELECT count(DISTINCT z), count(DISTINCT m) FROM t
SELECT count(DISTINCT s) FILTER (WHERE b), count(*) FILTER (WHERE b), count(DISTINCT s) FROM t
SELECT k, count(DISTINCT s) FILTER (WHERE a > 50), count(DISTINCT n) FROM t GROUP BY k
SELECT count(DISTINCT s) AS c, min(DISTINCT a), max(DISTINCT f) FROM t
SELECT k, median(a), stddev(a), quantile_cont(f, 0.3), approx_count_distinct(a) FROM t GROUP BY k
SELECT k, list(a ORDER BY a), string_agg(s, '-' ORDER BY s DESC) FROM t GROUP BY k
SELECT k, string_agg(DISTINCT s, ',' ORDER BY s), min(s ORDER BY a), sum(a ORDER BY a) FROM t GROUP BY k
SELECT k, uniq FROM (SELECT k, count(DISTINCT s) AS uniq, max(a) AS m FROM t GROUP BY k)
SELECT sum(a) / count(*) AS r, sum(a) * 1.0 / sum(k) FROM t
SELECT CASE WHEN sum(a) > 100 THEN 'many' ELSE 'few' END, k FROM t GROUP BY k
SELECT 'c' AS lit, count(*) FROM t GROUP BY 1
SELECT st.x, count(*) FROM t GROUP BY st.x
SELECT d, b, count(*) FROM t GROUP BY d, b
SELECT h, count(*) FROM t WHERE a < 20 GROUP BY h
SELECT product(1 + a * 0.001), sum(k) FROM t
SELECT sum(x), count(*) FROM (SELECT k, sum(a) AS x FROM t GROUP BY k)
SELECT avg(c), max(c) FROM (SELECT k, s, count(*) AS c FROM t GROUP BY k, s) WHERE c > 2
SELECT k, count(*) FROM (SELECT k, s, count(*) AS c FROM t GROUP BY k, s) GROUP BY k
SELECT DISTINCT k FROM t
SELECT DISTINCT k, s FROM t
SELECT DISTINCT z FROM t
SELECT DISTINCT k % 2 = 0 FROM t
SELECT DISTINCT sum(a) % 2 FROM t GROUP BY k
SELECT count(*) FROM (SELECT DISTINCT k, n FROM t)
-- joins
SELECT t.a, u.uid FROM t JOIN u ON t.k = u.k
SELECT t.a, u.uid FROM t JOIN u USING (k)
SELECT * EXCLUDE (l, st) FROM t JOIN u USING (k)
SELECT k, t.k, u.k, t.s FROM t LEFT JOIN u USING (k) WHERE a < 60
SELECT k, t.k, u.k FROM t RIGHT JOIN u USING (k)
SELECT k, t.k, u.k, a, uid FROM t FULL JOIN u USING (k)
SELECT * EXCLUDE (l, st) FROM t NATURAL JOIN v
SELECT uid, u.c, v.c FROM u LEFT JOIN v USING (uid, c)
SELECT t.a, u.uid, v.c FROM t, u, v WHERE t.k = u.k AND u.uid = v.uid AND t.a + v.c > 12
SELECT t.a, u.uid FROM t, u WHERE t.k = u.k AND t.s = u.s
SELECT t.a, u.uid FROM t LEFT JOIN u ON t.k = u.k AND t.s = u.s AND u.c > 3
SELECT t.a, u.uid FROM t LEFT JOIN u ON t.k = u.k AND t.a > 50
SELECT t.a, u.uid FROM u RIGHT JOIN t ON t.k = u.k AND t.s = u.s
SELECT t.a, u.uid FROM t LEFT JOIN u ON t.k = u.k WHERE u.uid IS NULL
SELECT t.a, u.uid FROM t LEFT JOIN u ON t.k = u.k WHERE t.a > 30 AND coalesce(u.uid, 0) < 10
SELECT t.a, u.uid FROM t FULL JOIN u ON t.n = u.uid
SELECT count(*), count(t.a), count(u.uid) FROM t FULL JOIN u ON t.n = u.c
SELECT t.a FROM t SEMI JOIN u ON t.k = u.k AND u.c > t.n
SELECT t.a FROM t ANTI JOIN u ON t.s = u.s
SELECT t.a FROM t ANTI JOIN e ON t.k = e.k
SELECT t.a, e.uid FROM t LEFT JOIN e ON t.k = e.k
SELECT t.a, e.uid FROM t RIGHT JOIN e ON t.k = e.k
SELECT t.a, e.uid FROM t FULL JOIN e ON t.k = e.k
SELECT t.a, e.uid FROM e JOIN t ON t.k = e.k
SELECT t.a, v.c FROM t JOIN v ON t.n = v.n
SELECT t.a, v.c FROM t JOIN v ON t.n IS NOT DISTINCT FROM v.n WHERE a < 40
SELECT t.a, v.c FROM t LEFT JOIN v ON t.n = v.n AND v.c > 9
SELECT t.a, u.uid FROM t JOIN u ON t.m = u.m
SELECT t.a, u.uid FROM t JOIN u ON t.f = u.m
SELECT t.a, u.uid FROM t JOIN u ON t.k = u.m
SELECT x.a, y.a FROM t x JOIN t y ON x.k = y.n AND x.a < y.a
SELECT x.a, y.a FROM t x JOIN t y ON x.z = y.z
SELECT count(*) FROM t CROSS JOIN u
SELECT t.a, u.uid FROM t, u WHERE t.a < u.uid
SELECT t.a, u.uid FROM t JOIN u ON t.a < u.uid AND t.k <> u.k
SELECT t.a FROM t, (SELECT max(uid) AS top FROM u) q WHERE t.a < q.top
SELECT t.k, count(*), sum(v.c) FROM t JOIN u ON t.k = u.k JOIN v ON u.uid = v.uid GROUP BY t.k
SELECT u.uid, count(t.a) FROM u LEFT JOIN t ON t.k = u.k AND t.n = u.c GROUP BY u.uid
SELECT u.k, count(t.a), sum(t.m) FROM u LEFT JOIN t ON t.k = u.k GROUP BY u.k
SELECT t.k, u.k, count(*) FROM t FULL JOIN u ON t.k = u.k GROUP BY t.k, u.k
SELECT u.k, count(*) FROM t LEFT JOIN u ON t.k = u.k AND u.c > 5 GROUP BY u.k
SELECT * FROM (SELECT k, sum(a) AS sa FROM t GROUP BY k) x JOIN (SELECT k, count(*) AS cu FROM u GROUP BY k) y USING (k)
SELECT t.a, q.cu FROM t JOIN (SELECT k, count(*) AS cu FROM u GROUP BY k) q ON t.k = q.k
SELECT t.a, w.uid FROM t JOIN w ON t.k = w.k
? SELECT t.a, w.uid FROM w LEFT JOIN t ON t.k = w.k AND t.a < 20
SELECT t.a, r.i FROM t JOIN range(5) r(i) ON t.k = r.i
SELECT t.a, q.y FROM t JOIN (VALUES (1, 'one'), (2, 'two')) q(x, y) ON t.k = q.x
SELECT (t.a = u.uid OR t.k = 3) AND u.c = 2 FROM t JOIN u ON (t.k = u.k AND t.a > 5) OR (t.k = u.k AND u.c = 3)
SELECT t.a FROM t JOIN u ON t.k = u.k JOIN v ON v.uid = t.a LEFT JOIN e ON e.k = t.k WHERE v.c < 40
SELECT t.a, x.uid, y.uid FROM t LEFT JOIN u x ON t.k = x.k LEFT JOIN u y ON x.uid = y.c WHERE t.a < 30
SELECT count(*) FROM (t LEFT JOIN u ON t.k = u.k) JOIN (v LEFT JOIN e ON v.uid = e.uid) ON u.uid = v.uid
SELECT t.a, y.a FROM t JOIN t y ON t.l = y.l AND t.a < 5
SELECT x.a FROM (SELECT a::UINTEGER AS a FROM t) x JOIN (SELECT uid::SMALLINT AS uid FROM u) y ON x.a = y.uid
SELECT x.a FROM (SELECT a::UBIGINT AS a FROM t) x JOIN (SELECT uid::UTINYINT AS uid FROM u) y ON x.a = y.uid
SELECT x.a FROM (SELECT a::UBIGINT AS a FROM t) x LEFT JOIN (SELECT uid AS uid FROM u) y ON x.a = y.uid WHERE y.uid IS NULL OR y.uid > 3
SELECT d, count(*) FROM t JOIN (SELECT d::TIMESTAMP AS ts FROM t WHERE a < 30) q ON t.d = q.ts GROUP BY d
SELECT t.a, q.i FROM t JOIN generate_series(1, 4) q(i) ON t.k = q.i JOIN unnest([1, 3]) r(j) ON q.i = r.j
-- set operations
SELECT a, s FROM t UNION ALL SELECT uid, s FROM u
SELECT a FROM t UNION ALL SELECT m FROM u UNION ALL SELECT 5
SELECT k FROM t UNION SELECT k FROM u
SELECT k, s FROM t EXCEPT SELECT k, s FROM u
SELECT k FROM t EXCEPT ALL SELECT k FROM u
SELECT s FROM t INTERSECT SELECT s FROM u
SELECT k FROM t INTERSECT ALL SELECT k FROM u
SELECT x, count(*) FROM (SELECT a AS x FROM t UNION ALL SELECT uid FROM u UNION ALL SELECT c FROM v) GROUP BY x
SELECT sum(x) FROM (SELECT a AS x FROM t UNION ALL SELECT m FROM u) WHERE x > 2
SELECT q.x, v.c FROM (SELECT a AS x FROM t UNION ALL SELECT uid FROM u) q JOIN v ON q.x = v.uid
SELECT NULL AS x FROM t UNION ALL SELECT uid FROM u
SELECT q.x, count(*) FROM (SELECT NULL AS x, k FROM t) q JOIN u ON q.k = u.k WHERE q.x LIKE 'v%' OR u.c > 3 GROUP BY ALL
SELECT t.a, q.x || 'y' FROM t LEFT JOIN (SELECT nullif('2', '2') || '3' AS x, k FROM u) q ON t.k = q.k AND (q.x IS NULL OR q.x = 'abc')
SELECT k, n FROM t UNION SELECT k, uid FROM u
SELECT a FROM t UNION ALL SELECT 1 UNION ALL SELECT uid FROM w UNION ALL SELECT uid FROM u UNION ALL VALUES (7), (8)
(SELECT a FROM t ORDER BY a DESC LIMIT 3) UNION ALL (SELECT uid FROM u ORDER BY 1 LIMIT 2)
-- order and limit
! SELECT a, s FROM t WHERE a > 7 ORDER BY a
! SELECT a, s FROM t ORDER BY a DESC LIMIT 7
! SELECT a, s FROM t ORDER BY s, a LIMIT 5 OFFSET 11
! SELECT a, n FROM t ORDER BY n NULLS FIRST, a DESC LIMIT 40
! SELECT a AS x, -a AS a FROM t ORDER BY a LIMIT 3
! SELECT a FROM t ORDER BY -a LIMIT 3
! SELECT -a AS a FROM t ORDER BY a + 0 LIMIT 3
! SELECT a, f * 2 AS g FROM t ORDER BY g DESC, 1 LIMIT 4 OFFSET 118
! SELECT k, sum(a) AS total FROM t GROUP BY k ORDER BY total DESC, k LIMIT 3
! SELECT k, count(*) FROM t GROUP BY k ORDER BY sum(a), k
! SELECT a FROM t ORDER BY a LIMIT 0
! SELECT a FROM t WHERE a < 0 ORDER BY a LIMIT 3
! SELECT k, s FROM t GROUP BY k, s ORDER BY ALL LIMIT 9
! SELECT DISTINCT k, s FROM t ORDER BY s DESC, k LIMIT 6
! SELECT a FROM t UNION ALL SELECT uid FROM u ORDER BY a DESC LIMIT 8
! SELECT k FROM t UNION SELECT uid FROM u ORDER BY 1
! SELECT t.a, u.uid FROM t JOIN u ON t.k = u.k ORDER BY t.a DESC, u.uid LIMIT 9
! SELECT * FROM (SELECT a, k FROM t ORDER BY a DESC LIMIT 20) q WHERE k = 2 ORDER BY a
! SELECT max(a) AS a, k FROM t GROUP BY k ORDER BY a
! SELECT a FROM t LIMIT 5
! SELECT a FROM t WHERE a > 20 LIMIT 5 OFFSET 3
SELECT count(*) FROM (SELECT a FROM t LIMIT 17)
SELECT a FROM t JOIN (SELECT uid FROM u ORDER BY uid LIMIT 3) q ON t.k = q.uid
-- subqueries and common table expressions
WITH c AS (SELECT k, a FROM t WHERE a > 9) SELECT k, count(*) FROM c GROUP BY k
WITH c(x, y) AS (SELECT k, sum(a) FROM t GROUP BY k) SELECT x, y FROM c WHERE y > 100
WITH c AS (SELECT k, sum(a) AS y FROM t GROUP BY k) SELECT * FROM c WHERE y = (SELECT max(y) FROM c)
WITH c AS (SELECT k, avg(f) AS y FROM t GROUP BY k) SELECT x.k, z.y FROM c x JOIN c z ON x.y = z.y
WITH c AS (SELECT a FROM t), d AS (SELECT a FROM c WHERE a > 3) SELECT d.a FROM c JOIN d ON c.a = d.a
WITH c AS MATERIALIZED (SELECT k FROM t WHERE a < 9) SELECT k FROM c UNION ALL SELECT k + 1 FROM c
SELECT a FROM t WHERE a > (SELECT avg(uid) FROM u)
SELECT a, (SELECT max(uid) FROM u) AS top FROM t WHERE a < 5
SELECT a FROM t WHERE k IN (SELECT k FROM u WHERE c > 5)
SELECT a FROM t WHERE k NOT IN (SELECT k FROM u WHERE c > 8)
SELECT a FROM t WHERE n NOT IN (SELECT n FROM v)
SELECT a FROM t WHERE n NOT IN (SELECT n FROM v WHERE n IS NOT NULL)
SELECT a FROM t WHERE n IN (SELECT n FROM v) OR a < 4
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.c > 100)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.c > 5) AND NOT EXISTS (SELECT 1 FROM e)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.c > 5)
SELECT a FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = t.k AND u.c <> t.n)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u, v WHERE u.k = t.k AND u.uid = v.uid AND v.c > t.a)
SELECT a FROM t WHERE a > (SELECT avg(uid) FROM u WHERE u.k = t.k)
SELECT a, (SELECT sum(uid) * 2 FROM u WHERE u.k = t.k) AS x FROM t
SELECT a FROM t WHERE a > ANY (SELECT uid + 90 FROM u)
SELECT a FROM t WHERE k IN (SELECT k FROM u GROUP BY k HAVING count(*) > 3)
SELECT a FROM t WHERE a IN (SELECT max(uid) FROM u GROUP BY k) AND s IN ('x1', 'x2')
SELECT k, sum(a) FROM t GROUP BY k HAVING sum(a) > (SELECT sum(uid) FROM u)
SELECT k, sum(a) FROM t WHERE k IN (SELECT k FROM u WHERE u.uid IN (SELECT uid FROM v WHERE c > 30)) GROUP BY k
SELECT "sum(a)" + 1, "max((a + 1))" FROM (SELECT sum(a), max(a + 1) FROM t)
SELECT * FROM (SELECT k, k FROM t) q WHERE k_1 = 3
SELECT s, (SELECT count(*) FROM e) FROM t WHERE a = 3
SELECT a FROM t WHERE (SELECT true) AND a < 3
SELECT count(*) FROM t WHERE NOT (k IN (SELECT k FROM u))
SELECT a FROM t WHERE (a > 5) = (SELECT true)
SELECT a FROM t WHERE a::UTINYINT IN (SELECT uid::UINTEGER FROM u)
-- windows
SELECT a, sum(a) OVER (PARTITION BY k) FROM t
SELECT a, row_number() OVER (PARTITION BY k ORDER BY a) AS rn FROM t QUALIFY rn <= 2
SELECT a, rank() OVER (PARTITION BY k ORDER BY n), sum(a) OVER (PARTITION BY k, s ORDER BY a) FROM t
SELECT k, sum(a), rank() OVER (PARTITION BY k % 2 ORDER BY sum(a)) FROM t GROUP BY k
SELECT a, lag(a) OVER w, lead(f) OVER w FROM t WINDOW w AS (PARTITION BY s ORDER BY a)
? SELECT a, count(*) OVER () FROM t WHERE b
? SELECT a, row_number() OVER (ORDER BY a DESC) FROM t WHERE b
SELECT k, max(r) FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY a) AS r FROM t) GROUP BY k
-- stages that are computed once, because each task might compute something else
SELECT t.a, q.uid FROM t JOIN (SELECT uid, k FROM w LIMIT 3) q ON t.k = q.k
SELECT t.a FROM t WHERE t.f > (SELECT avg(f) FROM t WHERE a < 50)
-- gathered
? SELECT k, sum(a) FROM t WHERE a > 3 GROUP BY ROLLUP (k)
? SELECT first(a), list(s) FROM t WHERE a > 5
? SELECT k, arg_max(s, a), any_value(k) FROM t WHERE b GROUP BY k
? SELECT median(a) FROM t WHERE b
? SELECT l, count(*) FROM t WHERE b GROUP BY l
? SELECT DISTINCT st FROM t WHERE b
? SELECT l FROM t WHERE b EXCEPT SELECT [c, 1] FROM u WHERE c > 2
? SELECT a, count(*) OVER (PARTITION BY l) FROM t WHERE b
? SELECT l, median(a) FROM t WHERE b GROUP BY l
? SELECT a FROM t WHERE b ORDER BY a LIMIT 10%
? SELECT a FROM t WHERE b ORDER BY a OFFSET 10
`

func TestPlan_Corpus(t *testing.T) {
	b := corpus(t)
	subject := ""
	for _, sql := range strings.Split(stagedQueries, "\n") {
		if sql == "" {
			continue
		}
		if s, ok := strings.CutPrefix(sql, "-- "); ok {
			subject = s
			continue
		}
		sql, total := strings.CutPrefix(sql, "! ")
		sql, gathers := strings.CutPrefix(sql, "? ")
		for _, o := range []Options{{WholeBytes: -1}, {WholeBytes: 280}, DefaultOptions} {
			staged := b.plan(sql, o)
			if !total && (!gathers || o.WholeBytes < 0) {
				assert.Empty(t, staged.NotStaged, "%s: %s", subject, sql)
			}
			cut := layouts
			if o.WholeBytes >= 0 {
				cut = layouts[:1]
			}
			assert.NoError(t, b.same(sql, staged, total, cut...), "%s: %s\n%s", subject, sql, show(staged))
		}
	}
}
