package catalogtest

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
)

// RunTransactions holds a catalog of one kind to the contract of catalog.Transactor. Of a server that loses changes in a race (I9) racing says that nothing is taken for landed that has not.
func RunTransactions(t *testing.T, q Quirks, loses bool, open Open) {
	for name, test := range map[string]func(*testing.T, catalog.Catalog, Quirks, bool){
		"AllLand": testTransaction, "ConflictOfOneIsNone": testTransactionConflict, "Racing": testTransactionRace,
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			t.Cleanup(func() { assert.NoError(t, c.Close()) })
			test(t, c, q, loses)
		})
	}
}

func transactor(t *testing.T, c catalog.Catalog) catalog.Transactor {
	tr, ok := c.(catalog.Transactor)
	require.True(t, ok)
	return tr
}

// appends are changes that append a snapshot to each table as it is loaded.
func appends(t *testing.T, c catalog.Catalog, tables []*catalog.Table) (all []catalog.Change, ids []int64) {
	for _, tbl := range tables {
		now, err := c.Load(t.Context(), tbl.Ident)
		if !assert.NoError(t, err) {
			return nil, nil // also called beside the test's own goroutine
		}
		id := SnapshotID()
		reqs, ups := Append(now, id)
		all, ids = append(all, catalog.Change{Ident: tbl.Ident, Requirements: reqs, Updates: ups}), append(ids, id)
	}
	return all, ids
}

func testTransaction(t *testing.T, c catalog.Catalog, q Quirks, _ bool) {
	tables := []*catalog.Table{demo(t, c, "a"), demo(t, c, "b"), demo(t, c, "c")}
	for n := 1; n <= 3; n++ {
		all, ids := appends(t, c, tables)
		for range 2 { // and the identical request again
			got, err := transactor(t, c).CommitTransaction(t.Context(), all)
			require.NoError(t, err)
			for i, tbl := range got {
				require.Equal(t, tables[i].Ident, tbl.Ident)
				require.Equal(t, ids[i], tbl.Metadata.CurrentSnapshot().SnapshotID)
				snapshots(t, q, tbl, n)
			}
		}
	}
}

func testTransactionConflict(t *testing.T, c catalog.Catalog, q Quirks, _ bool) {
	tables := []*catalog.Table{demo(t, c, "a"), demo(t, c, "b")}
	for moved := range tables {
		for range 2 { // an empty table, and one that has a snapshot
			all, ids := appends(t, c, tables)
			one, _ := appends(t, c, tables[moved:moved+1])
			_, err := c.Commit(t.Context(), one[0].Ident, one[0].Requirements, one[0].Updates)
			require.NoError(t, err)
			_, err = transactor(t, c).CommitTransaction(t.Context(), all)
			require.ErrorIs(t, err, catalog.ErrConflict)
			for i, tbl := range tables {
				now, err := c.Load(t.Context(), tbl.Ident)
				require.NoError(t, err)
				require.Nil(t, now.Metadata.SnapshotByID(ids[i]), "one conflict, and nothing lands")
			}
		}
	}
}

func testTransactionRace(t *testing.T, c catalog.Catalog, q Quirks, loses bool) {
	tables := []*catalog.Table{demo(t, c, "a"), demo(t, c, "b")}
	const writers, each = 4, 3
	var mu sync.Mutex
	landed, tr := 0, transactor(t, c)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				for t.Context().Err() == nil {
					changes, _ := appends(t, c, tables)
					if changes == nil {
						return
					}
					_, err := tr.CommitTransaction(t.Context(), changes)
					for n := 0; err != nil && !errors.Is(err, catalog.ErrConflict) && n < 20; n++ { // unknown
						if torn := new(catalog.TornError); errors.As(err, &torn) {
							if !loses {
								t.Errorf("a server that keeps transactions whole: %v", err)
							}
							return
						}
						_, err = tr.CommitTransaction(t.Context(), changes)
					}
					if err == nil {
						mu.Lock()
						landed++
						mu.Unlock()
						break
					}
				}
			}
		})
	}
	all.Wait()
	for _, tbl := range tables {
		now, err := c.Load(t.Context(), tbl.Ident)
		require.NoError(t, err)
		if loses {
			require.GreaterOrEqual(t, now.Metadata.LastSequenceNumber(), int64(landed), "nothing is taken for landed that has not")
			continue
		}
		require.Equal(t, writers*each, landed)
		snapshots(t, q, now, writers*each)
	}
}
