package e2e_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// DuckDB has columns of its own for every file; a table's may be called the same, from the beginning or in old files only.
func TestNames_OfDuckDBsOwnColumns(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 2})
	c.SQL("CREATE SCHEMA lake.n")
	for name, with := range map[string]string{
		"cow":     "'format-version' = '2'",
		"mor":     "'format-version' = '2', " + mergeOnRead,
		"vectors": "'format-version' = '3', " + mergeOnRead,
	} {
		table := "lake.n." + name
		c.SQL(strings.Join([]string{
			"CREATE TABLE " + table + " WITH (" + with + ") AS SELECT i AS id, i * 10 AS file_row_number, 'f' || i AS filename FROM range(8) r(i)",
			"DELETE FROM " + table + " WHERE file_row_number = 30",
			"UPDATE " + table + " SET filename = 'new' WHERE filename = 'f5'",
			"MERGE INTO " + table + " AS t USING (SELECT 6 AS file_row_number, 'x' AS filename) AS s ON t.id = s.file_row_number WHEN MATCHED THEN UPDATE SET filename = s.filename",
			"ALTER TABLE " + table + " RENAME COLUMN file_row_number TO ten",
			"DELETE FROM " + table + " WHERE ten = 70",
			"INSERT INTO " + table + " SELECT id + 100, ten, filename FROM " + table,
			"CALL lake.system.rewrite_data_files(table => 'n." + name + "', options => MAP('rewrite-all', 'true'))",
		}, "; "))
		require.Equal(t, [][]string{
			{"0", "0", "f0"},
			{"1", "10", "f1"},
			{"2", "20", "f2"},
			{"4", "40", "f4"},
			{"5", "50", "new"},
			{"6", "60", "x"},
			{"100", "0", "f0"},
			{"101", "10", "f1"},
			{"102", "20", "f2"},
			{"104", "40", "f4"},
			{"105", "50", "new"},
			{"106", "60", "x"},
		}, c.SQL("SELECT * FROM "+table+" ORDER BY id"), name)
	}
}

// What Signet writes into its own queries can be no name of the user's: one would take the other's place without a word.
func TestNames_OfSignetsOwn(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.n; CREATE TABLE lake.n.g AS SELECT i AS id, 0 AS v FROM range(3) r(i)")
	input := t.TempDir() + "/s.parquet"
	c.SQL("CREATE TABLE lake.n.plain AS SELECT 1 AS id")
	harness.WriteParquet(t, input, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int32}, {Name: "Signet_Matched", Type: arrow.FixedWidthTypes.Boolean},
	}, nil), `[{"id": 1, "Signet_Matched": false}]`)
	before := c.Table("n", "g").MetadataLocation
	for _, statement := range []string{
		"DELETE FROM lake.n.g WHERE id IN (SELECT id FROM signet_target)",
		"UPDATE lake.n.g SET v = s.v FROM signet_target s WHERE g.id = s.id",
		"MERGE INTO lake.n.g t USING (SELECT 1 AS id, 1 AS signet_clause) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 7",
		"MERGE INTO lake.n.g t USING '" + input + "' s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 7",
		"WITH signet_source_1 AS (SELECT 42 AS id) SELECT count(*), max(g.id) FROM lake.n.g, signet_source_1",
		"CREATE TABLE lake.n.signet_target (id INT)",
	} {
		c.Fail(1, statement, "name that", "ignet_")
	}
	require.Equal(t, before, c.Table("n", "g").MetadataLocation)
	c.SQL("ALTER TABLE lake.n.g ADD COLUMN signet_clause INTEGER")
	const merge = "MERGE INTO lake.n.g t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 7"
	c.Fail(1, merge, "column signet_clause", "ALTER TABLE")
	c.SQL("ALTER TABLE lake.n.g RENAME COLUMN signet_clause TO clause; " + merge)
	require.Equal(t, [][]string{{"0", "0", ""}, {"1", "7", ""}, {"2", "0", ""}}, c.SQL("SELECT * FROM lake.n.g ORDER BY id"))
	c.SQL("INSERT INTO lake.n.plain SELECT id FROM '" + input + "'") // where they are no harm
}
