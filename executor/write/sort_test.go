package write_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func (tb *table) sortBy(source int32, kind planv1.TransformKind, param int32, descending, nullsFirst bool) *table {
	tb.SortOrderId = 7
	tb.Sort = append(tb.Sort, &planv1.SortField{SourceId: source, Transform: kind, Param: param, Descending: descending, NullsFirst: nullsFirst})
	return tb
}

// unsorted counts rows that come before a row they should follow, by the sort key that DuckDB builds.
func unsorted(t *testing.T, f *planv1.DataFile, key string) string {
	t.Helper()
	return query(t, fmt.Sprintf("SELECT count(*) FROM (SELECT k, lag(k) OVER (ORDER BY n) AS prev FROM (SELECT file_row_number AS n, create_sort_key(%s) AS k "+
		"FROM read_parquet('%s', file_row_number=true))) WHERE prev > k", key, path(f.GetPath())))[0]
}

const shuffled = "SELECT (hash(i) % 100000)::BIGINT AS a, CASE WHEN i % 10 = 0 THEN NULL ELSE (hash(i) % 77)::VARCHAR END AS b, (i % 3)::INTEGER AS p FROM range(400000) t(i)"

func sortable(t *testing.T) *table {
	tb := newTable(t, field(1, "a", "long"), field(2, "b", "string"), field(3, "p", "int"))
	tb.Files.RowGroupRows = 20480 // several row groups per file and thread
	return tb
}

func TestRun_SortOrderUnpartitioned(t *testing.T) {
	tb := sortable(t).sortBy(2, identity, 0, false, true).sortBy(1, identity, 0, true, false)
	files := tb.mustRun(t, shuffled)
	require.Len(t, files, 1)
	require.Equal(t, int32(7), files[0].GetSortOrderId())
	require.Equal(t, "0", unsorted(t, files[0], "b, 'ASC NULLS FIRST', a, 'DESC NULLS LAST'"))
}

func TestRun_SortOrderCutToSize(t *testing.T) {
	tb := sortable(t).sortBy(1, identity, 0, false, false)
	tb.Files.TargetFileSizeBytes = 300 << 10
	files := tb.mustRun(t, shuffled)
	require.Greater(t, len(files), 1)
	var rows int64
	for n, f := range files {
		require.Equal(t, "0", unsorted(t, f, "a, 'ASC NULLS LAST'"))
		require.Less(t, f.GetSizeBytes(), int64(600<<10))
		rows += f.GetRecordCount()
		if n > 0 { // the files follow each other
			require.LessOrEqual(t, metrics(t, files[n-1], 1).GetUpper().GetValue().GetInteger(), metrics(t, f, 1).GetLower().GetValue().GetInteger())
		}
	}
	require.Equal(t, int64(400000), rows)
}

func TestRun_SortOrderWithinPartitions(t *testing.T) {
	for _, sortKeys := range []bool{false, true} {
		tb := sortable(t).partitionBy("p", 3, identity, 0).sortBy(2, truncate, 1, true, false).sortBy(1, identity, 0, false, true)
		tb.write().SortForPartitions = sortKeys
		files := tb.mustRun(t, shuffled)
		require.GreaterOrEqual(t, len(files), 3)
		var rows int64
		for _, f := range files {
			rows += f.GetRecordCount()
			require.Equal(t, int32(7), f.GetSortOrderId())
			require.Equal(t, "0", unsorted(t, f, "left(b, 1), 'DESC NULLS LAST', a, 'ASC NULLS FIRST'"))
		}
		require.Equal(t, int64(400000), rows)
	}
}

// Output names must not capture the sort.
func TestRun_SortOrderWithTrickyNames(t *testing.T) {
	tb := newTable(t, field(1, "c1", "long"), field(2, "c0", "long"), field(3, "__t", "long")).sortBy(1, identity, 0, false, false)
	files := tb.mustRun(t, "SELECT (hash(i) % 1000)::BIGINT, (hash(i + 1) % 1000)::BIGINT, i FROM range(10000) t(i)")
	require.Equal(t, "0", unsorted(t, files[0], "c1, 'ASC NULLS LAST'"))
}

func TestRun_UnsortedClaimsNothing(t *testing.T) {
	tb := sortable(t).partitionBy("p", 3, identity, 0)
	for _, f := range tb.mustRun(t, shuffled) {
		require.Zero(t, f.GetSortOrderId())
	}
}

func TestRun_RollsByTargetSize(t *testing.T) {
	tb := sortable(t)
	tb.Files.TargetFileSizeBytes = 1 << 20
	files := tb.mustRun(t, shuffled)
	require.Greater(t, len(files), 1)
	tb = sortable(t).partitionBy("p", 3, identity, 0)
	tb.Files.TargetFileSizeBytes = 200 << 10
	files = tb.mustRun(t, shuffled)
	require.Greater(t, len(files), 3, "outsize partitions are cut")
	require.Equal(t, []string{"400000"}, readBack(t, files, "count(*)"))
}
