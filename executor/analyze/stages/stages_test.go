package stages

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/analyze/stages/querygen"
	"github.com/signet-io/signet/executor/analyze/stages/stagetest"
	"github.com/signet-io/signet/executor/duckdb"
)

var testPool *duckdb.Pool

func TestMain(m *testing.M) {
	testPool = duckdb.NewPool(duckdb.Options{Ready: 2, MemoryBytes: 2 << 30})
	code := m.Run()
	if err := testPool.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// bench is a DuckDB with tables.
type bench struct {
	t      testing.TB
	inst   *duckdb.Instance
	runner *stagetest.Runner
	views  []string
	whole  map[string]string
	known  map[string]Source
}

func newBench(t testing.TB) *bench {
	t.Helper()
	inst, err := testPool.Open(t.Context(), duckdb.Access{KeepOrder: true})
	require.NoError(t, err)
	t.Cleanup(func() { testPool.Discard(inst) })
	return &bench{t: t, inst: inst, runner: &stagetest.Runner{Conn: inst.Conn()}, whole: map[string]string{}, known: map[string]Source{}}
}

// table fills a table by a query.
func (b *bench) table(name, query string) {
	b.t.Helper()
	_, err := b.inst.Conn().ExecContext(b.t.Context(), "CREATE OR REPLACE TEMP TABLE "+stagetest.Base(name)+" AS "+query)
	require.NoError(b.t, err, query)
	b.views = append(b.views, name)
}

func (b *bench) query(sql string) (Query, error) {
	b.t.Helper()
	require.NoError(b.t, b.runner.Whole(b.t.Context(), b.views...))
	q := Query{SQL: sql}
	var err error
	if q.Columns, err = b.inst.Describe(b.t.Context(), sql); err != nil {
		return q, err
	}
	for _, v := range b.views {
		if !strings.Contains(sql, v) {
			continue
		}
		src, ok := b.known[v]
		if !ok {
			cols, err := b.inst.Describe(b.t.Context(), "SELECT * FROM "+v)
			require.NoError(b.t, err)
			var rows int64
			require.NoError(b.t, b.inst.Conn().QueryRowContext(b.t.Context(), "SELECT count(*) FROM "+v).Scan(&rows))
			src = Source{View: v, Columns: cols, Bytes: rows * 10, Whole: b.whole[v]}
			b.known[v] = src
		}
		q.Sources = append(q.Sources, src)
	}
	return q, nil
}

// plan stages a query.
func (b *bench) plan(sql string, o Options) *executorv1.StagedQuery {
	b.t.Helper()
	q, err := b.query(sql)
	require.NoError(b.t, err, sql)
	staged, err := b.planned(q, o)
	require.NoError(b.t, err, sql)
	return staged
}

// planned is Plan in an instance that serves many plans.
func (b *bench) planned(q Query, o Options) (*executorv1.StagedQuery, error) {
	staged, err := Plan(b.t.Context(), b.inst, q, o)
	rs, listErr := b.inst.Conn().QueryContext(b.t.Context(), "SELECT table_type, table_name FROM information_schema.tables WHERE table_name LIKE 'signet_stage_%'")
	require.NoError(b.t, listErr)
	var drops []string
	for rs.Next() {
		var kind, name string
		require.NoError(b.t, rs.Scan(&kind, &name))
		kind = map[string]string{"VIEW": "VIEW"}[kind]
		if kind == "" {
			kind = "TABLE"
		}
		drops = append(drops, "DROP "+kind+" "+name)
	}
	require.NoError(b.t, rs.Err())
	require.NoError(b.t, rs.Close())
	if len(drops) > 0 {
		_, dropErr := b.inst.Conn().ExecContext(b.t.Context(), strings.Join(drops, ";"))
		require.NoError(b.t, dropErr)
	}
	return staged, err
}

var layouts = []stagetest.Layout{{Shares: 3, Partitions: 2}, {Shares: 2, Partitions: 3, Broadcast: 1}, {Shares: 4, Partitions: 1, Broadcast: 2}}

// same compares the staged query with the query, however it is cut. It answers what differs.
func (b *bench) same(sql string, staged *executorv1.StagedQuery, isOrdered bool, layouts ...stagetest.Layout) error {
	ctx := b.t.Context()
	if err := b.runner.Whole(ctx, b.views...); err != nil {
		return err
	}
	want, err := stagetest.Rows(ctx, b.inst.Conn(), sql)
	if err != nil {
		return fmt.Errorf("directly: %w", err)
	}
	for _, l := range layouts {
		got, err := b.runner.Run(ctx, staged, l)
		if err != nil {
			return fmt.Errorf("%+v: %w", l, err)
		}
		if d := querygen.Diff(want, got, isOrdered); d != "" {
			return fmt.Errorf("%+v: %s", l, d)
		}
	}
	return nil
}

func show(s *executorv1.StagedQuery) string {
	var b strings.Builder
	if s.GetNotStaged() != "" {
		fmt.Fprintf(&b, "not staged: %s\n", s.GetNotStaged())
	}
	for n, st := range s.GetStages() {
		fmt.Fprintf(&b, "%d %s → %v %v single=%v repeatable=%v\n   %s\n", n, st.GetLabel(), st.GetOutput(), st.GetKeys(), st.GetSingle(), st.GetRepeatable(), st.GetSql())
		for _, i := range st.GetInputs() {
			fmt.Fprintf(&b, "   < %s stage %d split=%v\n", i.GetView(), i.GetStage(), i.GetSplit())
		}
		for _, a := range st.GetBroadcasts() {
			fmt.Fprintf(&b, "   or absorb %d, broadcast %d: %s\n", a.GetAbsorbs(), a.GetBroadcasts(), a.GetSql())
		}
	}
	return b.String()
}
