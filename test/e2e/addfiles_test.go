package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// newAddCluster is one whose operator lets files of a directory become tables' where they are.
func newAddCluster(t *testing.T) (c *harness.Cluster, raw string) {
	t.Helper()
	raw = t.TempDir()
	c = harness.New(t, harness.Options{Executors: 2, CatalogConfig: "    add_files_paths: [file://" + raw + "]\n"})
	c.SQL("CREATE SCHEMA lake.x")
	return c, raw
}

const addSums = "count(*), count(name), sum(id), min(name), max(name), min(day), max(day), sum(hash(id, name, day))"

// Files that are there become the table's, are read as its own, and stay when it lets them go.
func TestAddFiles_WhereTheyAre(t *testing.T) {
	t.Parallel()
	c, raw := newAddCluster(t)
	exported(t, filepath.Join(raw, "a.parquet"), 0, compress.Codecs.Zstd)
	exported(t, filepath.Join(raw, "b.parquet"), 40000, compress.Codecs.Snappy)
	want := c.SQL("SELECT " + addSums + " FROM '" + raw + "/*.parquet'")
	c.SQL("CREATE TABLE lake.x.t (id BIGINT NOT NULL, name VARCHAR, day DATE)")
	add := "ALTER TABLE lake.x.t ADD FILES FROM '" + raw + "/*.parquet'"
	require.Contains(t, c.Run("sql", "-q", "-o", "csv", "EXPLAIN "+add).Out, "2 files, ")
	require.Equal(t, []string{"80000", "2"}, c.SQL("VALIDATE " + add)[0][:2])
	require.Zero(t, c.Table("x", "t").Snapshots, "nothing was added so far")

	res := c.SQL(add)
	require.Equal(t, []string{"80000", "2"}, res[0][:2])
	tab := c.Table("x", "t")
	slices.Sort(tab.Files)
	require.Equal(t, []string{raw + "/a.parquet", raw + "/b.parquet"}, tab.Files)
	require.EqualValues(t, 80000, tab.Records)
	require.Contains(t, tab.Metadata.Properties()["schema.name-mapping.default"], `"field-id":1`)
	require.Equal(t, want, c.SQL("SELECT "+addSums+" FROM lake.x.t"))
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.t WHERE id = 41234"))

	c.Fail(1, add, "table lake.x.t has "+raw+"/a.parquet already, and 1 more")
	require.Equal(t, 1, c.Table("x", "t").Snapshots)
	c.SQL("CALL lake.system.add_files(table => 'x.t', source => '" + raw + "/b.parquet', check_duplicate_files => false)")
	require.Equal(t, "120000", c.Value("SELECT count(*) FROM lake.x.t"))

	// Rows of a file that is there twice are read twice, and cannot be told apart.
	for _, text := range []string{"DELETE FROM lake.x.t WHERE id = 41234", "UPDATE lake.x.t SET name = 'x'", "CALL lake.system.rewrite_data_files(table => 'x.t', options => MAP('rewrite-all', true))"} {
		c.Fail(1, text, "table lake.x.t has the data file file://"+raw+"/b.parquet twice")
	}
	c.SQL("INSERT OVERWRITE lake.x.t SELECT DISTINCT * FROM lake.x.t")
	require.Equal(t, want, c.SQL("SELECT "+addSums+" FROM lake.x.t"))

	// What is removed from the table is not removed from where it was.
	c.SQL("TRUNCATE TABLE lake.x.t; CALL lake.system.expire_snapshots(table => 'x.t', older_than => TIMESTAMP '2100-01-01', retain_last => 1)")
	c.SQL("CALL lake.system.remove_orphan_files(table => 'x.t', older_than => TIMESTAMP '2100-01-01', force => true)")
	for _, f := range []string{"a", "b"} {
		require.FileExists(t, filepath.Join(raw, f+".parquet"))
	}
	c.SQL(add)
	require.Equal(t, want, c.SQL("SELECT "+addSums+" FROM lake.x.t"))
	c.SQL("DROP TABLE lake.x.t")
	require.FileExists(t, filepath.Join(raw, "a.parquet"))
}

// Only files below the table and those of listed places stay where they are; those of other tables never do.
func TestAddFiles_Places(t *testing.T) {
	t.Parallel()
	c, raw := newAddCluster(t)
	elsewhere := t.TempDir()
	exported(t, filepath.Join(elsewhere, "a.parquet"), 0, compress.Codecs.Zstd)
	c.SQL("CREATE TABLE lake.x.t (id BIGINT, name VARCHAR, day DATE); CREATE TABLE lake.x.u AS SELECT * FROM '" + elsewhere + "/a.parquet'")
	add := func(file string) string { return "ALTER TABLE lake.x.t ADD FILES FROM '" + file + "'" }
	c.Fail(1, add(elsewhere+"/a.parquet"), elsewhere+"/a.parquet: it is not below table lake.x.t", "copy = true", "catalogs.lake.add_files_paths")
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "a.parquet"), filepath.Join(raw, "link.parquet")))
	c.Fail(1, add(raw+"/link.parquet"), "it is not below table lake.x.t")
	c.Fail(1, add(c.Table("x", "u").Files[0]), "it is in the warehouse of catalog lake and not below table lake.x.t")
	exported(t, filepath.Join(raw, "a#b.parquet"), 0, compress.Codecs.Zstd)
	c.Fail(1, add(raw+"/a#b.parquet"), "readers take a name with one of")
	c.Fail(1, add(raw+"/none*.parquet"), "none matches it as a pattern")
	exported(t, filepath.Join(raw, "one.parquet"), 0, compress.Codecs.Zstd)
	require.NoError(t, os.Link(filepath.Join(raw, "one.parquet"), filepath.Join(raw, "two.parquet")))
	c.Fail(1, "ALTER TABLE lake.x.t ADD FILES FROM ('"+raw+"/one.parquet', '"+raw+"/two.parquet')", "are one file: a hard link")
	require.Zero(t, c.Table("x", "t").Snapshots)
	c.SQL("ALTER TABLE lake.x.t ADD FILES FROM ('" + raw + "/one.parquet', '" + raw + "/on*.parquet')") // twice the same name is one file
	require.EqualValues(t, 40000, c.Table("x", "t").Records)

	// Below the table's own location they may be, too.
	home := strings.TrimPrefix(c.Table("x", "t").Metadata.Location(), "file://")
	exported(t, filepath.Join(home, "data", "given", "c.parquet"), 90000, compress.Codecs.Zstd)
	c.SQL(add(home + "/data/given/*.parquet"))
	require.EqualValues(t, 80000, c.Table("x", "t").Records)
}

// The rows of copies are the files', and row groups are copied as they are where they can be.
func TestAddFiles_Copies(t *testing.T) {
	t.Parallel()
	c, raw := newAddCluster(t)
	exported(t, filepath.Join(raw, "a.parquet"), 0, compress.Codecs.Zstd)
	exported(t, filepath.Join(raw, "b.parquet"), 40000, compress.Codecs.Uncompressed)
	want := c.SQL("SELECT " + addSums + " FROM '" + raw + "/*.parquet'")
	c.SQL("CREATE TABLE lake.x.t (id BIGINT NOT NULL, name VARCHAR, day DATE) PARTITIONED BY (day)")
	c.Fail(1, "ALTER TABLE lake.x.t ADD FILES FROM '"+raw+"/*.parquet'", `column "day": its rows are in several partitions of "day"`, "copy = true")
	add := "ALTER TABLE lake.x.t ADD FILES FROM '" + raw + "/*.parquet' WITH (copy = true)"
	require.Contains(t, c.Run("sql", "-q", "-o", "csv", "EXPLAIN "+add).Out, "Copied row groups: 40000 of 80000 rows")
	require.Equal(t, "80000", c.SQL(add)[0][0])
	tab := c.Table("x", "t")
	require.Equal(t, 2, copiedFiles(t, tab.Files))
	require.Empty(t, tab.Metadata.Properties()["schema.name-mapping.default"])
	for _, f := range tab.Files {
		require.True(t, strings.HasPrefix(f, strings.TrimPrefix(tab.Metadata.Location(), "file://")), f)
	}
	require.Equal(t, want, c.SQL("SELECT "+addSums+" FROM lake.x.t"))
	require.NoError(t, os.RemoveAll(filepath.Join(raw, "a.parquet")))
	require.Equal(t, want, c.SQL("SELECT "+addSums+" FROM lake.x.t"))
	c.Fail(1, "ALTER TABLE lake.x.t ADD FILES FROM '"+tab.Files[0]+"' WITH (copy = true)", "already")
}

// Directories give the values of columns that files do not have.
func TestAddFiles_Hive(t *testing.T) {
	t.Parallel()
	c, raw := newAddCluster(t)
	for n, day := range []string{"2024-01-01", "2024-01-02", "__HIVE_DEFAULT_PARTITION__"} {
		c.SQL(fmt.Sprintf("CREATE TABLE lake.x.s%d AS SELECT i AS id FROM range(%d, %d) r(i)", n, n*100, n*100+100))
		dir := filepath.Join(raw, "hive", "day="+day)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		b, err := os.ReadFile(c.Table("x", fmt.Sprintf("s%d", n)).Files[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.parquet"), b, 0o600))
	}
	const rows = "SELECT day, count(*), sum(id) FROM lake.x.%s GROUP BY 1 ORDER BY 1 NULLS LAST"
	for name, with := range map[string]string{"t": "", "u": " WITH (copy = true)"} {
		c.SQL("CREATE TABLE lake.x." + name + " (id BIGINT, day DATE) PARTITIONED BY (day)")
		c.SQL("ALTER TABLE lake.x." + name + " ADD FILES FROM '" + raw + "/hive/*/*.parquet'" + with)
		require.Equal(t, [][]string{{"2024-01-01", "100", "4950"}, {"2024-01-02", "100", "14950"}, {"", "100", "24950"}}, c.SQL(fmt.Sprintf(rows, name)), name)
		require.Len(t, c.Table("x", name).Files, 3)
		require.Equal(t, "100", c.Value("SELECT count(*) FROM lake.x."+name+" WHERE day = DATE '2024-01-02'"))
	}
	c.SQL("CREATE TABLE lake.x.plain (id BIGINT, day DATE)")
	c.Fail(1, "ALTER TABLE lake.x.plain ADD FILES FROM '"+raw+"/hive/*/*.parquet'", `column "day" is in the names of directories only`)
}

// Of statements that add the same files at once one adds them.
func TestAddFiles_AtOnce(t *testing.T) {
	t.Parallel()
	c, raw := newAddCluster(t)
	for n := range int64(3) {
		exported(t, filepath.Join(raw, fmt.Sprintf("%d.parquet", n)), n*40000, compress.Codecs.Zstd)
	}
	c.SQL("CREATE TABLE lake.x.t (id BIGINT, name VARCHAR, day DATE) WITH ('format-version' = '3')")
	var wg sync.WaitGroup
	results := make([]harness.Result, 6)
	for n := range results {
		wg.Go(func() { results[n] = c.Run("sql", "-q", "ALTER TABLE lake.x.t ADD FILES FROM '"+raw+"/*.parquet'") })
	}
	wg.Wait()
	landed := 0
	for _, r := range results {
		if r.Code == 0 {
			landed++
			continue
		}
		require.Contains(t, r.Err, "already")
	}
	require.Equal(t, 1, landed)
	require.EqualValues(t, 120000, c.Table("x", "t").Records)
	require.Equal(t, "120000", c.Value("SELECT count(DISTINCT id) FROM lake.x.t"))
}
