package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

func flights() string { return filepath.Join(harness.Root(), "examples/data/flights.parquet") }

// The life of a table, over two executors.
func TestStatements_LifeOfATable(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 2})
	c.SQL("CREATE SCHEMA lake.demo")
	row := c.SQL(fmt.Sprintf("CREATE TABLE lake.demo.flights PARTITIONED BY (day(date)) AS SELECT * FROM '%s' WHERE origin = 'ORD'", flights()))[0]
	require.Equal(t, "27692", row[0], "rows")
	require.Equal(t, "27692", c.Value("SELECT count(*) FROM lake.demo.flights"))

	row = c.SQL(fmt.Sprintf("INSERT INTO lake.demo.flights SELECT * FROM '%s' WHERE origin <> 'ORD'", flights()))[0]
	require.Equal(t, "480547", row[0], "rows")
	require.Equal(t, []string{"508239", "223"}, c.SQL("SELECT count(*), count(DISTINCT origin) FROM lake.demo.flights")[0])

	tab := c.Table("demo", "flights")
	require.EqualValues(t, 508239, tab.Records)
	require.Equal(t, 2, tab.Snapshots)
	require.Len(t, tab.Markers, 2)
	require.Empty(t, tab.DataOrphans())
	require.GreaterOrEqual(t, len(tab.Files), 31, "a file for each day at least")

	require.Equal(t, [][]string{{"flights"}}, c.SQL("SHOW TABLES FROM lake.demo"))
	c.SQL("DROP TABLE lake.demo.flights")
	require.False(t, c.Table("demo", "flights").Exists)
	c.Fail(1, "SELECT * FROM lake.demo.flights", "does not exist")
}

// S50, S51: the commit runs once, and the job's root is shown as what it is. S57: EXPLAIN shows it on top.
func TestStatements_ExplainShowsTheRoot(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT)")
	out := c.Run("sql", "-q", "EXPLAIN INSERT INTO lake.demo.t SELECT 1")
	require.Equal(t, 0, out.Code, out.Err)
	require.True(t, strings.HasPrefix(out.Out, "[scheduler] Commit lake.demo.t"), out.Out)
	require.Zero(t, c.Table("demo", "t").Snapshots, "EXPLAIN does nothing")
}

// S64: the same key is the same job, also when many clients send it at once.
func TestStatements_SameKeyConcurrently(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT)")
	results := make(chan harness.Result)
	for range 8 {
		go func() {
			results <- harness.RunCommand(t, "", nil, "sql", "-q", "--output", "csv", "--scheduler", c.Address, "--idempotency-key", "once", "INSERT INTO lake.demo.t SELECT i FROM range(100) r(i)")
		}()
	}
	snapshots := map[string]bool{}
	for range 8 {
		r := <-results
		require.Equal(t, 0, r.Code, r.Err)
		snapshots[strings.Split(strings.Split(r.Out, "\r\n")[1], ",")[4]] = true
	}
	require.Len(t, snapshots, 1, "all were told of the same commit")
	require.Equal(t, "100", c.Value("SELECT count(*) FROM lake.demo.t"))
	require.Equal(t, 1, c.Table("demo", "t").Snapshots)
	r := c.Run("sql", "-q", "--idempotency-key", "once", "INSERT INTO lake.demo.t SELECT 1")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "another statement")
}
