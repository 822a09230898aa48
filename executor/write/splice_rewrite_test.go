package write_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// rewriting is a task that writes files of a table anew, all of whose rows stay.
func rewriting(t testing.TB, files ...string) *table {
	t.Helper()
	tb := plainTable(t)
	scan := &planv1.TableScan{
		Table: "c.s.t", WithPositions: true, Schema: &planv1.Schema{Fields: []*planv1.Field{field(1, "id", "long"), field(2, "name", "string"), field(3, "day", "date")}},
	}
	for _, f := range files {
		p := pinned(t, f)
		p.MtimeNanos, p.Name = 0, "file://"+f
		scan.Files = append(scan.Files, p)
	}
	tb.task.Sources = []*planv1.Source{{View: "v", Kind: &planv1.Source_Table{Table: scan}}}
	tb.task.Sql = "SELECT id, name, day FROM v"
	tb.write().Rewrite = &planv1.RewriteFiles{View: "v"}
	return tb
}

func (tb *table) rewrite(t testing.TB) ([]*planv1.DataFile, []*planv1.ReplacedFile) {
	t.Helper()
	scratch := t.TempDir()
	files, replaced, err := write.Rewrite(t.Context(), tb.bound(t, scratch), tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
	require.NoError(t, err)
	return files, replaced
}

const withIDs = "FIELD_IDS {id: 1, name: 2, day: 3}"

// Files that are rewritten as they are have their row groups copied into one, unless these are small.
func TestSplice_Rewrites(t *testing.T) {
	part := func(n, rows, group int) string {
		return parquetFile(t, fmt.Sprintf("SELECT r + %d AS id, 'name ' || md5(r::VARCHAR) AS name, DATE '2020-01-01' AS day FROM range(%d) AS q(r)", n*1_000_000, rows),
			fmt.Sprintf("COMPRESSION zstd, ROW_GROUP_SIZE %d, ", group)+withIDs)
	}
	a, b, small, fine := part(1, 60000, 20480), part(2, 20480, 20480), part(3, 100, 2048), part(4, 40960, 4096)
	tb := rewriting(t, a, b, small, fine)
	files, replaced := tb.rewrite(t)
	require.Len(t, replaced, 4)
	require.EqualValues(t, 80480, copiedRows(t, files, isCopy), "two files have row groups of a good size")
	require.Len(t, files, 2)
	got := sortedRows(t, files, "sum(hash(id, name, day))")

	tb = rewriting(t, a, b, small, fine)
	tb.write().Splice = false
	anew, _ := tb.rewrite(t)
	require.Zero(t, copiedRows(t, anew, isCopy))
	require.Equal(t, sortedRows(t, anew, "sum(hash(id, name, day))"), got)

	tb = rewriting(t, a, b)
	tb.task.Sql = "SELECT id, name, day, _row_id, _last_updated_sequence_number FROM v"
	tb.write().RowLineage = true
	first := int64(0)
	for _, f := range tb.task.Sources[0].GetTable().GetFiles() {
		id := first
		f.FirstRowId, f.DataSequenceNumber = &id, 1
		first += 60000
	}
	tb.task.Sources[0].GetTable().RowLineage = true
	files, _ = tb.rewrite(t)
	require.Zero(t, copiedRows(t, files, isCopy), "the rows keep their ids")
	require.Equal(t, []string{"80480 80480 0 80479"}, sortedRows(t, files, "count(DISTINCT _row_id), min(_row_id), max(_row_id)"))
}
