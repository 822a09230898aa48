package duckdb

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names that differ in the number of their partition and in their own: DuckDB's hash of the bare path is the same for some of them.
func TestHashes_OfSimilarPaths(t *testing.T) {
	inst := locked(t)
	require.NoError(t, inst.newView())
	collided := 0
	for pad := range 8 {
		var paths []string
		for bucket := range 40 {
			for n := range 40 {
				paths = append(paths, fmt.Sprintf("/w/%s/id_bucket=%d/00001-2069-35f28af7-874e-458e-9edb-adeaae445cdc-0-%05d.parquet", strings.Repeat("x", pad), bucket, n))
			}
		}
		var same int
		require.NoError(t, inst.conn.QueryRowContext(context.Background(), fmt.Sprintf("SELECT count(*) - count(DISTINCT hash(p, 1)) FROM (SELECT unnest(%s) AS p)", ListLiteral(paths))).Scan(&same))
		collided += same
		keys, err := inst.hashes(context.Background(), paths, keyPositions)
		require.NoError(t, err)
		require.Len(t, keys, len(paths))
	}
	require.Positive(t, collided, "or this tests nothing")
}
