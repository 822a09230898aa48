package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/test/harness"
)

func journalOf(c *harness.Cluster) string { return filepath.Join(c.Dir, "data", "journal.db") }

func journalCommand(t *testing.T, c *harness.Cluster, args ...string) harness.Result {
	return harness.RunCommand(t, c.Dir, nil, append([]string{"journal"}, args...)...)
}

// inflate leaves so much free space in the journal of a scheduler that does not run that the next one compacts it.
func inflate(t *testing.T, path string) {
	t.Helper()
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		return tx.PutTask(&planv1.Task{JobId: "ballast", Sql: strings.Repeat("x", 40<<20)})
	}))
	require.NoError(t, j.Update(func(tx *journal.Tx) error { return tx.DropWork("ballast") }))
	require.NoError(t, j.Close())
}

// The scheduler that compacts its journal dies at any step of it: one journal is there, whole, and the next scheduler compacts it.
func TestCrash_WhileTheJournalIsCompacted(t *testing.T) {
	t.Parallel()
	c := newKeyed(t)
	first, _, err := write(t, c, "before")
	require.NoError(t, err)
	for _, point := range []string{"journal.rewrite.before-copy", "journal.rewrite.before-sync", "journal.rewrite.before-rename", "journal.rewrite.after-rename"} {
		t.Run(point, func(t *testing.T) {
			c.Use(t)
			c.Scheduler.Terminate(t)
			inflate(t, journalOf(c))
			c.StartSchedulerToDie(fault.Env + "=" + point + "=kill")
			c.StartScheduler()
			info, err := os.Stat(journalOf(c))
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(20<<20))
			require.NoFileExists(t, journalOf(c)+".rewrite")
			c.AwaitExecutors(1)
			again, existing, err := write(t, c, "before")
			require.NoError(t, err)
			require.True(t, existing)
			require.Equal(t, first, again)
			require.Equal(t, "100", c.Value("SELECT count(*) FROM lake.i.t"))
		})
	}
	c.Use(t)
	c.Scheduler.Terminate(t)
	require.Contains(t, journalCommand(t, c, "check", journalOf(c)).Out, fmt.Sprintf("format %d", journal.Format))
	requireRowsOnce(t, c)
}

// A damaged journal is refused with the way out, which works: what is left is kept, and a key whose job is lost still names its commit (S64).
func TestJournal_DamagedAndSalvaged_S64(t *testing.T) {
	t.Parallel()
	c := newKeyed(t)
	_, _, err := write(t, c, "k")
	require.NoError(t, err)
	refused := journalCommand(t, c, "check", journalOf(c))
	require.NotZero(t, refused.Code)
	require.Contains(t, refused.Err, "another scheduler has the journal open")
	c.Scheduler.Terminate(t)
	content, err := os.ReadFile(journalOf(c))
	require.NoError(t, err)
	page := os.Getpagesize()
	for i := 2; ; i++ { // the first page that somebody needs
		require.Less(t, i, len(content)/page)
		bad := append([]byte(nil), content...)
		clear(bad[i*page : (i+1)*page])
		require.NoError(t, os.WriteFile(journalOf(c), bad, 0o600))
		r, err := journal.Check(journalOf(c))
		require.NoError(t, err)
		if r.Damage > 0 {
			break
		}
	}
	before := journalCommand(t, c, "check", journalOf(c))
	require.Equal(t, 1, before.Code)
	require.Contains(t, before.Out, "damaged: ")
	require.Contains(t, before.Err, "signet journal salvage")
	start := harness.RunCommand(t, c.Dir, nil, "scheduler", "--config", filepath.Join(c.Dir, "signet.yaml"))
	require.NotZero(t, start.Code)
	require.Contains(t, start.Err, "the journal is damaged")
	require.Contains(t, start.Err, "signet journal salvage")

	saved := filepath.Join(c.Dir, "saved.db")
	out := journalCommand(t, c, "salvage", journalOf(c), saved)
	require.Zero(t, out.Code, out.Err)
	require.Contains(t, journalCommand(t, c, "salvage", journalOf(c), saved).Err, "exists already")
	require.NoError(t, os.Rename(saved, journalOf(c)))
	c.StartScheduler()
	c.AwaitExecutors(1)
	_, _, err = write(t, c, "k")
	require.NoError(t, err)
	requireRowsOnce(t, c)
}

// A journal on a full disk: every statement ends, or waits with a message, whichever of its writes fails; nothing is lost, nothing is done twice, and the
// scheduler goes on without a restart.
func TestJournal_WritesThatFail(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1, Config: tellConfig})
	c.SQL("CREATE SCHEMA lake.i; CREATE TABLE lake.i.t (id BIGINT)")
	ok := 0
	insert := func() bool {
		r := c.Run("sql", "INSERT INTO lake.i.t SELECT 1 AS id")
		if r.Code != 0 {
			require.Contains(t, r.Err, "nothing was changed")
			return false
		}
		ok++
		return true
	}
	for n := range 12 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c.Use(t)
			c.Scheduler.Terminate(t)
			off := ""
			if n > 0 {
				off = fmt.Sprintf("%d*off->", n)
			}
			c.StartScheduler(fault.Env + "=journal.write.before-commit=" + off + "2*error(no space)->off")
			c.AwaitExecutors(1)
			insert()
			harness.Eventually(t, "a statement succeeds", insert)
			for _, j := range c.AwaitJobs() {
				require.NotEqual(t, "Running", j.State)
			}
			var r harness.Result
			harness.Eventually(t, "a query succeeds", func() bool {
				r = c.Run("sql", "-o", "csv", "SELECT count(*) FROM lake.i.t")
				return r.Code == 0
			})
			require.Contains(t, strings.Fields(r.Out), fmt.Sprint(ok))
		})
	}
	c.Use(t)
	require.Equal(t, fmt.Sprint(ok), c.Value("SELECT count(*) FROM lake.i.t"))
	require.Equal(t, ok, c.Table("i", "t").Snapshots)
	harness.Eventually(t, "no file is orphaned", func() bool { return len(c.Table("i", "t").DataOrphans()) == 0 })
	for _, j := range c.Jobs() { // every job that ended is told
		if end := map[string]string{"Successful": "COMPLETE", "Failed": "FAIL"}[j.State]; strings.HasPrefix(j.Statement, "INSERT") {
			require.NotEmpty(t, end, j.State)
			for _, e := range awaitLineage(t, c, j.ID, end) { // one may come twice: that it was delivered is a write, too
				require.Contains(t, []string{"START", end}, e.Type)
			}
		}
	}
}

// A write whose scheduler and executors die goes on from the task manifests that were accepted: their tasks do not run again.
func TestJournal_AcceptedTasksAreNotRunAgain(t *testing.T) {
	t.Parallel()
	input := harness.Bulky(t, t.TempDir(), bulkFiles, bulkRows)
	c := harness.New(t, harness.Options{Executors: bulkFiles})
	c.SQL("CREATE SCHEMA lake.i; CREATE TABLE lake.i.t (id BIGINT)")
	c.Scheduler.Terminate(t)
	c.StartScheduler(fault.Env + "=scheduler.manifest.before-ack=1*off->kill")
	c.AwaitExecutors(bulkFiles)
	r, err := c.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: "INSERT INTO lake.i.t SELECT id FROM '" + input + "'"})
	require.NoError(t, err)
	c.Scheduler.Wait(t)
	require.True(t, c.Scheduler.Killed())
	for _, e := range c.Executors {
		e.Kill()
	}
	c.StartScheduler()
	c.StartExecutor()
	j, err := c.Client().Wait(harness.Context(t), r.JobId, nil)
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.State, "%v", j.Error)
	full, err := c.Client().Job(harness.Context(t), r.JobId)
	require.NoError(t, err)
	require.Len(t, full.Tasks, bulkFiles)
	once := 0
	for _, task := range full.Tasks {
		require.LessOrEqual(t, task.Attempts, int32(2))
		if task.Attempts == 1 {
			once++
		}
	}
	require.GreaterOrEqual(t, once, 2, "two manifests were accepted: %v", full.Tasks)
	require.EqualValues(t, bulkFiles*bulkRows, c.Table("i", "t").Records)
	require.Equal(t, 1, c.Table("i", "t").Snapshots)
}
