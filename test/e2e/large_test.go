package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// X18: both sides of every channel agree on the limits, or large things are streamed.
func TestLarge_MessagesOnEveryChannel(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.l")
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "large.sql")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	run := func(t *testing.T, text string) string {
		t.Helper()
		r := c.Run("sql", "-q", "-o", "csv", "-f", script(text))
		require.Equal(t, 0, r.Code, r.Err)
		return r.Out
	}
	t.Run("a statement of 6 MiB", func(t *testing.T) {
		require.Contains(t, run(t, "SELECT length('"+strings.Repeat("y", 6<<20)+"') AS n"), "6291456")
	})
	t.Run("a value of 8 MiB", func(t *testing.T) {
		require.Greater(t, len(run(t, "SELECT repeat('x', 8 << 20) AS s")), 8<<20)
	})
	t.Run("a table of 5,000 columns", func(t *testing.T) {
		cols := make([]string, 5000)
		for i := range cols {
			cols[i] = fmt.Sprintf("%d AS column_with_a_rather_long_name_%d", i, i)
		}
		run(t, "CREATE TABLE lake.l.wide AS SELECT "+strings.Join(cols, ", "))
		run(t, "INSERT INTO lake.l.wide SELECT * FROM lake.l.wide")
		require.Contains(t, run(t, "SELECT count(*) AS n, sum(column_with_a_rather_long_name_4999) AS s FROM lake.l.wide"), "2,9998")
	})
	t.Run("table metadata of 10 MiB", func(t *testing.T) {
		run(t, "CREATE TABLE lake.l.heavy (i BIGINT) WITH ('note' = '"+strings.Repeat("z", 10<<20)+"')")
		run(t, "INSERT INTO lake.l.heavy SELECT i FROM range(10) r(i)")
		require.Contains(t, run(t, "SELECT count(*) AS n FROM lake.l.heavy"), "10")
	})
	t.Run("an error names the limit", func(t *testing.T) {
		r := c.Run("sql", "-q", "-f", script("SELECT length('"+strings.Repeat("y", 13<<20)+"')"))
		require.Equal(t, 1, r.Code, r.Err)
		require.Contains(t, r.Err, "bytes")
	})
}
