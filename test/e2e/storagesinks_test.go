package e2e_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// newLedgers is a cluster whose catalog led has tables of test/sinks/ledger, which can do what a storage sink may.
func newLedgers(t *testing.T, executors int) (*harness.Cluster, string) {
	root := t.TempDir()
	c := harness.New(t, harness.Options{Executors: executors, CatalogConfig: ledgerCatalog(root)})
	return c, root
}

func ledgerCatalog(root string) string {
	return "  led: {type: sink, sink: ledger, root: 'file://" + root + "'}\n"
}

// Statements ask for what a sink can do, and for no catalog: a storage sink has them all.
func TestStorageSink_EveryStatement(t *testing.T) {
	t.Parallel()
	c, _ := newLedgers(t, 1)
	everyStatement(t, c, "led", "WRITE_MODE_REPLACE")
}

// everyStatement writes one table in every way. replaces is what its history calls CREATE OR REPLACE TABLE AS.
func everyStatement(t *testing.T, c *harness.Cluster, catalog, replaces string) {
	t.Helper()
	table := catalog + ".a.t"
	version := 0
	write := func(statement, want string, args ...string) map[string]string {
		t.Helper()
		r := answerOf(t, c, strings.Replace(statement, "led.", catalog+".", 1))
		require.Equal(t, want, ids(c, table), statement)
		require.Equal(t, fmt.Sprint(version), r["version"], statement)
		require.Equal(t, "", r["snapshot_id"])
		require.Equal(t, "", r["sequence_number"])
		version++
		return r
	}
	write("CREATE TABLE led.a.t PARTITIONED BY (p) AS SELECT i AS id, i % 3 AS p FROM range(1, 7) r(i)", "1 2 3 4 5 6")
	write("INSERT INTO led.a.t VALUES (7, 1)", "1 2 3 4 5 6 7")
	write("INSERT INTO led.a.t REPLACE WHERE p = 0 SELECT 30, 0", "1 2 4 5 7 30")
	write("INSERT OVERWRITE led.a.t PARTITION (p = 2) SELECT 20", "1 4 7 20 30")
	write("INSERT OVERWRITE PARTITIONS INTO led.a.t VALUES (10, 1), (99, NULL)", "10 20 30 99")
	write("INSERT OVERWRITE PARTITIONS INTO led.a.t VALUES (98, NULL)", "10 20 30 98")
	require.Equal(t, "1", write("DELETE FROM led.a.t WHERE id = 98", "10 20 30")["deleted_rows"])
	require.Equal(t, "2", write("UPDATE led.a.t SET id = id + 1 WHERE id > 10", "10 21 31")["updated_rows"])
	write("MERGE INTO led.a.t AS t USING (VALUES (10), (50)) AS s(i) ON t.id = s.i WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.i, 1)", "21 31 50")
	write("INSERT INTO led.a.t VALUES (51, 1)", "21 31 50 51")
	require.Equal(t, [][]string{{"2", "1"}}, firstColumns(c.SQL("CALL "+catalog+".system.rewrite_data_files(table => 'a.t', options => MAP('min-input-files', '2'))"), 2))
	require.Equal(t, "21 31 50 51", ids(c, table))
	version++
	write("INSERT OVERWRITE led.a.t VALUES (1, 1), (2, 2)", "1 2")
	write("TRUNCATE TABLE led.a.t", "")
	write("CREATE OR REPLACE TABLE led.a.t AS SELECT 5 AS id, 'x' AS s", "5")
	require.Equal(t, [][]string{{"5", "x"}}, c.SQL("SELECT * FROM "+strings.ToUpper(table)))
	require.Equal(t, "0", answerOf(t, c, "INSERT INTO "+table+" SELECT 1, 'x' WHERE false")["rows"], "no rows, no version")
	require.Equal(t, "1", c.Value("SELECT count(*) FROM "+table))

	// What was is still there, by version and by time.
	require.Equal(t, [][]string{{"7"}}, c.SQL("SELECT count(*) FROM "+table+" FOR VERSION AS OF 1"))
	require.Equal(t, [][]string{{"6"}}, c.SQL("SELECT count(*) FROM "+table+" VERSION AS OF 0"))
	require.Equal(t, [][]string{{"1"}}, c.SQL("SELECT count(*) FROM "+table+" FOR TIMESTAMP AS OF (now() + INTERVAL 1 HOUR)"))
	c.Fail(1, "SELECT * FROM "+table+" VERSION AS OF 1000", "1000")

	history := c.SQL("DESCRIBE HISTORY " + table)
	require.Len(t, history, version)
	require.Equal(t, []string{fmt.Sprint(version - 1), replaces}, []string{history[0][0], history[0][3]})
	require.Equal(t, fmt.Sprint(version-2), history[0][6])
	require.Equal(t, [][]string{history[0], history[1]}, c.SQL("DESCRIBE HISTORY "+strings.ToUpper(table)+" LIMIT 2"))
	c.Fail(1, "DESCRIBE HISTORY "+catalog+".a.gone", "does not exist")
}

func firstColumns(rows [][]string, n int) [][]string {
	for i := range rows {
		rows[i] = rows[i][:n]
	}
	return rows
}

// What is about Iceberg's metadata is refused, with what to do instead; what the sink lacks, by its name.
func TestStorageSink_Refusals(t *testing.T) {
	t.Parallel()
	c, _ := newLedgers(t, 1)
	c.SQL("CREATE TABLE led.a.t AS SELECT 1 AS id")
	for _, call := range []string{
		"rollback_to_snapshot('a.t', 1)", "rollback_to_timestamp('a.t', '2026-01-01')", "set_current_snapshot('a.t', 1)", "cherrypick_snapshot('a.t', 1)",
		"publish_changes('a.t', 'x')", "fast_forward('a.t', 'a', 'b')", "ancestors_of('a.t')", "expire_snapshots('a.t')", "rewrite_manifests('a.t')",
	} {
		c.Fail(1, "CALL led.system."+call, "is about Iceberg's snapshots", "DESCRIBE HISTORY led.a.t")
	}
	c.Fail(1, "CALL led.system.ancestors_of('a.gone')", "table led.a.gone does not exist")
	c.Fail(1, "SHOW SNAPSHOTS FROM led.a.t", "is about Iceberg tables", "DESCRIBE HISTORY")
	c.Fail(1, "ALTER TABLE led.a.t ADD FILES FROM 'x.parquet'", "")
	c.Fail(1, "ALTER TABLE led.a.t ADD COLUMN x INT", "does not alter tables")
	c.Fail(1, "INSERT INTO led.a.t.branch_x VALUES (1)", "writing to a branch is not supported")
	c.SQL("CREATE SCHEMA lake.a; CREATE TABLE lake.a.t AS SELECT 1 AS id; INSERT INTO lake.a.t VALUES (2)")
	c.Fail(1, "VACUUM lake.a.t", "VACUUM is for tables of storage sinks", "expire_snapshots")
	rows := c.SQL("DESCRIBE HISTORY lake.a.t")
	require.Len(t, rows, 2)
	require.Equal(t, []string{"append", rows[1][0]}, []string{rows[0][3], rows[0][6]}, "the version that it read is its parent")
	require.Equal(t, rows[:1], c.SQL("DESCRIBE HISTORY lake.a.t LIMIT 1"))
}

// Dry runs and validation, and keys that name what must happen once.
func TestStorageSink_DryRunsAndKeys(t *testing.T) {
	t.Parallel()
	c, root := newLedgers(t, 1)
	c.SQL("CREATE TABLE led.a.t PARTITIONED BY (p) AS SELECT i AS id, i % 2 AS p FROM range(4) r(i)")
	require.Contains(t, text(c.SQL("EXPLAIN INSERT INTO led.a.t REPLACE WHERE p = 1 SELECT 9, 1")), "removes: 1 files with 2 rows")
	require.Contains(t, text(c.SQL("EXPLAIN TRUNCATE TABLE led.a.t")), "removes all rows")
	require.Contains(t, text(c.SQL("EXPLAIN DELETE FROM led.a.t WHERE id = 1")), "[scheduler] Commit led.a.t")
	require.Equal(t, "1", c.SQL("VALIDATE INSERT INTO led.a.t VALUES (9, 1)")[0][0])
	c.Fail(1, "VALIDATE INSERT INTO led.a.t VALUES ('x', 1)", "")
	c.Fail(1, "INSERT INTO led.a.t REPLACE WHERE p = 1 SELECT 9, 0", "REPLACE WHERE")
	require.Len(t, ledgerOf(t, root, "t"), 1)
	for range 2 {
		require.Equal(t, "1", c.SQL("INSERT INTO led.a.t VALUES (9, 1)", "--idempotency-key", "once")[0][0])
	}
	require.Len(t, ledgerOf(t, root, "t"), 2)
}

func text(rows [][]string) string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.Join(r, " "))
	}
	return strings.Join(out, "\n")
}

// ledgerOf are the commits of a table, oldest first, as its files have them.
func ledgerOf(t *testing.T, root, table string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "a", table, "_ledger", "*.json"))
	require.NoError(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		out = append(out, string(b))
	}
	return out
}

func TestStorageSink_ManyAppendTogether(t *testing.T) {
	t.Parallel()
	c, root := newLedgers(t, 1)
	manyAppend(t, c, root, ledgerFormat)
}

// manyAppend has 32 clients append to one table: some share a version, every row is there once, and every job has its marker and its version.
func manyAppend(t *testing.T, c *harness.Cluster, root string, f storageFormat) {
	t.Helper()
	const clients, each = 32, 5
	table := f.catalog + ".a.t"
	c.SQL("CREATE TABLE " + table + " AS SELECT CAST(0 AS BIGINT) AS id")
	var wg sync.WaitGroup
	var mu sync.Mutex
	markers := map[string]string{} // version by marker
	for i := range clients {
		wg.Go(func() {
			for n := range each {
				r := c.Run("sql", "--quiet", "--output", "csv", fmt.Sprintf("INSERT INTO %s VALUES (%d)", table, 1+i*each+n))
				if r.Code != 0 {
					t.Errorf("client %d: %s", i, r.Err)
					return
				}
				rows, err := csv.NewReader(strings.NewReader(r.Out)).ReadAll()
				if err != nil || len(rows) != 2 {
					t.Errorf("client %d: %v: %s", i, err, r.Out)
					return
				}
				mu.Lock()
				markers[rows[1][slices.Index(rows[0], "marker")]] = rows[1][slices.Index(rows[0], "version")]
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, [][]string{{fmt.Sprint(clients*each + 1), fmt.Sprint(clients*each + 1)}}, c.SQL("SELECT count(*), count(DISTINCT id) FROM "+table))
	require.Len(t, markers, clients*each)
	now := f.await(t, filepath.Join(root, "a", "t"))
	require.Len(t, now.ids, clients*each+1)
	commits := f.log(t, filepath.Join(root, "a", "t"))
	require.Less(t, len(commits), clients*each, "none shared a version")
	for marker, version := range markers {
		var in []int
		for n, commit := range commits {
			if slices.Contains(commit.markers, marker) {
				in = append(in, n)
			}
		}
		require.Equal(t, []string{version}, strings.Fields(strings.Trim(fmt.Sprint(in), "[]")), "marker %s", marker)
	}
}

func TestStorageSink_Vacuum(t *testing.T) {
	t.Parallel()
	c, root := newLedgers(t, 1)
	vacuums(t, c, root, "led")
}

// vacuums: VACUUM removes what no version needs any more, if it is old enough, and nothing else.
func vacuums(t *testing.T, c *harness.Cluster, root, catalog string) {
	t.Helper()
	table, system := catalog+".a.t", "CALL "+catalog+".system."
	c.SQL("CREATE TABLE " + table + " AS SELECT 1 AS id; INSERT OVERWRITE " + table + " VALUES (2)")
	dir := filepath.Join(root, "a", "t")
	young, old := filepath.Join(dir, "data", "young.parquet"), filepath.Join(dir, "data", "x", "old.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(old), 0o755))
	tenDays := time.Now().Add(-10 * 24 * time.Hour)
	for _, f := range []string{young, old} {
		require.NoError(t, os.WriteFile(f, []byte("left by a crash"), 0o600))
	}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && p != young {
			err = os.Chtimes(p, tenDays, tenDays)
		}
		return err
	}))
	require.Equal(t, [][]string{{"file://" + old}}, c.SQL("VACUUM "+table+" DRY RUN"), "the overwritten file was named until now")
	require.Len(t, c.SQL("VACUUM "+table+" RETAIN 0 HOURS DRY RUN"), 3)
	require.FileExists(t, old)
	c.Fail(1, "VACUUM "+table+" RETAIN 1 HOURS", "168 hours", "force => true")
	c.Fail(1, system+"remove_orphan_files(table => 'a.t', older_than => TIMESTAMP '2100-01-01 00:00:00')", "168 hours")
	require.Equal(t, [][]string{{"file://" + old}}, c.SQL("VACUUM "+table))
	require.NoFileExists(t, old)
	require.Empty(t, c.SQL("VACUUM "+table))
	require.Equal(t, "2", ids(c, table))
	require.Len(t, c.SQL("SELECT * FROM "+table+" VERSION AS OF 0"), 1)

	later := "older_than => TIMESTAMP '" + time.Now().Add(time.Minute).UTC().Format("2006-01-02 15:04:05") + "', force => true)"
	require.Empty(t, c.SQL(system+"remove_orphan_files(table => 'a.t', location => 'file://"+dir+"/data/x', "+later))
	c.Fail(1, system+"remove_orphan_files(table => 'a.t', location => 'file://"+root+"', "+later, "not below table")
	require.Len(t, c.SQL(system+"remove_orphan_files(table => 'a.t', "+later), 2)
	require.NoFileExists(t, young)
	require.Equal(t, "2", ids(c, table))
	c.Fail(1, "SELECT * FROM "+table+" VERSION AS OF 0", "")
}
