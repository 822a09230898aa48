package querygen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGenerator_SameSeedSameQueries(t *testing.T) {
	a, b, other := New(7), New(7), New(8)
	require.Equal(t, a.Tables(), b.Tables())
	require.NotEqual(t, a.Tables(), other.Tables())
	different := 0
	for range 50 {
		q := a.Query().String()
		require.Equal(t, q, b.Query().String())
		if q != other.Query().String() {
			different++
		}
	}
	require.Greater(t, different, 45)
}

// Every construct that the queries are for comes up.
func TestGenerator_CoversWhatItShould(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(40) {
		g := New(seed)
		for range 50 {
			all.WriteString(g.Query().String() + "\n")
		}
	}
	for _, part := range []string{
		"LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "USING (", "UNION ALL", "UNION SELECT", "EXCEPT ", "INTERSECT ", "GROUP BY ALL", "GROUP BY 1", "HAVING",
		"DISTINCT", "FILTER (WHERE", "count(DISTINCT", "OVER (PARTITION BY", "QUALIFY", "WITH a", "NOT IN (SELECT", "NOT EXISTS", "ORDER BY", "LIMIT", "OFFSET", "median(", "list(",
		"IS NOT DISTINCT FROM", "CASE WHEN", "SELECT *", " t4 ",
	} {
		require.Contains(t, all.String(), part)
	}
}

func TestMinimize_FindsTheSmallest(t *testing.T) {
	g := New(3)
	for range 200 {
		q := g.Query()
		if !strings.Contains(q.String(), "LEFT JOIN") {
			continue
		}
		before := q.String()
		small := Minimize(q, func(c *Query) bool { return strings.Contains(c.String(), "LEFT JOIN") })
		require.Contains(t, small.String(), "LEFT JOIN")
		require.LessOrEqual(t, len(small.String()), len(before))
		require.Empty(t, small.Where)
		require.Empty(t, small.Order)
		require.Equal(t, before, q.String(), "the query itself stays as it is")
	}
}

// No query joins so much that comparing would take long.
func TestGenerator_BoundsItsJoins(t *testing.T) {
	for seed := range uint64(200) {
		for _, g := range []*Generator{New(seed), NewStored(seed)} {
			for range 50 {
				q := g.Query()
				require.LessOrEqual(t, q.most, 4*mostRows, q)
				require.Positive(t, q.most)
			}
		}
	}
}

func TestNewStored_HasTypesThatFilesHave(t *testing.T) {
	for _, tab := range NewStored(1).Tables() {
		for _, c := range tab.Columns {
			require.NotEqual(t, "HUGEINT", c.Type)
		}
		require.NotContains(t, tab.SQL, "AS HUGEINT) AS")
	}
}
