package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/test/harness"
)

// A secret of the catalog's configuration is in the scheduler's memory and nowhere else. The catalog is PostgreSQL's, since SQLite has none.
func TestCanary_SecretStaysInTheScheduler(t *testing.T) {
	const canary = catalogtest.PostgresPassword
	needle := []byte(canary)
	c := harness.New(t, harness.Options{
		Executors: 1, SchedulerEnv: []string{"TEST_CATALOG_PASSWORD=" + canary},
		CatalogConfig: fmt.Sprintf("  pg:\n    type: sql\n    uri: %s\n    warehouse: file://%s\n    secret: {password: {env: TEST_CATALOG_PASSWORD}}\n", catalogtest.StartPostgres(t), t.TempDir()),
	})
	c.SQL("CREATE SCHEMA pg.s; CREATE TABLE pg.s.t AS SELECT i FROM range(10) r(i); INSERT INTO pg.s.t SELECT i FROM range(5) r(i)")
	require.Equal(t, "15", c.Value("SELECT count(*) FROM pg.s.t"))
	outputs := []string{c.Run("sql", "-q", "EXPLAIN INSERT INTO pg.s.t SELECT 1").Out, c.Run("info", "-o", "json").Out}
	outputs = append(outputs, c.Run("sql", "SELECT * FROM pg.s.nope").Err, c.Run("sql", "INSERT INTO pg.s.t SELECT 'x'").Err)
	for _, j := range c.Jobs() {
		outputs = append(outputs, c.Run("job", j.ID).Out, c.Run("job", j.ID, "-o", "json").Out)
	}
	for _, o := range outputs {
		require.NotContains(t, o, canary)
	}

	require.True(t, harness.MemoryHolds(t, c.Scheduler.PID(), needle), "the scan finds what is there")
	children := append(harness.Below(c.Scheduler.PID()), harness.Proc{PID: c.Executors[0].PID()})
	require.GreaterOrEqual(t, len(children), 2, "the plugin runs")
	for _, p := range children {
		require.False(t, harness.MemoryHolds(t, p.PID, needle), "memory of %+v", p)
		for _, f := range []string{"environ", "cmdline"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID, f))
			require.NoError(t, err)
			require.NotContains(t, string(b), canary, "%s of %+v", f, p)
		}
	}
	c.Stop()
	require.NoError(t, filepath.WalkDir(c.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, readErr := os.ReadFile(path)
			require.NoError(t, readErr)
			require.NotContains(t, string(b), canary, path)
		}
		return err
	}))
}
