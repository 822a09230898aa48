//go:build cgo

package rowlevel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func kind(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }

// fields of the tables here: id, g, v, name, d, p.
func fields() []*planv1.Field {
	return []*planv1.Field{
		{Id: 1, Name: "id", Type: kind(planv1.TypeKind_TYPE_KIND_INT32), Required: true},
		{Id: 2, Name: "g", Type: kind(planv1.TypeKind_TYPE_KIND_INT32)},
		{Id: 3, Name: "v", Type: kind(planv1.TypeKind_TYPE_KIND_INT64)},
		{Id: 4, Name: "name", Type: kind(planv1.TypeKind_TYPE_KIND_STRING)},
		{Id: 5, Name: "d", Type: kind(planv1.TypeKind_TYPE_KIND_DATE)},
		{Id: 6, Name: "p", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 10, Scale: 2}},
	}
}

const create = "CREATE TABLE t (id INTEGER NOT NULL, g INTEGER, v BIGINT, name VARCHAR, d DATE, p DECIMAL(10,2))"

// filled is a table of some files, and an oracle with the same rows and a table s.
func filled(t testing.TB, parts, rows int) (*table, *oracle) {
	pool := newPool(t)
	tb, o := newTable(t, pool, fields()...), newOracle(t, pool)
	o.exec(create)
	for n := range parts {
		q := fmt.Sprintf(`SELECT (i + %d)::INTEGER, CASE WHEN i %% 7 = 0 THEN NULL ELSE i %% 5 END::INTEGER, CASE WHEN i %% 3 = 0 THEN NULL ELSE i * 10 END::BIGINT,
			CASE WHEN i %% 4 = 0 THEN NULL ELSE 'n' || (i %% 6) END, DATE '2026-01-01' + (i %% 40)::INTEGER, (i / 4)::DECIMAL(10,2) FROM range(%d) r(i)`, n*rows, rows)
		tb.insert(q)
		o.exec("INSERT INTO t " + q)
	}
	return tb, o
}

func (tb *table) source(o *oracle, name, query string) {
	o.exec("CREATE OR REPLACE TABLE " + name + " AS " + query)
	tb.sources[name] = o.file(name, "FROM "+name)
}

func (tb *table) same(o *oracle, what string) {
	tb.Helper()
	require.Equal(tb, strings.Join(texts(tb, o.Instance, "SELECT * FROM t ORDER BY ALL"), "\n"), strings.Join(tb.rows("*"), "\n"), what)
}

func TestStatements_AsDuckDB(t *testing.T) {
	tb, o := filled(t, 5, 30)
	start := tb.files
	o.exec("CREATE TABLE first AS FROM t")
	source := "SELECT (i * 3)::INTEGER AS id, (i % 4)::INTEGER AS g, (i * 100)::BIGINT AS v, 's' || i AS name, DATE '2026-03-01' AS d, 1.5::DECIMAL(10,2) AS p FROM range(40) r(i)"
	tb.source(o, "s", source)
	for at, text := range []string{
		"DELETE FROM t WHERE id % 2 = 0",
		"DELETE FROM t",
		"DELETE FROM t WHERE v > 100", // NULL keeps the row
		"DELETE FROM t WHERE NOT (v > 100)",
		"DELETE FROM t AS x WHERE x.id IN (SELECT s.id FROM s)",
		"DELETE FROM t WHERE id NOT IN (SELECT s.id FROM s)",
		"DELETE FROM t WHERE g NOT IN (SELECT NULLIF(s.g, 0) FROM s)", // NULL among them: nothing
		"DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND s.g = 1)",
		"DELETE FROM t WHERE v = (SELECT max(u.v) FROM t AS u)", // of the version before
		"DELETE FROM t WHERE v < (SELECT avg(u.v) FROM t AS u WHERE u.g = t.g)",
		"DELETE FROM t WHERE NULL",
		"DELETE FROM t WHERE false",
		"DELETE FROM t WHERE id = 1000000",
		"DELETE FROM t WHERE CASE WHEN g = 1 THEN true WHEN g = 2 THEN id > 10 END",
		"UPDATE t SET v = v + 1 WHERE g = 2",
		"UPDATE t SET v = NULL, name = 'x'",
		"UPDATE t SET g = g + 1, v = g, name = name || '!' WHERE id BETWEEN 3 AND 40",
		"UPDATE t SET id = g, g = id WHERE g IS NOT NULL", // both from the old row
		"UPDATE t SET d = '2030-01-02', p = 3 WHERE name IS NULL",
		"UPDATE t AS x SET name = (SELECT s.name FROM s WHERE s.id = x.id) WHERE id IN (SELECT id FROM s)",
		"UPDATE t SET v = s.v FROM s WHERE s.id = t.id",
		"UPDATE t AS x SET v = s.v + x.v, name = q.n FROM s JOIN (SELECT 'q' AS n, 1 AS g) AS q ON s.g = q.g WHERE s.id = x.id AND x.v IS NOT NULL",
		"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, name = s.name WHEN NOT MATCHED THEN INSERT (id, v, name) VALUES (s.id, s.v, s.name)",
		"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.g = 1 THEN DELETE WHEN MATCHED AND s.g = 2 THEN UPDATE SET v = 0 WHEN NOT MATCHED AND s.g < 3 THEN INSERT (id, g) VALUES (s.id, s.g)",
		"MERGE INTO t AS x USING (SELECT * FROM s WHERE g > 0) AS y ON x.id = y.id WHEN MATCHED THEN DELETE",
		"MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
		"MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.g = 3 THEN UPDATE SET name = 'gone' WHEN MATCHED THEN UPDATE SET name = s.name",
		"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.v IS NULL THEN UPDATE SET v = s.v WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED BY SOURCE AND t.g = 0 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')",
		"MERGE INTO t USING s ON t.id = s.id AND t.g = s.g WHEN NOT MATCHED BY TARGET THEN INSERT (id, g, v, name, d, p) VALUES (s.id, s.g, s.v, s.name, s.d, s.p)",
		"MERGE INTO t USING s ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
		"MERGE INTO t USING (SELECT * FROM t WHERE id < 10) AS u ON t.id = u.id + 5 WHEN MATCHED THEN UPDATE SET v = u.v WHEN NOT MATCHED THEN INSERT (id) VALUES (-1)",
	} {
		for n, how := range []planv1.RowChanges{1, 1, 2, 3} {
			tb.files, tb.tasks, tb.spec.RowChanges = start, []int{1, 3, 1 + at%2*2, 3 - at%2*2}[n], how
			o.exec("CREATE OR REPLACE TABLE t AS FROM first")
			before := len(tb.files)
			require.NoError(t, tb.run(text), text)
			require.GreaterOrEqual(t, before, len(tb.result))
			o.exec(text)
			tb.same(o, text)
			if tb.tasks > 1 {
				require.GreaterOrEqual(t, tb.ran, 3, text)
			}
		}
	}
}

func TestStatements_StarTakesTheSource(t *testing.T) {
	tb, o := filled(t, 3, 20)
	tb.source(o, "s", "SELECT p, d, name, v, g, id + 10 AS id FROM t WHERE id < 60 AND id % 2 = 0")
	require.NoError(t, tb.run("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"))
	o.exec("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET g = s.g, v = s.v, name = s.name, d = s.d, p = s.p WHEN NOT MATCHED THEN INSERT (id, g, v, name, d, p) VALUES (s.id, s.g, s.v, s.name, s.d, s.p)")
	tb.same(o, "star")
}

// Files without a change are not touched, and a file of which every row goes is not read again.
func TestDelete_TouchesOnlyFilesWithChanges(t *testing.T) {
	tb, o := filled(t, 4, 10)
	require.NoError(t, tb.run("DELETE FROM t WHERE id BETWEEN 10 AND 24"))
	o.exec("DELETE FROM t WHERE id BETWEEN 10 AND 24")
	tb.same(o, "delete")
	require.Len(t, tb.result, 2)
	require.EqualValues(t, 10, tb.result[0].GetDeletedRows())
	require.EqualValues(t, 5, tb.result[1].GetDeletedRows())
	require.Len(t, tb.files, 3)
	require.NoError(t, tb.run("DELETE FROM t WHERE id = -7"))
	require.Empty(t, tb.result)
	require.Len(t, tb.files, 3)
}

func TestRefusals(t *testing.T) {
	tb, o := filled(t, 2, 10)
	tb.source(o, "s", "SELECT * FROM t")
	before := tb.rows("*")
	for text, want := range map[string]string{
		"UPDATE t SET id = NULL":                        "column id of lake.s.t is required and SET gives NULL",
		"UPDATE t SET id = v":                           "NULL in a required column",
		"UPDATE t SET v = 'abc'":                        "abc",
		"UPDATE t SET v = name":                         "column v of lake.s.t is BIGINT and SET gives VARCHAR",
		"UPDATE t SET g = 3000000000":                   "3000000000",
		"UPDATE t SET v = 1.5":                          "column v of lake.s.t is BIGINT and SET gives DECIMAL(2,1)",
		"UPDATE t SET nope = 1":                         "column nope is not in lake.s.t",
		"UPDATE t SET v = 1, V = 2":                     "names column v twice",
		"UPDATE t SET v = max(v)":                       "aggregate max()",
		"UPDATE t SET v = row_number() OVER ()":         "window function",
		"UPDATE t SET v = unnest([1, 2])":               "unnest()",
		"UPDATE t SET v = *":                            "*",
		"DELETE FROM t WHERE nope = 1":                  "nope",
		"DELETE FROM t WHERE count(*) > 1":              "WHERE clause cannot contain aggregates",
		"UPDATE t SET v = s.v FROM s":                   "several rows of the source match one row of the table",
		"UPDATE t SET v = s.v FROM s WHERE s.id < t.id": "several rows of the source match one row of the table: id = ",
		"MERGE INTO t USING (SELECT 3 AS k UNION ALL SELECT 3) AS s ON t.id = s.k WHEN MATCHED THEN DELETE": "several rows of the source match one row of the table: id = 3",
		"MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (g) VALUES (1)":                   "column id of lake.s.t is required and INSERT gives it no value",
		"MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1)":                       "INSERT gives 1 value and lake.s.t has 6",
		"MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, g) VALUES (1)":               "INSERT names 2 columns and gives 1 value",
		"MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *":            `"g"`,
		"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = sum(s.v)":                     "aggregate sum()",
	} {
		err := tb.run(text)
		require.ErrorContains(t, err, want, text)
		t.Log(text, "=>", err)
		require.Equal(t, before, tb.rows("*"))
	}
}
