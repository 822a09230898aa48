package catalogtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// Open returns a catalog that holds nothing. The test closes it.
type Open func(t *testing.T) catalog.Catalog

// Run is the conformance suite.
func Run(t *testing.T, open Open) { RunWith(t, Quirks{}, open) }

// RunWith is the suite for a catalog that has quirks.
func RunWith(t *testing.T, q Quirks, open Open) {
	for name, test := range map[string]func(*testing.T, catalog.Catalog, Quirks){
		"CreateAndLoad":                  testCreate,
		"CreateRefusesBadInput":          testCreateBad,
		"MissingIsNotFound":              testMissing,
		"DropLeavesFiles":                testDrop,
		"Namespaces":                     testNamespaces,
		"OddNames":                       testOddNames,
		"CommitAppends":                  testCommit,
		"CommitConflict":                 testConflict,
		"CommitTwiceLandsOnce":           testTwice,
		"CommitRefusesBadRequests":       testCommitBad,
		"CommitWithoutTable":             testCommitMissing,
		"CommitRebasesUnrelatedChanges":  testRebase,
		"ConcurrentCommitsAllLand":       testConcurrent,
		"StagedCreate":                   testStaged,
		"StagedCreateRace":               testStagedRace,
		"DropAndCreateIsAnotherTable":    testRecreate,
		"LocationsStayInTheWarehouse":    testLocations,
		"FailedAttemptsLeaveNoMetadata":  testNoOrphans,
		"CancelledContextChangesNothing": testCancelled,
		"FormatVersions":                 testVersions,
		"CompressedMetadata":             testCompressed,
		"WhatWasLoadedStaysAsItWas":      testShared,
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			t.Cleanup(func() { assert.NoError(t, c.Close()) })
			test(t, c, q)
		})
	}
}

func demo(t *testing.T, c catalog.Catalog, name string) *catalog.Table {
	t.Helper()
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, true))
	tbl, err := c.Create(t.Context(), catalog.Ident{"demo", name}, Spec())
	require.NoError(t, err)
	return tbl
}

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

// raw is what a table's metadata file has in it.
func raw(t *testing.T, c catalog.Catalog, tbl *catalog.Table, q Quirks) string {
	if q.OddFiles {
		st, err := c.Store(t.Context(), nil, tbl.Location)
		if err != nil { // of a catalog that gives credentials for tables only
			return "nobody can tell"
		}
		var files []string
		require.NoError(t, st.List(t.Context(), tbl.Location+"/metadata", func(i storage.Info) error { files = append(files, i.URI); return nil }))
		return strings.Join(files, "\n")
	}
	return readFile(t, c, tbl, tbl.MetadataLocation)
}

func testNamespaces(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	none, err := c.Namespaces(ctx)
	require.NoError(t, err)
	require.Empty(t, none)
	want := [][]string{{"b"}, {"a", "x"}, {"a"}, {"a.x"}}
	if q.FlatDots {
		want = [][]string{{"b"}, {"a"}, {"a", "x"}}
		if !q.DotsAlias {
			require.ErrorIs(t, c.CreateNamespace(ctx, []string{"a.x"}, false), catalog.ErrPermanent)
		}
	}
	if q.OneLevel {
		want = [][]string{{"b"}, {"a"}, {"a.x"}}
		for _, refused := range [][]string{{"a", "x"}, {"A"}} {
			require.ErrorIs(t, c.CreateNamespace(ctx, refused, false), catalog.ErrPermanent)
		}
	}
	for _, ns := range want {
		require.NoError(t, c.CreateNamespace(ctx, ns, false))
		require.ErrorIs(t, c.CreateNamespace(ctx, ns, false), catalog.ErrExists)
		require.NoError(t, c.CreateNamespace(ctx, ns, true))
	}
	require.ErrorIs(t, c.CreateNamespace(ctx, nil, true), catalog.ErrPermanent)
	got, err := c.Namespaces(ctx)
	require.NoError(t, err)
	slices.SortFunc(want, slices.Compare)
	assert.Equal(t, want, got)

	in := []string{"a", "x"}
	if q.OneLevel {
		in = []string{"a.x"}
	}
	idents := []catalog.Ident{append(slices.Clone(in), "2"), append(slices.Clone(in), "1")}
	if !q.FlatDots && !q.OneLevel {
		idents = append(idents, catalog.Ident{"a.x", "3"})
	}
	for _, id := range idents {
		_, err := c.Create(ctx, id, Spec())
		require.NoError(t, err)
	}
	tables, err := c.Tables(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, []catalog.Ident{idents[1], idents[0]}, tables)
	tables, err = c.Tables(ctx, []string{"a"})
	require.NoError(t, err)
	assert.Empty(t, tables)
}

// oddNames are kept apart by a careful catalog only. (X5 has the same characters in file names.)
var oddNames = []string{
	"t", "T", "a b", "a%20b", "a+b", "ä", "日本", "a.b", "a/b", "a/../b", "..", ".", "~2e", "'", `"`, `""`, "a\\b", "#", "?", "*", "%", "t-00000000",
	"\n", "metadata", "data", "[1]", "{b,c}", "k=v", ";--", "\u202e", "😎", strings.Repeat("ü", 40),
}

// onlyPlain keeps the names that a catalog of PlainNames takes. Of the others it makes a table that is found again, or none.
func onlyPlain(t *testing.T, c catalog.Catalog, names []string) []string {
	t.Helper()
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, true))
	var plain []string
	for _, n := range names {
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" {
			plain = append(plain, n)
			continue
		}
		id := catalog.Ident{"demo", n}
		made, err := c.Create(t.Context(), id, Spec())
		now, loaded := c.Load(t.Context(), id)
		if err != nil {
			require.Error(t, loaded, "%q", n)
			continue
		}
		require.NoError(t, loaded, "%q", n)
		require.Equal(t, made.UUID, now.UUID)
		require.NoError(t, c.Drop(t.Context(), id))
	}
	tables, err := c.Tables(t.Context(), []string{"demo"})
	require.NoError(t, err)
	require.Empty(t, tables)
	return plain
}

func testOddNames(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	seen := map[string]string{}
	var idents []catalog.Ident
	names := slices.Clone(oddNames)
	if q.StepNames {
		for _, step := range []string{".", ".."} {
			for _, id := range []catalog.Ident{{"demo", step}, {step, "t"}} {
				_, err := c.Create(ctx, id, Spec())
				require.ErrorIs(t, err, catalog.ErrPermanent, "%q", id)
				require.ErrorIs(t, c.Drop(ctx, id), catalog.ErrPermanent, "%q", id)
			}
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == "." || n == ".." })
	}
	if q.NoSlashes {
		names = slices.DeleteFunc(names, func(n string) bool { return strings.ContainsAny(n, "/\\%\n") })
	}
	if q.FlatDots {
		names = slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, ".") })
	}
	if q.LowerCase {
		for _, n := range []string{"T", "\n"} {
			_, err := c.Create(ctx, catalog.Ident{"demo", n}, Spec())
			require.ErrorIs(t, err, catalog.ErrPermanent, "%q", n)
			names = slices.DeleteFunc(names, func(have string) bool { return have == n })
		}
	}
	if q.PlainNames {
		names = onlyPlain(t, c, names)
	}
	for i, n := range names {
		ns := names[(i+7)%len(names)]
		if idents = append(idents, catalog.Ident{"demo", n}); q.OneLevel {
			idents = append(idents, catalog.Ident{n, ns})
			continue
		}
		idents = append(idents, catalog.Ident{n, ns, n})
	}
	for _, id := range idents {
		for n := range id.Namespace() {
			if last := n == len(id)-2; last || q.ParentsFirst {
				require.NoError(t, c.CreateNamespace(ctx, id[:n+1], true), "%q", id)
			}
		}
		tbl, err := c.Create(ctx, id, Spec())
		require.NoError(t, err, "%q", id)
		if other, dup := seen[tbl.Location]; dup {
			t.Fatalf("%q and %s share %s", id, other, tbl.Location)
		}
		seen[tbl.Location] = id.String()
		if !q.OwnPlaces {
			assert.Regexp(t, `^(file:///|s3://|gs://|abfss://).*/[A-Za-z0-9_~.-]+/[A-Za-z0-9_~-]+$`, tbl.Location, "every engine reads this path the same way")
		}
	}
	// No location lies in another, and every table is still itself.
	for a := range seen {
		for b := range seen {
			if _, err := storage.Below(a, b); err == nil && a != b {
				t.Errorf("%s lies in %s", b, a)
			}
		}
	}
	for _, id := range idents {
		tbl, err := c.Load(ctx, id)
		require.NoError(t, err, "%q", id)
		assert.Equal(t, id.String(), seen[tbl.Location])
	}
	namespaces, err := c.Namespaces(ctx)
	require.NoError(t, err)
	for _, id := range idents {
		assert.True(t, slices.ContainsFunc(namespaces, func(ns []string) bool { return slices.Equal(ns, id.Namespace()) }), "%q", id)
		require.NoError(t, c.Drop(ctx, id))
	}
}

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

// snapshots: a table has had so many.
func snapshots(t *testing.T, q Quirks, tbl *catalog.Table, n int) {
	t.Helper()
	if tbl.Metadata.Version() > 1 {
		assert.EqualValues(t, n, tbl.Metadata.LastSequenceNumber())
	}
	if !q.CurrentOnly {
		assert.Len(t, tbl.Metadata.Snapshots(), n)
	}
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

func unchanged(t *testing.T, q Quirks, was, now *catalog.Table) {
	t.Helper()
	if !q.OddFiles {
		assert.Equal(t, was.MetadataLocation, now.MetadataLocation)
	}
	assert.Equal(t, was.Metadata.Properties(), now.Metadata.Properties())
	assert.Equal(t, was.Metadata.CurrentSnapshot(), now.Metadata.CurrentSnapshot())
	assert.Equal(t, was.Location, now.Location)
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
