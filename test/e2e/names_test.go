package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// Names are matched exactly, then without regard to case; lists show them as they are.
func TestNames_AreListedAndFound(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1, CatalogConfig: "  ev: {type: sink, sink: minimal, root: 'file://" + t.TempDir() + "'}\n"})
	run := func(statement string) harness.Result {
		t.Helper()
		r := c.Run("sql", "--quiet", statement)
		require.Equal(t, 0, r.Code, r.Err)
		return r
	}

	c.SQL(`CREATE SCHEMA lake."sch ema"; CREATE SCHEMA lake.demo; CREATE TABLE lake."sch ema"."ta.ble" (a INT); CREATE TABLE lake.demo.flights (a INT)`)
	require.Equal(t, [][]string{{"demo"}, {"sch ema"}}, c.SQL("SHOW SCHEMAS FROM lake"))
	require.Equal(t, [][]string{{"demo", "flights"}, {"sch ema", "ta.ble"}}, c.SQL("SHOW TABLES"))
	c.SQL(`CREATE TABLE ev."we ird"."x/.." (a INT)`)
	require.Equal(t, [][]string{{"we ird"}}, c.SQL("SHOW SCHEMAS FROM ev"))
	require.Equal(t, [][]string{{"we ird", "x/.."}}, c.SQL("SHOW TABLES", "--catalog", "ev"))
	require.Equal(t, [][]string{{"x/.."}}, c.SQL(`SHOW TABLES FROM ev."we ird"`))

	c.SQL("INSERT INTO Lake.Demo.FLIGHTS VALUES (1)")
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.DEMO.FLIGHTS"))
	require.Len(t, c.SQL("DESCRIBE LAKE.demo.Flights"), 1)
	require.Equal(t, [][]string{{"flights"}}, c.SQL("SHOW TABLES FROM LAKE.DEMO"))
	require.Equal(t, "0", c.Value(`SELECT count(*) FROM ev."WE IRD"."X/.."`))
	c.Fail(1, "DROP TABLE lake.demo.FLIGHTS", "there is flights")
	c.Fail(1, "SHOW TABLES FROM LAKE", "lake is a catalog")

	require.Contains(t, run("CREATE TABLE lake.Demo.new (a INT)").Out, "created table lake.demo.new")

	require.Contains(t, run("CREATE SCHEMA lake.DEMO").Err, "schema lake.DEMO differs in case only from lake.demo")
	require.Contains(t, run("CREATE TABLE lake.demo.Flights (a INT)").Err, "table lake.demo.Flights differs in case only from lake.demo.flights")
	require.Contains(t, run("CREATE TABLE lake.demo.FlightS AS SELECT 1 AS a").Err, "differs in case only from lake.demo.Flights")
	require.Equal(t, [][]string{{"1", "0"}}, c.SQL("SELECT (SELECT count(*) FROM lake.demo.flights), (SELECT count(*) FROM lake.demo.Flights)"), "each is itself")
	c.Fail(1, "SELECT * FROM lake.demo.FLIGHTS", "several tables differ from it in case only")
	require.Contains(t, run("CREATE TABLE IF NOT EXISTS lake.demo.flights AS SELECT 1 AS a").Out, "table lake.demo.flights exists already; nothing was written")
	require.Contains(t, run("CREATE SCHEMA IF NOT EXISTS lake.demo").Out, "schema lake.demo exists already")
}

// SHOW CREATE TABLE says what DESCRIBE has no column for, and can be run.
func TestShowCreateTable(t *testing.T) {
	t.Parallel()
	c := newCases(t, 0)
	c.SQL("CREATE TABLE lake.x.t (id BIGINT NOT NULL COMMENT 'the key', ts TIMESTAMP) PARTITIONED BY (day(ts)) ORDERED BY (id DESC) WITH ('owner' = 'etl')")
	text := c.Value("SHOW CREATE TABLE lake.x.T")
	require.Contains(t, text, "CREATE TABLE lake.x.t (id BIGINT NOT NULL COMMENT 'the key', ts TIMESTAMP) PARTITIONED BY (day(ts)) ORDERED BY (id DESC)")
	require.Contains(t, text, "'owner' = 'etl'")
	c.SQL("DROP TABLE lake.x.t")
	c.SQL(text)
	require.Equal(t, text, c.Value("SHOW CREATE TABLE lake.x.t"))
}
