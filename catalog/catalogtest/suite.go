package catalogtest

import (
	"strings"
	"testing"

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

func unchanged(t *testing.T, q Quirks, was, now *catalog.Table) {
	t.Helper()
	if !q.OddFiles {
		assert.Equal(t, was.MetadataLocation, now.MetadataLocation)
	}
	assert.Equal(t, was.Metadata.Properties(), now.Metadata.Properties())
	assert.Equal(t, was.Metadata.CurrentSnapshot(), now.Metadata.CurrentSnapshot())
	assert.Equal(t, was.Location, now.Location)
}
