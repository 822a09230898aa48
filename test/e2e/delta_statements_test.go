package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// The history tells by which conditions rows were changed, as Spark's does, and a statement's answer what its commit did.
func TestDelta_HistoryAndCounts(t *testing.T) {
	t.Parallel()
	c, _ := newDelta(t)
	did := func(statement, operation string, counts ...string) {
		t.Helper()
		a := answerOf(t, c, statement)
		require.Equal(t, operation, a["operation"], statement)
		require.Equal(t, counts, []string{a["added_files"], a["removed_files"], a["added_rows"], a["removed_rows"], a["partitions"]}, statement)
	}
	parameters := func() (p map[string]string) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(c.SQL("DESCRIBE HISTORY dl.a.t LIMIT 1")[0][4]), &p))
		return p
	}
	did("CREATE TABLE dl.a.t PARTITIONED BY (p) AS SELECT i AS id, CAST(i % 3 AS INT) AS p FROM range(9) r(i)", "CREATE TABLE AS SELECT", "3", "0", "9", "0", "3")
	did("INSERT INTO dl.a.t VALUES (9, 0), (10, 1)", "WRITE", "2", "0", "2", "0", "2")
	did("DELETE FROM dl.a.t WHERE id < 3 AND p <> 2", "DELETE", "2", "2", "4", "6", "2")
	require.Equal(t, map[string]string{"predicate": `["id < 3 AND p <> 2"]`}, parameters())
	did("DELETE FROM dl.a.t WHERE p = 2", "DELETE", "0", "1", "0", "3", "1")
	require.Equal(t, map[string]string{"predicate": `["p = 2"]`}, parameters())
	did("UPDATE dl.a.t AS x SET id = -id WHERE x.id = 9", "UPDATE", "1", "1", "1", "1", "1")
	require.Equal(t, map[string]string{"predicate": `["x.id = 9"]`}, parameters())
	did("MERGE INTO dl.a.t AS t USING (VALUES (3), (99)) AS s(i) ON t.id = s.i WHEN MATCHED AND t.p >= 0 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.i, 5)", "MERGE",
		"2", "1", "2", "2", "2")
	require.Equal(t, map[string]string{
		"predicate": `["t.id = s.i"]`, "matchedPredicates": `[{"predicate":"t.p >= 0","actionType":"delete"}]`, "notMatchedPredicates": `[{"actionType":"insert"}]`, "notMatchedBySourcePredicates": "[]",
	}, parameters())
	did("DELETE FROM dl.a.t", "DELETE", "0", "5", "0", "6", "3")
	require.Equal(t, map[string]string{"predicate": "[]"}, parameters())
	did("INSERT INTO dl.a.t SELECT 1, 1 WHERE false", "", "0", "0", "0", "0", "0")

	// Of a condition of any length the history has the beginning.
	c.SQL("INSERT INTO dl.a.t VALUES (1, 1); DELETE FROM dl.a.t WHERE id IN (" + strings.Repeat("1, ", 20000) + "1)")
	require.Len(t, parameters()["predicate"], 16<<10+len(`[" …"]`))
}

// Files that are there become the table's: below it, where the operator lets them be, and as copies.
func TestDelta_AddFiles(t *testing.T) {
	t.Parallel()
	root, raw := t.TempDir(), t.TempDir()
	c := harness.New(t, harness.Options{Executors: 1, CatalogConfig: strings.TrimSuffix(deltaCatalog(root), "}\n") + ", add_files_paths: ['file://" + raw + "']}\n"})
	exported(t, filepath.Join(raw, "a.parquet"), 0, compress.Codecs.Zstd)
	exported(t, filepath.Join(raw, "b.parquet"), 40000, compress.Codecs.Snappy)
	c.SQL("CREATE TABLE dl.a.t (id BIGINT, name VARCHAR, day DATE); CREATE TABLE dl.a.narrow (id INT, name VARCHAR, day DATE); CREATE TABLE dl.a.strict (id BIGINT, name VARCHAR NOT NULL, day DATE)")
	add := func(table, file, with string) string {
		return fmt.Sprintf("ALTER TABLE dl.a.%s ADD FILES FROM '%s'%s", table, file, with)
	}
	want := c.SQL("SELECT " + addSums + " FROM '" + raw + "/*.parquet'")
	r := answerOf(t, c, add("t", raw+"/*.parquet", ""))
	require.Equal(t, []string{"80000", "2", "WRITE", "2", "0"}, []string{r["rows"], r["files"], r["operation"], r["added_files"], r["removed_files"]})
	require.Equal(t, want, c.SQL("SELECT "+addSums+" FROM dl.a.t"))
	require.Equal(t, "1", c.Value("SELECT count(*) FROM dl.a.t WHERE id = 41234"))
	c.Fail(1, add("t", raw+"/b.parquet", ""), "table dl.a.t has "+raw+"/b.parquet already")
	c.Fail(1, add("narrow", raw+"/a.parquet", ""), `column "id"`)
	c.Fail(1, add("strict", raw+"/a.parquet", ""), `column "name" of the table is required`)
	for _, table := range []string{"narrow", "strict"} {
		require.Equal(t, "0", c.Value("SELECT count(*) FROM dl.a."+table), table)
	}
	c.Fail(1, add("t", raw+"/a.parquet", " WITH (copy = true)"), "has "+raw+"/a.parquet already")
	c.SQL(add("t", raw+"/a.parquet", " WITH (copy = true, check_duplicates = false)"))
	require.Equal(t, "120000", c.Value("SELECT count(*) FROM dl.a.t"))

	// What becomes of the table does not touch the files where they were.
	c.SQL("DELETE FROM dl.a.t WHERE id >= 0; CALL dl.system.remove_orphan_files(table => 'a.t', older_than => TIMESTAMP '2100-01-01', force => true); DROP TABLE dl.a.t")
	require.FileExists(t, filepath.Join(raw, "a.parquet"))
	require.FileExists(t, filepath.Join(raw, "b.parquet"))
}

// Directories give the partition values of files that lack the column.
func TestDelta_AddFilesOfPartitions(t *testing.T) {
	t.Parallel()
	c, root := newDelta(t)
	c.SQL("CREATE TABLE dl.a.src AS SELECT i AS id FROM range(100) r(i); CREATE TABLE dl.a.t (id BIGINT, p VARCHAR, d DATE) PARTITIONED BY (p, d)")
	found, err := filepath.Glob(filepath.Join(root, "a", "src", "*", "*", "*", "*", "*.parquet"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	b, err := os.ReadFile(found[0])
	require.NoError(t, err)
	in := filepath.Join(root, "a", "t", "in")
	for _, dir := range []string{"p=a b/d=2024-01-01", "p=x:ü/d=2024-01-02", "p=__HIVE_DEFAULT_PARTITION__/d=2024-01-03"} {
		require.NoError(t, os.MkdirAll(filepath.Join(in, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(in, dir, "x.parquet"), b, 0o600))
	}
	require.Equal(t, "3", answerOf(t, c, "ALTER TABLE dl.a.t ADD FILES FROM '"+in+"/*/*/*.parquet'")["files"])
	require.Equal(t, [][]string{{"a b", "2024-01-01", "4950"}, {"x:ü", "2024-01-02", "4950"}, {"", "2024-01-03", "4950"}}, c.SQL("SELECT p, d, sum(id) FROM dl.a.t GROUP BY ALL ORDER BY d"))
	require.Equal(t, "100", c.Value("SELECT count(*) FROM dl.a.t WHERE p = 'x:ü'"))
	require.NoError(t, os.MkdirAll(filepath.Join(in, "p=q", "d=soon"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(in, "p=q", "d=soon", "x.parquet"), b, 0o600))
	c.Fail(1, "ALTER TABLE dl.a.t ADD FILES FROM '"+in+"/*/d=soon/*.parquet'", "soon")
}

// Every change of ALTER TABLE is made, or refused with what stands against it and the table as it was.
func TestDelta_AlterTable(t *testing.T) {
	t.Parallel()
	c, root := newDelta(t)
	c.SQL("CREATE TABLE dl.a.t (id BIGINT NOT NULL, name VARCHAR, s STRUCT(x INT), p INT) PARTITIONED BY (p); INSERT INTO dl.a.t VALUES (1, 'a', {'x': 1}, 1)")
	for _, change := range []string{
		"ADD COLUMN n INT COMMENT 'more'", "ADD COLUMN s.y VARCHAR", "ADD COLUMN first DATE FIRST", "ADD COLUMN IF NOT EXISTS n INT", "ALTER COLUMN id DROP NOT NULL", "ALTER COLUMN name COMMENT 'of it'",
		"SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'note' = 'x')", "UNSET TBLPROPERTIES ('delta.appendOnly')", "UNSET TBLPROPERTIES IF EXISTS ('gone')", "DROP COLUMN IF EXISTS gone",
		"ADD COLUMN m1 INT, ADD COLUMN m2 DECIMAL(38, 2)",
	} {
		c.SQL("ALTER TABLE dl.a.t " + change)
	}
	c.SQL("INSERT INTO dl.a.t BY NAME SELECT 2::BIGINT AS id, {'x': 2, 'y': 'b'} AS s, 2 AS p, 7 AS n, DATE '2024-01-01' AS first, 1.5 AS m2")
	require.Equal(t, [][]string{{"", "1", "a", "", "1", "", "", ""}, {"2024-01-01", "2", "", "b", "2", "7", "", "1.50"}}, c.SQL("SELECT first, id, name, s.y, p, n, m1, m2 FROM dl.a.t ORDER BY id"))
	require.Contains(t, text(c.SQL("SHOW TBLPROPERTIES dl.a.t")), "note")
	commits := len(deltaLog(t, filepath.Join(root, "a", "t")))
	for change, why := range map[string]string{
		"DROP COLUMN name": "column mapping", "RENAME COLUMN name TO other": "column mapping", "ALTER COLUMN n TYPE BIGINT": "typeWidening", "ALTER COLUMN n SET NOT NULL": "NOT NULL",
		"ALTER COLUMN n SET DEFAULT 3": "allowColumnDefaults", "ALTER COLUMN n FIRST": "found by name", "ADD COLUMN z INT NOT NULL": "NOT NULL", "ADD COLUMN n INT": "exists already",
		"ADD COLUMN \"a b\" INT": "a b", "ADD COLUMN s.x INT": "exists already", "ADD COLUMN q INT AFTER gone": "gone", "ADD PARTITION FIELD n": "partitioning", "DROP PARTITION FIELD p": "partitioning",
		"REPLACE PARTITION FIELD p WITH n": "partitioning", "WRITE ORDERED BY n": "sort order", "CREATE BRANCH b": "branches", "CREATE TAG g": "tags", "UNSET TBLPROPERTIES ('gone')": "gone",
		"SET TBLPROPERTIES ('delta.appendOnly' = 'maybe')": "delta.appendOnly", "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')": "delta.columnMapping.mode",
		"SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')": "delta.enableRowTracking", "ADD COLUMN ok INT, DROP COLUMN name": "column mapping",
	} {
		c.Fail(1, "ALTER TABLE dl.a.t "+change, why)
	}
	c.Fail(1, "ALTER TABLE dl.a.gone ADD COLUMN x INT", "does not exist")
	c.SQL("ALTER TABLE IF EXISTS dl.a.gone ADD COLUMN x INT")
	require.Len(t, deltaLog(t, filepath.Join(root, "a", "t")), commits, "refused statements write nothing")
	require.Equal(t, "2", c.Value("SELECT count(*) FROM dl.a.t"))
}
