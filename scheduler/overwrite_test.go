package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
)

func TestRowsText(t *testing.T) {
	parquet := func(rows ...int64) []*executorv1.SourceStats {
		st := &executorv1.SourceStats{View: "v"}
		for _, n := range rows {
			st.Files = append(st.Files, &executorv1.FileStats{Rows: n})
		}
		return []*executorv1.SourceStats{st}
	}
	one := []*planv1.Source{{View: "v"}}
	for _, c := range []struct {
		plan    string
		rowWise bool
		stats   []*executorv1.SourceStats
		want    string
	}{
		{"VALUES  rows: 2\n", false, nil, "about 2 rows, by the engine's estimate"},
		{"RANGE  Estimated Cardinality: 0\n", false, nil, ""},
		{"HASH_GROUP_BY  Estimated Cardinality: 5\n  READ_PARQUET  Estimated Cardinality: 400\n", false, parquet(400), "about 5 rows, by the engine's estimate"},
		{"READ_PARQUET  Estimated Cardinality: 4000\n", true, parquet(3, 4), "7 rows"},
		{"FILTER  Expression: x\n  READ_PARQUET\n", true, parquet(3, 4), "at most 7 rows"},
		{"READ_PARQUET  Filters: a>1\n", true, parquet(3), "at most 3 rows"},
		{"UNNEST\n  READ_PARQUET\n", true, parquet(3), ""},
		{"READ_PARQUET\n", true, parquet(3, -1), ""},
	} {
		a := &analysis{sources: one, result: &executorv1.AnalyzeResult{PlanText: c.plan, RowWise: c.rowWise, Stats: c.stats}}
		require.Equal(t, c.want, rowsText(a), c.plan)
	}
}

func TestRefOfPart(t *testing.T) {
	for _, c := range []struct {
		parts       []string
		branch, tag string
	}{
		{[]string{"t"}, "", ""},
		{[]string{"branch_x"}, "", ""},
		{[]string{"s", "t"}, "", ""},
		{[]string{"t", "branch_"}, "", ""},
		{[]string{"t", "branch_A b"}, "A b", ""},
		{[]string{"lake", "s", "t", "BRANCH_x"}, "x", ""},
		{[]string{"t", "tag_v1"}, "", "v1"},
		{[]string{"t", "tags_v1"}, "", ""},
	} {
		branch, tag := refOfPart(c.parts)
		require.Equal(t, []string{c.branch, c.tag}, []string{branch, tag}, "%v", c.parts)
	}
}

// C16, and what is no such write: an overwrite of nothing empties what its scope says, except where that is the partitions that are written.
func TestNothing(t *testing.T) {
	all, some := &planv1.Scope{Kind: &planv1.Scope_All{All: true}}, &planv1.Scope{Kind: &planv1.Scope_Partitions{Partitions: true}}
	filter := &planv1.Scope{Kind: &planv1.Scope_Filter{Filter: &planv1.Predicate{}}}
	for _, c := range []struct {
		mode  sinkv1.WriteMode
		scope *planv1.Scope
		empty bool
	}{
		{sinkv1.WriteMode_WRITE_MODE_APPEND, nil, true},
		{sinkv1.WriteMode_WRITE_MODE_CREATE, nil, false},
		{sinkv1.WriteMode_WRITE_MODE_REPLACE, nil, false},
		{sinkv1.WriteMode_WRITE_MODE_OVERWRITE, all, false},
		{sinkv1.WriteMode_WRITE_MODE_OVERWRITE, filter, false},
		{sinkv1.WriteMode_WRITE_MODE_OVERWRITE, some, true},
	} {
		m := coordinator.New("j", 1)
		_, err := m.Step(coordinator.Begin{Tasks: 1})
		require.NoError(t, err)
		w := &writeState{mode: c.mode, spec: &planv1.WriteSpec{Scope: c.scope}, machine: m}
		require.Equal(t, c.empty, w.nothing(), "%s %s", c.mode, c.scope)
		_, err = m.Step(coordinator.Accept{Attempt: "a", Epoch: 1, Digest: "00", Totals: coordinator.Totals{Files: 1, Rows: 1, Bytes: 1}})
		require.NoError(t, err)
		require.False(t, w.nothing(), "with a file: %s %s", c.mode, c.scope)
	}
}
