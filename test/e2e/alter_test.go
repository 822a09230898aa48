package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// Columns, partitioning, order, properties and references change in turn, and rows written before and after stay right.
func TestAlter_ATableThroughItsLife(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.s")
	c.SQL("CREATE TABLE lake.s.t (id INT NOT NULL, name VARCHAR, ts TIMESTAMP, st STRUCT(a INT, b VARCHAR)) PARTITIONED BY (day(ts))")
	c.SQL("INSERT INTO lake.s.t VALUES (1, 'one', TIMESTAMP '2026-01-01 10:00:00', {'a': 1, 'b': 'x'})")
	c.SQL("ALTER TABLE lake.s.T ADD COLUMN extra VARCHAR AFTER id, ADD COLUMN st.c DOUBLE, RENAME COLUMN name TO title, ALTER COLUMN id TYPE BIGINT")
	c.SQL("ALTER TABLE lake.s.t REPLACE PARTITION FIELD day(ts) WITH month(ts), ADD PARTITION FIELD bucket(4, id) AS shard, WRITE ORDERED BY id DESC")
	c.SQL("INSERT INTO lake.s.t VALUES (3000000000, 'e', 'two', TIMESTAMP '2026-02-01 10:00:00', {'a': 2, 'b': 'y', 'c': 1.5})")
	require.Equal(t, [][]string{
		{"1", "", "one", "2026-01-01 10:00:00", "1", ""},
		{"3000000000", "e", "two", "2026-02-01 10:00:00", "2", "1.5"},
	}, c.SQL("SELECT id, extra, title, ts, st.a, st.c FROM lake.s.t ORDER BY id"))
	require.Contains(t, c.Value("SHOW CREATE TABLE lake.s.t"), "PARTITIONED BY (month(ts), bucket(4, id)) ORDERED BY (id DESC)")

	c.SQL("ALTER TABLE lake.s.t SET TBLPROPERTIES ('owner' = 'me', 'format-version' = '3')")
	require.Equal(t, [][]string{{"owner", "me"}}, c.SQL("SHOW TBLPROPERTIES lake.s.t ('owner')"))
	c.SQL("ALTER TABLE lake.s.t UNSET TBLPROPERTIES ('owner')")
	c.Fail(1, "SHOW TBLPROPERTIES lake.s.t ('owner')", "no property 'owner'")
	c.SQL("ALTER TABLE lake.s.t DROP COLUMN extra")
	require.Equal(t, "table lake.s.t is so already", c.Value("ALTER TABLE lake.s.t DROP COLUMN IF EXISTS extra"))
	require.Equal(t, 3, c.Table("s", "t").Metadata.Version())

	for statement, text := range map[string]string{
		"ALTER TABLE lake.s.t DROP COLUMN id":                                          "source of partition field shard",
		"ALTER TABLE lake.s.t ADD COLUMN title INT":                                    "exists already",
		"ALTER TABLE lake.s.t ALTER COLUMN title TYPE INT":                             "string cannot become int",
		"ALTER TABLE lake.s.t SET TBLPROPERTIES ('signet.landed.x' = '1')":             "reserved",
		"ALTER TABLE lake.s.t SET TBLPROPERTIES ('write.data.path' = '/etc')":          "write.data.path",
		"ALTER TABLE lake.s.t SET TBLPROPERTIES ('format-version' = '2')":              "no way back",
		"ALTER TABLE lake.s.none ADD COLUMN a INT":                                     "does not exist",
		"ALTER TABLE lake.s.t ADD COLUMN one INT, DROP COLUMN none":                    "no column none",
		"CALL system.frobnicate('s.t')":                                                "no procedure system.frobnicate",
		"CALL system.rollback_to_snapshot('s.t')":                                      "the argument snapshot_id is missing",
		"CALL system.rollback_to_snapshot('s.t', 'x')":                                 "a whole number",
		"CALL system.rollback_to_snapshot(table => 's.t', snapshot_id => 7)":           "no snapshot 7",
		"CALL system.remove_orphan_files('s.t', older_than => TIMESTAMP '2999-01-01')": "at least 24 hours",
		"CALL system.expire_snapshots('s.t', older_than => TIMESTAMP 'soon')":          "no timestamp",
	} {
		before := c.Table("s", "t").MetadataLocation
		c.Fail(1, statement, text)
		require.Equal(t, before, c.Table("s", "t").MetadataLocation, statement)
	}
	require.Equal(t, "table lake.s.none does not exist", c.Value("ALTER TABLE IF EXISTS lake.s.none ADD COLUMN a INT"))
}

func TestAlter_ReferencesAndRollback(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t AS SELECT 1 AS id; INSERT INTO lake.s.t VALUES (2)")
	snapshots := c.SQL("SHOW SNAPSHOTS FROM lake.s.t")
	require.Len(t, snapshots, 2)
	one, two := snapshots[0][1], snapshots[1][1]
	c.SQL("ALTER TABLE lake.s.t CREATE TAG v1 AS OF VERSION " + one + " RETAIN 7 DAYS, CREATE BRANCH audit")
	require.Equal(t, [][]string{{"v1", one, "604800000"}}, c.SQL("SHOW TAGS FROM lake.s.t"))
	require.Equal(t, [][]string{{"audit", two, "", "", ""}, {"main", two, "", "", ""}}, c.SQL("SHOW BRANCHES FROM lake.s.t"))

	require.Equal(t, [][]string{{two, one}}, c.SQL("CALL lake.system.rollback_to_snapshot(table => 's.t', snapshot_id => "+one+")"))
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.s.t"))
	require.Equal(t, [][]string{{"main", one, two}}, c.SQL("CALL system.fast_forward('s.t', 'main', 'audit')"))
	require.Equal(t, "2", c.Value("SELECT count(*) FROM lake.s.t"))
	require.Equal(t, [][]string{{two, one}}, c.SQL("CALL system.set_current_snapshot('s.t', ref => 'v1')"))
	c.SQL("INSERT INTO lake.s.t VALUES (3)")
	require.Equal(t, [][]string{{"1"}, {"3"}}, c.SQL("SELECT id FROM lake.s.t ORDER BY id"))
	require.Len(t, c.SQL("CALL system.ancestors_of('s.t')"), 2)
	c.Fail(1, "CALL system.fast_forward('s.t', 'main', 'audit')", "no ancestor")
	c.SQL("ALTER TABLE lake.s.t DROP TAG v1, DROP BRANCH audit")
	require.Empty(t, c.SQL("SHOW TAGS FROM lake.s.t"))
}

// An INSERT that was planned before the table changed lands under the columns that it was planned with, or fails where they do not do any more (C28, C29).
func TestAlter_WhileAnInsertRuns(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.s")
	for i, x := range []struct{ alter, want, fails string }{
		{alter: "ADD COLUMN extra INT", want: "SELECT count(*), count(extra) FROM %s"},
		{alter: "RENAME COLUMN v TO w", want: "SELECT count(*), count(w) - count(*) + 1 FROM %s"},
		{alter: "ALTER COLUMN id TYPE BIGINT", want: "SELECT count(*), count(id) - count(*) FROM %s"},
		{alter: "ADD PARTITION FIELD bucket(4, id)", want: "SELECT count(*), count(id) - count(*) FROM %s"},
		{alter: "ALTER COLUMN v SET NOT NULL", fails: "made required"},
	} {
		table := fmt.Sprintf("lake.s.t%d", i)
		c.SQL("CREATE TABLE " + table + " (id INT, v VARCHAR)")
		before := len(c.Jobs())
		ended := make(chan harness.Result, 1)
		go func() {
			ended <- c.Run("sql", "--quiet", "INSERT INTO "+table+" SELECT CAST(i % 1000 AS INT), CASE WHEN i > 0 THEN md5(CAST(i AS VARCHAR)) END FROM range(1000000) r(i)")
		}()
		harness.Eventually(t, "the INSERT is planned", func() bool {
			jobs := c.Jobs()
			return len(jobs) > before && jobs[0].State != "JOB_STATE_QUEUED" && jobs[0].State != "JOB_STATE_PLANNING"
		})
		c.SQL("ALTER TABLE " + table + " " + x.alter)
		r := <-ended
		if x.fails != "" && r.Code != 0 { // it may have landed before, and then the change is refused
			require.Contains(t, r.Err, x.fails)
			require.Equal(t, "0", c.Value("SELECT count(*) FROM "+table))
			continue
		}
		require.Equal(t, 0, r.Code, r.Err)
		require.Equal(t, [][]string{{"1000000", "0"}}, c.SQL(fmt.Sprintf(x.want, table)), x.alter)
	}
}
