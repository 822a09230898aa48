package stages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shape is what a planner sees of the stages: what each does, how its rows go on, and what is said of it.
func shape(b *bench, sql string, o Options) string {
	var out []string
	for _, s := range b.plan(sql, o).Stages {
		line := s.Label
		if kind := strings.TrimPrefix(s.Output.String(), "EXCHANGE_KIND_"); kind != "UNSPECIFIED" {
			line += " " + strings.ToLower(kind)
		}
		for _, k := range s.Keys {
			line += " " + plainName(s.Columns[k].Name)
		}
		if s.Single {
			line += " single"
		}
		if !s.Repeatable {
			line += " unrepeatable"
		}
		for _, a := range s.Broadcasts {
			line += fmt.Sprintf(" (%d takes in %d)", a.Broadcasts, a.Absorbs)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func TestPlan_Shapes(t *testing.T) {
	b := corpus(t)
	hash := Options{WholeBytes: -1}
	for _, c := range []struct {
		sql  string
		o    Options
		want []string
	}{
		{"SELECT k, count(*) FROM t GROUP BY k", hash, []string{"scan, partial aggregate hash k", "final aggregate"}},
		{"SELECT sum(f) FROM t", hash, []string{"scan, partial aggregate gather", "final aggregate single"}},
		{"SELECT count(DISTINCT s) FROM t", hash, []string{"scan, distinct hash distinct", "partial aggregate gather", "final aggregate single"}},
		{"SELECT k, count(DISTINCT s) FROM t GROUP BY k", hash, []string{"scan, distinct hash k", "final aggregate"}},
		{"SELECT k, median(a) FROM t GROUP BY k", hash, []string{"scan hash k", "aggregate"}},
		{"SELECT t.a, u.c FROM t JOIN u ON t.k = u.k", hash, []string{"scan hash k", "scan hash key", "hash join (1 takes in 0) (0 takes in 1)"}},
		{"SELECT t.a, u.c FROM t JOIN u ON t.k = u.k", DefaultOptions, []string{"scan, broadcast join"}},
		{"SELECT t.a, u.c FROM t LEFT JOIN u ON t.k = u.k", hash, []string{"scan hash k", "scan hash key", "hash join (1 takes in 0)"}},
		{"SELECT t.a, u.c FROM t RIGHT JOIN u ON t.k = u.k", hash, []string{"scan hash key", "scan hash k", "hash join (1 takes in 0)"}},
		{"SELECT t.a, u.c FROM t FULL JOIN u ON t.k = u.k", hash, []string{"scan hash k", "scan hash key", "hash join"}},
		{"SELECT a FROM t ANTI JOIN u ON t.k = u.k", hash, []string{"scan hash k", "scan hash key", "hash join (1 takes in 0)"}},
		// groups that are together already are not moved, and then the join cannot be a broadcast
		{"SELECT t.k, count(*) FROM t JOIN u ON t.k = u.k GROUP BY t.k", hash, []string{"scan hash k", "scan hash key", "hash join, aggregate"}},
		{"SELECT t.s, count(*) FROM t JOIN u ON t.k = u.k GROUP BY t.s", hash, []string{"scan hash k", "scan hash key", "hash join, partial aggregate hash s (1 takes in 0) (0 takes in 1)", "final aggregate"}},
		{"SELECT t.a, u.uid FROM t, u WHERE t.a < u.uid AND t.b", hash, []string{"scan, filter, broadcast join"}},
		{"SELECT a FROM t WHERE a > 3 ORDER BY a", hash, []string{"scan, filter gather", "sort single"}},
		{"SELECT a, s FROM t ORDER BY a LIMIT 3", hash, []string{"scan, top rows gather unrepeatable", "top rows single unrepeatable"}},
		{"SELECT a, s FROM t ORDER BY a, s LIMIT 3", hash, []string{"scan, top rows gather", "top rows single"}},
		{"SELECT a FROM t WHERE b LIMIT 3", hash, []string{"scan, filter, top rows gather unrepeatable", "limit single unrepeatable"}},
		// a floating-point sum decides on a row's partition
		{"SELECT y, count(*) FROM (SELECT k, sum(f) AS y FROM t GROUP BY k) GROUP BY y", hash, []string{"scan, partial aggregate hash k", "final aggregate, partial aggregate hash sum unrepeatable", "final aggregate"}},
		{"SELECT y, count(*) FROM (SELECT k, sum(m) AS y FROM t GROUP BY k) GROUP BY y", hash, []string{"scan, partial aggregate hash k", "final aggregate, partial aggregate hash sum", "final aggregate"}},
		{"SELECT a, row_number() OVER (PARTITION BY k ORDER BY n) FROM t", hash, []string{"scan hash k", "window unrepeatable"}},
		{"SELECT a, rank() OVER (PARTITION BY k ORDER BY n) FROM t", hash, []string{"scan hash k", "window"}},
		// computed once, read by all
		{"SELECT a FROM t WHERE f > (SELECT avg(f) FROM t)", hash, []string{"scan, partial aggregate gather", "final aggregate broadcast single", "scan, filter"}},
		{"SELECT a FROM t WHERE k > (SELECT max(n) FROM t)", hash, []string{"scan, partial aggregate broadcast", "scan, filter"}},
		{"SELECT a FROM t JOIN (SELECT k FROM w LIMIT 2) q ON t.k = q.k", hash, []string{"scan, limit broadcast single unrepeatable", "scan, broadcast join"}},
		{"WITH c AS (SELECT k, sum(m) AS y FROM t GROUP BY k) SELECT x.k FROM c x JOIN c z ON x.y = z.y", hash, []string{"scan, partial aggregate hash k", "final aggregate gather", "join single"}},
		{"SELECT a FROM t UNION ALL SELECT uid FROM u", hash, []string{"scan hash a", "scan hash a", "union"}},
		{"SELECT k FROM t EXCEPT SELECT k FROM u", hash, []string{"scan hash k", "scan hash k", "except"}},
		{"SELECT x.a FROM t x JOIN t y ON x.k = y.k", DefaultOptions, []string{"scan broadcast", "scan, broadcast join"}},
	} {
		require.Equal(t, strings.Join(c.want, "\n"), shape(b, c.sql, c.o), c.sql)
	}
}

// A text cannot ask for any number of stages.
func TestPlan_BoundsStages(t *testing.T) {
	b := corpus(t)
	staged := b.plan("SELECT a FROM t"+strings.Repeat(" UNION ALL SELECT a FROM t", maxStages), Options{WholeBytes: -1})
	require.Contains(t, staged.NotStaged, "more than 64 stages")
	staged = b.plan("SELECT k, '"+strings.Repeat("x", Longest)+"' AS s, count(*) FROM t GROUP BY k", DefaultOptions)
	require.Contains(t, staged.NotStaged, "too long")
}
