package harness

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	iceberg "github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the catalog's database
)

// Table is a table's state, read past Signet: the catalog's row, the metadata file, the Iceberg manifests, the directory.
type Table struct {
	Exists           bool
	Metadata         table.Metadata
	MetadataLocation string
	Snapshots        int
	Markers          []string      // of the property, oldest first
	Records          int64         // of the current snapshot's files, without those that delete files delete
	Files            []string      // data files of the current snapshot, paths
	Partitions       []map[int]any // of Files, by partition field id
	DeleteFiles      []string
	Deleted          map[string]map[uint64]bool // positions of deleted rows, by data file
	Orphans          []string                   // files below the location that no metadata refers to
}

// Table reads the state of lake.<schema>.<name>.
func (c *Cluster) Table(schema, name string) Table {
	c.t.Helper()
	location, ok := c.metadataLocation(schema, name)
	if !ok {
		return Table{Orphans: unknown(c.t, filepath.Join(c.Dir, "warehouse", schema, name), nil)}
	}
	store := icebergio.LocalFS{}
	md := readMetadata(c.t, store, location)
	out := Table{Exists: true, Metadata: md, MetadataLocation: location, Snapshots: len(md.Snapshots())}
	known := map[string]bool{clean(location): true}
	for m := range md.PreviousFiles() {
		known[clean(m.MetadataFile)] = true
	}
	for _, s := range md.Snapshots() {
		c.addSnapshot(&out, known, store, md, s)
	}
	for k, v := range md.Properties() {
		if strings.HasPrefix(k, "signet.landed.") {
			out.Markers = append(out.Markers, strings.Split(v, ",")...)
		}
	}
	out.Orphans = unknown(c.t, clean(md.Location()), known)
	return out
}

func (c *Cluster) addSnapshot(out *Table, known map[string]bool, store icebergio.IO, md table.Metadata, s table.Snapshot) {
	known[clean(s.ManifestList)] = true
	manifests, err := s.Manifests(store)
	require.NoError(c.t, err)
	current := md.CurrentSnapshot() != nil && md.CurrentSnapshot().SnapshotID == s.SnapshotID
	for _, m := range manifests {
		if known[clean(m.FilePath())] && !current { // files are never written twice
			continue
		}
		known[clean(m.FilePath())] = true
		for e, err := range m.Entries(store, true) {
			require.NoError(c.t, err)
			path := clean(e.DataFile().FilePath())
			known[path] = true
			if current && e.DataFile().ContentType() != iceberg.EntryContentData {
				out.addDeletes(c.t, e.DataFile())
				out.Records -= e.DataFile().Count()
			}
			if current && e.DataFile().ContentType() == iceberg.EntryContentData {
				out.Files, out.Records = append(out.Files, path), out.Records+e.DataFile().Count()
				out.Partitions = append(out.Partitions, e.DataFile().Partition())
				st, err := os.Stat(path)
				require.NoError(c.t, err, "the table refers to a file that is not there")
				require.Equal(c.t, e.DataFile().FileSizeBytes(), st.Size(), path)
			}
		}
	}
}

func readMetadata(t require.TestingT, store icebergio.IO, location string) table.Metadata {
	f, err := store.Open(clean(location))
	require.NoError(t, err)
	defer f.Close()
	b, err := os.ReadFile(clean(location))
	require.NoError(t, err)
	md, err := table.ParseMetadataBytes(b)
	require.NoError(t, err)
	return md
}

func (c *Cluster) metadataLocation(schema, name string) (string, bool) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(c.Dir, "catalog.db")+"?mode=ro&_pragma=busy_timeout(10000)")
	require.NoError(c.t, err)
	defer db.Close()
	var location string
	err = db.QueryRowContext(context.Background(), "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = 'lake' AND table_namespace = ? AND table_name = ?", schema, name).Scan(&location)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false
	}
	require.NoError(c.t, err)
	return location, true
}

// RewriteMetadata has another writer commit to lake.<schema>.<name> a metadata file that no API here would make.
func (c *Cluster) RewriteMetadata(schema, name string, change func(md map[string]any)) {
	c.t.Helper()
	location, ok := c.metadataLocation(schema, name)
	require.True(c.t, ok, "no table %s.%s", schema, name)
	raw, err := os.ReadFile(clean(location))
	require.NoError(c.t, err)
	md := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	require.NoError(c.t, dec.Decode(&md))
	change(md)
	raw, err = json.Marshal(md)
	require.NoError(c.t, err)
	next := strings.TrimSuffix(location, ".metadata.json") + "-changed.metadata.json"
	require.NoError(c.t, os.WriteFile(clean(next), raw, 0o600))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(c.Dir, "catalog.db")+"?_pragma=busy_timeout(10000)")
	require.NoError(c.t, err)
	defer db.Close()
	_, err = db.ExecContext(context.Background(), "UPDATE iceberg_tables SET metadata_location = ? WHERE catalog_name = 'lake' AND table_namespace = ? AND table_name = ?", next, schema, name)
	require.NoError(c.t, err)
}

// DataFiles are the data files of a table's current snapshot, as its manifests describe them.
func (c *Cluster) DataFiles(schema, name string) (out []iceberg.DataFile) {
	c.t.Helper()
	md := c.Table(schema, name).Metadata
	manifests, err := md.CurrentSnapshot().Manifests(icebergio.LocalFS{})
	require.NoError(c.t, err)
	for _, m := range manifests {
		for e, err := range m.Entries(icebergio.LocalFS{}, true) {
			require.NoError(c.t, err)
			out = append(out, e.DataFile())
		}
	}
	return out
}

func clean(uri string) string { return strings.TrimPrefix(uri, "file://") }

// unknown lists the files below a directory that are not in known, without those that writers leave on purpose.
func unknown(t require.TestingT, dir string, known map[string]bool) []string {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !known[path] {
			out = append(out, path)
		}
		return err
	})
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	slices.Sort(out)
	return out
}

// NoOrphans waits until every data file below a table's location belongs to the table.
func (c *Cluster) NoOrphans(schema, name string) {
	c.t.Helper()
	var left []string
	if !Soon(Patience/3, func() bool { left = c.Table(schema, name).DataOrphans(); return len(left) == 0 }) {
		c.t.Fatalf("orphaned data files: %q", left)
	}
}

// DataOrphans are those of the orphans that are data files or delete files.
func (t Table) DataOrphans() []string {
	return slices.DeleteFunc(slices.Clone(t.Orphans), func(p string) bool { return !strings.HasSuffix(p, ".parquet") && !strings.HasSuffix(p, ".puffin") })
}
