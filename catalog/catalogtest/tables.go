package catalogtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

func testCreate(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	made := demo(t, c, "t")
	got, err := c.Load(ctx, made.Ident)
	require.NoError(t, err)
	assert.Equal(t, made.UUID, got.UUID)
	if !q.OddFiles {
		assert.Equal(t, made.MetadataLocation, got.MetadataLocation)
	}
	assert.Equal(t, 2, got.Metadata.Version())
	assert.Len(t, got.Metadata.CurrentSchema().Fields(), 2)
	raw, err := c.RawMetadata(ctx, got)
	require.NoError(t, err)
	require.True(t, json.Valid(raw))
	testCreatedFile(t, c, q, got, string(raw))

	_, err = c.Create(ctx, made.Ident, Spec())
	require.ErrorIs(t, err, catalog.ErrExists)
	again, err := c.Load(ctx, made.Ident)
	require.NoError(t, err)
	assert.Equal(t, made.UUID, again.UUID)
}

func testCreatedFile(t *testing.T, c catalog.Catalog, q Quirks, got *catalog.Table, raw string) {
	if q.OddFiles {
		return
	}
	below, err := storage.Below(got.Location, got.MetadataLocation)
	require.NoError(t, err)
	assert.Regexp(t, "^metadata/00000-", strings.Join(below, "/"))
	assert.Equal(t, readFile(t, c, got, got.MetadataLocation), raw, "verbatim")
}

func testCreateBad(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	if !q.Implied {
		_, err := c.Create(ctx, catalog.Ident{"nowhere", "t"}, Spec())
		require.ErrorIs(t, err, catalog.ErrNotFound)
	}
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	for name, spec := range map[string]catalog.CreateSpec{
		"no schema":      {},
		"broken schema":  {Schema: json.RawMessage(`{"type":"struct"`)},
		"unknown type":   {Schema: json.RawMessage(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"quux"}]}`)},
		"format version": {Schema: json.RawMessage(SchemaJSON), Properties: map[string]string{"format-version": "9"}},
		"broken spec":    {Schema: json.RawMessage(SchemaJSON), PartitionSpec: json.RawMessage(`[]`)},
		"foreign source": {Schema: json.RawMessage(SchemaJSON), PartitionSpec: json.RawMessage(
			`{"spec-id":0,"fields":[{"source-id":77,"field-id":1000,"name":"x","transform":"identity"}]}`)},
	} {
		_, err := c.Create(ctx, catalog.Ident{"demo", "t"}, spec)
		require.ErrorIs(t, err, catalog.ErrPermanent, name)
	}
	for _, id := range []catalog.Ident{{}, {"t"}, {"demo", ""}, {"", "t"}, {"demo", "a\x00b"}, {"demo", "\xff"}, {"demo", strings.Repeat("x", 300)}} {
		_, err := c.Create(ctx, id, Spec())
		require.ErrorIs(t, err, catalog.ErrPermanent, "%q", id)
	}
	tables, err := c.Tables(ctx, []string{"demo"})
	require.NoError(t, err)
	assert.Empty(t, tables)
}

func testMissing(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	for _, id := range []catalog.Ident{{"nowhere", "t"}, {"demo", "t"}} {
		_, err := c.Load(ctx, id)
		require.ErrorIs(t, err, catalog.ErrNotFound)
		require.ErrorIs(t, c.Drop(ctx, id), catalog.ErrNotFound)
		require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, true))
	}
	if tables, err := c.Tables(ctx, []string{"nowhere"}); err != nil || !q.LooseLists {
		require.ErrorIs(t, err, catalog.ErrNotFound)
	} else {
		require.Empty(t, tables)
	}
}

func testDrop(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	require.NoError(t, c.Drop(ctx, tbl.Ident))
	_, err := c.Load(ctx, tbl.Ident)
	require.ErrorIs(t, err, catalog.ErrNotFound)
	require.ErrorIs(t, c.Drop(ctx, tbl.Ident), catalog.ErrNotFound)
	if !q.Purges {
		assert.NotEmpty(t, raw(t, c, tbl, q))
	}
}

func testRecreate(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	old := demo(t, c, "t")
	reqs, ups := Append(old, SnapshotID())
	require.NoError(t, c.Drop(ctx, old.Ident))
	now := demo(t, c, "t")
	assert.NotEqual(t, old.UUID, now.UUID)
	assert.NotEqual(t, old.Location, now.Location, "the old files are still there")
	if !q.OwnPlaces {
		assert.Regexp(t, `/demo/t-[0-9a-f]{8}$`, now.Location)
	}
	_, err := c.Commit(ctx, old.Ident, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrConflict)
}

func testVersions(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	for _, v := range []string{"1", "2", "3"} {
		spec := Spec()
		spec.Properties = map[string]string{"format-version": v}
		tbl, err := c.Create(ctx, catalog.Ident{"demo", "v" + v}, spec)
		if q.OnlyV2 && v != "2" { // I3: it is told, and there is no table
			require.ErrorIs(t, err, catalog.ErrPermanent)
			_, err = c.Load(ctx, catalog.Ident{"demo", "v" + v})
			require.ErrorIs(t, err, catalog.ErrNotFound)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, v, fmt.Sprint(tbl.Metadata.Version()))
		if v == "1" && q.NoFollows {
			continue
		}
		for range 2 {
			reqs, ups := Append(tbl, SnapshotID())
			tbl, err = c.Commit(ctx, tbl.Ident, reqs, ups)
			require.NoError(t, err, v)
		}
		snapshots(t, q, tbl, 2)
	}
}

func testCompressed(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	for codec, name := range map[string]string{"gzip": ".gz.metadata.json", "zstd": ".zstd.metadata.json", "none": "[0-9a-f].metadata.json"} {
		if codec == "zstd" && q.OwnFiles {
			continue
		}
		spec := Spec()
		spec.Properties = map[string]string{"write.metadata.compression-codec": codec}
		tbl, err := c.Create(ctx, catalog.Ident{"demo", codec}, spec)
		require.NoError(t, err)
		reqs, ups := Append(tbl, SnapshotID())
		tbl, err = c.Commit(ctx, tbl.Ident, reqs, ups)
		require.NoError(t, err)
		if !q.OddFiles {
			assert.Regexp(t, name+"$", tbl.MetadataLocation)
		}
		raw, err := c.RawMetadata(ctx, tbl)
		require.NoError(t, err)
		assert.True(t, json.Valid(raw))
	}
}

// testShared: what one caller does with what it got must not reach another.
func testShared(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	raw, err := c.RawMetadata(ctx, tbl)
	require.NoError(t, err)
	clear(raw)
	again, err := c.RawMetadata(ctx, tbl)
	require.NoError(t, err)
	require.True(t, json.Valid(again))
	reqs, ups := Append(tbl, SnapshotID())
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	assert.Nil(t, tbl.Metadata.CurrentSnapshot(), "a loaded table stays as it was")
}
