package analyze

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/stages/querygen"
	"github.com/signet-io/signet/executor/analyze/stages/stagetest"
	"github.com/signet-io/signet/executor/duckdb"
)

// stagedRows runs the stages of an analysed query over its files, and the query itself.
func stagedRows(t *testing.T, dir, sql string, l stagetest.Layout) (want, got [][]any) {
	t.Helper()
	out, sources := twoRounds(t, dir, sql)
	require.Nil(t, out.Error, "%s: %v", sql, out.Error)
	require.Empty(t, out.Staged.NotStaged, sql)
	last := out.Staged.Stages[len(out.Staged.Stages)-1]
	require.Len(t, last.Columns, len(out.Columns))
	for i, c := range out.Columns {
		require.Equal(t, c.Name, last.Columns[i].Name, sql)
	}
	inst, err := testPool.Open(t.Context(), duckdb.Access{ReadFiles: duckdb.FilesOf(sources), KeepOrder: true})
	require.NoError(t, err)
	defer testPool.Discard(inst)
	require.NoError(t, inst.BindSources(t.Context(), sources))
	want, err = stagetest.Rows(t.Context(), inst.Conn(), out.Sql)
	require.NoError(t, err)
	for _, s := range sources {
		_, err := inst.Conn().ExecContext(t.Context(), "CREATE TEMP TABLE "+stagetest.Base(s.View)+" AS SELECT * FROM "+s.View)
		require.NoError(t, err)
	}
	r := stagetest.Runner{Conn: inst.Conn()}
	got, err = r.Run(t.Context(), out.Staged, l)
	require.NoError(t, err, sql)
	return want, got
}

// The stages of a query read the views of its sources, with the names that the query's text uses.
func TestAnalyze_Stages(t *testing.T) {
	dir := testData(t)
	write(t, dir, "COPY (SELECT i, i % 7 AS k, 'c' || i % 3 AS carrier, i * 1.25 AS f FROM range(5000) t(i)) TO '$DIR/big.parquet' (ROW_GROUP_SIZE 2048)",
		"COPY (SELECT i % 11 AS k, i AS n, now() AS \"now()\" FROM range(40) t(i)) TO '$DIR/small.parquet'")
	for _, sql := range []string{
		"SELECT carrier, count(*), sum(lake.demo.big.f) FROM lake.demo.big GROUP BY carrier ORDER BY 1;",
		"SELECT big.carrier, small.n, now() FROM 'big.parquet' JOIN small USING (k) WHERE big.i < 100",
		"SELECT b.k, count(*) FROM big b, small WHERE b.k = small.k AND b.i > (SELECT avg(n) FROM small) GROUP BY ALL",
		"WITH c AS (SELECT k, max(i) AS top FROM read_parquet(['big.parquet']) GROUP BY k) SELECT * FROM c JOIN c d ON c.k = d.k - 1",
		"SELECT DISTINCT carrier FROM big WHERE current_date > DATE '2020-01-01'",
		"SELECT i, 1e3 * f AS x, NULL, 'lit' FROM big ORDER BY x DESC LIMIT 5",
		"SELECT count(DISTINCT carrier), now() FROM big",
		"SELECT i FROM big UNION ALL SELECT n FROM small",
		"SELECT upper(carrier) FROM big",
	} {
		want, got := stagedRows(t, dir, sql, stagetest.Layout{Shares: 3, Partitions: 2})
		require.NotEmpty(t, want, sql)
		require.Empty(t, querygen.Diff(want, got, false), sql)
	}
}

// Without sources there is one stage; what keeps a query in one task is said.
func TestAnalyze_NotStaged(t *testing.T) {
	dir := testData(t)
	for sql, why := range map[string]string{
		"VALUES (1, 'a')": "reads no table", "SELECT 1 AS x": "reads no table", "SELECT i FROM range(3) t(i)": "reads no table",
		"SELECT i FROM flights USING SAMPLE 1": "sample", "SELECT count(*) FROM flights": "without reading", "SELECT i FROM flights WHERE false": "without reading", "SELECT sum(random()) FROM flights": "random()", "SELECT a FROM 'text.csv'": "CSV",
		"SELECT a, count(*) FROM 'text.csv' GROUP BY a": "CSV", "SELECT * FROM read_csv('text.csv', columns={'a': 'INT', 'b': 'VARCHAR'})": "CSV",
	} {
		out, _ := twoRounds(t, dir, sql)
		require.Nil(t, out.Error, "%s: %v", sql, out.Error)
		require.Contains(t, out.Staged.NotStaged, why, sql)
		require.Len(t, out.Staged.Stages, 1)
		require.Equal(t, out.Sql, out.Staged.Stages[0].Sql)
		require.Equal(t, planv1.ExchangeKind_EXCHANGE_KIND_UNSPECIFIED, out.Staged.Stages[0].Output)
	}
	out, _ := twoRounds(t, dir, "SELECT i, random() FROM flights")
	require.Empty(t, out.Staged.NotStaged)
	require.True(t, out.Staged.Stages[0].Inputs[0].Split)
	require.False(t, out.Staged.Stages[0].Repeatable, "another try has other random numbers")
}

// Text files are shared among tasks where nothing about them is guessed.
func TestAnalyze_PinnedText(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/a.csv", []byte("1;x\n2;y\n3;x\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/b.csv", []byte("4;x\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/a.json", []byte("{\"i\": 1}\n{\"i\": 2}\n"), 0o600))
	csv := "read_csv(['a.csv', 'b.csv'], columns={'i': 'INT', 's': 'VARCHAR'}, delim=';', quote='', escape='', header=false, auto_detect=false)"
	for _, sql := range []string{
		"SELECT s, sum(i) FROM " + csv + " GROUP BY s", "SELECT i FROM " + csv + " WHERE i > 1",
		"SELECT sum(i) FROM read_json('a.json', columns={'i': 'INT'}, format='newline_delimited', records=true)",
	} {
		want, got := stagedRows(t, dir, sql, stagetest.Layout{Shares: 2, Partitions: 2})
		require.NotEmpty(t, want)
		require.Empty(t, querygen.Diff(want, got, false), sql)
	}
	for _, sql := range []string{
		"SELECT sum(i) FROM read_csv('a.csv', columns={'i': 'INT', 's': 'VARCHAR'}, delim=';', quote='', escape='', header=false)",
		"SELECT sum(i) FROM read_csv('a.csv', columns={'i': 'INT', 's': 'VARCHAR'}, delim=';', quote='', escape='', header=false, auto_detect=true)",
		"SELECT sum(i) FROM read_json('a.json', columns={'i': 'INT'}, format='auto', records=true)",
		"SELECT sum(i) FROM read_json('a.json', columns={'i': 'INT'}, format='newline_delimited', records='auto')",
	} {
		out, _ := twoRounds(t, dir, sql)
		require.Nil(t, out.Error, "%s: %v", sql, out.Error)
		require.Contains(t, out.Staged.NotStaged, "inferred", sql)
	}
}

// Who wants no side of a join to be read by every task gets both hashed, however small they are.
func TestAnalyze_WholeBytes(t *testing.T) {
	dir := testData(t)
	write(t, dir, "COPY (SELECT i, i % 7 AS k FROM range(5000) t(i)) TO '$DIR/big.parquet'", "COPY (SELECT i AS k FROM range(40) t(i)) TO '$DIR/small.parquet'")
	const sql = "SELECT count(*) FROM big JOIN small USING (k)"
	_, sources := twoRounds(t, dir, sql)
	for bytes, kinds := range map[int64]int{0: 0, -1: 2, 1 << 40: 0} {
		out := Analyze(t.Context(), testPool, &executorv1.Analyze{Sql: sql, Sources: sources, WholeBytes: bytes})
		require.Nil(t, out.Error)
		hashed := 0
		for _, s := range out.Staged.Stages {
			if s.Output == planv1.ExchangeKind_EXCHANGE_KIND_HASH {
				hashed++
			}
		}
		require.Equal(t, kinds, hashed, "%d bytes: %v", bytes, out.Staged.Stages)
	}
}
