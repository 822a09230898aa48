package upkeep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/storage"
)

func TestKey_OneFileHasOneKey(t *testing.T) {
	for _, uri := range []string{"/a/b", "file:/a/b", "file:///a/b", "file://localhost/a/b", "/a//b"} {
		require.Equal(t, "/a/b", Key(uri), uri)
	}
	require.NotEqual(t, Key("/a/b%20c"), Key("/a/b c"), "nothing is decoded")
}

func TestTableAt_FindsTablesByTheirMetadata(t *testing.T) {
	for rel, want := range map[string]string{
		"metadata/00000-x.metadata.json": "file:///w", "n/metadata/v1.metadata.json": "file:///w/n", "a/b/metadata/v1.gz.metadata.json": "file:///w/a/b",
		"n/metadata/v1.metadata.json.gz": "file:///w/n", "data/x.parquet": "", "metadata/snap-1.avro": "", "n/v1.metadata.json": "",
	} {
		require.Equal(t, want, tableAt("file:///w", rel), rel)
	}
}

func TestPlaces_AreComparedByParts(t *testing.T) {
	at, err := openPlaces(t.Context(), storage.Local, "file:///w/t", map[string]string{"write.data.path": "/d/t", "write.metadata.path": "/etc"}, func(p string) bool { return p != "/etc" })
	require.NoError(t, err)
	for uri, in := range map[string]bool{
		"/w/t/a": true, "file:/w/t/data/b": true, "/w/t2/a": false, "/w/t": false, "/d/t/x": true, "/d/tt/x": false, "/etc/passwd": false, "/w/t/../u/x": false, "s3://w/t/a": false,
	} {
		require.Equal(t, in, at.store(uri) != nil, uri)
	}
}
