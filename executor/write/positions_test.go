package write_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/deletes"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

const (
	positionDeletes = planv1.RowChanges_ROW_CHANGES_POSITION_DELETES
	vectors         = planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS
)

// changed is a table of one column, id, whose data files may have deletes.
type changed struct {
	t     *testing.T
	dir   string
	rows  int64 // of each file
	files []*planv1.PinnedFile
	gone  []map[uint64]bool // of each file, before
	own   []map[uint64]bool // of these those in position delete files of one data file
}

func newChanged(t *testing.T, files int, rows int64) *changed {
	c := &changed{t: t, dir: t.TempDir(), rows: rows}
	for n := range files {
		p := filepath.Join(c.dir, fmt.Sprintf("f%d.parquet", n))
		query(t, fmt.Sprintf("COPY (SELECT %d + i AS id FROM range(%d) r(i)) TO %s (FORMAT PARQUET, FIELD_IDS {id: 1})", int64(n)*rows, rows, duckdb.Literal(p)))
		f := pinned(t, p)
		f.Name, f.RecordCount = "file://"+p, rows
		f.FirstRowId, f.DataSequenceNumber = proto64(int64(n)*rows+1000), 1
		c.files, c.gone = append(c.files, f), append(c.gone, map[uint64]bool{})
		c.own = append(c.own, map[uint64]bool{})
	}
	return c
}

// fresh is some of its files without deletes.
func (c *changed) fresh(files int) *changed {
	out := &changed{t: c.t, dir: c.dir, rows: c.rows}
	for _, f := range c.files[:files] {
		f := proto.CloneOf(f)
		f.Deletes = nil
		out.files, out.gone = append(out.files, f), append(out.gone, map[uint64]bool{})
		out.own = append(out.own, map[uint64]bool{})
	}
	return out
}

func proto64(n int64) *int64 { return &n }

// before deletes rows of a file, by a deletion vector or by a position delete file, which may be about that data file alone.
func (c *changed) before(n int, vector, alone bool, rows ...uint64) {
	b := roaring64.BitmapOf(rows...)
	d := &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_POSITION_DELETES, Path: filepath.Join(c.dir, uuid.NewString()), RecordCount: int64(b.GetCardinality())}
	var err error
	if vector {
		d.Content = planv1.FileContent_FILE_CONTENT_DELETION_VECTOR
		var p *deletes.Puffin
		p, err = deletes.CreatePuffin(d.GetPath())
		require.NoError(c.t, err)
		at, perr := p.Add(c.files[n].GetName(), b)
		require.NoError(c.t, perr)
		d.ContentOffset, d.ContentSize = at.Offset, at.Size
		d.SizeBytes, err = p.Close()
	} else {
		d.SizeBytes, err = deletes.WritePositions(d.GetPath(), c.files[n].GetName(), b, compress.Codecs.Snappy)
	}
	require.NoError(c.t, err)
	c.files[n].Deletes = append(c.files[n].Deletes, d)
	if alone {
		d.Name = "file://" + d.GetPath()
	}
	for _, row := range rows {
		c.gone[n][row] = true
		if alone {
			c.own[n][row] = true
		}
	}
}

// change deletes and updates rows, by their ids; an update negates the id.
func (c *changed) change(how planv1.RowChanges, lineage bool, deleted, updated []int64) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	fields := []*planv1.Field{field(1, "id", "long")}
	tb := newTable(c.t, fields...)
	tb.WriteSpec.Files.Codec = "zstd"
	w := tb.write()
	w.RowLineage = lineage
	head, tail := "_file, _pos, CASE WHEN id IN ("+list(deleted)+") THEN 0 ELSE 1 END, ", "-id FROM v WHERE id IN ("+list(append(deleted, updated...))+")"
	input := int32(3)
	tb.task.Sql = "SELECT c0 FROM ch WHERE _op <> 1"
	if lineage {
		head, input, tb.task.Sql = head+"_row_id, ", 4, "SELECT c0, _row_id, CAST(NULL AS BIGINT) FROM ch WHERE _op <> 1"
	}
	w.Rewrite = &planv1.RewriteFiles{
		View: "v", Changes: how, PositionsSql: "SELECT _file, _pos FROM ch WHERE _file IS NOT NULL",
		ChangesSql: "SELECT _file, count(*) FILTER (WHERE _op = 1), count(*) FILTER (WHERE _op = 2) FROM ch GROUP BY _file",
		Changed: &planv1.ChangedRows{Table: "ch", Sql: "SELECT " + head + tail, Clauses: []*planv1.ChangeClause{
			{Op: planv1.RowOp_ROW_OP_DELETE}, {Op: planv1.RowOp_ROW_OP_UPDATE, Columns: []*planv1.OutputColumn{{Field: fields[0], Input: input, CastType: "BIGINT"}}},
		}},
	}
	scan := &planv1.TableScan{Schema: &planv1.Schema{Fields: fields}, Files: c.files, Table: "lake.s.t", WithPositions: true, RowLineage: lineage}
	tb.task.Sources = []*planv1.Source{{View: "v", Alias: "v", Kind: &planv1.Source_Table{Table: scan}}}
	scratch := c.t.TempDir()
	inst := tb.bound(c.t, scratch)
	return write.Rewrite(c.t.Context(), inst, tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
}

func list(ids []int64) string {
	out := []string{"NULL"}
	for _, id := range ids {
		out = append(out, strconv.FormatInt(id, 10))
	}
	return strings.Join(out, ", ")
}

// rowsOf reads a delete file that the write has made.
func (c *changed) rowsOf(f *planv1.DataFile) []uint64 {
	n := slices.IndexFunc(c.files, func(p *planv1.PinnedFile) bool { return p.GetName() == f.GetReferencedDataFile() })
	require.GreaterOrEqual(c.t, n, 0)
	target := &planv1.PinnedFile{Path: c.files[n].GetPath(), Name: c.files[n].GetName(), Deletes: []*planv1.DeleteFile{{
		Content: f.GetContent(), Path: path(f.GetPath()), SizeBytes: f.GetSizeBytes(), ContentOffset: f.GetContentOffset(), ContentSize: f.GetContentSize(), RecordCount: f.GetRecordCount(),
	}}}
	got, err := duckdb.DeletedPositions(context.Background(), []*planv1.PinnedFile{target})
	require.NoError(c.t, err)
	require.EqualValues(c.t, f.GetRecordCount(), got[target.GetPath()].GetCardinality())
	st, err := os.Stat(path(f.GetPath()))
	require.NoError(c.t, err)
	require.Equal(c.t, st.Size(), f.GetSizeBytes())
	return got[target.GetPath()].ToArray()
}

// Whatever was deleted before, and whatever a statement deletes and updates: the delete files say what a model says.
func TestMergeOnRead_AsAModel(t *testing.T) {
	const rows = 12
	all := newChanged(t, 3, rows)
	rapid.Check(t, func(rt *rapid.T) {
		c := all.fresh(rapid.IntRange(1, 3).Draw(rt, "files"))
		how := rapid.SampledFrom([]planv1.RowChanges{positionDeletes, vectors}).Draw(rt, "how")
		wantDeleted, wantUpdated := map[int][]uint64{}, map[int][]uint64{}
		var deleted, updated []int64
		for n := range c.files {
			state := rapid.SliceOfN(rapid.IntRange(0, 3), rows, rows).Draw(rt, "rows") // 0: stays, 1: gone before, 2: is deleted, 3: is updated
			if rapid.IntRange(0, 3).Draw(rt, "whole") == 0 {
				for i := range state {
					state[i] = 1 + min(state[i], 1)
				}
			}
			var old []uint64
			for i, s := range state {
				id := int64(n*rows + i)
				switch s {
				case 1:
					old = append(old, uint64(i))
				case 2:
					deleted, wantDeleted[n] = append(deleted, id), append(wantDeleted[n], uint64(i))
				case 3:
					updated, wantUpdated[n] = append(updated, id), append(wantUpdated[n], uint64(i))
				}
			}
			switch kind := rapid.IntRange(0, 2).Draw(rt, "before"); {
			case len(old) == 0:
			case kind == 0 && how == vectors:
				c.before(n, true, false, old...)
			case kind == 1 && len(old) > 1:
				c.before(n, false, true, old[:1]...)
				c.before(n, false, rapid.Bool().Draw(rt, "alone"), old[1:]...)
			default:
				c.before(n, false, rapid.Bool().Draw(rt, "alone"), old...)
			}
		}
		files, replaced, err := c.change(how, false, deleted, updated)
		require.NoError(rt, err)

		got := map[int][]uint64{}
		var fresh []int64
		for _, f := range files {
			if f.GetContent() == planv1.FileContent_FILE_CONTENT_UNSPECIFIED {
				for _, id := range readBack(t, []*planv1.DataFile{f}, "id") {
					v, err := strconv.ParseInt(id, 10, 64)
					require.NoError(rt, err)
					fresh = append(fresh, -v)
				}
				continue
			}
			n := slices.IndexFunc(c.files, func(p *planv1.PinnedFile) bool { return p.GetName() == f.GetReferencedDataFile() })
			require.NotContains(rt, got, n, "one delete file for each data file")
			got[n] = c.rowsOf(f)
			require.EqualValues(rt, len(wantUpdated[n]), f.GetUpdatedRows())
			want := slices.Concat(wantDeleted[n], wantUpdated[n])
			carried, content := c.own[n], planv1.FileContent_FILE_CONTENT_POSITION_DELETES
			if how == vectors {
				carried, content = c.gone[n], planv1.FileContent_FILE_CONTENT_DELETION_VECTOR
			} else {
				var names []string
				for _, d := range c.files[n].GetDeletes() {
					if d.GetName() != "" {
						names = append(names, d.GetName())
					}
				}
				require.Equal(rt, names, f.GetMerged())
			}
			want = slices.AppendSeq(want, maps.Keys(carried))
			slices.Sort(want)
			require.Equal(rt, want, got[n])
			require.EqualValues(rt, len(carried), f.GetCarriedRows())
			require.Equal(rt, content, f.GetContent())
		}
		slices.Sort(fresh)
		slices.Sort(updated)
		require.Equal(rt, updated, fresh)
		for n, f := range c.files {
			left := rows - len(c.gone[n])
			touched := len(wantDeleted[n])+len(wantUpdated[n]) > 0
			whole := touched && len(wantDeleted[n]) == left
			at := slices.IndexFunc(replaced, func(r *planv1.ReplacedFile) bool { return r.GetPath() == f.GetName() })
			require.Equal(rt, whole, at >= 0, "a file of which every row is deleted goes")
			require.Equal(rt, touched && !whole, got[n] != nil)
			if whole {
				require.EqualValues(rt, left, replaced[at].GetRecordCount())
				require.EqualValues(rt, left, replaced[at].GetDeletedRows())
			}
		}
	})
}

// Updated rows keep their ids, and get the sequence number of the commit.
func TestMergeOnRead_KeepsRowIDs(t *testing.T) {
	c := newChanged(t, 2, 10)
	files, replaced, err := c.change(vectors, true, []int64{3}, []int64{4, 15})
	require.NoError(t, err)
	require.Empty(t, replaced)
	require.Len(t, files, 3)
	require.Equal(t, []string{"-15 1015 <nil>", "-4 1004 <nil>"}, slices.Sorted(slices.Values(readBack(t, files[:1], "id, _row_id, _last_updated_sequence_number"))))
	require.Equal(t, files[1].GetPath(), files[2].GetPath(), "one Puffin file for the task")
	require.Equal(t, []uint64{3, 4}, c.rowsOf(files[1]))
	require.Equal(t, []uint64{5}, c.rowsOf(files[2]))
	raw, err := os.ReadFile(path(files[1].GetPath()))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(raw, []byte("PFA1")) && bytes.HasSuffix(raw, []byte("PFA1")))
}

// Many rows of a file, through several batches and row groups.
func TestMergeOnRead_ManyRows(t *testing.T) {
	c := newChanged(t, 1, 3_000_000)
	c.before(0, true, false, 1, 3)
	for how, rows := range map[planv1.RowChanges]int64{positionDeletes: 1_499_998, vectors: 1_500_000} {
		files, _, err := c.rest(how)
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.Equal(t, rows, files[0].GetRecordCount())
		require.Len(t, c.rowsOf(files[0]), int(rows))
	}
}

// rest deletes every second row.
func (c *changed) rest(how planv1.RowChanges) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	tb := newTable(c.t, field(1, "id", "long"))
	tb.write().Rewrite = &planv1.RewriteFiles{
		View: "v", Changes: how, PositionsSql: "SELECT _file, _pos FROM ch", ChangesSql: "SELECT _file, count(*), 0 FROM ch GROUP BY _file",
		Changed: &planv1.ChangedRows{Table: "ch", Sql: "SELECT _file, _pos, 0 FROM v WHERE id % 2 = 1", Clauses: []*planv1.ChangeClause{{Op: planv1.RowOp_ROW_OP_DELETE}}},
	}
	scan := &planv1.TableScan{Schema: tb.Schema, Files: c.files, Table: "lake.s.t", WithPositions: true}
	tb.task.Sources = []*planv1.Source{{View: "v", Alias: "v", Kind: &planv1.Source_Table{Table: scan}}}
	scratch := c.t.TempDir()
	return write.Rewrite(c.t.Context(), tb.bound(c.t, scratch), tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
}

// A row that is found twice, a deletion vector that is damaged: nothing is written.
func TestMergeOnRead_Refuses(t *testing.T) {
	for name, tc := range map[string]struct {
		positions string
		spoil     bool
		want      string
	}{
		"a row twice":         {positions: "SELECT _file, 1 FROM ch", want: "a row was found twice"},
		"another file":        {positions: "SELECT 'file:///else', _pos FROM ch", want: "of a file that does not change"},
		"no position":         {positions: "SELECT _file, NULL FROM ch", want: "of a file that does not change"},
		"rows gone already":   {positions: "SELECT _file, row_number() OVER (ORDER BY _pos) - 1 FROM ch", want: "a row that is deleted already was found"},
		"a damaged vector":    {positions: "SELECT _file, _pos FROM ch", spoil: true, want: "damaged deletion vector"},
		"too few of the file": {positions: "SELECT _file, _pos FROM ch LIMIT 1", want: "a row was found twice"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChanged(t, 1, 10)
			c.before(0, true, false, 0, 1)
			tb := newTable(t, field(1, "id", "long"))
			tb.write().Rewrite = &planv1.RewriteFiles{
				View: "v", Changes: vectors, PositionsSql: tc.positions, ChangesSql: "SELECT _file, count(*), 0 FROM ch GROUP BY _file",
				Changed: &planv1.ChangedRows{Table: "ch", Sql: "SELECT _file, _pos, 0 FROM v WHERE id IN (4, 6)", Clauses: []*planv1.ChangeClause{{Op: planv1.RowOp_ROW_OP_DELETE}}},
			}
			scan := &planv1.TableScan{Schema: tb.Schema, Files: c.files, Table: "lake.s.t", WithPositions: true}
			tb.task.Sources = []*planv1.Source{{View: "v", Alias: "v", Kind: &planv1.Source_Table{Table: scan}}}
			scratch := t.TempDir()
			inst := tb.bound(t, scratch)
			if tc.spoil {
				file := c.files[0].GetDeletes()[0].GetPath()
				raw, err := os.ReadFile(file)
				require.NoError(t, err)
				raw[c.files[0].GetDeletes()[0].GetContentOffset()+10] ^= 1
				require.NoError(t, os.WriteFile(file, raw, 0o600))
			}
			_, _, err := write.Rewrite(t.Context(), inst, tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
			require.ErrorContains(t, err, tc.want)
			require.NoDirExists(t, path(tb.write().GetPrefix()))
		})
	}
}
