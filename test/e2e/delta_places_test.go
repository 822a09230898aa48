package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// Tables of a Delta catalog are directories: by their names and by their places they are the same tables, and nothing else is listed.
func TestDelta_DirectoriesAndPlaces(t *testing.T) {
	t.Parallel()
	root, more := t.TempDir(), t.TempDir()
	c := harness.New(t, harness.Options{Executors: 1, CatalogConfig: "  d: {type: delta, root: 'file://" + root + "', data_paths: ['file://" + more + "']}\n"})
	place := func(dir ...string) string { return `d."` + filepath.Join(dir...) + `"` }
	require.NoError(t, os.MkdirAll(filepath.Join(root, "s", "no_table"), 0o755))

	c.SQL(`CREATE SCHEMA d.s2`)
	c.SQL(`CREATE TABLE d.s.t AS SELECT range AS id FROM range(3)`)
	c.SQL(`INSERT INTO ` + place(root, "s", "t") + ` SELECT 3 + range AS id FROM range(2)`)
	require.Equal(t, "5", c.Value(`SELECT count(*) AS n FROM `+place(root, "s", "t")))
	require.Equal(t, "5", c.Value(`SELECT count(*) AS n FROM D.S.T`))
	require.Equal(t, [][]string{{"t"}}, c.SQL(`SHOW TABLES FROM d.s`))
	require.Equal(t, [][]string{{"s"}, {"s2"}}, c.SQL(`SHOW SCHEMAS FROM d`))

	c.SQL(`CREATE TABLE ` + place(more, "deep", "x") + ` (id BIGINT)`)
	c.SQL(`INSERT INTO ` + place(more, "deep", "x") + ` SELECT id FROM d.s.t`)
	require.Equal(t, "5", c.Value(`SELECT count(*) AS n FROM `+place(more, "deep", "x")+` AS x`))
	require.Equal(t, "id", c.SQL(`DESCRIBE ` + place(more, "deep", "x"))[0][0])
	c.Fail(1, `DROP TABLE `+place(more, "deep", "x"), "below the catalog's root")
	c.Fail(1, `SELECT * FROM `+place(t.TempDir(), "x"), "data_paths")
	c.Fail(1, `SELECT * FROM `+place(root, "s", "t", "_delta_log"), "holds no table")

	c.SQL(`DROP TABLE ` + place(root, "s", "t"))
	require.NoDirExists(t, filepath.Join(root, "s", "t"))
	c.SQL(`CREATE TABLE d.s.t (other VARCHAR)`)
	require.Equal(t, "0", c.Value(`SELECT count(*) FROM d.s.t`), "a new table meets nothing of the old one")
}
