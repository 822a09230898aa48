package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	iceberg "github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"

	"github.com/signet-io/signet/test/harness"
)

// metadataFiles are the lists and the manifests of all of a table's snapshots.
func metadataFiles(t *testing.T, tab harness.Table) (lists, manifests []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range tab.Metadata.Snapshots() {
		lists = append(lists, strings.TrimPrefix(s.ManifestList, "file://"))
		all, err := s.Manifests(icebergio.LocalFS{})
		require.NoError(t, err)
		for _, m := range all {
			if path := strings.TrimPrefix(m.FilePath(), "file://"); !seen[path] {
				seen[path] = true
				manifests = append(manifests, path)
			}
		}
	}
	return lists, manifests
}

// entrySchema is what stood in the header's schema in tables of duckdb/duckdb-iceberg#799: the schema of the entries.
func entrySchema(h map[string]string) { h["schema"] = h["avro.schema"] }

func without(keys ...string) func(map[string]string) {
	return func(h map[string]string) {
		for _, k := range keys {
			delete(h, k)
		}
	}
}

// X9, X11: headers that other writers leave out, or fill with something else, stop no statement; what is written on top of them is right again.
func TestHeaders_OfOtherWriters(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	nothing := func(map[string]string) {}
	for n, tc := range []struct {
		name            string
		lists, manifest func(map[string]string)
	}{
		{"lists without format-version", without("format-version"), nothing},
		{"lists without any key of Iceberg", without("format-version", "snapshot-id", "parent-snapshot-id", "sequence-number", "first-row-id"), nothing},
		{"manifests without format-version", nothing, without("format-version")},
		{"manifests without content", nothing, without("content")},
		{"manifests without schema-id", nothing, without("schema-id")},
		{"manifests without schema", nothing, without("schema")},
		{"manifests without a spec", nothing, without("partition-spec", "partition-spec-id")},
		{"manifests without any key of Iceberg", without("format-version"), without("format-version", "content", "schema", "schema-id", "partition-spec", "partition-spec-id")},
		{"manifests with the schema of their entries", nothing, entrySchema},
	} {
		version := 2 + n%2
		t.Run(fmt.Sprintf("%s, version %d", tc.name, version), func(t *testing.T) {
			c.Use(t)
			name := fmt.Sprintf("t%d", n)
			sql := func(script string) [][]string {
				t.Helper()
				return c.SQL(strings.ReplaceAll(strings.ReplaceAll(script, "TABLE", "lake.x."+name), "'NAME'", "'x."+name+"'"))
			}
			c.SQL(fmt.Sprintf("CREATE TABLE lake.x.%s (id BIGINT, day DATE) PARTITIONED BY (day) WITH ('format-version' = '%d', 'commit.manifest.min-count-to-merge' = '4')", name, version))
			const rows = "INSERT INTO TABLE SELECT i + %d AS id, DATE '2026-01-01' + CAST(i %% 2 AS INTEGER) FROM range(10) r(i);"
			sql(fmt.Sprintf(rows+rows+rows+"DELETE FROM TABLE WHERE id = 0", 0, 10, 20))
			first := c.Table("x", name).Metadata.CurrentSnapshot().SnapshotID
			lists, manifests := metadataFiles(t, c.Table("x", name))
			for _, l := range lists {
				harness.EditAvro(t, l, tc.lists)
			}
			for _, m := range manifests {
				harness.EditAvro(t, m, tc.manifest)
			}
			require.Equal(t, "29", sql("SELECT count(*) FROM TABLE")[0][0])
			// The first INSERT merges manifests.
			sql("INSERT INTO TABLE VALUES (100, DATE '2026-01-03'); INSERT OVERWRITE PARTITIONS INTO TABLE VALUES (101, DATE '2026-01-03'); UPDATE TABLE SET id = -id WHERE id = 1; " +
				"DELETE FROM TABLE WHERE id = 2; MERGE INTO TABLE AS t USING (SELECT 3 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
			require.Equal(t, []string{"28", "29"}, sql(fmt.Sprintf("SELECT (SELECT count(*) FROM TABLE), (SELECT count(*) FROM TABLE FOR VERSION AS OF %d)", first))[0])
			sql("CALL system.rewrite_data_files(table => 'NAME', options => map('rewrite-all', 'true')); CALL system.rewrite_manifests('NAME'); CALL system.remove_orphan_files('NAME'); " +
				"CALL system.expire_snapshots('NAME', older_than => TIMESTAMP '2099-01-01', retain_last => 1)")
			require.Equal(t, "28", sql("SELECT count(*) FROM TABLE")[0][0])

			tab := c.Table("x", name) // every file of the table is read past Signet, and nothing is missing
			require.EqualValues(t, 28, tab.Records)
			require.Equal(t, 1, tab.Snapshots)
			require.Empty(t, tab.Orphans)
			requireHeaders(t, tab)
		})
	}
}

// requireHeaders holds the headers of a table's manifests against its metadata (X11).
func requireHeaders(t *testing.T, tab harness.Table) {
	t.Helper()
	_, manifests := metadataFiles(t, tab)
	require.NotEmpty(t, manifests)
	for _, m := range manifests {
		h := harness.AvroHeader(t, m)
		require.Equal(t, fmt.Sprint(tab.Metadata.Version()), h["format-version"], m)
		require.Contains(t, []string{"data", "deletes"}, h["content"], m)
		schema := &iceberg.Schema{}
		require.NoError(t, json.Unmarshal([]byte(h["schema"]), schema), h["schema"])
		require.Equal(t, fmt.Sprint(schema.ID), h["schema-id"], m)
		found := false
		for _, s := range tab.Metadata.Schemas() {
			found = found || s.ID == schema.ID && s.Equals(schema)
		}
		require.True(t, found, "%s: %s", m, h["schema"])
		spec, err := json.Marshal(tab.Metadata.PartitionSpecs()[0])
		require.NoError(t, err)
		for _, s := range tab.Metadata.PartitionSpecs() {
			if fmt.Sprint(s.ID()) == h["partition-spec-id"] {
				spec, err = json.Marshal(s)
				require.NoError(t, err)
			}
		}
		var want struct {
			Fields json.RawMessage `json:"fields"`
		}
		require.NoError(t, json.Unmarshal(spec, &want))
		require.JSONEq(t, string(want.Fields), h["partition-spec"], m)
	}
}

// X11: what a header says is of the moment at which its manifest is written, whatever the table becomes.
func TestHeaders_AreOfTheirMoment(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	c.SQL("CREATE TABLE lake.x.t (id BIGINT, day DATE) PARTITIONED BY (day)")
	ids := func() (out []string) {
		tab := c.Table("x", "t")
		requireHeaders(t, tab)
		all, err := tab.Metadata.CurrentSnapshot().Manifests(icebergio.LocalFS{})
		require.NoError(t, err)
		for _, m := range all { // the newest first
			h := harness.AvroHeader(t, strings.TrimPrefix(m.FilePath(), "file://"))
			out = append(out, h["schema-id"]+"/"+h["partition-spec-id"])
		}
		return out
	}
	c.SQL("INSERT INTO lake.x.t VALUES (1, DATE '2026-01-01')")
	require.Equal(t, []string{"0/0"}, ids())
	c.SQL("ALTER TABLE lake.x.t ADD COLUMN note VARCHAR")
	c.SQL("INSERT INTO lake.x.t VALUES (2, DATE '2026-01-02', 'x')")
	require.Equal(t, []string{"1/0", "0/0"}, ids())
	c.SQL("ALTER TABLE lake.x.t REPLACE PARTITION FIELD day WITH month(day)")
	c.SQL("INSERT INTO lake.x.t VALUES (3, DATE '2026-01-03', 'x')")
	require.Equal(t, []string{"1/1", "1/0", "0/0"}, ids())
	c.SQL("ALTER TABLE lake.x.t RENAME COLUMN note TO remark")
	c.SQL("DELETE FROM lake.x.t WHERE id = 3")
	require.Subset(t, []string{"1/1", "1/0", "0/0", "2/1"}, ids())
	require.Equal(t, "2", c.Value("SELECT count(*) FROM lake.x.t"))
}
