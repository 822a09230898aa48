package broker_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/broker"
)

// onBranch makes an append one to a branch that points where main does.
func (b *built) onBranch(name string) {
	b.reqs[1]["ref"] = name
	b.update("set-snapshot-ref")["ref-name"] = name
}

// A lease of a branch moves that branch only, which must be there and be one.
func TestVet_Branches(t *testing.T) {
	b := newBench(t)
	b.createTable()
	_, err := b.job().sink.append()
	require.NoError(t, err)
	head := b.load().Metadata.CurrentSnapshot().SnapshotID
	for name, kind := range map[string]string{"audit": "branch", "v1": "tag"} {
		upds, err := json.Marshal([]map[string]any{{"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": head}})
		require.NoError(t, err)
		_, err = b.cat.Catalog.Commit(t.Context(), ident, []byte("[]"), upds)
		require.NoError(t, err)
	}
	for name, tc := range map[string]struct {
		branch, written string
		want            string
	}{
		"its branch":         {"audit", "audit", ""},
		"main instead":       {"audit", "main", "branch audit"},
		"a branch of nobody": {"nobody", "nobody", "does not exist"},
		"a tag":              {"v1", "v1", "only branches are written to"},
		"for main":           {"", "audit", "branch main"},
	} {
		t.Run(name, func(t *testing.T) {
			j := b.job(func(s *broker.LeaseSpec) { s.Branch = tc.branch })
			l, err := j.sink.load()
			require.NoError(t, err)
			made, err := j.sink.build(l)
			require.NoError(t, err)
			made.onBranch(tc.written)
			_, err = j.sink.sendBuilt(made)
			if tc.want != "" {
				requireRefusal(t, permanent, err, tc.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, head, b.load().Metadata.CurrentSnapshot().SnapshotID, "main stays")
			require.Equal(t, made.id, refOf(b.load().Metadata, "audit"))
		})
	}
}

func refOf(md table.Metadata, name string) int64 {
	for n, r := range md.Refs() {
		if n == name {
			return r.SnapshotID
		}
	}
	return 0
}

// Delete files may be added where the write stores changed rows in them, about the data files that the accepted task manifests name.
func TestVet_DeleteFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		deletes bool
		deleted string // by the accepted task manifests
		want    string
	}{
		"as it should be":         {true, "file:///t/a.parquet", ""},
		"in another mode":         {false, "file:///t/a.parquet", "adds deletes"},
		"about another data file": {true, "file:///t/b.parquet", "no accepted task manifest deletes rows"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.createTable()
			j := b.job(func(s *broker.LeaseSpec) {
				s.Deletes, s.Deleted = tc.deletes, map[string]struct{}{tc.deleted: {}}
			})
			l, err := j.sink.load()
			require.NoError(t, err)
			made, err := j.sink.build(l)
			require.NoError(t, err)
			df, err := iceberg.NewDataFileBuilder(made.md.PartitionSpec(), iceberg.EntryContentPosDeletes, made.md.Location()+"/data/d.parquet", iceberg.ParquetFile, nil, nil, nil, 3, 100)
			require.NoError(t, err)
			path := []byte("file:///t/a.parquet")
			df.LowerBoundValues(map[int][]byte{2147483546: path}).UpperBoundValues(map[int][]byte{2147483546: path})
			var buf bytes.Buffer
			w, err := iceberg.NewManifestWriter(2, &buf, made.md.PartitionSpec(), made.md.CurrentSchema(), made.id, iceberg.WithManifestWriterContent(iceberg.ManifestContentDeletes))
			require.NoError(t, err)
			require.NoError(t, w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &made.id, nil, nil, df.Build())))
			require.NoError(t, w.Close())
			uri := made.md.Location() + "/metadata/deletes.avro"
			require.NoError(t, j.sink.put(uri, buf.Bytes()))
			m := iceberg.NewManifestFile(2, uri, int64(buf.Len()), 0, made.id).Content(iceberg.ManifestContentDeletes).AddedFiles(1).AddedRows(3).
				SequenceNum(made.seq, made.seq).Build()
			made.relist(t, j.sink, append(made.manifests, m))
			_, err = j.sink.sendBuilt(made)
			if tc.want != "" {
				requireRefusal(t, permanent, err, tc.want)
				return
			}
			require.NoError(t, err)
		})
	}
}
