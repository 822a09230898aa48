package duckdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	ident "github.com/signet-io/signet/internal/pin"
)

func bindError(t *testing.T, sources ...*planv1.Source) error {
	t.Helper()
	inst := locked(t, sources...)
	for _, s := range sources {
		if err := inst.CheckFiles(context.Background(), s); err != nil {
			return err
		}
	}
	return inst.BindSources(context.Background(), sources)
}

func requireUser(t *testing.T, err error, parts ...string) {
	t.Helper()
	require.Error(t, err)
	pe := PlanError(err)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, pe.Class, err)
	for _, p := range parts {
		require.Contains(t, pe.Message, p)
	}
}

// X5: every name is taken as it is, never as a pattern; decoys lie beside.
func TestFiles_OddNames(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		"data[1].parquet", "data1.parquet", "a{b,c}d.parquet", "abd.parquet", "qu?x.parquet", "qux.parquet", "st*r.parquet", "stair.parquet",
		"100%.parquet", "x%20y.parquet", "x y.parquet", "it's.parquet", "ü.parquet", "日本.parquet", "dir [ 1 ]/in.parquet", "k=v/in.parquet", "#frag.parquet",
		"a+b.parquet", `back\slash.parquet`, "**.parquet", "[!a]-].parquet", "x]y[z*/d.parquet", "new\nline.parquet", `dou"ble.parquet`, "semi;colon.parquet",
		"dir  1 /in.parquet", "dir   /in.parquet",
	}
	write(t, dir, "COPY (SELECT 0 AS v) TO '$DIR/0.parquet'")
	for i, n := range names {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, n)), 0o755))
		write(t, dir, strings.ReplaceAll("COPY (SELECT # AS v FROM range(#)) TO '$DIR/tmp' (FORMAT parquet)", "#", string(rune('0'+(i+1)/10))+string(rune('0'+(i+1)%10))))
		require.NoError(t, os.Rename(dir+"/tmp", filepath.Join(dir, n)))
	}
	for i, n := range names {
		path := filepath.Join(dir, n)
		f := pin(t, path)
		f.Name = n
		inst := bind(t, files("v", "read_parquet", []*planv1.PinnedFile{f}))
		require.Equal(t, []string{"{'v': " + itoa(i+1) + ", 'n': " + itoa(i+1) + "}"}, text(t, inst, "SELECT v, count(*) AS n FROM v GROUP BY 1"), n)
	}
	all := pins(t, func() (out []string) {
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
		return out
	}()...)
	src := files("v", "read_parquet", all)
	src.GetFile().Options = map[string]string{"filename": "true", "hive_partitioning": "false"}
	inst := bind(t, src)
	require.Equal(t, []string{"{'n': " + itoa(len(names)*(len(names)+1)/2) + ", 'f': " + itoa(len(names)) + "}"},
		text(t, inst, "SELECT count(*) n, count(DISTINCT filename) f FROM v"))
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

func TestFiles_BackslashAndPatternIsRefused(t *testing.T) { // X5
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT 0 AS v) TO '$DIR/tmp' (FORMAT parquet)")
	require.NoError(t, os.Rename(dir+"/tmp", dir+`/a\[1].parquet`))
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+`/a\[1].parquet`))), `a\[1].parquet`)
}

func TestFiles_RowRanges(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i FROM range(1000) t(i)) TO '$DIR/a.parquet' (ROW_GROUP_SIZE 100)", "COPY (SELECT i + 1000 AS i FROM range(10) t(i)) TO '$DIR/b.parquet'")
	for _, cols := range [][]*planv1.Column{nil, {{Name: "i", EngineType: "BIGINT"}}} {
		a, a2, b := pin(t, dir+"/a.parquet"), pin(t, dir+"/a.parquet"), pin(t, dir+"/b.parquet")
		a.FirstRow, a.EndRow = 0, 3
		a2.FirstRow, a2.EndRow = 998, 1000
		src := files("v", "read_parquet", []*planv1.PinnedFile{a, a2, b})
		src.GetFile().Columns = cols
		inst := bind(t, src)
		require.Equal(t, []string{"{'i': 0}", "{'i': 1}", "{'i': 2}", "{'i': 998}", "{'i': 999}"}, text(t, inst, "FROM v WHERE i < 1000 ORDER BY i"))
		require.Len(t, text(t, inst, "FROM v"), 15)
	}
}

func TestFiles_ShareHasTheBoundColumns(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		"COPY (SELECT 1 AS a, 'x' AS b) TO '$DIR/1.parquet'", "COPY (SELECT 'y' AS b, 2 AS a, 3 AS extra) TO '$DIR/2.parquet'",
		"COPY (SELECT 3.5 AS a) TO '$DIR/3.parquet'", "COPY (SELECT 7 AS c) TO '$DIR/4.parquet'")
	// bound over 1 and 2: the columns of 1, in its order, also where a share holds 2 only
	src := files("v", "read_parquet", pins(t, dir+"/2.parquet"))
	src.GetFile().Columns = []*planv1.Column{{Name: "a", EngineType: "INTEGER"}, {Name: "b", EngineType: "VARCHAR"}}
	require.Equal(t, []string{"{'a': 2, 'b': y}"}, text(t, bind(t, src), "FROM v"))
	// union_by_name: a share of any files has all columns and the common type
	all := files("v", "read_parquet", pins(t, dir+"/1.parquet", dir+"/2.parquet", dir+"/3.parquet", dir+"/4.parquet"))
	all.GetFile().Options = map[string]string{"union_by_name": "true"}
	inst := bind(t, all)
	cols, err := inst.Describe(context.Background(), "FROM v")
	require.NoError(t, err)
	want := text(t, inst, "FROM v ORDER BY ALL")
	var got []string
	for _, n := range []string{"1", "2", "3", "4"} {
		share := files("v", "read_parquet", pins(t, dir+"/"+n+".parquet"))
		share.GetFile().Options, share.GetFile().Columns = all.GetFile().Options, cols
		got = append(got, text(t, bind(t, share), "FROM v")...)
	}
	require.ElementsMatch(t, want, got)
}

func TestFiles_UnionByNameKeepsEachFilesText(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT 1 AS a) TO '$DIR/1.parquet'", "COPY (SELECT 1.50::DOUBLE AS a) TO '$DIR/2.parquet'", "COPY (SELECT 'x' AS a) TO '$DIR/3.parquet'")
	src := files("v", "read_parquet", pins(t, dir+"/1.parquet", dir+"/2.parquet", dir+"/3.parquet"))
	src.GetFile().Options = map[string]string{"union_by_name": "true"}
	whole := text(t, bind(t, src), "FROM v ORDER BY a")
	share := files("v", "read_parquet", pins(t, dir+"/1.parquet", dir+"/2.parquet"))
	share.GetFile().Options, share.GetFile().Columns = src.GetFile().Options, []*planv1.Column{{Name: "a", EngineType: "VARCHAR"}}
	require.Equal(t, whole[:2], text(t, bind(t, share), "FROM v ORDER BY a"))
}

func TestFiles_TypesDiffer(t *testing.T) { // X7, X8 spirit
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT 1 AS a, 1 AS b) TO '$DIR/1.parquet'", "COPY (SELECT 1 AS a, 1.5 AS b) TO '$DIR/2.parquet'", "COPY (SELECT 1 AS a) TO '$DIR/3.parquet'",
		"COPY (SELECT 1 AS a, [{'x': 1}] AS b) TO '$DIR/4.parquet'", "COPY (SELECT 1 AS a, [{'x': 1::BIGINT}] AS b) TO '$DIR/5.parquet'")
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+"/1.parquet", dir+"/2.parquet"))), "2.parquet", `"b"`, "DECIMAL(2,1)", "INTEGER")
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+"/1.parquet", dir+"/3.parquet"))), "3.parquet", `"b"`)
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+"/4.parquet", dir+"/5.parquet"))), "5.parquet", `STRUCT("x" BIGINT)[]`)
	more := files("v", "read_parquet", pins(t, dir+"/3.parquet", dir+"/1.parquet"))
	requireUser(t, bindError(t, more), "1.parquet", `"b"`, "3.parquet", "lacks")
	more.GetFile().Options = map[string]string{"union_by_name": "true"}
	require.NoError(t, bindError(t, more))
}

func TestFiles_Changed(t *testing.T) { // S73
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT 1 AS a) TO '$DIR/1.parquet'")
	f := pin(t, dir+"/1.parquet")
	f.Name = "in/1.parquet"
	src := files("v", "read_parquet", []*planv1.PinnedFile{f})
	inst := bind(t, src)
	require.NoError(t, inst.CheckPins())
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(dir+"/1.parquet", later, later))
	requireUser(t, inst.CheckPins(), "in/1.parquet", "changed", "last written")
	requireUser(t, bindError(t, src), "in/1.parquet", "changed")
	f.SizeBytes++
	requireUser(t, inst.CheckPins(), fmt.Sprintf("%d bytes then, %d now", f.SizeBytes, f.SizeBytes-1))
	require.NoError(t, os.Remove(dir+"/1.parquet"))
	requireUser(t, inst.CheckPins(), "in/1.parquet", "gone")
	requireUser(t, bindError(t, src), "in/1.parquet", "gone")
}

func TestFiles_ReplacedWithSizeAndTime(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/1.csv"
	mustWriteFile(t, path, "a\n1\n")
	st, err := os.Stat(path)
	require.NoError(t, err)
	f := pin(t, path)
	f.Inode, f.CtimeNanos = ident.Of(st)
	src := files("v", "read_csv", []*planv1.PinnedFile{f})
	inst := bind(t, src)
	require.NoError(t, inst.CheckPins())
	mustWriteFile(t, dir+"/other", "a\n2\n")
	require.NoError(t, os.Chtimes(dir+"/other", st.ModTime(), st.ModTime()))
	require.NoError(t, os.Rename(dir+"/other", path))
	requireUser(t, inst.CheckPins(), "1.csv", "another file has its name")
	f.Inode = 0 // as if the same inode had been given out again
	requireUser(t, inst.CheckPins(), "1.csv", "its time was set back")
}

func TestPlanError_ASourceThatIsGone(t *testing.T) {
	dir := t.TempDir()
	mustWriteFile(t, dir+"/1.csv", "a\n1\n")
	src := files("signet_source_1", "read_csv", pins(t, dir+"/1.csv"))
	inst := bind(t, src)
	require.NoError(t, os.Remove(dir+"/1.csv"))
	_, err := inst.Conn().ExecContext(context.Background(), "SELECT * FROM signet_source_1")
	require.Error(t, err)
	pe := inst.PlanError(err)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, pe.Class)
	require.Contains(t, pe.Message, "1.csv was there when the job was planned and is gone")
}

// Whichever byte of a footer is damaged, the message names the file.
func TestPlanError_DamagedFootersNameTheirFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i FROM range(10) t(i)) TO '$DIR/good.parquet'")
	good, err := os.ReadFile(dir + "/good.parquet")
	require.NoError(t, err)
	said := map[string]bool{}
	for at := len(good) - 9; at > len(good)-200; at -= 3 {
		bad := append([]byte{}, good...)
		bad[at] ^= 0xff
		mustWriteFile(t, dir+"/bad.parquet", string(bad))
		src := files("signet_source_1", "read_parquet", pins(t, dir+"/good.parquet", dir+"/bad.parquet"))
		inst := locked(t, src)
		err := inst.CheckFiles(context.Background(), src)
		if err == nil {
			err = inst.BindSources(context.Background(), []*planv1.Source{src})
		}
		if err != nil {
			pe := inst.PlanError(err)
			require.Contains(t, pe.Message, "bad.parquet", at)
			said[pe.Message] = true
		}
	}
	require.NotEmpty(t, said)
}

func TestFiles_ColumnNames(t *testing.T) { // X1, X3
	dir := t.TempDir()
	write(t, dir, `COPY (SELECT 1 AS "order", 2 AS "values", 3 AS "größe", 4 AS "日本", 5 AS "a""b", 6 AS "with space", 7 AS "a.b", 8 AS "x'y", 9 AS "file_row_number2",
		10 AS "Upper") TO '$DIR/1.parquet'`)
	src := files("v", "read_parquet", pins(t, dir+"/1.parquet"))
	inst := bind(t, src)
	cols, err := inst.Describe(context.Background(), "FROM v")
	require.NoError(t, err)
	src.GetFile().Columns = cols
	require.Equal(t, []string{`{'order': 1, 'values': 2, 'größe': 3, '日本': 4, 'a"b': 5, 'with space': 6, 'a.b': 7, 'x\'y': 8, 'file_row_number2': 9, 'Upper': 10}`},
		text(t, bind(t, src), "FROM v"))
}

func TestFiles_Empty(t *testing.T) { // X6
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT 1 AS a WHERE false) TO '$DIR/empty.parquet'", "COPY (SELECT 1 AS a) TO '$DIR/one.parquet'")
	mustWriteFile(t, dir+"/zero.parquet", "")
	mustWriteFile(t, dir+"/zero.csv", "")
	mustWriteFile(t, dir+"/head.csv", "id,s\n")
	mustWriteFile(t, dir+"/a.csv", "id,s\n1,a\n")
	require.Empty(t, text(t, bind(t, files("v", "read_parquet", pins(t, dir+"/empty.parquet"))), "SELECT a FROM v"))
	require.Len(t, text(t, bind(t, files("v", "read_parquet", pins(t, dir+"/empty.parquet", dir+"/one.parquet"))), "SELECT a FROM v"), 1)
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+"/one.parquet", dir+"/zero.parquet"))), "zero.parquet")
	requireUser(t, bindError(t, files("v", "read_csv", pins(t, dir+"/zero.csv"))), "zero.csv")
	require.Empty(t, text(t, bind(t, files("v", "read_csv", pins(t, dir+"/head.csv"))), "SELECT id, s FROM v"))
	for _, order := range [][]string{{"a", "zero", "head"}, {"zero", "head", "a"}, {"head", "zero", "a"}} {
		src := files("v", "read_csv", pins(t, dir+"/"+order[0]+".csv", dir+"/"+order[1]+".csv", dir+"/"+order[2]+".csv"))
		require.NoError(t, bindError(t, src))
		require.Equal(t, []string{"{'id': 1, 's': a}"}, text(t, bind(t, src), "SELECT id, s FROM v"), order)
	}
	mustWriteFile(t, dir+"/n1.csv", "1,2\n3,4\n") // no header: the same line alone is a row
	mustWriteFile(t, dir+"/n2.csv", "1,2\n")
	require.Len(t, text(t, bind(t, files("v", "read_csv", pins(t, dir+"/n1.csv", dir+"/n2.csv"))), "FROM v"), 3)
	none := files("v", "read_parquet", nil)
	requireUser(t, bindError(t, none), "no files")
	none.GetFile().Columns = []*planv1.Column{{Name: "a", EngineType: "INTEGER"}}
	require.Empty(t, text(t, bind(t, none), "SELECT a FROM v"))
	require.Empty(t, text(t, bind(t, table("v", "t", []*planv1.Field{fld(1, "a", i32), fld(2, "s", structT(fld(3, "x", str)))}, nil)), "SELECT a, s FROM v"))
}

func TestFiles_Hive(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i AS v, '0' || i AS k, 'x' AS z FROM range(3) t(i)) TO '$DIR/h' (FORMAT parquet, PARTITION_BY (k))")
	named := func(names ...string) (out []*planv1.PinnedFile) {
		for _, n := range names {
			f := pin(t, filepath.Join(dir, n))
			f.Name = n
			out = append(out, f)
		}
		return out
	}
	all := named("h/k=00/data_0.parquet", "h/k=01/data_0.parquet", "h/k=02/data_0.parquet")
	inst := bind(t, files("v", "read_parquet", all))
	cols, err := inst.Describe(context.Background(), "FROM v")
	require.NoError(t, err)
	require.Equal(t, "k", cols[len(cols)-1].Name)
	want := text(t, inst, "FROM v ORDER BY v")
	var got []string
	for _, f := range all { // each share alone gives what all of them gave together
		share := files("v", "read_parquet", []*planv1.PinnedFile{f})
		share.GetFile().Columns = cols
		got = append(got, text(t, bind(t, share), "FROM v")...)
	}
	require.Equal(t, want, got)
	// keys above what the user wrote are no columns
	under := pin(t, dir+"/h/k=00/data_0.parquet")
	under.Name = "data_0.parquet"
	require.Equal(t, []string{"{'v': 0, 'z': x}"}, text(t, bind(t, files("v", "read_parquet", []*planv1.PinnedFile{under})), "FROM v"))
	// table scans never look at directories (interop trap 4)
	scan := table("v", "t", []*planv1.Field{fld(0, "v", i64), fld(0, "k", str)}, named("h/k=00/data_0.parquet"))
	require.Equal(t, []string{"{'v': 0, 'k': NULL}"}, text(t, bind(t, scan), "FROM v"))
}

func TestFiles_HiveKeyMeetsColumn(t *testing.T) { // X3
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/part/NAME=x", 0o755))
	write(t, dir, "COPY (SELECT 'inner' AS name, 1 AS v) TO '$DIR/part/NAME=x/one.parquet'")
	src := files("v", "read_parquet", pins(t, dir+"/part/NAME=x/one.parquet"))
	requireUser(t, bindError(t, src), `"NAME"`, `"name"`, "one.parquet")
	src.GetFile().Options = map[string]string{"hive_partitioning": "false"}
	require.Equal(t, []string{"{'name': inner, 'v': 1}"}, text(t, bind(t, src), "FROM v"))
}

func TestFiles_Broken(t *testing.T) { // X8
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i, 'value ' || i AS s FROM range(1000) t(i)) TO '$DIR/part-00.parquet' (ROW_GROUP_SIZE 100)")
	good, err := os.ReadFile(dir + "/part-00.parquet")
	require.NoError(t, err)
	n := len(good)
	tail := func(length string) string { return string(good[:n-8]) + length + "PAR1" }
	for name, body := range map[string]string{
		"last byte lost": string(good[:n-1]), "half": string(good[:n/2]), "footer length huge": tail("\xff\xff\xff\x7f"), "footer length zero": tail("\x00\x00\x00\x00"),
		"html": "<html><body>404</body></html>\n", "magic only": "PAR1PAR1", "footer length negative": tail("\xff\xff\xff\xff"),
	} {
		t.Run(name, func(t *testing.T) {
			mustWriteFile(t, dir+"/part-13.parquet", body)
			err := bindError(t, files("v", "read_parquet", pins(t, dir+"/part-00.parquet", dir+"/part-13.parquet")))
			requireUser(t, err, "part-13.parquet")
			err = bindError(t, table("v", "t", []*planv1.Field{fld(0, "i", i64)}, pins(t, dir+"/part-00.parquet", dir+"/part-13.parquet")))
			requireUser(t, err, "part-13.parquet")
		})
	}
}

// DuckDB's advice to change a setting is none: no statement of Signet may.
func TestPlanError_AdvisesWhatCanBeDone(t *testing.T) {
	inst := locked(t)
	_, err := inst.Conn().ExecContext(t.Context(), "SELECT (SELECT 'a' UNION ALL SELECT 'b')")
	requireUser(t, err, "More than one row returned by a subquery")
	require.Equal(t, "make the subquery give one row: with an aggregate, a condition, or LIMIT 1", PlanError(err).Hint)
	_, hint := splitText("Some Error: x\n\nUse SET some_setting = 3 to allow it.\nOr do y.")
	require.Equal(t, "Or do y.", hint)
}

func TestPlanError_UsersNames(t *testing.T) { // X5: names come back as they were typed
	dir := t.TempDir()
	mustWriteFile(t, dir+"/bad [1].parquet", "PAR1 and then nothing of use PAR1")
	f := pin(t, dir+"/bad [1].parquet")
	f.Name = "in/bad [1].parquet"
	src := files("signet_source_1", "read_parquet", []*planv1.PinnedFile{f})
	inst := locked(t, src)
	pe := inst.PlanError(inst.BindSources(context.Background(), []*planv1.Source{src}))
	require.Contains(t, pe.Message, "'in/bad [1].parquet'")
	require.NotContains(t, pe.Message, dir)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, pe.Class)
}

func TestFiles_OptionsArePassedOn(t *testing.T) { // X7: columns, sample_size
	dir := t.TempDir()
	mustWriteFile(t, dir+"/a.csv", "x;y\n1;2\n")
	src := files("v", "read_csv", pins(t, dir+"/a.csv"))
	src.GetFile().Options = map[string]string{"delim": "';'", "header": "true", "columns": "{'x': 'VARCHAR', 'y': 'HUGEINT'}", "sample_size": "-1"}
	require.Equal(t, []string{"{'x': 1, 'y': 2}"}, text(t, bind(t, src), "FROM v"))
	src.GetFile().Options = map[string]string{"no_such_option": "1"}
	requireUser(t, bindError(t, src), "no_such_option")
	src.GetFile().Options = map[string]string{"x) FROM secret --": "1"}
	requireUser(t, bindError(t, src), "is not an option")
	src.GetFile().Function = "read_text"
	requireUser(t, bindError(t, src), "read_text")
	parquet := files("v", "read_parquet", nil)
	parquet.GetFile().Options = map[string]string{"schema": "MAP{}"}
	requireUser(t, bindError(t, parquet), "schema")
}

func TestFiles_InventedColumns(t *testing.T) { // X3
	dir := t.TempDir()
	mustWriteFile(t, dir+"/dup.csv", "a,A,b\n1,2,3\n")
	mustWriteFile(t, dir+"/real.csv", "a,a_1\n1,2\n")
	mustWriteFile(t, dir+"/dup.json", `{"a":1,"A":2}`)
	for name, bad := range map[string]bool{"dup.csv": true, "real.csv": false, "dup.json": true} {
		fn := map[string]string{".csv": "read_csv", ".json": "read_json"}[filepath.Ext(name)]
		src := files("v", fn, pins(t, dir+"/"+name))
		inst := bind(t, src)
		cols, err := inst.Describe(context.Background(), "FROM v")
		require.NoError(t, err)
		err = CheckInvented(src, cols)
		if bad {
			requireUser(t, err, name, `"a"`, `"A"`)
		} else {
			require.NoError(t, err)
		}
	}
}

// The name of the file is what people need, and what DuckDB's first line lacks.
// Numbers in docs/semantics.md: J6.
func TestPlanError_NamesTheCSVFileAndLine(t *testing.T) {
	dir := t.TempDir()
	mustWriteFile(t, dir+"/late.csv", "a,b\n"+strings.Repeat("1,x\n", 30_000)+"oops,x\n")
	mustWriteFile(t, dir+"/short.csv", "a,b\n"+strings.Repeat("1,x\n", 30_000)+"1,2,3\n")
	for name, want := range map[string][2]string{
		"late.csv":  {`line 30002: column "a": Could not convert string "oops" to 'BIGINT'`, "sample_size = -1"},
		"short.csv": {"line 30002: Expected Number of Columns: 2 Found: 3", "null_padding = true"},
	} {
		inst := bind(t, files("signet_source_1", "read_csv", pins(t, dir+"/"+name)))
		_, err := inst.Conn().ExecContext(context.Background(), "CREATE TABLE x AS SELECT max(a), max(b) FROM signet_source_1")
		e := inst.PlanError(err)
		require.Contains(t, e.GetMessage(), name+`", `+want[0])
		require.NotContains(t, e.GetMessage(), "\n")
		require.Contains(t, e.GetHint(), want[1])
		require.NotContains(t, e.GetHint(), "COPY")
	}
}

func TestPlanError_Classes(t *testing.T) {
	require.Nil(t, PlanError(nil))
	for text, class := range map[string]planv1.ErrorClass{
		"Binder Error: x": planv1.ErrorClass_ERROR_CLASS_USER, "Conversion Error: x": planv1.ErrorClass_ERROR_CLASS_USER,
		"IO Error: x": planv1.ErrorClass_ERROR_CLASS_IO, "IO Error: Could not write: No space left on device": planv1.ErrorClass_ERROR_CLASS_RESOURCE,
		"Out of Memory Error: x": planv1.ErrorClass_ERROR_CLASS_RESOURCE, "INTERRUPT Error: Interrupted!": planv1.ErrorClass_ERROR_CLASS_KILLED,
		"INTERNAL Error: x": planv1.ErrorClass_ERROR_CLASS_INTERNAL, "FATAL Error: x": planv1.ErrorClass_ERROR_CLASS_INTERNAL, "who knows": planv1.ErrorClass_ERROR_CLASS_INTERNAL,
	} {
		require.Equal(t, class, PlanError(ErrorFromText(text)).Class, text)
	}
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, PlanError(context.Canceled).Class)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, PlanError(errors.New("x")).Class)
	require.Contains(t, PlanError(ErrorFromText("Binder Error: DEFAULT is not allowed here!")).Hint, "leave the column out")
	pe := PlanError(ErrorFromText("Binder Error: Referenced column \"x\" not found in FROM clause!\nCandidate bindings: \"y\"\n\nLINE 1: SELECT x\n ^"))
	require.Equal(t, `Binder Error: Referenced column "x" not found in FROM clause!`, pe.Message)
	require.Equal(t, `Candidate bindings: "y"`, pe.Hint)
}
