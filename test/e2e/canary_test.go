package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/test/harness"
)

// memoryHolds searches the readable memory of a process.
func memoryHolds(t *testing.T, pid int, needle []byte) bool {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	require.NoError(t, err)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	defer mem.Close()
	buf := make([]byte, 4<<20)
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var perms string
		if n, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perms); n != 3 || err != nil || perms[0] != 'r' {
			continue
		}
		// Pieces overlap, so that the needle is found across their borders.
		for at := from; at < to; at += int64(len(buf) - len(needle)) {
			n, err := mem.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
			if bytes.Contains(buf[:n], needle) {
				return true
			}
			if err != nil && !errors.Is(err, io.EOF) {
				break // a region that cannot be read, or memory given back meanwhile
			}
		}
	}
	return false
}

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

	require.True(t, memoryHolds(t, c.Scheduler.PID(), needle), "the scan finds what is there")
	children := append(harness.Below(c.Scheduler.PID()), harness.Proc{PID: c.Executors[0].PID()})
	require.GreaterOrEqual(t, len(children), 2, "the plugin runs")
	for _, p := range children {
		require.False(t, memoryHolds(t, p.PID, needle), "memory of %+v", p)
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
