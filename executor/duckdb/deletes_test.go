package duckdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/deletes"
)

// vectorBlob is a deletion vector as Iceberg's Puffin specification has it.
func vectorBlob(t testing.TB, positions ...uint64) []byte {
	t.Helper()
	b := roaring64.BitmapOf(positions...)
	var bits bytes.Buffer
	_, err := b.WriteTo(&bits)
	require.NoError(t, err)
	body := append(bytes.Clone(deletes.VectorMagic), bits.Bytes()...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(out, body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
}

// vectorFile writes a blob with something in front of it.
func vectorFile(t testing.TB, path string, blob []byte, rows int) *planv1.DeleteFile {
	t.Helper()
	raw := append([]byte("PFA1"), blob...)
	require.NoError(t, os.WriteFile(path, append(raw, "PFA1"...), 0o600))
	return &planv1.DeleteFile{
		Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, Path: path, SizeBytes: int64(len(raw) + 4), ContentOffset: 4, ContentSize: int64(len(blob)), RecordCount: int64(rows),
	}
}

func positionsFile(t testing.TB, dir, name, values string) *planv1.DeleteFile {
	t.Helper()
	write(t, dir, `COPY (SELECT file_path, CAST(pos AS BIGINT) AS pos FROM (VALUES `+values+`) t(file_path, pos)) TO '$DIR/`+name+`' (FIELD_IDS {file_path:2147483546, pos:2147483545})`)
	return &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_POSITION_DELETES, Path: filepath.Join(dir, name)}
}

func equalityFile(dir, name string, ids ...int32) *planv1.DeleteFile {
	return &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_EQUALITY_DELETES, Path: filepath.Join(dir, name), EqualityIds: ids}
}

// dataFiles writes n files of ten rows each: id, from 0 up, and a name that is NULL for every third.
func dataFiles(t testing.TB, dir string, n int) []*planv1.PinnedFile {
	t.Helper()
	var out []*planv1.PinnedFile
	for i := range n {
		write(t, dir, fmt.Sprintf(`COPY (SELECT range + %d AS id, CASE WHEN range %% 3 > 0 THEN 'n' || range END AS name FROM range(10)) TO '$DIR/f%d.parquet' (FIELD_IDS {id:1, name:2}, ROW_GROUP_SIZE 2048)`, i*10, i))
		f := pin(t, fmt.Sprintf("%s/f%d.parquet", dir, i))
		f.Name = "file://" + f.GetPath()
		out = append(out, f)
	}
	return out
}

var idAndName = []*planv1.Field{fld(1, "id", i64), fld(2, "name", str)}

func ids(t testing.TB, inst *Instance) string {
	t.Helper()
	return text(t, inst, "SELECT coalesce(string_agg(id, ' ' ORDER BY id), '-') AS ids FROM v")[0]
}

func TestTableScan_LeavesDeletedRowsOut(t *testing.T) {
	dir := t.TempDir()
	f := dataFiles(t, dir, 4)
	uri := func(n int) string { return "'" + f[n].GetName() + "'" }
	both := positionsFile(t, dir, "both.parquet", "("+uri(0)+", 0), ("+uri(0)+", 9), ("+uri(1)+", 5), ('file:///else', 1)")
	again := positionsFile(t, dir, "again.parquet", "("+uri(0)+", 9), ("+uri(0)+", 4)")
	f[0].Deletes = []*planv1.DeleteFile{both, again}
	f[1].Deletes = []*planv1.DeleteFile{both}
	f[2].Deletes = []*planv1.DeleteFile{vectorFile(t, dir+"/dv.puffin", vectorBlob(t, 1, 2, 3, 4, 5, 6, 7, 8), 8)}
	inst := bind(t, table("v", "t", idAndName, f))
	require.Equal(t, "{'string_agg': 1 2 3 5 6 7 8 10 11 12 13 14 16 17 18 19 20 29 30 31 32 33 34 35 36 37 38 39}", text(t, inst, "SELECT string_agg(id, ' ' ORDER BY id) AS string_agg FROM v")[0])
	require.Equal(t, "{'n': 28}", text(t, inst, "SELECT count(*) AS n FROM v")[0])

	// Ranges of rows count from the file's first row, wherever they begin.
	f[0].FirstRow, f[0].EndRow = 3, 10
	f[2].FirstRow, f[2].EndRow = 0, 9
	inst = bind(t, table("v", "t", idAndName, f[:3]))
	require.Contains(t, ids(t, inst), " 3 5 6 7 8 10 11 12 13 14 16 17 18 19 20}")
}

// A table may have columns of the names that DuckDB has for its own of every file.
func TestTableScan_ColumnsCalledAsDuckDBsOwn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i AS id, i * 10 AS file_row_number, 'n' || i AS \"FileName\", 'x' AS filename_ FROM range(10) r(i)) TO '$DIR/a.parquet' (FIELD_IDS {id: 1, file_row_number: 2, FileName: 3, filename_: 4})")
	f := &planv1.PinnedFile{Path: dir + "/a.parquet", Name: "file://" + dir + "/a.parquet", FirstRow: 2, EndRow: 8}
	f.Deletes = []*planv1.DeleteFile{positionsFile(t, dir, "p.parquet", "('"+f.Name+"', 3), ('"+f.Name+"', 0)")}
	write(t, dir, "COPY (SELECT 50::BIGINT AS file_row_number) TO '$DIR/eq.parquet' (FIELD_IDS {file_row_number: 2})")
	f.Deletes = append(f.Deletes, equalityFile(dir, "eq.parquet", 2))
	src := table("v", "t", []*planv1.Field{fld(1, "id", i64), fld(2, "file_row_number", i64), fld(3, "FileName", str), fld(4, "filename_", str)}, []*planv1.PinnedFile{f})
	src.GetTable().WithPositions = true
	inst := bind(t, src)
	require.Equal(t, []string{
		"{'id': 2, 'file_row_number': 20, 'FileName': n2, 'filename_': x, 'pos': 2, 'f': true}", "{'id': 4, 'file_row_number': 40, 'FileName': n4, 'filename_': x, 'pos': 4, 'f': true}",
		"{'id': 6, 'file_row_number': 60, 'FileName': n6, 'filename_': x, 'pos': 6, 'f': true}", "{'id': 7, 'file_row_number': 70, 'FileName': n7, 'filename_': x, 'pos': 7, 'f': true}",
	}, text(t, inst, "SELECT * EXCLUDE ("+fileColumn+", "+positionColumn+"), "+positionColumn+" AS pos, "+fileColumn+" = '"+f.Name+"' AS f FROM v ORDER BY id"))
}

func TestTableScan_EqualityDeletes(t *testing.T) {
	dir := t.TempDir()
	f := dataFiles(t, dir, 2)
	write(t, dir,
		`COPY (SELECT 3::INT AS was) TO '$DIR/id.parquet' (FIELD_IDS {was:1})`, // another name, a narrower type
		`COPY (SELECT * FROM (VALUES (6::BIGINT, NULL), (7, 'x'), (11, 'n1')) t(id, name)) TO '$DIR/both.parquet' (FIELD_IDS {id:1, name:2})`,
		`COPY (SELECT NULL::VARCHAR AS name) TO '$DIR/null.parquet' (FIELD_IDS {name:2})`,
		`COPY (SELECT NULL::BIGINT AS gone) TO '$DIR/gone.parquet' (FIELD_IDS {gone:9})`)
	f[0].Deletes = []*planv1.DeleteFile{equalityFile(dir, "id.parquet", 1), equalityFile(dir, "both.parquet", 2, 1)}
	f[1].Deletes = []*planv1.DeleteFile{equalityFile(dir, "both.parquet", 1, 2), equalityFile(dir, "null.parquet", 2)}
	inst := bind(t, table("v", "t", idAndName, f))
	require.Contains(t, ids(t, inst), " 0 1 2 4 5 7 8 9 12 14 15 17 18}")
	// The columns are not those that are read; positions and ranges hold beside them.
	f[0].Deletes = append(f[0].Deletes, positionsFile(t, dir, "p.parquet", "('"+f[0].GetName()+"', 0)"))
	f[0].FirstRow, f[0].EndRow = 0, 5
	src := table("v", "t", idAndName[:1], f[:1])
	src.GetTable().WithPositions = true
	inst = bind(t, src)
	require.Contains(t, ids(t, inst), " 1 2 4}")
	require.Equal(t, fmt.Sprintf("{'_file': '%s', '_pos': 4}", f[0].GetName()), text(t, inst, "SELECT _file, _pos FROM v WHERE id = 4")[0])
	// A column that neither the table nor the data file has is NULL in every row.
	f[0].Deletes = []*planv1.DeleteFile{equalityFile(dir, "gone.parquet", 9)}
	require.Equal(t, "{'ids': -}", ids(t, bind(t, table("v", "t", idAndName, f[:1]))))
	f[0].Deletes = []*planv1.DeleteFile{equalityFile(dir, "gone.parquet", 1)}
	err := locked(t, table("v", "t", idAndName, f[:1])).BindSources(context.Background(), []*planv1.Source{table("v", "t", idAndName, f[:1])})
	require.ErrorContains(t, err, "lacks the column of field id 1")
}

func TestTableScan_PositionsAndRowLineage(t *testing.T) {
	dir := t.TempDir()
	f := dataFiles(t, dir, 3)
	write(t, dir, `COPY (SELECT 100::BIGINT AS id, 'a' AS name, 7::BIGINT AS _row_id, NULL::BIGINT AS seq UNION ALL SELECT 101, 'b', NULL, 2) TO '$DIR/f2.parquet'
		(FIELD_IDS {id:1, name:2, _row_id:2147483540, seq:2147483539})`)
	f[2] = pin(t, dir+"/f2.parquet")
	f[2].Name = "file:" + f[2].GetPath()
	first := func(n int64) *int64 { return &n }
	f[0].FirstRowId, f[0].DataSequenceNumber = first(1000), 3
	f[2].FirstRowId, f[2].DataSequenceNumber = first(5000), 9
	f[0].Deletes = []*planv1.DeleteFile{vectorFile(t, dir+"/dv.puffin", vectorBlob(t, 0, 1), 2)}
	src := table("v", "t", idAndName, f)
	src.GetTable().WithPositions, src.GetTable().RowLineage = true, true
	inst := bind(t, src)
	require.Equal(t, []string{
		"{'id': 2, '_pos': 2, '_row_id': 1002, '_last_updated_sequence_number': 3}",
		"{'id': 12, '_pos': 2, '_row_id': NULL, '_last_updated_sequence_number': NULL}",
		"{'id': 100, '_pos': 0, '_row_id': 7, '_last_updated_sequence_number': 9}",
		"{'id': 101, '_pos': 1, '_row_id': 5001, '_last_updated_sequence_number': 2}",
	}, text(t, inst, "SELECT id, _pos, _row_id, _last_updated_sequence_number FROM v WHERE id IN (0, 2, 12, 100, 101) ORDER BY id"))
	require.Equal(t, "{'n': 3, 'f': '"+f[2].GetName()+"'}", text(t, inst, "SELECT count(DISTINCT _file) AS n, max(_file) FILTER (id = 100) AS f FROM v")[0])
	// The columns are there without files too.
	src.GetTable().Files = nil
	cols, err := bind(t, src).Describe(context.Background(), "SELECT * FROM v")
	require.NoError(t, err)
	require.Len(t, cols, 6)
	// A table with such a column of its own is refused.
	src = table("v", "t", append([]*planv1.Field{fld(5, "_POS", i64)}, idAndName...), f)
	src.GetTable().WithPositions = true
	require.Error(t, locked(t, src).BindSources(context.Background(), []*planv1.Source{src}))
}

// The same file may have other deletes in another view: a table beside an older version of itself.
func TestTableScan_ViewsHaveDeletesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	now := dataFiles(t, dir, 1)
	then := []*planv1.PinnedFile{pin(t, now[0].GetPath())}
	then[0].Name = now[0].GetName()
	now[0].Deletes = []*planv1.DeleteFile{vectorFile(t, dir+"/dv.puffin", vectorBlob(t, 0, 1, 2, 3, 4), 5)}
	then[0].Deletes = []*planv1.DeleteFile{positionsFile(t, dir, "p.parquet", "('"+then[0].GetName()+"', 9)")}
	inst := bind(t, table("v", "t", idAndName, now), table("w", "t", idAndName, then))
	require.Equal(t, "{'a': 5, 'b': 9}", text(t, inst, "SELECT (SELECT count(*) FROM v) AS a, (SELECT count(*) FROM w) AS b")[0])
	require.Equal(t, "{'n': 4}", text(t, inst, "SELECT count(*) AS n FROM v JOIN w USING (id)")[0])
}

func TestTableScan_DamagedDeletesAreNamed(t *testing.T) {
	dir := t.TempDir()
	good := vectorBlob(t, 1, 2, 1<<33)
	flip := bytes.Clone(good)
	flip[20] ^= 1
	sealed := func(body []byte) []byte { // with a right checksum
		out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		return binary.BigEndian.AppendUint32(append(out, body...), crc32.ChecksumIEEE(body))
	}
	for name, c := range map[string]struct {
		blob []byte
		rows int
		want string
	}{
		"flipped bit": {flip, 3, "its checksum differs"}, "wrong count": {good, 4, "it has 3 positions, the table says 4"}, "cut": {good[:len(good)-6], 3, "names a length"},
		"other magic": {sealed([]byte("not a vector at all")), 3, "does not begin as one"}, "short": {[]byte("x"), 0, "a blob of 1 bytes"},
		"hostile count": {sealed(append(bytes.Clone(deletes.VectorMagic), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)), 3, "damaged deletion vector"},
		"tail":          {sealed(append(bytes.Clone(good[4:len(good)-4]), 0, 0)), 3, "2 bytes follow the bitmap"},
	} {
		t.Run(name, func(t *testing.T) {
			f := dataFiles(t, dir, 1)
			f[0].Deletes = []*planv1.DeleteFile{vectorFile(t, dir+"/dv.puffin", c.blob, c.rows)}
			src := table("v", "t", idAndName, f)
			err := locked(t, src).BindSources(context.Background(), []*planv1.Source{src})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "dv.puffin")
			require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, PlanError(err).GetClass())
		})
	}
	write(t, dir, `COPY (SELECT 'a' AS file_path, 'b' AS pos) TO '$DIR/odd.parquet'`, `COPY (SELECT 'a' AS file_path, NULL::BIGINT AS pos) TO '$DIR/null.parquet'`)
	for file, want := range map[string]string{"odd.parquet": "no columns file_path and pos", "null.parquet": "a path or a position is missing", "gone.parquet": "is not there"} {
		f := dataFiles(t, dir, 1)
		f[0].Name = "a"
		f[0].Deletes = []*planv1.DeleteFile{{Content: planv1.FileContent_FILE_CONTENT_POSITION_DELETES, Path: filepath.Join(dir, file)}}
		src := table("v", "t", idAndName, f)
		err := locked(t, src).BindSources(context.Background(), []*planv1.Source{src})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, file)
	}
}

// FuzzVector: no bytes make the decoder panic.
func FuzzVector(f *testing.F) {
	f.Add(vectorBlob(f, 1, 2, 3)[8:])
	f.Fuzz(func(_ *testing.T, bits []byte) {
		body := append(bytes.Clone(deletes.VectorMagic), bits...)
		blob := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		_, _ = decodeVector(binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(body)))
	})
}
