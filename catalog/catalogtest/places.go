package catalogtest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

func testStaged(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	id := catalog.Ident{"demo", "ctas"}
	reqs, ups := Staged("", "", 42)
	_, err := c.Commit(ctx, id, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrPermanent, "no namespace, and no location, which some catalogs find")
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))

	loc, err := c.DefaultLocation(ctx, id)
	require.NoError(t, err)
	// Data files are there before the table is.
	st, err := c.Store(ctx, id, loc)
	require.NoError(t, err)
	_, err = st.PutIfAbsent(ctx, loc+"/data/x", strings.NewReader("x"))
	require.NoError(t, err)
	want := uuid.NewString()
	reqs, ups = Staged(want, loc, 42)
	tbl, err := c.Commit(ctx, id, reqs, ups)
	require.NoError(t, err)
	assert.Equal(t, want, tbl.UUID)
	assert.Equal(t, loc, tbl.Location)
	assert.Equal(t, "staged", tbl.Metadata.Properties()["made"])
	assert.EqualValues(t, 42, tbl.Metadata.CurrentSnapshot().SnapshotID)
	assert.Len(t, tbl.Metadata.CurrentSchema().Fields(), 2)
	if !q.EmptySchema {
		assert.Len(t, tbl.Metadata.Schemas(), 1, "no empty schema is left behind")
		assert.Equal(t, 0, tbl.Metadata.CurrentSchema().ID)
	}
	assert.Len(t, tbl.Metadata.PartitionSpecs(), 1)

	again, err := c.Commit(ctx, id, reqs, ups)
	require.NoError(t, err, "the identical request")
	snapshots(t, q, again, 1)
	assert.True(t, q.OddFiles || tbl.MetadataLocation == again.MetadataLocation)
	other, ups2 := Staged("", loc, 43)
	_, err = c.Commit(ctx, id, other, ups2)
	require.ErrorIs(t, err, catalog.ErrConflict)
	r, u := Append(tbl, SnapshotID())
	_, err = c.Commit(ctx, id, r, u)
	require.NoError(t, err)
}

func testStagedRace(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	id := catalog.Ident{"demo", "race"}
	loc, err := c.DefaultLocation(ctx, id)
	require.NoError(t, err)
	results := make([]error, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			reqs, ups := Staged("", loc, int64(100+i))
			for {
				_, results[i] = c.Commit(ctx, id, reqs, ups)
				settled := results[i] == nil || errors.Is(results[i], catalog.ErrConflict) || errors.Is(results[i], catalog.ErrPermanent)
				if settled || !q.Unsure || ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	won := -1
	for i, err := range results {
		if err == nil {
			require.Equal(t, -1, won, "two won")
			won = i
			continue
		}
		require.ErrorIs(t, err, catalog.ErrConflict)
	}
	tbl, err := c.Load(ctx, id)
	require.NoError(t, err)
	assert.EqualValues(t, 100+won, tbl.Metadata.CurrentSnapshot().SnapshotID)
	if !q.OwnFiles {
		assert.Equal(t, 1, metadataFiles(t, c, tbl))
	}
}

func testLocations(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	warehouse, _, _ := strings.Cut(tbl.Location, "/demo/t")
	spec := Spec()
	for _, loc := range []string{
		"file:///", "/", warehouse, warehouse + "/", warehouse + "/../x", warehouse + "-beside/x", "s3://bucket/x", "file://host/x", "relative",
		"file:///etc/x", warehouse + "/%2e%2e/../../x",
	} {
		spec.Location = loc
		_, err := c.Create(ctx, catalog.Ident{"demo", "x"}, spec)
		require.ErrorIs(t, err, catalog.ErrPermanent, loc)
		reqs, ups := Staged("", loc, 5)
		_, err = c.Commit(ctx, catalog.Ident{"demo", "x"}, reqs, ups)
		require.ErrorIs(t, err, catalog.ErrPermanent, loc)
	}
	for _, loc := range []string{
		tbl.Location, strings.ReplaceAll(tbl.Location, "/demo/", "//demo/"), tbl.Location + "/inner", warehouse + "/demo",
	} {
		if q.FreePlaces {
			break
		}
		spec.Location = loc
		_, err := c.Create(ctx, catalog.Ident{"demo", "x"}, spec)
		require.ErrorIs(t, err, catalog.ErrPermanent, loc)
		reqs, ups := Staged("", loc, 5)
		_, err = c.Commit(ctx, catalog.Ident{"demo", "x"}, reqs, ups)
		require.ErrorIs(t, err, catalog.ErrPermanent, loc)
	}
	spec.Location = warehouse + "/my own/place%20"
	if q.PlainNames {
		spec.Location = warehouse + "/demo/place"
	}
	own, err := c.Create(ctx, catalog.Ident{"demo", "own"}, spec)
	if q.NoChosenPlaces {
		require.ErrorIs(t, err, catalog.ErrPermanent)
		_, err = c.Load(ctx, catalog.Ident{"demo", "own"})
		require.ErrorIs(t, err, catalog.ErrNotFound, "it was taken back")
		return
	}
	require.NoError(t, err)
	assert.Equal(t, spec.Location, own.Location)
	if q.OwnFiles { // whose writer may put others beside them, as Hadoop's checksums
		assert.NotEmpty(t, raw(t, c, own, q), "raw, not decoded")
	} else {
		assert.Equal(t, 1, metadataFiles(t, c, own), "raw, not decoded")
	}
	st, err := c.Store(ctx, own.Ident, own.Location)
	require.NoError(t, err)
	_, err = st.Rel(tbl.MetadataLocation)
	require.ErrorIs(t, err, storage.ErrOutside)
}
