package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// An error that quotes a value of many megabytes ends its statement and nothing else: no executor loses its session, and the lists of jobs stay short.
func TestErrors_OfAnySizeEndTheirStatementAlone(t *testing.T) {
	e := newEngine(t, "")
	for _, text := range []string{"SELECT error(repeat('x', 40000000))", "SELECT repeat('x', 17000000)::INTEGER", "SELECT id, error(repeat('x', 20000000)) FROM lake.e.facts"} {
		j := e.end(e.submit(text, settings("static")))
		require.NotEmpty(t, j.GetError().GetMessage(), text)
		require.Less(t, len(j.GetError().GetMessage()), 20_000)
		require.Contains(t, j.GetError().GetMessage(), "bytes left out")
	}
	long := "SELECT s || '" + strings.Repeat("x", 6<<20) + "' AS long, count(*) AS n FROM lake.e.facts GROUP BY 1 ORDER BY n LIMIT 1"
	j := e.end(e.submit(long, settings("static", "signet.partitions", "4")))
	if f := j.GetError(); f != nil {
		require.Equal(t, "resource", f.GetCode(), f.GetMessage())
	}
	unnamed := strings.Replace(long, " AS long", "", 1) // the column is called as its expression is written
	if f := e.end(e.submit(unnamed, settings("adaptive"))).GetError(); f != nil {
		require.Equal(t, "resource", f.GetCode(), f.GetMessage())
	}
	e.AwaitExecutors(3)
	log, err := os.ReadFile(e.SchedulerLog())
	require.NoError(t, err)
	lost := 0
	for line := range strings.SplitSeq(string(log), "\n") {
		if strings.Contains(line, "executor disconnected") {
			lost++
		}
	}
	require.Zero(t, lost, "sessions that broke")
	jobs, err := e.Client().Jobs(harness.Context(t), 100)
	require.NoError(t, err)
	require.NotEmpty(t, jobs)
	var failure *client.Error
	_, err = e.Client().Exec(harness.Context(t), "SELECT error(repeat('y', 1000000))")
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "120000", e.Value("SELECT count(*) FROM lake.e.facts"))
}
