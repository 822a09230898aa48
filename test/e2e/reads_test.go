package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// one is the single value of a query.
func one(t *testing.T, c *harness.Cluster, query string) string {
	t.Helper()
	rows := c.SQL(query)
	require.Len(t, rows, 1, query)
	return rows[0][0]
}

// Older versions by snapshot id and by time, with the schema of their own.
func TestReads_OlderVersions(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.r; CREATE TABLE lake.r.t (id BIGINT)")
	c.SQL("INSERT INTO lake.r.t VALUES (1)")
	first := fmt.Sprint(c.Table("r", "t").Metadata.CurrentSnapshot().SnapshotID)
	c.SQL("INSERT INTO lake.r.t VALUES (2), (3)")
	require.Equal(t, "3", one(t, c, "SELECT count(*) FROM lake.r.t"))
	require.Equal(t, "1", one(t, c, "SELECT sum(id) FROM lake.r.t FOR VERSION AS OF "+first))
	require.Equal(t, "5", one(t, c, "SELECT sum(now.id) FROM lake.r.t AS now ANTI JOIN lake.r.t VERSION AS OF "+first+" AS old USING (id)"))
	require.Equal(t, "3", one(t, c, "SELECT count(*) FROM lake.r.t FOR TIMESTAMP AS OF now()"))
	require.Equal(t, "3", one(t, c, "SELECT count(*) FROM lake.r.t FOR VERSION AS OF 'main'"))
	for query, want := range map[string]string{
		"SELECT * FROM lake.r.t FOR TIMESTAMP AS OF '2001-01-01'": "no snapshot that is as old as 2001-01-01",
		"SELECT * FROM lake.r.t FOR VERSION AS OF 5":              "it has no snapshot 5",
		"SELECT * FROM lake.r.t FOR VERSION AS OF 'nope'":         `it has no branch or tag "nope"`,
		"SELECT * FROM lake.r.t.branch_nope":                      `it has no branch or tag "nope"`,
		"SELECT * FROM lake.r.none.branch_x":                      "does not exist",
	} {
		r := c.Run("sql", "--quiet", query)
		require.NotEqual(t, 0, r.Code, query)
		require.Contains(t, r.Err, want, query)
	}
}

// Conditions leave files out, by partition values and by column bounds, and EXPLAIN says how many.
func TestReads_ConditionsPruneFiles(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.r; CREATE TABLE lake.r.t (id BIGINT, day DATE, name VARCHAR) PARTITIONED BY (day)")
	c.SQL("INSERT INTO lake.r.t SELECT i, DATE '2026-01-01' + CAST(i // 10 AS INTEGER), 'n' || i FROM range(0, 200) r(i)")
	c.SQL("INSERT INTO lake.r.t VALUES (1000, NULL, 'none')")
	for where, want := range map[string]struct{ count, files string }{
		"day = '2026-01-03'":                        {"10", "1 of 21 files"},
		"day BETWEEN '2026-01-03' AND '2026-01-05'": {"30", "3 of 21 files"},
		"day IS NULL":                               {"1", "1 of 21 files"},
		"id = 55":                                   {"1", "1 of 21 files"},
		"id IN (55, 199) AND name LIKE 'n%'":        {"2", "2 of 21 files"},
		"id < 5 OR day > '2026-01-20'":              {"5", "1 of 21 files"},
		"id + 0 = 55":                               {"1", ""},
		"id = 55 AND length(name) = 3":              {"1", "1 of 21 files"},
		"id > 100000":                               {"0", "0 of 21 files"},
		"day = (SELECT max(day) FROM lake.r.t) AND day > '2026-01-19'": {"10", ""},
	} {
		require.Equal(t, want.count, one(t, c, "SELECT count(*) FROM lake.r.t WHERE "+where), where)
		r := c.Run("sql", "--quiet", "EXPLAIN SELECT * FROM lake.r.t WHERE "+where)
		require.Equal(t, 0, r.Code, r.Err)
		if want.files == "" {
			require.NotContains(t, r.Out, " of 21 files", where)
			continue
		}
		require.Contains(t, r.Out, want.files, where)
	}
	require.Equal(t, "10", one(t, c, "SELECT count(*) FROM lake.r.t a JOIN lake.r.t b ON a.id = b.id WHERE a.day = '2026-01-03' AND b.day = '2026-01-03'"))
}

// What row-level statements leave behind is read.
func TestReads_DeletedRows(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 2})
	c.SQL("CREATE SCHEMA lake.r")
	for _, version := range []string{"2", "3"} {
		table := "lake.r.t" + version
		c.SQL(fmt.Sprintf("CREATE TABLE %s (id BIGINT, name VARCHAR) WITH ('format-version' = '%s', 'write.delete.mode' = 'merge-on-read')", table, version))
		c.SQL("INSERT INTO " + table + " SELECT i, 'n' || i FROM range(0, 1000) r(i)")
		r := c.Run("sql", "--quiet", "DELETE FROM "+table+" WHERE id % 10 = 3")
		require.Equal(t, 0, r.Code, r.Err)
		require.Equal(t, "900", one(t, c, "SELECT count(*) FROM "+table))
		require.Equal(t, "0", one(t, c, "SELECT count(*) FROM "+table+" WHERE id = 13"))
		require.Equal(t, "999", one(t, c, "SELECT max(id) FROM "+table))
	}
}
