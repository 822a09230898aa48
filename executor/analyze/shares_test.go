package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// onSources runs an analysed query as one task with the given sources.
func onSources(t *testing.T, sql string, sources ...*planv1.Source) []string {
	t.Helper()
	inst, err := testPool.Open(t.Context(), duckdb.Access{ReadFiles: duckdb.FilesOf(sources)})
	require.NoError(t, err)
	defer testPool.Discard(inst)
	require.NoError(t, inst.BindSources(t.Context(), sources))
	rs, err := inst.Conn().QueryContext(t.Context(), "SELECT CAST(signet_row AS VARCHAR) FROM ("+sql+") signet_row")
	require.NoError(t, err)
	defer rs.Close()
	var out []string
	for rs.Next() {
		var s string
		require.NoError(t, rs.Scan(&s))
		out = append(out, s)
	}
	require.NoError(t, rs.Err())
	require.NoError(t, inst.CheckPins())
	return out
}

// What row_wise promises: the rows of the shares together are the rows of the whole, for every way to cut.
func TestRowWise_SharesAddUp(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		"COPY (SELECT i, i % 7 AS g, 'x' || i AS s, [i, i + 1] AS l, {'a': i} AS st FROM range(5000) t(i)) TO '$DIR/a.parquet' (ROW_GROUP_SIZE 2048)",
		"COPY (SELECT i, i % 7 AS g, 'y' || i AS s, [i] AS l, {'a': -i} AS st FROM range(300) t(i)) TO '$DIR/b.parquet'",
		"COPY (SELECT 'z' AS s, 1.5::DOUBLE AS g, 1 AS extra FROM range(5)) TO '$DIR/c.parquet'")
	for _, sql := range []string{
		"SELECT * FROM read_parquet(['a.parquet', 'b.parquet'])",
		"SELECT i + 1, upper(s) FROM read_parquet(['a.parquet', 'b.parquet']) WHERE g = 3 OR l[1] = 17",
		"SELECT unnest(l), st.a FROM read_parquet(['a.parquet', 'b.parquet']) WHERE i % 100 = 0",
		"SELECT i FROM read_parquet(['a.parquet', 'b.parquet']) WHERE i < 5 UNION ALL SELECT -i FROM read_parquet(['a.parquet', 'b.parquet']) WHERE i > 4990",
		"SELECT i, file_row_number, filename LIKE '%a.parquet' FROM read_parquet(['a.parquet', 'b.parquet'], filename=true, file_row_number=true) WHERE file_row_number % 50 = 1",
		"SELECT * FROM read_parquet(['a.parquet', 'b.parquet', 'c.parquet'], union_by_name=true) WHERE i IS NULL OR i % 40 = 0",
		"SELECT * EXCLUDE (l, fn), fn LIKE '%c.parquet' AS c FROM read_parquet(['a.parquet', 'b.parquet', 'c.parquet'], union_by_name=true, filename='fn') WHERE i IS NULL OR i % 40 = 0",
	} {
		out, sources := twoRounds(t, dir, sql)
		require.Nil(t, out.Error, "%s: %v", sql, out.Error)
		require.True(t, out.RowWise, "%s: %s", sql, out.NotRowWise)
		whole := onSources(t, out.Sql, sources...)
		require.NotEmpty(t, whole)
		for _, cut := range []int64{1, 100, 2048, 4999} {
			var parts []string
			for _, share := range cutInTwo(sources[0], out.Stats[0].Columns, cut) {
				parts = append(parts, onSources(t, out.Sql, share)...)
			}
			slices.Sort(whole)
			slices.Sort(parts)
			require.Equal(t, strings.Join(whole, "\n"), strings.Join(parts, "\n"), "%s cut at %d", sql, cut)
		}
	}
}

// cutInTwo gives the first file's rows below cut to one task, and everything else to another.
func cutInTwo(src *planv1.Source, cols []*planv1.Column, cut int64) []*planv1.Source {
	a, b := proto.CloneOf(src), proto.CloneOf(src)
	a.GetFile().Columns, b.GetFile().Columns = cols, cols
	a.GetFile().Files = a.GetFile().Files[:1]
	a.GetFile().Files[0].EndRow = cut
	b.GetFile().Files[0].FirstRow, b.GetFile().Files[0].EndRow = cut, 5000
	return []*planv1.Source{a, b}
}
