package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// newRows is a cluster with lake.r.t of four files, ids 0 to 39, and lake.r.s with every third of them and some more.
func newRows(t *testing.T, properties string) *harness.Cluster {
	c := harness.New(t, harness.Options{Executors: 2})
	c.SQL("CREATE SCHEMA lake.r; CREATE TABLE lake.r.t (id BIGINT NOT NULL, g INTEGER, v BIGINT, name VARCHAR) PARTITIONED BY (g)" + properties)
	for n := range 2 {
		c.SQL(fmt.Sprintf("INSERT INTO lake.r.t SELECT i, CAST(i %% 2 AS INTEGER), CASE WHEN i %% 5 = 0 THEN NULL ELSE i * 10 END, 'n' || i FROM range(%d, %d) r(i)", n*20, n*20+20))
	}
	c.SQL("CREATE TABLE lake.r.s AS SELECT i * 3 AS id, CAST(i % 2 AS INTEGER) AS g, i * 100 AS v, 's' || i AS name FROM range(20) r(i)")
	return c
}

// layouts are how changed rows are stored, by the properties of the table.
var layouts = map[string]string{
	"copy-on-write":    "",
	"position deletes": " WITH ('format-version' = '2', " + mergeOnRead + ")",
	"deletion vectors": " WITH ('format-version' = '3', " + mergeOnRead + ")",
}

const mergeOnRead = "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"

// eachLayout runs a test on tables of every layout.
func eachLayout(t *testing.T, f func(*testing.T, *harness.Cluster)) {
	t.Parallel()
	for name, properties := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newRows(t, properties))
		})
	}
}

// oneOf is the first column of the first row.
func oneOf(c *harness.Cluster, query string) string { return c.SQL(query)[0][0] }

func TestRowLevel_Delete(t *testing.T) {
	eachLayout(t, func(t *testing.T, c *harness.Cluster) {
		before := c.Table("r", "t").Snapshots
		got := answerOf(t, c, "DELETE FROM lake.r.t WHERE v > 100 AND id < 20") // NULL keeps the row
		require.Equal(t, "8", got["deleted_rows"])
		require.Equal(t, "32", oneOf(c, "SELECT count(*) FROM lake.r.t"))
		require.Equal(t, "0 1 2 3 4 5 6 7 8 9 10 15", firstIDs(c, 12))
		require.Equal(t, before+1, c.Table("r", "t").Snapshots)

		c.SQL("DELETE FROM lake.r.t AS x WHERE x.id IN (SELECT s.id FROM lake.r.s AS s) OR x.v = (SELECT max(v) FROM lake.r.t)")
		require.Equal(t, "1 2 4 5 7 8 10", firstIDs(c, 7))
		require.Equal(t, "0", oneOf(c, "SELECT count(*) FROM lake.r.t WHERE id = 39"))

		at := c.Table("r", "t").MetadataLocation
		c.SQL("DELETE FROM lake.r.t WHERE id = 1000000")
		require.Equal(t, at, c.Table("r", "t").MetadataLocation, "nothing changes, so that there is no snapshot")

		c.SQL("DELETE FROM lake.r.t WHERE lake.r.t.g = 1")
		require.Equal(t, "0", oneOf(c, "SELECT count(*) FROM lake.r.t WHERE g = 1"))
		c.SQL("DELETE FROM lake.r.t")
		require.Equal(t, "0", oneOf(c, "SELECT count(*) FROM lake.r.t"))
		c.SQL("DELETE FROM lake.r.t WHERE id = 1")
		c.NoOrphans("r", "t")
	})
}

func firstIDs(c *harness.Cluster, n int) string {
	all := strings.Fields(ids(c, "lake.r.t"))
	return strings.Join(all[:min(n, len(all))], " ")
}

func TestRowLevel_Update(t *testing.T) {
	eachLayout(t, func(t *testing.T, c *harness.Cluster) {
		got := answerOf(t, c, "UPDATE lake.r.t SET g = 7, v = id + v, name = DEFAULT WHERE id BETWEEN 18 AND 21")
		require.Equal(t, "4", got["updated_rows"])
		require.Equal(t, [][]string{{"18", "7", "198", ""}, {"19", "7", "209", ""}, {"20", "7", "", ""}, {"21", "7", "231", ""}},
			c.SQL("SELECT id, g, v, name FROM lake.r.t WHERE g = 7 ORDER BY id"), "rows move to the partition of their new value")
		require.Equal(t, "40", oneOf(c, "SELECT count(*) FROM lake.r.t"))
		c.SQL("UPDATE lake.r.t SET v = s.v, name = s.name FROM lake.r.s AS s WHERE s.id = t.id")
		require.Equal(t, [][]string{{"0", "0", "s0"}, {"1", "10", "n1"}, {"2", "20", "n2"}, {"3", "100", "s1"}}, c.SQL("SELECT id, v, name FROM lake.r.t WHERE id < 4 ORDER BY id"))
		c.NoOrphans("r", "t")
	})
}

func TestRowLevel_Merge(t *testing.T) {
	eachLayout(t, func(t *testing.T, c *harness.Cluster) {
		got := answerOf(t, c, `MERGE INTO lake.r.t USING lake.r.s AS s ON t.id = s.id
			WHEN MATCHED AND s.g = 1 THEN DELETE
			WHEN MATCHED THEN UPDATE SET v = s.v, name = s.name
			WHEN NOT MATCHED THEN INSERT (id, g, name) VALUES (s.id, s.g, s.name)
			WHEN NOT MATCHED BY SOURCE AND t.id > 36 THEN DELETE`)
		require.Equal(t, "9", got["deleted_rows"])
		require.Equal(t, "7", got["updated_rows"])
		require.Equal(t, [][]string{{"0", "0", "s0"}, {"1", "10", "n1"}, {"2", "20", "n2"}, {"4", "40", "n4"}, {"5", "", "n5"}, {"6", "200", "s2"}},
			c.SQL("SELECT id, v, name FROM lake.r.t WHERE id < 7 ORDER BY id"))
		require.Equal(t, "6", oneOf(c, "SELECT count(*) FROM lake.r.t WHERE id > 39"))
		require.Equal(t, "37", oneOf(c, "SELECT count(*) FROM lake.r.t"))
		c.SQL("MERGE INTO lake.r.t USING (SELECT * FROM lake.r.t WHERE id < 3) AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
		require.Equal(t, "37", oneOf(c, "SELECT count(*) FROM lake.r.t"))
		c.NoOrphans("r", "t")
	})
}

// With several tasks each finds the rows of its files, and the new rows come once.
func TestRowLevel_SeveralTasks(t *testing.T) {
	eachLayout(t, func(t *testing.T, c *harness.Cluster) {
		several := []string{"--set", "signet.min_task_bytes=1"}
		c.SQL("MERGE INTO lake.r.t USING lake.r.s AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *", several...)
		require.Equal(t, "46", oneOf(c, "SELECT count(*) FROM lake.r.t"))
		require.Equal(t, "20", oneOf(c, "SELECT count(*) FROM lake.r.t WHERE name LIKE 's%'"))
		c.SQL("DELETE FROM lake.r.t WHERE id % 2 = 0", several...)
		require.Equal(t, "23", oneOf(c, "SELECT count(*) FROM lake.r.t"))
		c.NoOrphans("r", "t")
	})
}

// Bad input per statement: a clear error, and nothing has changed.
func TestRowLevel_BadInput(t *testing.T) {
	eachLayout(t, func(t *testing.T, c *harness.Cluster) {
		before := c.Table("r", "t").MetadataLocation
		for statement, text := range map[string]string{
			"DELETE FROM lake.r.nope":                        "does not exist",
			"DELETE FROM lake.r.t WHERE nope = 1":            "nope",
			"DELETE FROM lake.r.t WHERE id IN (SELECT 1, 2)": "",
			"UPDATE lake.r.t SET id = NULL":                  "column id of lake.r.t is required and SET gives NULL",
			"UPDATE lake.r.t SET id = v":                     "column \"id\": NULL in a required column",
			"UPDATE lake.r.t SET g = 3000000000":             "3000000000",
			"UPDATE lake.r.t SET v = name":                   "SET gives VARCHAR",
			"UPDATE lake.r.t SET v = count(*)":               "subquery",
			"UPDATE lake.r.t SET nope = 1":                   "column nope is not in lake.r.t",
			"UPDATE lake.r.t SET v = s.v FROM lake.r.s s":    "several rows of the source match one row of the table",
			"MERGE INTO lake.r.t USING (SELECT 3 AS id FROM range(2)) AS s ON t.id = s.id WHEN MATCHED THEN DELETE": "several rows of the source match one row of the table: id = 3",
			"MERGE INTO lake.r.t USING lake.r.nope AS s ON t.id = s.id WHEN MATCHED THEN DELETE":                    "does not exist",
			"MERGE INTO lake.r.t USING lake.r.s AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (g) VALUES (s.g)":  "column id of lake.r.t is required",
		} {
			c.Fail(1, statement, text)
		}
		require.Equal(t, before, c.Table("r", "t").MetadataLocation)
		c.NoOrphans("r", "t")
	})
}

func TestRowLevel_Explain(t *testing.T) {
	t.Parallel()
	c := newRows(t, "")
	before := c.Table("r", "t").MetadataLocation
	text := oneOf(c, "EXPLAIN UPDATE lake.r.t SET v = 1 WHERE id = 3")
	for _, want := range []string{"[scheduler] Commit lake.r.t (update", "copy-on-write", "id = 3"} {
		require.Contains(t, text, want)
	}
	require.Equal(t, before, c.Table("r", "t").MetadataLocation)
}

// Rows of format version 3 keep their identity when they are carried over or updated.
func TestRowLevel_KeepsRowLineage(t *testing.T) {
	t.Parallel()
	c := newRows(t, " WITH ('format-version' = '3')")
	c.SQL("UPDATE lake.r.t SET name = 'x' WHERE id = 3")
	c.SQL("DELETE FROM lake.r.t WHERE id = 4")
	require.Equal(t, "39", oneOf(c, "SELECT count(*) FROM lake.r.t"))
	require.Equal(t, "x", oneOf(c, "SELECT name FROM lake.r.t WHERE id = 3"))
	c.SQL("UPDATE lake.r.t SET name = 'y' WHERE id = 3 OR id = 5")
	require.Equal(t, "2", oneOf(c, "SELECT count(*) FROM lake.r.t WHERE name = 'y'"))
	c.NoOrphans("r", "t")
}
