package e2e_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

// A drop that is cut off is finished by the next start: the table is gone, with all its files, and a new one of its name is empty.
func TestDelta_DropIsCutOff(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"scheduler.drop.before", "scheduler.drop.aside"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			e := newEmbedded(t)
			require.Equal(t, 0, e.run("CREATE TABLE delta.demo.t AS SELECT range AS id FROM range(4)").Code)
			r := harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + e.dir, "SIGNET_FAILPOINTS=" + point + "=kill"}, "sql", "DROP TABLE delta.demo.t")
			require.NotEqual(t, 0, r.Code)
			r = e.run("SHOW TABLES FROM delta.demo") // finishes what was begun, first
			require.Equal(t, 0, r.Code, r.Err)
			require.Equal(t, "table", strings.TrimSpace(r.Out))
			require.NoError(t, filepath.WalkDir(filepath.Join(e.dir, "delta"), func(path string, d fs.DirEntry, err error) error {
				require.False(t, err == nil && d.Type().IsRegular(), "%s is left", path)
				return err
			}))
			r = e.run("CREATE TABLE delta.demo.t (id BIGINT); SELECT count(*) FROM delta.demo.t")
			require.Equal(t, 0, r.Code, r.Err)
			require.Contains(t, r.Out, "0")
		})
	}
}

// Files that have come since a drop was cut off are those of another table in the making: they stay.
func TestDelta_DropLeavesWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t)
	require.Equal(t, 0, e.run("CREATE TABLE delta.demo.t AS SELECT range AS id FROM range(4)").Code)
	r := harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + e.dir, "SIGNET_FAILPOINTS=scheduler.drop.aside=kill"}, "sql", "DROP TABLE delta.demo.t")
	require.NotEqual(t, 0, r.Code)
	written := filepath.Join(e.dir, "delta", "demo", "t", "job", "0.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(written), 0o700))
	require.NoError(t, os.WriteFile(written, []byte("rows"), 0o600))
	require.Equal(t, 0, e.run("SHOW TABLES FROM delta.demo").Code) // finishes what was begun, first
	require.FileExists(t, written)
	left, err := filepath.Glob(filepath.Join(e.dir, "delta", "demo", ".dropped-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A table that is dropped, and whose files cannot be removed, is gone. The next scheduler removes them, if this one is killed first.
func TestDelta_DropLeavesFilesToTheSweeper(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := harness.New(t, harness.Options{
		Executors: 1, CatalogConfig: deltaCatalog(root), SchedulerEnv: []string{"SIGNET_FAILPOINTS=scheduler.drop.aside=error(no disk);scheduler.sweep.before=kill"},
	})
	c.SQL("CREATE TABLE dl.a.t AS SELECT range AS id FROM range(4)")
	left := func() []string {
		found, err := filepath.Glob(filepath.Join(root, "a", ".dropped-*"))
		require.NoError(t, err)
		return found
	}
	c.Run("sql", "DROP TABLE dl.a.t") // its answer may be lost with the scheduler
	c.Scheduler.Wait(t)
	require.True(t, c.Scheduler.Killed())
	require.NoDirExists(t, filepath.Join(root, "a", "t"))
	require.Len(t, left(), 1)
	c.StartScheduler()
	harness.Eventually(t, "the files of the table go", func() bool { return len(left()) == 0 })
	jobs := c.JobsAbout("DROP TABLE")
	require.Len(t, jobs, 1)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, jobs[0].GetState(), jobs[0])
	c.SQL("CREATE TABLE dl.a.t (id BIGINT)")
	require.Equal(t, "0", c.Value("SELECT count(*) FROM dl.a.t"))
}

// The same in an object store, where nothing can be renamed: a table of which nothing could be removed stays as it was, and one that nobody can read any more goes in the end.
func TestDelta_DropOfObjectsThatFails(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	c := newDeltaObjects(t, store)
	forbidden := func(suffix string) {
		store.Fail(objectstest.Fault{
			Method: http.MethodDelete, Status: http.StatusForbidden, Code: "AccessDenied", Match: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, suffix) },
		})
	}
	soon := func() {
		harness.Eventually(t, "the objects of the table go", func() bool { return len(keys(t, store, "wh/s/t/")) == 0 })
		c.Fail(1, "SELECT * FROM d.s.t", "does not exist")
	}
	table := func() {
		c.SQL("CREATE TABLE d.s.t AS SELECT range AS id FROM range(3); INSERT INTO d.s.t SELECT 3")
		require.Len(t, keys(t, store, "wh/s/t/_delta_log/"), 2)
	}
	table()
	forbidden("00.json")
	c.Fail(1, "DROP TABLE d.s.t", "AccessDenied")
	require.Equal(t, "4", c.Value("SELECT count(*) FROM d.s.t"))
	forbidden("01.json")
	c.Fail(1, "DROP TABLE d.s.t", "AccessDenied", "the scheduler goes on removing it")
	soon()
	table()
	forbidden(".parquet")
	c.SQL("DROP TABLE d.s.t")
	soon()
}
