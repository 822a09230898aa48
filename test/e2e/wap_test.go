package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// Writes under signet.wap_id are staged where the table asks for it: in a snapshot that no branch has, until it is published.
func TestWap_StagedSnapshots(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w; CREATE TABLE lake.w.t (id BIGINT, g INTEGER) PARTITIONED BY (g) WITH ('write.wap.enabled' = 'true'); INSERT INTO lake.w.t SELECT i, CAST(i % 2 AS INTEGER) FROM range(10) r(i)")
	count := func(of string) string { return oneOf(c, "SELECT count(*) FROM lake.w."+of) }
	wap := func(id string) []string { return []string{"--set", "signet.wap_id=" + id} }
	require.Equal(t, "10", count("t"), "without the setting writes go to main")
	heads := func() (int64, int) {
		tb := c.Table("w", "t")
		return tb.Metadata.CurrentSnapshot().SnapshotID, tb.Snapshots
	}
	before, snapshots := heads()

	require.Contains(t, c.SQL("EXPLAIN INSERT INTO lake.w.t VALUES (100, 1)", wap("a")...)[0][0], "staged as wap.id a")
	c.SQL("INSERT INTO lake.w.t VALUES (100, 1)", wap("a")...)
	after, n := heads()
	require.Equal(t, before, after, "main stays where it is")
	require.Equal(t, snapshots+1, n)
	require.Equal(t, "10", count("t"))
	md := c.Table("w", "t").Metadata
	staged := md.Snapshots()[len(md.Snapshots())-1]
	require.Equal(t, "a", staged.Summary.Properties["wap.id"])
	require.Equal(t, "append", string(staged.Summary.Operation))
	require.Len(t, md.Snapshots(), n)

	// One wap.id, one snapshot: the second could never be published.
	r := c.Run("sql", "--quiet", "--set", "signet.wap_id=a", "INSERT INTO lake.w.t VALUES (101, 1)")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, `is staged with the wap.id "a" already`)

	c.SQL("CALL system.publish_changes('w.t', 'a')")
	require.Equal(t, "11", count("t"))
	c.Fail(1, "CALL system.publish_changes('w.t', 'a')", "on the main branch already")
	r = c.Run("sql", "--quiet", "--set", "signet.wap_id=a", "INSERT INTO lake.w.t VALUES (101, 1)")
	require.Equal(t, 1, r.Code)

	// Rows that are changed or removed are staged as well, by all statements.
	for id, statement := range map[string]string{
		"d": "DELETE FROM lake.w.t WHERE id < 5", "u": "UPDATE lake.w.t SET id = -id WHERE g = 0", "o": "INSERT OVERWRITE lake.w.t SELECT 7 AS id, CAST(1 AS INTEGER) AS g", "x": "TRUNCATE TABLE lake.w.t",
		"m": "MERGE INTO lake.w.t USING (SELECT 100 AS id, CAST(1 AS INTEGER) AS g) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
	} {
		c.SQL(statement, wap(id)...)
		require.Equal(t, "11", count("t"), statement)
	}
	c.SQL("CALL system.publish_changes(table => 'w.t', wap_id => 'd')")
	require.Equal(t, "6", count("t"))
	c.Fail(1, "CALL system.publish_changes('w.t', 'u')", "only an append, or an overwrite of the partitions that it writes, can be put on another")
	require.Equal(t, "6", count("t"))

	// A table that does not ask for it is written at once, and the statement says so.
	c.SQL("CREATE TABLE lake.w.plain (id BIGINT)")
	r = c.Run("sql", "--set", "signet.wap_id=p", "INSERT INTO lake.w.plain VALUES (1)")
	require.Equal(t, 0, r.Code, r.Err)
	require.Contains(t, r.Out+r.Err, "write.wap.enabled")
	require.Equal(t, "1", count("plain"))

	c.SQL("ALTER TABLE lake.w.t CREATE BRANCH b")
	r = c.Run("sql", "--quiet", "--set", "signet.wap_id=q", "INSERT INTO lake.w.t.branch_b VALUES (1, 1)")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "writes to branch b")
	r = c.Run("sql", "--quiet", "--set", "signet.wap_id=q", "--set", "signet.wap_branch=b", "INSERT INTO lake.w.t VALUES (1, 1)")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "exclude each other")
	r = c.Run("sql", "--quiet", "--set", `signet.wap_id=a"b`, "INSERT INTO lake.w.t VALUES (1, 1)")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "want 1 to 128 letters")
	c.NoOrphans("w", "t")
}
