//go:build cgo

package tpch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/signet-io/signet/executor/analyze/stages/querygen"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/stretchr/testify/require"
)

// perSeed is how many queries are asked about the tables of one seed.
const perSeed = 25

// tooLarge is the size of a result in bytes above which it is not compared.
const tooLarge = 32 << 20

// tally counts what became of the queries.
type tally struct {
	mu      sync.Mutex
	reasons map[string]int
	asked, refused, large, staged, moved, whole, rows, tasks,
	hashed, broadcast int
}

func (s *tally) direct(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	switch {
	case errors.Is(err, errTooLarge):
		s.large++
	case err != nil:
		s.refused++
	}
}

func (s *tally) ran(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks += r.tasks
	if len(r.rows) > 0 {
		s.rows++
	}
	if strings.Contains(r.plan, "Exchange hash") {
		s.hashed++
	}
	if strings.Contains(r.plan, "broadcast join") {
		s.broadcast++
	}
	switch {
	case r.whole != "":
		s.whole++
		s.reasons[r.whole]++
	case r.stages > 1:
		s.moved++
	default:
		s.staged++
	}
}

// Random queries over tables with NULLs, skew, special numbers, and files without rows give over three executors what one DuckDB gives.
func TestRandom_QueriesOverThreeExecutors(t *testing.T) {
	c := newCluster(t)
	sum := &tally{reasons: map[string]int{}}
	seeds := (*queries + perSeed - 1) / perSeed
	t.Run("seeds", func(t *testing.T) {
		for n := range seeds {
			seed := *first + uint64(n)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				newSeed(t, c, seed).run(t, min(perSeed, *queries-n*perSeed), sum)
			})
		}
	})
	t.Logf("%d queries: %d refused by DuckDB, %d with too many rows to compare; of the others' runs (each under both planners) %d in several stages, %d in several tasks of one, %d as one task; %d had rows; %d tasks",
		sum.asked, sum.refused, sum.large, sum.moved, sum.staged, sum.whole, sum.rows, sum.tasks)
	t.Logf("%d had a hash exchange, %d a join by broadcast", sum.hashed, sum.broadcast)
	for why, n := range sum.reasons {
		t.Logf("%5d as one task: %s", n, why)
	}
	if *only < 0 && !t.Failed() {
		require.Less(t, sum.refused+sum.large, sum.asked/5, "queries that say nothing")
		require.Greater(t, sum.moved, (sum.asked-sum.refused)*2*6/10, "runs in stages")
		require.Greater(t, sum.rows, sum.asked*2*4/10, "runs with rows")
	}
}

// seeded are the tables of a seed, in files, or in tables of the catalog.
type seeded struct {
	seed   uint64
	gen    *querygen.Generator
	dir    string
	ref    *reference
	c      *cluster
	tables bool
}

var tableName = regexp.MustCompile(`\bt[0-4]\b`)

func newSeed(t *testing.T, c *cluster, seed uint64) *seeded {
	t.Helper()
	s := &seeded{seed: seed, gen: querygen.NewStored(seed), dir: t.TempDir(), c: c, tables: seed%2 == 0}
	s.ref = newReference(t, s.dir)
	var script strings.Builder
	fmt.Fprintf(&script, "CREATE SCHEMA lake.s%d;\n", seed)
	for i, tab := range s.gen.Tables() {
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, tab.Name), 0o700))
		s.ref.exec(t, "CREATE OR REPLACE TEMP TABLE made AS %s", tab.SQL)
		files := []int{3, 3, 2, 1, 1}[i]
		for n := range files + 1 { // the last file has no rows
			file := filepath.Join(s.dir, tab.Name, fmt.Sprintf("part-%d.parquet", n))
			s.ref.exec(t, "COPY (SELECT * FROM made WHERE rowid %% %d = %d) TO '%s' (FORMAT parquet, ROW_GROUP_SIZE 2048)", files, n, file)
			verb := fmt.Sprintf("INSERT INTO lake.s%d.%s", seed, tab.Name)
			if n == 0 {
				verb = fmt.Sprintf("CREATE TABLE lake.s%d.%s AS", seed, tab.Name)
			}
			fmt.Fprintf(&script, "%s SELECT * FROM '%s';\n", verb, file)
		}
		s.ref.views(t, s.dir, tab.Name)
	}
	if s.tables {
		r := c.Run("sql", "--quiet", script.String())
		require.Equal(t, 0, r.Code, "%s\n%s", script.String(), r.Err)
	}
	return s
}

// text is a query over what the cluster reads.
func (s *seeded) text(q *querygen.Query) string {
	return tableName.ReplaceAllStringFunc(q.String(), func(name string) string {
		if s.tables {
			return fmt.Sprintf("lake.s%d.%s", s.seed, name)
		}
		return duckdb.Literal(filepath.Join(s.dir, name, "*.parquet"))
	})
}

func (s *seeded) run(t *testing.T, queries int, sum *tally) {
	failed := 0
	for i := range queries {
		q := s.gen.Query()
		if *only >= 0 && *only != i {
			continue
		}
		want, err := s.ref.query(t.Context(), q.String(), tooLarge)
		sum.direct(err)
		if err != nil {
			continue
		}
		rng := rand.New(rand.NewPCG(s.seed, uint64(i))) //nolint:gosec // repeatable on purpose
		more := []string{"signet.broadcast_bytes", []string{"0", "0", "3000", "100000000"}[rng.IntN(4)]}
		if rng.IntN(2) == 0 {
			more = append(more, "signet.partitions", []string{"1", "2", "5"}[rng.IntN(3)])
		}
		for _, planner := range planners {
			set := settings(planner, more...)
			got, err := s.c.query(t.Context(), s.text(q), set)
			problem := s.problem(want, got, err, q.Total)
			if problem == "" {
				sum.ran(got)
				continue
			}
			t.Errorf("seed %d, query %d, %v: %s\n%s\nPlan:\n%s\nSmaller: %s\nRun it again:\n  %s", s.seed, i, set, problem, q, got.plan, s.smaller(t, q, set),
				again(t, "-first %d -queries %d -query %d", s.seed, perSeed, i))
			if failed++; failed > 2 {
				t.FailNow()
			}
		}
	}
}

// problem is what is wrong with a run; empty: nothing.
func (s *seeded) problem(want *answer, got *run, err error, ordered bool) string {
	if err != nil {
		return err.Error()
	}
	return want.differs(got.answer, ordered)
}

// smaller is a part of a query that fails, too.
func (s *seeded) smaller(t *testing.T, q *querygen.Query, set map[string]string) string {
	tries := 0
	return querygen.Minimize(q, func(c *querygen.Query) bool {
		if tries++; tries > 200 {
			return false
		}
		want, err := s.ref.query(t.Context(), c.String(), tooLarge)
		if err != nil {
			return false
		}
		got, err := s.c.query(t.Context(), s.text(c), set)
		return s.problem(want, got, err, c.Total) != ""
	}).String()
}
