package catalogtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
)

func testCommit(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	for i := range 5 {
		id := SnapshotID()
		reqs, ups := Append(tbl, id)
		next, err := c.Commit(ctx, tbl.Ident, reqs, ups)
		require.NoError(t, err)
		require.Equal(t, id, next.Metadata.CurrentSnapshot().SnapshotID)
		loaded, err := c.Load(ctx, tbl.Ident)
		require.NoError(t, err)
		if !q.OddFiles {
			require.Contains(t, next.MetadataLocation, fmt.Sprintf("/0000%d-", i+1))
			require.Equal(t, next.MetadataLocation, loaded.MetadataLocation)
		}
		tbl = loaded
	}
	snapshots(t, q, tbl, 5)
	if q.CurrentOnly {
		return
	}
	raw, err := c.RawMetadata(ctx, tbl)
	require.NoError(t, err)
	var doc struct {
		Log []struct {
			File string `json:"metadata-file"`
		} `json:"metadata-log"`
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	assert.Len(t, doc.Log, 5)
}

func testConflict(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	reqs, ups := Append(tbl, SnapshotID())
	tbl, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	reqs, ups = Append(tbl, SnapshotID())
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	reqs, ups = Append(tbl, SnapshotID()) // on the old head
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrConflict)

	// C-section of facts: stale although no requirement says so. The sequence number is taken.
	_, err = c.Commit(ctx, tbl.Ident, []byte(`[]`), ups)
	require.ErrorIs(t, err, catalog.ErrConflict)

	now, err := c.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	snapshots(t, q, now, 2)
}

// testTwice: the identical request again, as after an unknown outcome (S67).
func testTwice(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	reqs, ups := Append(tbl, SnapshotID())
	first, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	again, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	snapshots(t, q, again, 1)
	assert.True(t, q.OddFiles || first.MetadataLocation == again.MetadataLocation)

	// Also when others went on since.
	for range 3 {
		r, u := Append(again, SnapshotID())
		again, err = c.Commit(ctx, tbl.Ident, r, u)
		require.NoError(t, err)
	}
	if again, err = c.Commit(ctx, tbl.Ident, reqs, ups); q.CurrentOnly { // which cannot tell, and changes nothing
		require.ErrorIs(t, err, catalog.ErrConflict)
		again, err = c.Load(ctx, tbl.Ident)
	}
	require.NoError(t, err)
	snapshots(t, q, again, 4)
	if q.CurrentOnly {
		return
	}

	// The same snapshot id for something else is no repetition.
	other := strings.ReplaceAll(string(ups), "/metadata/snap-", "/metadata/other-")
	_, err = c.Commit(ctx, tbl.Ident, reqs, []byte(other))
	require.ErrorIs(t, err, catalog.ErrPermanent)
}

func testCommitBad(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	good, ups := Append(tbl, SnapshotID())
	for name, r := range map[string][2]string{
		"requirements are no JSON": {`[`, string(ups)},
		"unknown requirement":      {`[{"type":"assert-weather"}]`, string(ups)},
		"updates are no JSON":      {string(good), `{`},
		"no updates at all":        {string(good), ``},
		"unknown update":           {string(good), `[{"action":"explode"}]`},
		"unknown schema":           {string(good), `[{"action":"set-current-schema","schema-id":7}]`},
		"reference to nothing":     {string(good), `[{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":5}]`},
		"move out":                 {string(good), `[{"action":"set-location","location":"file:///etc"}]`},
		"metadata out":             {string(good), `[{"action":"set-properties","updates":{"write.metadata.path":"file:///etc"}}]`},
		"unknown codec":            {string(good), `[{"action":"set-properties","updates":{"write.metadata.compression-codec":"rot13"}}]`},
	} {
		if q.OddFiles && name == "unknown codec" || q.CurrentOnly && name == "reference to nothing" {
			continue
		}
		_, err := c.Commit(ctx, tbl.Ident, []byte(r[0]), []byte(r[1]))
		require.ErrorIs(t, err, catalog.ErrPermanent, name)
		require.NotErrorIs(t, err, catalog.ErrConflict, name)
	}
	now, err := c.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	unchanged(t, q, tbl, now)
}

func testCommitMissing(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	require.NoError(t, c.Drop(ctx, tbl.Ident))
	reqs, ups := Append(tbl, SnapshotID())
	_, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrConflict)
	require.ErrorIs(t, err, catalog.ErrNotFound)
}

func testRebase(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	reqs, ups := Append(tbl, SnapshotID())
	r, u := SetProperties(tbl, map[string]string{"k": "v"})
	_, err := c.Commit(ctx, tbl.Ident, r, u)
	require.NoError(t, err)
	next, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err, "the requirements hold: a property is none of them")
	assert.Equal(t, "v", next.Metadata.Properties()["k"])
}

func testConcurrent(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	const writers, each = 8, 5
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				id := SnapshotID()
				for {
					now, err := c.Load(ctx, tbl.Ident)
					if !assert.NoError(t, err) {
						return
					}
					reqs, ups := Append(now, id)
					_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
					if err == nil {
						break
					}
					if !assert.ErrorIs(t, err, catalog.ErrConflict) {
						return
					}
				}
			}
		})
	}
	wg.Wait()
	now, err := c.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	snapshots(t, q, now, writers*each)
	if !q.OwnFiles {
		assert.Equal(t, writers*each+1, metadataFiles(t, c, now), "one metadata file for each commit, none for conflicts")
	}
}

func testNoOrphans(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	tbl := demo(t, c, "t")
	reqs, ups := Append(tbl, SnapshotID())
	now, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	for range 3 {
		reqs, ups := Append(tbl, SnapshotID())
		_, err := c.Commit(ctx, tbl.Ident, reqs, ups)
		require.ErrorIs(t, err, catalog.ErrConflict)
		_, err = c.Create(ctx, tbl.Ident, Spec())
		require.ErrorIs(t, err, catalog.ErrExists)
	}
	if !q.OwnFiles {
		assert.Equal(t, 2, metadataFiles(t, c, now))
	}
}

func testCancelled(t *testing.T, c catalog.Catalog, q Quirks) {
	tbl := demo(t, c, "t")
	reqs, ups := Append(tbl, SnapshotID())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Commit(ctx, tbl.Ident, reqs, ups)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, catalog.ErrConflict)
	require.NotErrorIs(t, err, catalog.ErrPermanent)
	now, err := c.Load(t.Context(), tbl.Ident)
	require.NoError(t, err)
	unchanged(t, q, tbl, now)
}
