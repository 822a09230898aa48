package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// What says that a table's file is missing or damaged is told from a file that changed while it was read: repeating the statement does not help.
func TestDamage_OfDataFiles(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t AS SELECT 1 AS id")
	uri := c.Table("d", "t").Files[0]
	path := strings.TrimPrefix(uri, "file://")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	for _, statement := range []string{"SELECT * FROM lake.d.t", "DELETE FROM lake.d.t WHERE id + id > 1", "INSERT INTO lake.d.t SELECT * FROM lake.d.t"} {
		require.NoError(t, os.WriteFile(path, whole[:len(whole)-30], 0o600))
		out := c.Fail(1, statement, "bytes, and its manifest says", "the table is damaged").Err
		require.NotContains(t, out, "file://file:")
		require.NoError(t, os.Remove(path))
		out = c.Fail(1, statement, "data file file:///", "is not there").Err
		require.NotContains(t, out, "file://file:")
	}
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	require.Len(t, c.SQL("SELECT * FROM lake.d.t"), 1)
}

// A table whose storage is not mounted is there: no statement takes it for one that does not exist.
func TestDamage_MetadataIsNotThere(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t AS SELECT 1 AS id")
	dir := c.Dir + "/warehouse"
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, statement := range []string{
		"SELECT * FROM lake.d.t", "INSERT INTO lake.d.t VALUES (2)", "DELETE FROM lake.d.t", "TRUNCATE TABLE lake.d.t IF EXISTS", "ALTER TABLE IF EXISTS lake.d.t ADD COLUMN z INT",
		"CREATE TABLE lake.d.t AS SELECT 1 AS i", "CREATE OR REPLACE TABLE lake.d.t AS SELECT 1 AS i", "DESCRIBE lake.d.t", "SHOW CREATE TABLE lake.d.t",
		"CALL lake.system.expire_snapshots('d.t')",
	} {
		out := c.Fail(1, statement, "lake.d.t", "metadata file", "is not there").Err
		require.NotContains(t, out, "does not exist", statement)
	}
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	require.Len(t, c.SQL("SELECT * FROM lake.d.t"), 1)
}
