package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// write.distribution-mode: with hash the rows of a partition of the table meet in one task, which writes one file of them; without, each task writes a file for
// each partition that it meets. Under both planners, for rows straight from files and for those that have moved already.
func TestEngine_DistributionOfPartitionedWrites(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "")
	const scan, groups = "SELECT id, g, s, TIMESTAMP '2026-03-01' + to_hours(CAST(k AS INTEGER)) AS ts FROM lake.e.facts", "SELECT max(id) AS id, g, s, TIMESTAMP '2026-03-01' + to_hours(CAST(k AS INTEGER)) AS ts FROM lake.e.facts GROUP BY g, s, k"
	n := 0
	for _, c := range []struct {
		mode, by, query string
		partitions      int
		once            bool // one file for each partition
		set             []string
	}{
		{"hash", "g", scan, 10, true, nil},
		{"hash", "g", groups, 10, true, nil},
		{"none", "g", scan, 10, false, nil},
		{"", "g", scan, 10, false, nil},                                        // moving all rows would cost more than some files
		{"", "g", groups, 10, true, nil},                                       // they have moved before
		{"hash", "bucket(4, g), s", scan, 4*37 + 4, true, nil},                 // s has NULLs
		{"hash", "day(ts)", scan, 5, true, []string{"signet.partitions", "7"}}, // 97 hours
		{"hash", "truncate(2, s), g", groups, 0, true, nil},
	} {
		for _, planner := range planners {
			t.Run(fmt.Sprintf("%s by %s %s", c.mode, c.by, planner), func(t *testing.T) {
				e.Use(t)
				n++
				name := fmt.Sprintf("d%d", n)
				with := ""
				if c.mode != "" {
					with = fmt.Sprintf(" WITH ('write.distribution-mode' = '%s')", c.mode)
				}
				e.SQL(fmt.Sprintf("CREATE TABLE lake.e.%s (id BIGINT, g BIGINT, s VARCHAR, ts TIMESTAMP) PARTITIONED BY (%s)%s", name, c.by, with))
				e.SQL(fmt.Sprintf("INSERT INTO lake.e.%s %s", name, c.query), flags(settings(planner, c.set...))...)
				tab := e.Table("e", name)
				seen := map[string]int{}
				for _, p := range tab.Partitions {
					seen[fmt.Sprint(p)]++
				}
				require.NotEmpty(t, tab.Files)
				if c.once {
					require.Len(t, tab.Files, len(seen), "files for %d partitions", len(seen))
				} else {
					require.Greater(t, len(tab.Files), len(seen), "files for %d partitions", len(seen))
				}
				if c.partitions > 0 {
					require.LessOrEqual(t, len(seen), c.partitions)
					require.Greater(t, len(seen), c.partitions/3)
				}
				check := "SELECT count(*), count(s), sum(id), sum(g), max(ts) FROM "
				require.Equal(t, e.SQL(check+"("+c.query+") AS q", "--set", "signet.max_tasks=1"), e.SQL(check+"lake.e."+name))
			})
		}
	}
	e.Use(t)
	e.freed()
}

// A distribution that does not exist is warned of: a table that another engine set it on can be written all the same.
func TestEngine_UnknownDistribution(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.e; CREATE TABLE lake.e.t (g BIGINT) PARTITIONED BY (g)")
	c.RewriteMetadata("e", "t", func(md map[string]any) { md["properties"] = map[string]any{"write.distribution-mode": "sideways"} })
	r := c.Run("sql", "INSERT INTO lake.e.t SELECT 1 AS g", "--set", "signet.partitions=2")
	require.Equal(t, 0, r.Code, r.Err)
	require.Contains(t, r.Err, "table property write.distribution-mode=sideways is not honoured: it must be none, hash or range")
}
