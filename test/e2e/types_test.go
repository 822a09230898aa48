package e2e_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// setType gives the column odd of all of a table's schemas another type, as only another engine can.
func setType(c *harness.Cluster, schema, name string, typ any) {
	c.RewriteMetadata(schema, name, func(md map[string]any) {
		for _, s := range md["schemas"].([]any) {
			for _, f := range s.(map[string]any)["fields"].([]any) {
				if f := f.(map[string]any); f["name"] == "odd" {
					f["type"] = typ
				}
			}
		}
	})
}

// Types that Signet does not have are refused with the column's name and their own, by every statement that reads or writes rows; the executor lives.
func TestTypes_RefusedByName(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	c.SQL("CREATE TABLE lake.x.copy (id BIGINT)")
	for name, tc := range map[string]struct {
		typ  any
		says string
	}{
		"variant":   {"variant", "type variant"},
		"geometry":  {"geometry(srid:4326)", "type geometry"},
		"geography": {"geography(srid:4326, spherical)", "type geography"},
		"unknown":   {"unknown", "type unknown"},
		"nested":    {map[string]any{"type": "list", "element-id": 9, "element": "variant", "element-required": false}, "odd.element: type variant"},
		"nanos":     {"timestamptz_ns", "TIMESTAMPTZ_NS"},
		"future":    {"frob", "unreadable metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Use(t)
			c.SQL("CREATE TABLE lake.x." + name + " (id BIGINT, odd VARCHAR) WITH ('format-version' = '3'); INSERT INTO lake.x." + name + " (id) VALUES (1), (9)")
			files := filesBelow(t, c.Dir+"/warehouse/x/"+name)
			setType(c, "x", name, tc.typ)
			for _, statement := range []string{
				"SELECT id FROM TABLE", "SELECT * FROM TABLE", "INSERT INTO TABLE (id) VALUES (2)", "INSERT OVERWRITE TABLE (id) SELECT 2", "DELETE FROM TABLE WHERE id = 1",
				"UPDATE TABLE SET id = 2", "MERGE INTO TABLE AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
				"CALL system.rewrite_data_files(table => 'x." + name + "', options => map('rewrite-all', 'true'))", "INSERT INTO lake.x.copy SELECT id FROM TABLE",
			} {
				said := failing(t, c, strings.ReplaceAll(statement, "TABLE", "lake.x."+name))
				require.Contains(t, said, tc.says, statement)
				if name != "future" {
					require.Contains(t, said, "odd", statement)
				}
			}
			require.Len(t, filesBelow(t, c.Dir+"/warehouse/x/"+name), len(files)+1, "nothing but the other engine's metadata is new")
		})
	}
	require.False(t, c.Executors[0].Ended(), "no executor has ended")
}

// Defaults of format version 3: rows that are there have the initial default, rows to come the write default; what the query gives, NULL too, goes before.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	const defaults = "n INTEGER NOT NULL DEFAULT 7, s VARCHAR DEFAULT 'dé''f', d DECIMAL(9,2) DEFAULT -1.50, dt DATE DEFAULT '1969-12-31', tn TIMESTAMP_NS DEFAULT '1969-12-31 23:59:59.123456789', b BLOB DEFAULT X'ff00', " +
		"u UUID DEFAULT '00000000-0000-0000-0000-000000000001', bo BOOLEAN DEFAULT TRUE, f DOUBLE DEFAULT 0.1, ti TIME DEFAULT '12:34:56', tz TIMESTAMPTZ DEFAULT '2025-12-31 22:00:00+00', fx FIXED(2) DEFAULT X'6162'"
	all := strings.Split("7|dé'f|-1.50|1969-12-31|1969-12-31 23:59:59.123456789|\\xFF\\x00|00000000-0000-0000-0000-000000000001|true|0.1|12:34:56|2025-12-31 22:00:00+00|ab", "|")
	c.SQL("CREATE TABLE lake.x.made (id BIGINT, " + defaults + ") WITH ('format-version' = '3'); CREATE TABLE lake.x.grown (id BIGINT) WITH ('format-version' = '3'); INSERT INTO lake.x.grown VALUES (0); " +
		"ALTER TABLE lake.x.grown ADD COLUMN " + strings.ReplaceAll(defaults, ", ", ", ADD COLUMN "))
	for _, name := range []string{"made", "grown"} {
		t.Run(name, func(t *testing.T) {
			c.Use(t)
			sql := func(script string) [][]string {
				t.Helper()
				return c.SQL(strings.ReplaceAll(script, "TABLE", "lake.x."+name))
			}
			sql("INSERT INTO TABLE (id) VALUES (1); INSERT INTO TABLE BY NAME SELECT 2 AS id; MERGE INTO TABLE AS t USING (SELECT 3 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id); " +
				"INSERT INTO TABLE BY NAME SELECT 4 AS id, NULL::VARCHAR AS s, 8 AS n; UPDATE TABLE SET s = DEFAULT, d = 0 WHERE id = 4")
			for _, r := range sql("SELECT * FROM TABLE WHERE id < 4") {
				require.Equal(t, all, r[1:])
			}
			require.Equal(t, []string{"8", "dé'f", "0.00"}, sql("SELECT n, s, d FROM TABLE WHERE id = 4")[0])
			require.Contains(t, failing(t, c, "INSERT INTO lake.x."+name+" (id, n) VALUES (5, NULL)"), "column n")
			c.SQL("ALTER TABLE lake.x." + name + " ALTER COLUMN n SET DEFAULT 9, ALTER COLUMN s DROP DEFAULT; INSERT INTO lake.x." + name + " (id) VALUES (6)")
			require.Equal(t, []string{"9", ""}, sql("SELECT n, s FROM TABLE WHERE id = 6")[0])
		})
	}
	require.Equal(t, append([]string{"0"}, all...), c.SQL("SELECT * FROM lake.x.grown WHERE id = 0")[0], "the row that was there")
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.grown WHERE id = 0 AND n = 7 AND dt = DATE '1969-12-31'"), "conditions see it too")
	c.SQL("CALL system.rewrite_data_files(table => 'x.grown', options => map('rewrite-all', 'true'))")
	require.Equal(t, append([]string{"0"}, all...), c.SQL("SELECT * FROM lake.x.grown WHERE id = 0")[0], "a file written anew holds it")
	text := c.Value("SHOW CREATE TABLE lake.x.made")
	c.SQL("DROP TABLE lake.x.made; " + text)
	require.Equal(t, text, c.Value("SHOW CREATE TABLE lake.x.made"))
	require.Contains(t, text, "b BLOB DEFAULT X'ff00'")
}

// V3, V8, V13: partition columns may have any name, and values of any kind come back as they were.
func TestPartitions_OddNames(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	names := []string{"a key", "😎", "a.b", "a/b", "9x", "data#1", `q"q`, "größe", "it's", "%20", "..", "select", "a_x20key"}
	var columns, parts, values, list []string
	for i, n := range names {
		q := `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
		list = append(list, q)
		columns = append(columns, q+" VARCHAR")
		parts = append(parts, []string{q, "truncate(3, " + q + ")", "bucket(4, " + q + ")"}[i%3])
		values = append(values, "v")
	}
	c.SQL("CREATE TABLE lake.x.t (id BIGINT, " + strings.Join(columns, ", ") + ") PARTITIONED BY (" + strings.Join(parts, ", ") + "); " +
		"INSERT INTO lake.x.t SELECT row_number() OVER (), " + strings.Join(values, ", ") + " FROM (VALUES ('11/12/13'), ('a=b&c%20 d'), (''), (NULL), ('null')) r(v)")
	tab := c.Table("x", "t")
	require.Len(t, tab.Files, 5, "a file for each value")
	for _, p := range partitionsOf(t, tab) {
		require.Len(t, p, len(names))
	}
	for _, q := range list {
		require.Equal(t, [][]string{{"1", "1", "1", "1"}}, c.SQL("SELECT count(*) FILTER ("+q+" = '11/12/13'), count(*) FILTER ("+q+" = ''), count(*) FILTER ("+q+" IS NULL), count(*) FILTER ("+q+" = 'null') FROM lake.x.t"))
	}
	// Conditions leave files out by these fields.
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.t WHERE "+strings.Join(list, " = '' AND ")+" = ''"))
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.t WHERE "+strings.Join(list, " IS NULL AND ")+" IS NULL"))
	c.SQL(`INSERT INTO lake.x.t REPLACE WHERE "a key" = '11/12/13' SELECT * FROM lake.x.t WHERE id = 1; DELETE FROM lake.x.t WHERE "9x" = 'null'; CALL system.rewrite_manifests('x.t')`)
	require.Equal(t, "4", c.Value("SELECT count(*) FROM lake.x.t"))
	require.EqualValues(t, 4, c.Table("x", "t").Records)
}

// V12: a condition finds its row whatever share of the rows is NULL.
func TestConditions_BesideNulls(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	c.SQL("CREATE TABLE lake.x.t (id BIGINT, s VARCHAR, f DOUBLE)")
	for n, values := range []string{"('x'), (NULL)", "(NULL), ('x')", "('x'), (NULL), (NULL)", "(NULL), (NULL)"} {
		c.SQL("TRUNCATE TABLE lake.x.t; INSERT INTO lake.x.t SELECT 1, s::VARCHAR, CASE WHEN s = 'x' THEN 1.5 END FROM (VALUES " + values + ") r(s)")
		want := strings.Count(values, "'x'")
		for _, where := range []string{"s = 'x'", "s LIKE 'x%'", "s IS NOT NULL", "f > 1", "NOT f < 1.5"} {
			require.Equal(t, strconv.Itoa(want), c.Value("SELECT count(*) FROM lake.x.t WHERE "+where), "%d: %s of %s", n, where, values)
		}
		require.Equal(t, strconv.Itoa(strings.Count(values, "NULL")), c.Value("SELECT count(*) FROM lake.x.t WHERE s IS NULL"))
	}
}
