package e2e_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	iceberg "github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	icebergsql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// catalogOfAnother is the cluster's catalog as iceberg-go sees it.
func catalogOfAnother(t *testing.T, c *harness.Cluster) *icebergsql.Catalog {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(c.Dir, "catalog.db")+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	cat, err := icebergsql.NewCatalog("lake", db, icebergsql.SQLite, iceberg.Properties{"warehouse": "file://" + c.Dir + "/warehouse"})
	require.NoError(t, err)
	return cat
}

// tableOfAnother has another engine make lake.x.NAME with one column, id, at a location of its choice.
func tableOfAnother(t *testing.T, c *harness.Cluster, name, location string, props iceberg.Properties, columns ...string) {
	t.Helper()
	cat := catalogOfAnother(t, c)
	fields := []iceberg.NestedField{{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}}
	for i, n := range columns {
		fields = append(fields, iceberg.NestedField{ID: i + 2, Name: n, Type: iceberg.PrimitiveTypes.Int64})
	}
	opts := []icebergcatalog.CreateTableOpt{icebergcatalog.WithProperties(props)}
	if location != "" {
		opts = append(opts, icebergcatalog.WithLocation(location))
	}
	_, err := cat.CreateTable(harness.Context(t), table.Identifier{"x", name}, iceberg.NewSchema(0, fields...), opts...)
	require.NoError(t, err)
}

// Whoever may change a table says where its files go: only below the table, the warehouse and what the operator lists is that obeyed.
func TestPlaces_DataFilesGoWhereTheyMay(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	evil := filepath.Join(t.TempDir(), "evil")
	for _, place := range []string{"file://" + evil, evil, "s3://bucket/x", "file://" + c.Dir + "/warehouse/../evil", "file://" + c.Dir + "/data"} {
		c.Fail(1, "CREATE TABLE lake.x.bad (id BIGINT) WITH ('write.data.path' = '"+place+"')", "write.data.path", "data_paths")
		c.Fail(1, "CREATE TABLE lake.x.bad WITH ('write.data.path' = '"+place+"') AS SELECT 1 AS id", "data location", "data_paths")
	}
	tableOfAnother(t, c, "moved", "", iceberg.Properties{"write.data.path": "file://" + evil})
	c.Fail(1, "INSERT INTO lake.x.moved VALUES (1)", "data location", evil, "write.data.path", "data_paths")
	_, err := os.Stat(evil)
	require.ErrorIs(t, err, os.ErrNotExist)
	c.SQL("CREATE TABLE lake.x.fast (id BIGINT) WITH ('write.data.path' = 'file://" + c.Dir + "/warehouse/fast'); INSERT INTO lake.x.fast VALUES (1)")
	require.DirExists(t, c.Dir+"/warehouse/fast")
}

// Some engines make tables at plain paths; files are named like them.
func TestPlaces_LocationWithoutAScheme(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	home := filepath.Join(t.TempDir(), "loc 2%20x")
	tableOfAnother(t, c, "plain", home, nil)
	c.SQL("INSERT INTO lake.x.plain VALUES (1), (2)")
	require.Equal(t, "2", c.Value("SELECT count(*) FROM lake.x.plain"))
	found, err := filepath.Glob(home + "/data/*/*/*/*/*.parquet")
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// SQL here ignores case: a table of columns a and A can be neither read nor written.
func TestPlaces_ColumnsThatDifferInCase(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	tableOfAnother(t, c, "twins", "", nil, "A", "a")
	c.Fail(1, "SELECT id FROM lake.x.twins", `"A"`, `"a"`, "differ only in case")
	c.Fail(1, "INSERT INTO lake.x.twins VALUES (1, 2, 3)", `"A"`, `"a"`, "differ only in case")
}

// A statement that fails or is cancelled leaves no directories where its table would have been, and none of its own in a table that is there.
func TestPlaces_FailedWritesLeaveNoDirectories(t *testing.T) {
	t.Parallel()
	c := newCases(t, 0)
	c.StartExecutor(fault.Env + "=executor.upload.after-dirsync=8*error(disk)") // two statements of four attempts
	c.AwaitExecutors(1)
	c.SQL("CREATE TABLE lake.x.t (id INTEGER)")
	tidy := func(what string) {
		t.Helper()
		var left []string
		harness.Eventually(t, what+" leaves no empty directory", func() bool {
			left = emptyDirs(t, c.Dir+"/warehouse")
			return len(left) == 0
		})
	}
	c.Fail(1, "CREATE TABLE lake.x.never AS SELECT 1 AS id", "disk")
	tidy("a failed CREATE TABLE AS")
	require.NoDirExists(t, c.Dir+"/warehouse/x/never")
	c.Fail(1, "INSERT INTO lake.x.t VALUES (1)", "disk")
	tidy("a failed INSERT")
	c.SQL("INSERT INTO lake.x.t VALUES (1)")
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.t"))
}

// emptyDirs lists the directories that hold nothing.
func emptyDirs(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	_ = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if entries, err := os.ReadDir(p); err == nil && len(entries) == 0 {
				out = append(out, p)
			}
		}
		return nil
	})
	return out
}

// A nested schema of another engine is one quoted name; what SHOW lists can be used as it is shown.
func TestNestedSchemas(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	cat := catalogOfAnother(t, c)
	require.NoError(t, cat.CreateNamespace(harness.Context(t), table.Identifier{"n1", "n2"}, nil))
	_, err := cat.CreateTable(harness.Context(t), table.Identifier{"n1", "n2", "t"}, iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}))
	require.NoError(t, err)
	require.Contains(t, c.SQL("SHOW SCHEMAS"), []string{"n1.n2"})
	require.Equal(t, [][]string{{"t"}}, c.SQL(`SHOW TABLES FROM lake."n1.n2"`))
	require.Contains(t, c.SQL("SHOW TABLES"), []string{"n1.n2", "t"})
	c.SQL(`INSERT INTO lake."n1.n2".t VALUES (1); CREATE TABLE lake."n1.n2".u AS SELECT id FROM lake."n1.n2".t`)
	require.Equal(t, "1", c.Value(`SELECT count(*) FROM lake."n1.n2".u`))
	_, err = cat.LoadTable(harness.Context(t), table.Identifier{"n1", "n2", "u"})
	require.NoError(t, err)
	c.Fail(1, `CREATE SCHEMA lake."s.t"`, "dot", "nested")
	c.Fail(1, `CREATE TABLE lake."no.such".t (id BIGINT)`, `lake."no.such"`, "other engines")
	c.Fail(1, `SELECT * FROM lake."n1.n2".nope`, `lake."n1.n2".nope`)
}
