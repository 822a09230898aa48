package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// VALIDATE runs the checks of a write, names what is wrong as the write would, and changes nothing.
func TestValidate_RunsTheChecks(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.v; CREATE TABLE lake.v.t (id INTEGER NOT NULL, p VARCHAR) PARTITIONED BY (p); INSERT INTO lake.v.t VALUES (1, 'a'), (2, 'a');" +
		"CREATE TABLE lake.v.u (id INTEGER, p VARCHAR) PARTITIONED BY (p); INSERT INTO lake.v.u VALUES (1, 'a'); ALTER TABLE lake.v.u ADD PARTITION FIELD bucket(4, id)")
	before := c.Table("v", "t")
	for statement, text := range map[string]string{
		"VALIDATE INSERT INTO lake.v.t SELECT 3000000000 + i, 'x' FROM range(3) r(i)":                       `column "id": value 300000000`,
		"VALIDATE INSERT INTO lake.v.t SELECT CASE WHEN i = 5 THEN NULL ELSE i END, 'x' FROM range(9) r(i)": "NULL in a required column",
		"VALIDATE INSERT INTO lake.v.t SELECT 1":                                                            "nothing is given for p",
		"VALIDATE INSERT INTO lake.v.t SELECT error('oops'), 'x'":                                           "oops",
		"VALIDATE INSERT INTO lake.v.nope SELECT 1":                                                         "does not exist",
		"VALIDATE CREATE TABLE lake.v.t AS SELECT 1 AS id":                                                  "exists already",
		"VALIDATE SELECT 1": "writes no rows",
		"VALIDATE INSERT INTO lake.v.t REPLACE WHERE id = 1 SELECT 1, 'a'": "some of its rows only",
		"VALIDATE INSERT OVERWRITE PARTITIONS INTO lake.v.u SELECT 1, 'a'": "is of partition spec 0",
	} {
		c.Fail(1, statement, text)
	}
	got := answerOf(t, c, "VALIDATE INSERT INTO lake.v.t SELECT i, 'p' || (i % 3) FROM range(100) r(i)")
	require.Equal(t, []string{"100", "3", "lake.v.t", "append", "nothing"}, []string{got["rows"], got["files"], got["table"], got["mode"], got["removes"]})
	require.NotEqual(t, "0", got["bytes"])
	got = answerOf(t, c, "VALIDATE CREATE TABLE lake.v.new AS SELECT i FROM range(7) r(i)")
	require.Equal(t, []string{"7", "1"}, []string{got["rows"], got["files"]})

	after := c.Table("v", "t")
	require.Equal(t, []any{before.MetadataLocation, before.Files, before.Orphans}, []any{after.MetadataLocation, after.Files, after.Orphans})
	require.False(t, c.Table("v", "new").Exists)
	c.SQL("INSERT INTO lake.v.t VALUES (2, 'b')")
	require.Equal(t, 2, c.Table("v", "t").Snapshots)
}

// EXPLAIN says what a write would do, and does nothing.
func TestExplain_SaysWhatAWriteWouldDo(t *testing.T) {
	t.Parallel()
	c := newDays(t)
	before := c.Table("o", "t")
	explain := func(statement string) string {
		rows := c.SQL("EXPLAIN " + statement)
		require.Len(t, rows, 1)
		return rows[0][0]
	}
	for statement, texts := range map[string][]string{
		"INSERT INTO lake.o.t VALUES (1, NULL), (2, NULL)": {
			"[scheduler] Commit lake.o.t (append, planned on version ", "Dry run:", "mode: append", "branch: main, whose head is version ", "writes: about 2 rows",
			"partitions: as many as there are values", "removes: nothing", "conflicts: none", "running jobs on this table: none",
		},
		"INSERT OVERWRITE lake.o.t SELECT 1, NULL":                                          {"Commit lake.o.t (overwrite, planned", "removes all rows", "mode: overwrite the whole table", "removes: 4 files with 7 rows"},
		"INSERT OVERWRITE PARTITIONS INTO lake.o.t SELECT 1, NULL":                          {"mode: overwrite by partition (dynamic)", "removes: of the table's 4 files with 7 rows those in the partitions that are written"},
		"INSERT OVERWRITE lake.o.t PARTITION (day = '2026-01-01') SELECT 1":                 {"removes rows with day = '2026-01-01'", "mode: overwrite by filter", "partitions: at most 1"},
		"INSERT INTO lake.o.t REPLACE WHERE day = '2026-01-01' SELECT 1, DATE '2026-01-01'": {"every row is checked against REPLACE WHERE day = '2026-01-01'"},
		"TRUNCATE TABLE lake.o.t":                                                           {"Commit lake.o.t (TRUNCATE)", "writes: no rows", "removes: 4 files with 7 rows"},
		"CREATE TABLE lake.o.u AS SELECT id FROM lake.o.t":                                  {"mode: create the table", "the table does not exist yet", "writes: 7 rows"},
	} {
		text := explain(statement)
		for _, want := range texts {
			require.Contains(t, text, want, statement)
		}
		require.Equal(t, 1, strings.Count(text, "Dry run:"), statement)
	}
	require.Equal(t, before.MetadataLocation, c.Table("o", "t").MetadataLocation)
	c.NoOrphans("o", "t")
}
