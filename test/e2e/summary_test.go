package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// TestSummary_SaysWhoseASnapshotIs: engine, job, user, statement, and what the user has set; reserved names are refused before anything runs.
func TestSummary_SaysWhoseASnapshotIs(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t (a BIGINT)")
	c.SQL("INSERT INTO lake.s.t VALUES (1)", "--set", "signet.snapshot-property.ticket=OPS-7", "--set", "signet.snapshot-property.etl.run=2026-01-31")
	c.SQL("INSERT INTO lake.s.t VALUES (2)")
	c.SQL("INSERT INTO lake.s.t VALUES (1)")
	c.SQL("CREATE TABLE lake.s.u AS SELECT 1 AS a", "--set", "signet.snapshot-property.ticket=OPS-8")

	props := summaries(c, "t")
	require.Len(t, props, 3)
	for _, p := range props {
		require.Equal(t, "signet", p["engine-name"])
		require.NotEmpty(t, p["engine-version"])
		require.Equal(t, "local", p["signet.user"])
		require.NotEmpty(t, p["signet.job-ids"])
		require.Regexp(t, "^[0-9a-f]{32}$", p["signet.query-hash"])
		require.Equal(t, "1", p["added-records"])
	}
	require.Equal(t, "OPS-7", props[0]["ticket"])
	require.Equal(t, "2026-01-31", props[0]["etl.run"])
	require.NotContains(t, props[1], "ticket")
	require.Equal(t, props[0]["signet.query-hash"], props[2]["signet.query-hash"], "the same statement")
	require.NotEqual(t, props[0]["signet.query-hash"], props[1]["signet.query-hash"])
	require.Equal(t, "OPS-8", summaries(c, "u")[0]["ticket"])

	for _, key := range []string{"added-records", "total-records", "operation", "signet.user", "signet.markers", "engine-name", "wap.id", "spark.app.id"} {
		r := c.Run("sql", "--set", "signet.snapshot-property."+key+"=1", "INSERT INTO lake.s.t VALUES (3)")
		require.NotZero(t, r.Code, key)
		require.Contains(t, r.Err, `"`+key+`" is reserved`)
	}
	require.Len(t, summaries(c, "t"), 3)
}

// summaries are those of the snapshots of lake.s.NAME, oldest first.
func summaries(c *harness.Cluster, name string) []map[string]string {
	var out []map[string]string
	for _, s := range c.Table("s", name).Metadata.Snapshots() {
		out = append(out, s.Summary.Properties)
	}
	return out
}
