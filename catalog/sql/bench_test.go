package sql_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
)

// BenchmarkLoadAndCommit measures what one INSERT asks of the catalog: two loads (the planner's and the sink's) and a commit.
func BenchmarkLoadAndCommit(b *testing.B) {
	for _, snapshots := range []int{0, 100, 1000} {
		c := openSQLite(b, b.TempDir())
		require.NoError(b, c.CreateNamespace(b.Context(), []string{"demo"}, false))
		tbl, err := c.Create(b.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
		require.NoError(b, err)
		for range snapshots {
			reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
			tbl, err = c.Commit(b.Context(), tbl.Ident, reqs, ups)
			require.NoError(b, err)
		}
		b.Run(fmt.Sprint("load/", snapshots), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Load(b.Context(), tbl.Ident); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("commit/", snapshots), func(b *testing.B) {
			for b.Loop() {
				reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
				if tbl, err = c.Commit(b.Context(), tbl.Ident, reqs, ups); err != nil {
					b.Fatal(err)
				}
			}
		})
		require.NoError(b, c.Close())
	}
}
