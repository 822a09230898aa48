package e2e_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// newDays is a cluster with lake.o.t: rows 1 to 6, two for each of three days, and one whose day is NULL.
func newDays(t *testing.T) *harness.Cluster {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.o; CREATE TABLE lake.o.t (id BIGINT, day DATE) PARTITIONED BY (day)")
	c.SQL("INSERT INTO lake.o.t SELECT i AS id, DATE '2026-01-01' + CAST((i - 1) // 2 AS INTEGER) FROM range(1, 7) r(i) UNION ALL SELECT 7, NULL")
	return c
}

// ids are those of a table, in order, as text.
func ids(c *harness.Cluster, table string) string {
	var out []string
	for _, r := range c.SQL("SELECT id FROM " + table + " ORDER BY id") {
		out = append(out, r[0])
	}
	return strings.Join(out, " ")
}

// answerOf is a statement's one row of result, by column.
func answerOf(t *testing.T, c *harness.Cluster, statement string) map[string]string {
	t.Helper()
	r := c.Run("sql", "--quiet", "--output", "csv", statement)
	require.Equal(t, 0, r.Code, "%s\n%s", statement, r.Err)
	rows, err := csv.NewReader(strings.NewReader(r.Out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2, statement)
	out := map[string]string{}
	for i, name := range rows[0] {
		out[name] = rows[1][i]
	}
	return out
}

// C23: an overwrite replaces what its scope says, in one snapshot, and nothing else.
func TestOverwrite_Scopes(t *testing.T) {
	t.Parallel()
	c := newDays(t)
	for _, s := range []struct {
		statement, ids string
		set            []string
	}{
		{"INSERT OVERWRITE lake.o.t SELECT 10, DATE '2026-01-01'", "10", nil},
		{"INSERT OVERWRITE TABLE lake.o.t (id) VALUES (11)", "11", nil},
		{"INSERT OVERWRITE PARTITIONS INTO lake.o.t SELECT 12, DATE '2026-01-01'", "3 4 5 6 7 12", nil},
		{"INSERT OVERWRITE PARTITIONS INTO lake.o.t SELECT 12, NULL", "1 2 3 4 5 6 12", nil},
		{"INSERT OVERWRITE PARTITIONS INTO lake.o.t VALUES (12, DATE '2026-01-02'), (13, DATE '2030-01-01')", "1 2 5 6 7 12 13", nil},
		{"INSERT OVERWRITE lake.o.t SELECT 12, DATE '2026-01-01'", "3 4 5 6 7 12", []string{"--set", "signet.write.overwrite-mode=dynamic"}},
		{"INSERT OVERWRITE lake.o.t PARTITION (day) SELECT 12, DATE '2026-01-01'", "3 4 5 6 7 12", nil},
		{"INSERT OVERWRITE lake.o.t PARTITION (day = '2026-01-02') SELECT 12", "1 2 5 6 7 12", nil},
		{"INSERT OVERWRITE lake.o.t PARTITION (day = NULL) SELECT 12", "1 2 3 4 5 6 12", nil},
		{"INSERT OVERWRITE lake.o.t PARTITION (day = '2026-01-02') SELECT 12 WHERE false", "1 2 5 6 7", nil},
		{"INSERT INTO lake.o.t PARTITION (day = '2026-01-02') SELECT 12", "1 2 3 4 5 6 7 12", nil},
		{"INSERT INTO lake.o.t REPLACE WHERE day >= '2026-01-02' SELECT 12, DATE '2026-02-01'", "1 2 7 12", nil},
		{"INSERT INTO lake.o.t BY NAME REPLACE WHERE day IN ('2026-01-01', '2026-01-03') OR day IS NULL SELECT NULL::DATE AS day, 12 AS id", "3 4 12", nil},
		{"INSERT INTO lake.o.t REPLACE WHERE TRUE SELECT 12, NULL", "12", nil},
		{"INSERT OVERWRITE lake.o.t SELECT 1, NULL WHERE false", "", nil},
		{"INSERT OVERWRITE PARTITIONS INTO lake.o.t SELECT 1, NULL WHERE false", "1 2 3 4 5 6 7", nil},
		{"INSERT INTO lake.o.t REPLACE WHERE day = '2026-01-01' SELECT 1, NULL WHERE false", "3 4 5 6 7", nil},
		{"INSERT OVERWRITE lake.o.t SELECT id + 100, day FROM lake.o.t WHERE id < 3", "101 102", nil},
		{"TRUNCATE TABLE lake.o.t", "", nil},
		{"TRUNCATE lake.o.t IF EXISTS", "", nil},
	} {
		c.SQL("INSERT OVERWRITE lake.o.t SELECT i AS id, DATE '2026-01-01' + CAST((i - 1) // 2 AS INTEGER) FROM range(1, 7) r(i) UNION ALL SELECT 7, NULL")
		before := c.Table("o", "t").Snapshots
		c.SQL(s.statement, s.set...)
		require.Equal(t, s.ids, ids(c, "lake.o.t"), s.statement)
		after := c.Table("o", "t")
		want := before + 1
		if strings.HasPrefix(s.statement, "INSERT OVERWRITE PARTITIONS") && strings.HasSuffix(s.statement, "false") {
			want = before // nothing is written, and so nothing is removed
		}
		require.Equal(t, want, after.Snapshots, s.statement)
	}
	c.NoOrphans("o", "t")
}

// A row outside of the condition fails the job and names the row; nothing has changed.
func TestOverwrite_RowsMustSatisfyTheCondition(t *testing.T) {
	t.Parallel()
	c := newDays(t)
	before := c.Table("o", "t").MetadataLocation
	for statement, texts := range map[string][]string{
		"INSERT INTO lake.o.t REPLACE WHERE day = '2026-01-01' SELECT i, DATE '2026-01-01' + CAST(i AS INTEGER) FROM range(2) r(i)": {
			"REPLACE WHERE day = '2026-01-01': the query gives a row with day = 2026-01-02",
		},
		"INSERT INTO lake.o.t REPLACE WHERE day = '2026-01-01' SELECT 1, NULL":                         {"a row with day = NULL"},
		"INSERT INTO lake.o.t (id) REPLACE WHERE day = '2026-01-01' SELECT 1":                          {"a row with day = NULL"},
		"INSERT INTO lake.o.t REPLACE WHERE id < 5 AND day > '2026-01-01' SELECT 9, DATE '2026-01-02'": {"id = 9, day = 2026-01-02"},
	} {
		c.Fail(1, statement, texts...)
	}
	require.Equal(t, before, c.Table("o", "t").MetadataLocation)
	// Rows that the query itself leaves out are not looked at.
	c.SQL("INSERT INTO lake.o.t REPLACE WHERE day = '2026-01-01' SELECT id, day FROM lake.o.t WHERE day = '2026-01-01' AND id = 1")
	require.Equal(t, "1 3 4 5 6 7", ids(c, "lake.o.t"))
	c.NoOrphans("o", "t")
}

// Bad input per statement: a clear error, and nothing has changed.
func TestOverwrite_BadInput(t *testing.T) {
	t.Parallel()
	c := newDays(t)
	c.SQL("CREATE TABLE lake.o.plain AS SELECT 1 AS id")
	before, plain := c.Table("o", "t").MetadataLocation, c.Table("o", "plain").MetadataLocation
	for statement, text := range map[string]string{
		"INSERT OVERWRITE lake.o.nope SELECT 1":                                                "does not exist",
		"INSERT OVERWRITE lake.o.t SELECT 1":                                                   "nothing is given for day",
		"INSERT OVERWRITE lake.o.t SELECT 'x', NULL":                                           "id",
		"INSERT OVERWRITE lake.o.t PARTITION (id = 1) SELECT NULL::DATE":                       "not partitioned by the values of column id",
		"INSERT OVERWRITE lake.o.t PARTITION (nope = 1) SELECT 1":                              "column nope is not in lake.o.t",
		"INSERT OVERWRITE lake.o.t PARTITION (day = 'x') SELECT 1":                             "'x' is no DATE",
		"INSERT OVERWRITE lake.o.t PARTITION (day = '2026-01-01') SELECT 1, DATE '2026-01-01'": "without the columns of the PARTITION clause has 1 column and the query gives 2",
		"INSERT OVERWRITE lake.o.t PARTITION (day = '2026-01-01') (id, day) SELECT 1, NULL":    "given once more",
		"INSERT OVERWRITE lake.o.plain PARTITION (id) SELECT 1":                                "lake.o.plain is not partitioned",
		"INSERT INTO lake.o.t REPLACE WHERE nope = 1 SELECT 1, NULL":                           "column nope is not in lake.o.t",
		"INSERT INTO lake.o.t REPLACE WHERE id = 'x' SELECT 1, NULL":                           "'x' is no BIGINT",
		"INSERT INTO lake.o.t REPLACE WHERE id = 1 SELECT 1, DATE '2026-01-01'":                "some of its rows only",
		"INSERT OVERWRITE lake.o.t SELECT id // 0 FROM lake.o.t":                               "",
		"TRUNCATE TABLE lake.o.nope":                                                           "does not exist",
		"INSERT INTO lake.o.t.tag_v1 SELECT 1, NULL":                                           "tags never change",
		"CREATE OR REPLACE TABLE lake.o.t (a BIGINT) PARTITIONED BY (b)":                       "b",
		"CREATE OR REPLACE TABLE lake.nope.t AS SELECT 1 AS id":                                "schema lake.nope does not exist",
	} {
		c.Fail(1, statement, text)
	}
	r := c.Run("sql", "--quiet", "--set", "signet.write.overwrite-mode=sometimes", "INSERT OVERWRITE lake.o.t SELECT 1, NULL")
	require.NotZero(t, r.Code)
	require.Contains(t, r.Err, "static or dynamic")
	require.Equal(t, before, c.Table("o", "t").MetadataLocation)
	require.Equal(t, plain, c.Table("o", "plain").MetadataLocation)
	c.NoOrphans("o", "t")
}

// What a write answers is what the snapshot says.
func TestOverwrite_Answers(t *testing.T) {
	t.Parallel()
	c := newDays(t)
	got := answerOf(t, c, "INSERT INTO lake.o.t REPLACE WHERE day <= '2026-01-02' SELECT 12, DATE '2026-01-01'")
	tab := c.Table("o", "t")
	snap := tab.Metadata.CurrentSnapshot()
	for column, want := range map[string]string{
		"rows": "1", "files": "1", "operation": "overwrite", "sequence_number": fmt.Sprint(snap.SequenceNumber), "added_files": "1", "added_rows": "1",
		"removed_files": snap.Summary.Properties["deleted-data-files"], "removed_rows": "4", "conflicts": "0", "attempts": "1", "branch": "",
		"snapshot_id": fmt.Sprint(snap.SnapshotID), "marker": snap.Summary.Properties["signet.markers"], "partitions": snap.Summary.Properties["changed-partition-count"],
	} {
		require.Equal(t, want, got[column], column)
	}
	got = answerOf(t, c, "TRUNCATE TABLE lake.o.t")
	require.Equal(t, []string{"0", "0", "4"}, []string{got["rows"], got["added_files"], got["removed_rows"]})
	require.NotEmpty(t, got["snapshot_id"])
	got = answerOf(t, c, "INSERT INTO lake.o.t VALUES (1, NULL)")
	require.Equal(t, []string{"append", "1", "0"}, []string{got["operation"], got["added_files"], got["removed_files"]})
}
