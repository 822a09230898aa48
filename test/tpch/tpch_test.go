//go:build cgo

package tpch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/analyze/stages/tpch"
)

// few are the queries of the short form: one-phase and two-phase groups, joins by hash and by broadcast, outer and anti joins, DISTINCT, subqueries.
var few = []int{1, 3, 4, 9, 13, 16, 18, 21, 22}

var tables = []string{"region", "nation", "supplier", "customer", "partsupp", "part", "orders", "lineitem"}

// smallTables makes the eight tables at a small scale, each in several files and row groups.
func smallTables(t testing.TB, dir string, scale float64) {
	ref := newReference(t, dir)
	for _, tab := range tpch.Tables(scale) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, tab.Name), 0o700))
		ref.exec(t, "CREATE OR REPLACE TEMP TABLE made AS %s", tab.SQL)
		const parts = 3
		for n := range parts {
			file := filepath.Join(dir, tab.Name, fmt.Sprintf("part-%d.parquet", n))
			ref.exec(t, "COPY (SELECT * FROM made WHERE rowid %% %d = %d) TO '%s' (FORMAT parquet, ROW_GROUP_SIZE 2048)", parts, n, file)
		}
	}
}

// line is what the table of queries says of one.
type line struct {
	rows   int
	alone  time.Duration
	static *run
	adapt  *run
}

// The queries of TPC-H give over three executors what one DuckDB gives, under both planners.
func TestTPCH_QueriesOverThreeExecutors(t *testing.T) {
	dir := *dataDir
	if dir == "" {
		dir = t.TempDir()
		smallTables(t, dir, 0.01)
	}
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	ref := newReference(t, dir)
	ref.views(t, dir, tables...)
	c := newCluster(t)
	var lines []line
	for n, sql := range tpch.Queries {
		l := line{}
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			if *only >= 0 && *only != n+1 || *only < 0 && *dataDir == "" && !slices.Contains(few, n+1) {
				t.Skip("not asked for")
			}
			started := time.Now()
			want, err := ref.query(t.Context(), sql, 1<<30)
			require.NoError(t, err)
			l.alone, l.rows = time.Since(started), len(want.rows)
			for _, planner := range planners {
				got, err := c.query(t.Context(), files(dir, sql, tables...), settings(planner))
				require.NoError(t, err, "%s\n%s", planner, got.plan)
				if testing.Verbose() && *only >= 0 {
					t.Log(got.plan)
				}
				if got.stages < 2 {
					t.Errorf("query %d, %s planner: it ran in one stage: %s\n%s", n+1, planner, got.whole, got.plan)
				}
				if d := want.differs(got.answer, true); d != "" {
					t.Errorf("query %d, %s planner: %s\n%s\nRun it again:\n  %s", n+1, planner, d, got.plan, again(t, "-query %d -data '%s'", n+1, *dataDir))
				}
				if planner == "static" {
					l.static = got
				} else {
					l.adapt = got
				}
				t.Logf("%s: %d rows, %d stages, %d tasks, %s (one DuckDB: %s) %s", planner, len(got.rows), got.stages, got.tasks, ms(got.took), ms(l.alone), got.whole)
			}
		})
		lines = append(lines, l)
	}
	if *report != "" && !t.Failed() {
		require.NoError(t, os.WriteFile(*report, []byte(markdown(lines)), 0o600))
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func markdown(lines []line) string {
	var b strings.Builder
	b.WriteString("| Query | Rows | Static: stages, tasks, time | Adaptive: stages, tasks, time | One DuckDB | Not split because |\n|---:|---:|---:|---:|---:|---|\n")
	for i, l := range lines {
		if l.static == nil || l.adapt == nil {
			continue
		}
		fmt.Fprintf(&b, "| %d | %d | %d, %d, %s | %d, %d, %s | %s | %s |\n", i+1, l.rows, l.static.stages, l.static.tasks, ms(l.static.took),
			l.adapt.stages, l.adapt.tasks, ms(l.adapt.took), ms(l.alone), l.static.whole)
	}
	return b.String()
}
