package stages

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPlan is what staging adds to the analysis of a query.
func BenchmarkPlan(b *testing.B) {
	c := corpus(b)
	for _, bc := range []struct{ name, sql string }{
		{"row-wise", "SELECT a, s FROM t WHERE a > 5"},
		{"group", "SELECT k, count(*), sum(a), avg(f) FROM t GROUP BY k"},
		{"join", "SELECT t.k, count(*), sum(v.c) FROM t JOIN u ON t.k = u.k JOIN v ON u.uid = v.uid GROUP BY t.k ORDER BY 2 LIMIT 3"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			q, err := c.query(bc.sql)
			require.NoError(b, err)
			for b.Loop() {
				staged, err := c.planned(q, Options{WholeBytes: -1})
				require.NoError(b, err)
				require.Empty(b, staged.NotStaged)
			}
		})
	}
}
