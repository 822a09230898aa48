package analyze

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// nowMicros is 2026-05-01 12:34:56.789 UTC.
const nowMicros = 1777638896789000

var testPool *duckdb.Pool

func TestMain(m *testing.M) {
	testPool = duckdb.NewPool(duckdb.Options{Ready: 3, MemoryBytes: 1 << 30})
	code := m.Run()
	if err := testPool.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func run(t testing.TB, sql string, sources ...*planv1.Source) *executorv1.AnalyzeResult {
	t.Helper()
	return Analyze(context.Background(), testPool, &executorv1.Analyze{RequestId: "r", Sql: sql, Sources: sources, NowMicros: nowMicros})
}

// ok is run that must not fail.
func ok(t testing.TB, sql string, sources ...*planv1.Source) *executorv1.AnalyzeResult {
	t.Helper()
	out := run(t, sql, sources...)
	require.Nil(t, out.Error, "%s: %v", sql, out.Error)
	return out
}

// write runs COPY statements; $DIR is dir.
func write(t testing.TB, dir string, stmts ...string) {
	t.Helper()
	inst, err := testPool.Open(context.Background(), duckdb.Access{WriteDirs: []string{dir}, TempDir: t.TempDir(), KeepOrder: true})
	require.NoError(t, err)
	defer inst.Close()
	for _, s := range stmts {
		_, err := inst.Conn().ExecContext(context.Background(), strings.ReplaceAll(s, "$DIR", dir))
		require.NoError(t, err, s)
	}
}

// resolve plays the scheduler: it pins the files of an unresolved source.
func resolve(t testing.TB, u *executorv1.UnresolvedSource, paths ...string) *planv1.Source {
	t.Helper()
	fs := &planv1.FileSource{Function: u.Function, Options: u.Options}
	if u.Function == "" {
		fs.Function = map[string]string{".csv": "read_csv", ".json": "read_json"}[filepath.Ext(u.Path)]
		if fs.Function == "" {
			fs.Function = "read_parquet"
		}
	}
	for _, p := range paths {
		st, err := os.Stat(p)
		require.NoError(t, err)
		fs.Files = append(fs.Files, &planv1.PinnedFile{Path: p, SizeBytes: st.Size(), MtimeNanos: st.ModTime().UnixNano(), Name: filepath.Base(p)})
	}
	return &planv1.Source{View: u.View, Alias: u.Alias, Kind: &planv1.Source_File{File: fs}}
}

func TestAnalyze_Values(t *testing.T) {
	out := ok(t, "VALUES (1, 'a', NULL, '2020-01-01'), (2, NULL, NULL, 'x' || 'y');")
	require.Empty(t, out.Unresolved)
	require.Len(t, out.Columns, 4)
	require.Equal(t, []bool{false, true, true, false}, []bool{
		out.Columns[0].StringLiteral, out.Columns[1].StringLiteral, out.Columns[2].StringLiteral, out.Columns[3].StringLiteral,
	})
	require.Equal(t, `"NULL"`, out.Columns[2].EngineType)
	require.Equal(t, planv1.TypeKind_TYPE_KIND_INT32, out.Columns[0].Type.Kind)
	require.False(t, out.RowWise)
	t.Log(out.Sql, out.PlanText)
}

// A column that is nothing but NULL goes into a column of any type, wherever the NULL stands; DuckDB calls it INTEGER.
func TestAnalyze_UntypedNulls(t *testing.T) {
	for query, want := range map[string][]string{
		"SELECT i, s FROM (VALUES (3, NULL)) v(i, s) WHERE i > 1":                                                         {"INTEGER", `"NULL"`},
		"SELECT * FROM (SELECT 9 AS i, NULL AS i, NULL::INTEGER AS j) q":                                                  {"INTEGER", `"NULL"`, "INTEGER"},
		"SELECT x.i, x.s, y.s FROM (SELECT 1 AS i, NULL AS s) x LEFT JOIN (SELECT 1 AS i, 2 AS s) y USING (i) ORDER BY 1": {"INTEGER", `"NULL"`, "INTEGER"},
		"SELECT NULL AS a UNION ALL SELECT NULL":                                                                          {`"NULL"`},
		"SELECT NULL AS a UNION ALL SELECT 1":                                                                             {"INTEGER"},
		"SELECT coalesce(NULL, NULL) AS a, CASE WHEN i > 0 THEN i END FROM (SELECT 1 AS i) q":                             {`"NULL"`, "INTEGER"},
		"SELECT nullif(i, 1) FROM (SELECT 1 AS i) q":                                                                      {"INTEGER"},
	} {
		var types []string
		for _, c := range ok(t, query).Columns {
			types = append(types, c.EngineType)
		}
		require.Equal(t, want, types, query)
	}
}

func TestAnalyze_TwoRounds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i, i % 7 AS g, 'x' || i AS s FROM range(300000) t(i)) TO '$DIR/f.parquet'")
	const sql = "SELECT f.i, lake.demo.f.s AS s2, now() FROM lake.demo.f WHERE lake.demo.f.g = 3"
	first := ok(t, sql)
	require.Len(t, first.Unresolved, 1)
	require.Equal(t, []string{"lake", "demo", "f"}, first.Unresolved[0].Table)
	require.Empty(t, first.Sql)
	out := ok(t, sql, resolve(t, first.Unresolved[0], dir+"/f.parquet"))
	t.Log(out.Sql)
	t.Log(out.PlanText)
	require.True(t, out.RowWise, out.NotRowWise)
	require.Equal(t, "now()", out.Columns[2].Name)
	require.Equal(t, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, out.Columns[2].Type.Kind)
	require.Equal(t, []int64{122880, 122880, 54240}, out.Stats[0].Files[0].RowGroupRows)
	require.EqualValues(t, 300000, out.Stats[0].Files[0].Rows)
	require.Len(t, out.Stats[0].Columns, 3)
}

// Files with a column of the name by which DuckDB numbers rows are read whole.
func TestAnalyze_RowNumbersOfTheFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i AS File_Row_Number FROM range(300000) t(i)) TO '$DIR/own.parquet'", "COPY (SELECT i FROM range(300000) t(i)) TO '$DIR/f.parquet'")
	for query, groups := range map[string]int{
		"SELECT * FROM '" + dir + "/own.parquet'":                                     0,
		"SELECT * FROM read_parquet('" + dir + "/f.parquet', file_row_number = true)": 3,
		"SELECT * FROM '" + dir + "/f.parquet'":                                       3,
	} {
		u := ok(t, query).Unresolved[0]
		path := u.Path
		if path == "" {
			path = u.Paths[0]
		}
		out := ok(t, query, resolve(t, u, path))
		require.Len(t, out.Stats[0].Files[0].RowGroupRows, groups, query)
	}
}

func req(sql string) *executorv1.Analyze { return &executorv1.Analyze{Sql: sql, NowMicros: nowMicros} }
