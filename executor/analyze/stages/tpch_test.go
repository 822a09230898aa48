package stages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/analyze/stages/querygen"
	"github.com/signet-io/signet/executor/analyze/stages/stagetest"
	"github.com/signet-io/signet/executor/analyze/stages/tpch"
)

func tpchBench(t testing.TB, scale float64) *bench {
	b := newBench(t)
	for _, tab := range tpch.Tables(scale) {
		b.table(tab.Name, tab.SQL)
	}
	return b
}

// All 22 queries of TPC-H are staged, with joins by hash and by broadcast, and give what they give directly.
func TestPlan_TPCH(t *testing.T) {
	b := tpchBench(t, 0.005)
	for n, sql := range tpch.Queries {
		require.NoError(t, b.runner.Whole(t.Context(), b.views...))
		want, err := stagetest.Rows(t.Context(), b.inst.Conn(), sql)
		require.NoError(t, err)
		for _, o := range []Options{{WholeBytes: -1}, {WholeBytes: 10_000}} {
			staged := b.plan(sql, o)
			require.Empty(t, staged.NotStaged, "query %d: %s", n+1, sql)
			for _, l := range []stagetest.Layout{{Shares: 3, Partitions: 2}, {Shares: 2, Partitions: 3, Broadcast: 1}} {
				got, err := b.runner.Run(t.Context(), staged, l)
				require.NoError(t, err, "query %d: %s", n+1, show(staged))
				require.Empty(t, querygen.Diff(want, got, true), "query %d, %+v\n%s", n+1, l, show(staged))
			}
			var labels []string
			for _, s := range staged.Stages {
				labels = append(labels, s.Label)
			}
			t.Logf("query %2d, %6d: %4d rows, %2d stages: %s", n+1, o.WholeBytes, len(want), len(staged.Stages), strings.Join(labels, " | "))
		}
	}
}

// Customers are not joined by the nation that they share with a line's supplier, before the line's order says which of them it is.
func TestPlan_SmallSidesWaitForTheirKeys(t *testing.T) {
	b := tpchBench(t, 0.005)
	for _, n := range []int{5, 7} {
		for _, s := range b.plan(tpch.Queries[n-1], Options{WholeBytes: 10_000}).Stages {
			has := map[string]bool{}
			for _, c := range s.Columns {
				has[plainName(c.Name)] = true
			}
			require.False(t, has["l_orderkey"] && has["c_custkey"], "query %d: %s", n, s.Sql)
		}
	}
}
