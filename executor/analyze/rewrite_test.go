package analyze

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// both rounds, with every table and file found as <last name part or stem>.<ext> in dir.
func twoRounds(t testing.TB, dir, sql string) (*executorv1.AnalyzeResult, []*planv1.Source) {
	t.Helper()
	first := ok(t, sql)
	var sources []*planv1.Source
	for _, u := range first.Unresolved {
		var paths []string
		switch {
		case len(u.Table) > 0:
			paths = []string{filepath.Join(dir, u.Table[len(u.Table)-1]+".parquet")}
		case u.Path != "":
			paths = []string{filepath.Join(dir, u.Path)}
		default:
			for _, p := range u.Paths {
				paths = append(paths, filepath.Join(dir, p))
			}
		}
		sources = append(sources, resolve(t, u, paths...))
	}
	return run(t, sql, sources...), sources
}

// rows analyses a query and runs the rewritten text as a task would.
func rows(t testing.TB, dir, sql string) []string {
	t.Helper()
	out, sources := twoRounds(t, dir, sql)
	require.Nil(t, out.Error, "%s: %v", sql, out.Error)
	for i, s := range sources {
		s.GetFile().Columns = out.Stats[i].Columns
	}
	inst, err := testPool.Open(context.Background(), duckdb.Access{ReadFiles: duckdb.FilesOf(sources), KeepOrder: true})
	require.NoError(t, err)
	defer inst.Close()
	require.NoError(t, inst.BindSources(context.Background(), sources))
	rs, err := inst.Conn().QueryContext(context.Background(), "SELECT CAST(signet_row AS VARCHAR) FROM ("+out.Sql+"\n) signet_row")
	require.NoError(t, err, out.Sql)
	defer rs.Close()
	var lines []string
	for rs.Next() {
		var s string
		require.NoError(t, rs.Scan(&s))
		lines = append(lines, s)
	}
	require.NoError(t, rs.Err())
	return lines
}

func testData(t testing.TB) string {
	dir := t.TempDir()
	write(t, dir,
		"COPY (SELECT i, 'c' || i % 2 AS carrier, {'carrier': i, 'x': i * 10} AS flights, i AS \"Größe\" FROM range(4) t(i)) TO '$DIR/flights.parquet'",
		"COPY (SELECT i * 2 AS i, 'n' || i AS name FROM range(3) t(i)) TO '$DIR/names.parquet'",
		"COPY (SELECT 'stored' AS current_date, 1 AS i) TO '$DIR/odd.parquet'",
		"COPY (SELECT 1 AS a, 'x;y' AS b) TO '$DIR/text.csv' (HEADER, DELIM '|')", "COPY (SELECT 7 AS j) TO '$DIR/j.json'")
	return dir
}

func TestRewrite_NamesStillBind(t *testing.T) {
	dir := testData(t)
	for sql, want := range map[string]string{
		"SELECT flights.i FROM flights WHERE i = 1":                                                                                 "{'i': 1}",
		"SELECT flights.carrier FROM demo.flights WHERE i = 1":                                                                      "{'carrier': c1}",
		"SELECT demo.flights.carrier FROM demo.flights WHERE demo.flights.i = 1":                                                    "{'carrier': c1}",
		"SELECT lake.demo.flights.carrier FROM lake.demo.flights WHERE flights.i = 1":                                               "{'carrier': c1}",
		"SELECT LAKE.Demo.FLIGHTS.carrier FROM lake.demo.flights WHERE FLIGHTS.i = 1":                                               "{'carrier': c1}",
		"SELECT lake.demo.flights.flights.x FROM lake.demo.flights WHERE i = 1":                                                     "{'x': 10}",
		"SELECT f.flights.x, f.carrier FROM lake.demo.flights f WHERE f.i = 1":                                                      "{'x': 10, 'carrier': c1}",
		"SELECT f.* EXCLUDE (flights) FROM lake.demo.flights AS f WHERE f.i = 1":                                                    "{'i': 1, 'carrier': c1, 'Größe': 1}",
		"SELECT flights.* EXCLUDE (flights) FROM flights WHERE flights.i = 1":                                                       "{'i': 1, 'carrier': c1, 'Größe': 1}",
		"SELECT b, d FROM flights AS q(a, b, c, d) WHERE a = 1":                                                                     "{'b': c1, 'd': 1}",
		"SELECT flights.carrier FROM 'flights.parquet' WHERE flights.i = 1":                                                         "{'carrier': c1}",
		"SELECT read_parquet.carrier FROM read_parquet('flights.parquet') WHERE i = 1":                                              "{'carrier': c1}",
		"SELECT p.carrier, filename LIKE '%flights.parquet' AS f FROM read_parquet('flights.parquet', filename=true) p WHERE i = 1": "{'carrier': c1, 'f': true}",
		"SELECT text.a, text.b FROM 'text.csv'":                                                                                     "{'a': 1, 'b': x;y}",
		"SELECT a FROM read_csv('text.csv', delim='|', columns={'a': 'VARCHAR', 'b': 'VARCHAR'})":                                   "{'a': 1}",
		"SELECT j FROM 'j.json'": "{'j': 7}",
		"SELECT f1.i, f2.i AS i2 FROM flights f1 JOIN flights f2 ON f1.i = f2.i + 2 ORDER BY 1":                                                                  "{'i': 2, 'i2': 0}{'i': 3, 'i2': 1}",
		"SELECT flights.i, name FROM flights JOIN names USING (i) ORDER BY 1":                                                                                    "{'i': 0, 'name': n0}{'i': 2, 'name': n1}",
		"WITH flights AS (SELECT * FROM lake.demo.flights WHERE i = 1) SELECT flights.i FROM flights":                                                            "{'i': 1}",
		"WITH flights AS (SELECT * FROM flights WHERE i = 1) SELECT flights.i FROM flights":                                                                      "{'i': 1}",
		"SELECT i FROM flights f WHERE EXISTS (SELECT 1 FROM lake.demo.names n WHERE n.i = f.i AND f.i > 0)":                                                     "{'i': 2}",
		"SELECT i FROM lake.demo.flights WHERE EXISTS (SELECT 1 FROM lake.demo.names WHERE lake.demo.names.i = lake.demo.flights.i AND lake.demo.flights.i > 0)": "{'i': 2}",
		"SELECT count(*) AS n, carrier FROM flights GROUP BY ALL ORDER BY ALL":                                                                                   "{'n': 2, 'carrier': c0}{'n': 2, 'carrier': c1}",
		"SELECT carrier FROM flights QUALIFY row_number() OVER (PARTITION BY carrier ORDER BY i DESC) = 1 ORDER BY 1":                                            "{'carrier': c0}{'carrier': c1}",
		"FROM (PIVOT (SELECT i, carrier FROM flights) ON carrier IN ('c0', 'c1') USING sum(i)) ORDER BY ALL LIMIT 0":                                             "",
		"SELECT list_transform([1, 2], lambda x: x + i) AS l FROM flights WHERE i = 1":                                                                           "{'l': [2, 3]}",
		"SELECT [x + 1 for x in [1, 2] if x > 1] AS l":                                                                                                           "{'l': [3]}",
		"SELECT COLUMNS('^ca') FROM flights WHERE i = 1":                                                                                                         "{'carrier': c1}",
		"SELECT i FROM flights ORDER BY i DESC NULLS LAST LIMIT 1 OFFSET 1":                                                                                      "{'i': 2}",
		"SELECT \"Größe\" FROM flights WHERE \"größe\" = 1":                                                                                                      "{'Größe': 1}",
		"SELECT 'it''s' AS a, E'x\\ny' AS b, '\\xAA'::BLOB AS c, 1e3 AS d, 12345678901234567890123 AS e":                                                         "{'a': 'it\\'s', 'b': x\ny, 'c': \\xAA, 'd': 1000.0, 'e': 12345678901234567890123}",
		"SELECT 1 AS a -- comment":                            "{'a': 1}",
		"SELECT 1 AS a; ":                                     "{'a': 1}",
		"SELECT '--;/*' AS a":                                 "{'a': --;/*}",
		"VALUES (1, 'a'), (2, NULL) ORDER BY 1":               "{'col0': 1, 'col1': a}{'col0': 2, 'col1': NULL}",
		"SELECT x FROM unnest([1, 2]) t(x)":                   "{'x': 1}{'x': 2}",
		"SELECT unnest([i, i]) AS u FROM flights WHERE i = 1": "{'u': 1}{'u': 1}",
	} {
		got := strings.Join(rows(t, dir, sql), "")
		require.Equal(t, want, got, sql)
	}
}

func TestRewrite_TimeIsTheJobs(t *testing.T) {
	const ts, day = "2026-05-01 12:34:56.789", "2026-05-01"
	for sql, want := range map[string]string{
		"SELECT now() AS t":                                                            "{'t': '" + ts + "+00'}",
		"SELECT current_timestamp AS t":                                                "{'t': '" + ts + "+00'}",
		"SELECT get_current_timestamp() AS t":                                          "{'t': '" + ts + "+00'}",
		"SELECT transaction_timestamp() AS t":                                          "{'t': '" + ts + "+00'}",
		"SELECT CURRENT_DATE AS t, today() AS u":                                       "{'t': " + day + ", 'u': " + day + "}",
		"SELECT current_time AS t, get_current_time() u":                               "{'t': '12:34:56.789+00', 'u': '12:34:56.789+00'}",
		"SELECT localtime AS t, current_localtime() u":                                 "{'t': '12:34:56.789', 'u': '12:34:56.789'}",
		"SELECT localtimestamp AS t, current_localtimestamp() u":                       "{'t': '" + ts + "', 'u': '" + ts + "'}",
		"SELECT now()::DATE AS d, date_trunc('day', now())::DATE = current_date AS e":  "{'d': " + day + ", 'e': true}",
		"SELECT age(TIMESTAMP '2026-04-30') AS a":                                      "{'a': 1 day}",
		"SELECT * FROM (VALUES (now())) v(t)":                                          "{'t': '" + ts + "+00'}",
		"WITH c AS (SELECT now() AS t) FROM c":                                         "{'t': '" + ts + "+00'}",
		"SELECT now()":                                                                 "{'now()': '" + ts + "+00'}",
		"SELECT current_date":                                                          "{'current_date': " + day + "}",
		"SELECT now()::DATE":                                                           "{'CAST(now() AS DATE)': " + day + "}",
		"SELECT \"now()\" FROM (SELECT now())":                                         "{'now()': '" + ts + "+00'}",
		"SELECT i FROM range(3) t(i) WHERE current_date = DATE '2026-05-01' AND i = 1": "{'i': 1}",
	} {
		require.Equal(t, want, strings.Join(rows(t, "", sql), ""), sql)
	}
	dir := testData(t)
	require.Equal(t, []string{"{'current_date': stored}"}, rows(t, dir, "SELECT current_date FROM odd"), "a column of that name wins")
}

// What is not rewritten comes back with DuckDB's own names and values: compare with a plain run.
func TestRewrite_ColumnNamesAreDuckDBs(t *testing.T) {
	dir := testData(t)
	inst, err := testPool.Open(context.Background(), duckdb.Access{ReadFiles: []string{dir + "/flights.parquet"}})
	require.NoError(t, err)
	defer inst.Close()
	for _, list := range []string{
		"i + 1, sum(i) OVER (), count(*) OVER ()", "CASE WHEN i > 1 THEN 'a' END", "carrier || 'x', upper(carrier), carrier[1:2]", "flights.x, flights['x']",
		"i::VARCHAR, TRY_CAST(carrier AS INT)", "-i, NOT (i > 1), i BETWEEN 1 AND 2, carrier LIKE 'c%', carrier IN ('c0')", "[i, 2], {'a': i}, MAP {'k': i}",
		"1.50, 1e3, 'lit', NULL, true, DATE '2020-01-01', INTERVAL 3 DAY", "* EXCLUDE (flights), * REPLACE (i + 1 AS i)", "COLUMNS(*)::VARCHAR",
		"count(DISTINCT i) FILTER (WHERE i > 1), string_agg(carrier, ',' ORDER BY i)", "(SELECT max(i) FROM range(3) t(i))", "extract(year FROM DATE '2020-01-01')",
	} {
		plain, err := inst.Describe(context.Background(), "SELECT "+list+" FROM '"+dir+"/flights.parquet'")
		require.NoError(t, err, list)
		out, _ := twoRounds(t, dir, "SELECT "+list+" FROM flights")
		require.Nil(t, out.Error, "%s: %v", list, out.Error)
		require.Len(t, out.Columns, len(plain), list)
		for i, c := range plain {
			require.Equal(t, c.Name, out.Columns[i].Name, list)
			if out.Columns[i].EngineType != `"NULL"` {
				require.Equal(t, c.EngineType, out.Columns[i].EngineType, list)
			}
		}
	}
}
