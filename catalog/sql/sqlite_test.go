package sql_test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/sql"
)

// pyiceberg is what PyIceberg's SqlCatalog makes: no iceberg_type, and a rollback journal.
const pyiceberg = `
CREATE TABLE iceberg_tables (
	catalog_name VARCHAR(255) NOT NULL,
	table_namespace VARCHAR(255) NOT NULL,
	table_name VARCHAR(255) NOT NULL,
	metadata_location VARCHAR(1000),
	previous_metadata_location VARCHAR(1000),
	PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (
	catalog_name VARCHAR(255) NOT NULL,
	namespace VARCHAR(255) NOT NULL,
	property_key VARCHAR(255) NOT NULL,
	property_value VARCHAR(1000) NOT NULL,
	PRIMARY KEY (catalog_name, namespace, property_key));`

func raw(t *testing.T, dir string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("sqlite", "file:"+filepath.Join(dir, "catalog.db"))
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestSQLite_ConformanceOnPyIcebergsFile(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Catalog {
		dir := t.TempDir()
		db := raw(t, dir)
		_, err := db.Exec(pyiceberg)
		require.NoError(t, err)
		c := openSQLite(t, dir)
		var mode string
		require.NoError(t, db.QueryRow(`PRAGMA journal_mode`).Scan(&mode))
		require.Equal(t, "delete", mode, "somebody else's file keeps its mode")
		return c
	})
}

func TestSQLite_SchemaAndRowsAreWhatOthersExpect(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	c := openSQLite(t, dir)
	defer c.Close()
	require.NoError(t, c.CreateNamespace(ctx, []string{"a", "b"}, false))
	tbl, err := c.Create(ctx, catalog.Ident{"a", "b", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	reqs, ups := catalogtest.Append(tbl, 5)
	next, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)

	db := raw(t, dir)
	var cat, ns, name, loc, prev, typ string
	require.NoError(t, db.QueryRow(`SELECT catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type FROM iceberg_tables`).
		Scan(&cat, &ns, &name, &loc, &prev, &typ))
	assert.Equal(t, []string{"lake", "a.b", "t", next.MetadataLocation, tbl.MetadataLocation, "TABLE"}, []string{cat, ns, name, loc, prev, typ})
	var key, value string
	require.NoError(t, db.QueryRow(`SELECT property_key, property_value FROM iceberg_namespace_properties WHERE namespace = 'a.b'`).Scan(&key, &value))
	assert.Equal(t, "exists=true", key+"="+value)

	// Rows of engines that leave the type out are tables; views are not.
	_, err = db.Exec(`UPDATE iceberg_tables SET iceberg_type = NULL`)
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO iceberg_tables VALUES ('lake', 'a.b', 'v', 'file:///v', NULL, 'VIEW'), ('other', 'a.b', 'foreign', 'file:///f', NULL, 'TABLE')`)
	require.NoError(t, err)
	_, err = c.Load(ctx, catalog.Ident{"a", "b", "v"})
	require.ErrorIs(t, err, catalog.ErrNotFound)
	require.ErrorIs(t, c.Drop(ctx, catalog.Ident{"a", "b", "v"}), catalog.ErrNotFound)
	_, err = c.Create(ctx, catalog.Ident{"a", "b", "v"}, catalogtest.Spec())
	require.ErrorIs(t, err, catalog.ErrExists)
	tables, err := c.Tables(ctx, []string{"a", "b"})
	require.NoError(t, err)
	assert.Equal(t, []catalog.Ident{{"a", "b", "t"}}, tables)
	reqs, ups = catalogtest.Append(next, 6)
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
}

// Two catalogs on one file are two processes to SQLite: nothing is shared but the file.
func TestSQLite_ManyProcessesNeverSeeBusy(t *testing.T) {
	for _, setup := range []string{"", pyiceberg} {
		ctx, dir := t.Context(), t.TempDir()
		if setup != "" {
			_, err := raw(t, dir).Exec(setup)
			require.NoError(t, err)
		}
		first := openSQLite(t, dir)
		defer first.Close()
		require.NoError(t, first.CreateNamespace(ctx, []string{"demo"}, false))
		const tables, commits = 4, 10
		var wg sync.WaitGroup
		for i := range tables {
			c := openSQLite(t, dir)
			defer c.Close()
			wg.Go(func() {
				tbl, err := c.Create(ctx, catalog.Ident{"demo", fmt.Sprint("t", i)}, catalogtest.Spec())
				for range commits {
					if !assert.NoError(t, err) {
						return
					}
					reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
					tbl, err = c.Commit(ctx, tbl.Ident, reqs, ups)
				}
			})
		}
		wg.Wait()
		for i := range tables {
			tbl, err := first.Load(ctx, catalog.Ident{"demo", fmt.Sprint("t", i)})
			require.NoError(t, err)
			assert.Len(t, tbl.Metadata.Snapshots(), commits)
		}
	}
}

func TestSQLite_WaitsForAnotherWritersLock(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	c := openSQLite(t, dir)
	defer c.Close()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	db := raw(t, dir)
	_, err = db.Exec(`BEGIN IMMEDIATE`)
	require.NoError(t, err)

	// Longer than the driver waits by itself.
	short, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
	defer cancel()
	reqs, ups := catalogtest.Append(tbl, 5)
	_, err = c.Commit(short, tbl.Ident, reqs, ups)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, catalog.ErrConflict)

	done := make(chan error, 1)
	go func() {
		_, err := c.Commit(ctx, tbl.Ident, reqs, ups)
		done <- err
	}()
	_, err = db.Exec(`ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, <-done)
}

// What other engines leave behind can be read: their names for compressed files, their forms of locations.
func TestLoad_OthersMetadata(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	c := openSQLite(t, dir)
	defer c.Close()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	spec := catalogtest.Spec()
	spec.Properties = map[string]string{"write.metadata.compression-codec": "gzip"}
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, spec)
	require.NoError(t, err)
	path := strings.TrimPrefix(tbl.MetadataLocation, "file://")
	db := raw(t, dir)
	for _, name := range []string{"00003-x.metadata.json.gz", "v7.gz.metadata.json", "v7.metadata.json", "odd name %20.json"} {
		moved := filepath.Join(filepath.Dir(path), name)
		require.NoError(t, os.Rename(path, moved))
		path = moved
		for _, loc := range []string{path, "file:" + path, "file://" + path} {
			_, err = db.Exec(`UPDATE iceberg_tables SET metadata_location = ?`, loc)
			require.NoError(t, err)
			got, err := c.Load(ctx, tbl.Ident)
			require.NoError(t, err, loc)
			assert.Equal(t, tbl.UUID, got.UUID)
			assert.Equal(t, loc, got.MetadataLocation)
		}
	}
	reqs, ups := catalogtest.Append(tbl, 5)
	next, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	assert.Contains(t, next.MetadataLocation, "/00000-", "a name without a number counts as -1")

	for loc, want := range map[string]string{
		"s3://bucket/m.json":           "only file:// is served",
		"file://" + dir + "/none.json": "is not there",
		"":                             "not an absolute path",
	} {
		_, err = db.Exec(`UPDATE iceberg_tables SET metadata_location = ?`, loc)
		require.NoError(t, err)
		_, err := c.Load(ctx, tbl.Ident)
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, catalog.ErrNotFound, "the table is there")
	}
	bad := filepath.Join(dir, "bad.json")
	for _, content := range []string{"", "{", `{"format-version": 9}`, "\x1f\x8b broken", "[]"} {
		require.NoError(t, os.WriteFile(bad, []byte(content), 0o644))
		_, err = db.Exec(`UPDATE iceberg_tables SET metadata_location = ?`, bad)
		require.NoError(t, err)
		_, err := c.Load(ctx, tbl.Ident)
		require.ErrorContains(t, err, bad, "%q", content)
		_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
		require.ErrorIs(t, err, catalog.ErrNotSent, "%q", content)
	}
}

func TestCommit_DeletesOldMetadataWhereAsked(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	c := openSQLite(t, dir)
	defer c.Close()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	spec := catalogtest.Spec()
	spec.Properties = map[string]string{"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, spec)
	require.NoError(t, err)
	for range 6 {
		reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
		tbl, err = c.Commit(ctx, tbl.Ident, reqs, ups)
		require.NoError(t, err)
	}
	files, err := os.ReadDir(filepath.Join(strings.TrimPrefix(tbl.Location, "file://"), "metadata"))
	require.NoError(t, err)
	assert.Len(t, files, 3, "the current one and two before it")
}

func TestOpen_Refuses(t *testing.T) {
	dir := t.TempDir()
	good := sql.Options{Name: "lake", URI: "sqlite://" + dir + "/c.db", Warehouse: dir}
	for want, change := range map[string]func(*sql.Options){
		"no name":           func(o *sql.Options) { o.Name = "" },
		"only file://":      func(o *sql.Options) { o.Warehouse = "s3://b/w" },
		"root of the file":  func(o *sql.Options) { o.Warehouse = "file:///" },
		"not an absolute":   func(o *sql.Options) { o.Warehouse = "wh" },
		"absolute path":     func(o *sql.Options) { o.URI = "sqlite://rel.db" },
		`scheme "mysql"`:    func(o *sql.Options) { o.URI = "mysql://u:canary@h/d" },
		"not a PostgreSQL":  func(o *sql.Options) { o.URI = "postgresql://u:canary@h:port%/d" },
		"open the database": func(o *sql.Options) { o.URI = "sqlite://" + dir },
	} {
		o := good
		change(&o)
		_, err := sql.Open(t.Context(), o)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "canary")
	}
	four := good
	four.URI = "sqlite:///" + dir + "/four.db"
	c, err := sql.Open(t.Context(), four)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	assert.FileExists(t, dir+"/four.db", "as SQLAlchemy writes it")
	odd := good
	odd.URI = "sqlite://" + dir + "/a b?c=%20#d/ü.db"
	c, err = sql.Open(t.Context(), odd)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	assert.FileExists(t, dir+"/a b?c=%20#d/ü.db", "the path as it is written")
}
