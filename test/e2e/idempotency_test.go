package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// commitRow is the result of a write.
type commitRow struct {
	snapshot int64
	job      string
	already  bool
}

// write runs INSERT of ids 1 to 100 under a key.
func write(t *testing.T, c *harness.Cluster, key string) (commitRow, bool, error) {
	t.Helper()
	cl := c.Client()
	res, err := cl.Exec(harness.Context(t), "INSERT INTO lake.i.t SELECT i AS id FROM range(1, 101) r(i)", client.WithIdempotencyKey(key))
	if err != nil {
		return commitRow{}, false, err
	}
	rows, err := res.Rows(harness.Context(t))
	require.NoError(t, err)
	defer rows.Close()
	var out commitRow
	for rows.Next() {
		rec := rows.RecordBatch()
		for i, f := range rec.Schema().Fields() {
			v := rec.Column(i).ValueStr(0)
			switch f.Name {
			case "snapshot_id":
				out.snapshot, err = strconv.ParseInt(v, 10, 64)
				require.NoError(t, err)
			case "job_id":
				out.job = v
			case "already_committed":
				out.already = v == "true"
			}
		}
	}
	require.NoError(t, rows.Err())
	return out, res.Existing, nil
}

func newKeyed(t *testing.T) *harness.Cluster {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.i; CREATE TABLE lake.i.t (id BIGINT)")
	return c
}

func requireRowsOnce(t *testing.T, c *harness.Cluster) {
	t.Helper()
	tab := c.Table("i", "t")
	require.Len(t, idsOf(t, tab), 100)
	require.Equal(t, 1, tab.Snapshots)
	require.Len(t, tab.Markers, 1)
	harness.Eventually(t, "no file is orphaned", func() bool { return len(c.Table("i", "t").DataOrphans()) == 0 })
}

func loseJournal(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.True(t, c.Scheduler.Ended())
	journals, err := filepath.Glob(filepath.Join(c.Dir, "data", "journal*"))
	require.NoError(t, err)
	require.NotEmpty(t, journals)
	for _, j := range journals {
		require.NoError(t, os.Remove(j))
	}
}

// S64, S62: the same key is the same job, at once, later, after the scheduler was killed, and when its journal is lost.
func TestKey_NamesOneCommitForEver(t *testing.T) {
	t.Parallel()
	c := newKeyed(t)
	first, existing, err := write(t, c, "once")
	require.NoError(t, err)
	require.False(t, existing)
	require.False(t, first.already)

	again, existing, err := write(t, c, "once")
	require.NoError(t, err)
	require.True(t, existing)
	require.Equal(t, first, again)

	c.Scheduler.Kill()
	c.StartScheduler()
	again, existing, err = write(t, c, "once")
	require.NoError(t, err)
	require.True(t, existing)
	require.Equal(t, first, again)

	c.Scheduler.Kill()
	loseJournal(t, c)
	c.StartScheduler()
	type answer struct {
		row commitRow
		err error
	}
	answers := make(chan answer)
	for range 8 {
		go func() {
			row, _, err := write(t, c, "once")
			answers <- answer{row, err}
		}()
	}
	jobs := map[string]bool{}
	for range 8 {
		a := <-answers
		require.NoError(t, a.err)
		require.True(t, a.row.already, "the marker tells of the commit")
		require.Equal(t, first.snapshot, a.row.snapshot)
		jobs[a.row.job] = true
	}
	require.Len(t, jobs, 1, "one new job for all")
	require.NotContains(t, jobs, first.job)
	requireRowsOnce(t, c)
}

// The scheduler dies after the commit has landed, and its journal is lost with it: the client's retry finds the marker.
func TestKey_SurvivesALostJournalAfterACrash(t *testing.T) {
	t.Parallel()
	c := newKeyed(t)
	c.Scheduler.Terminate(t)
	c.StartScheduler(fault.Env + "=broker.commit.after-send=kill")
	answer := make(chan error, 1)
	var row commitRow
	go func() {
		var err error
		row, _, err = write(t, c, "once")
		answer <- err
	}()
	c.Scheduler.Wait(t)
	loseJournal(t, c)
	c.StartScheduler()
	// The client asks for a job that nobody knows any more: that is an unknown outcome, and the key settles it.
	if err := <-answer; err != nil {
		require.ErrorIs(t, err, client.ErrPending)
		row, _, err = write(t, c, "once")
		require.NoError(t, err)
	}
	require.True(t, row.already)
	require.Equal(t, c.Table("i", "t").Metadata.CurrentSnapshot().SnapshotID, row.snapshot)
	requireRowsOnce(t, c)
}

// S64: a key names one statement; a failed or a cancelled job frees it.
func TestKey_OfAnotherStatementAndOfAFailedJob(t *testing.T) {
	t.Parallel()
	c := newKeyed(t)
	cl := c.Client()
	_, _, err := write(t, c, "once")
	require.NoError(t, err)
	_, err = cl.Exec(harness.Context(t), "INSERT INTO lake.i.t SELECT 7 AS id", client.WithIdempotencyKey("once"))
	require.ErrorContains(t, err, "another statement")
	_, err = cl.Exec(harness.Context(t), "DROP TABLE lake.i.t", client.WithIdempotencyKey("once"))
	require.ErrorContains(t, err, "another statement")
	requireRowsOnce(t, c)

	// The directory belongs to a statement only where it names a file in it.
	from := func(dir, statement string) (*client.Result, error) {
		return cl.Exec(harness.Context(t), statement, client.WithIdempotencyKey(statement), client.WithBaseDir(dir))
	}
	for _, dir := range []string{"/one", "/two"} {
		res, err := from(dir, "CREATE TABLE lake.i.other AS SELECT 'a.csv' AS file")
		require.NoError(t, err)
		require.Equal(t, dir == "/two", res.Existing)
	}
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.csv"), []byte("file\nx\n"), 0o600))
	}
	const relative = "INSERT INTO lake.i.other FROM 'a.csv'"
	_, err = from(one, relative)
	require.NoError(t, err)
	_, err = from(two, relative)
	require.ErrorContains(t, err, "sent from the directory "+one)
	_, err = cl.Exec(harness.Context(t), relative, client.WithIdempotencyKey(relative), client.WithBaseDir(one), client.WithDefaults("lake", ""))
	require.ErrorContains(t, err, "another default catalog or schema")

	for _, bad := range []string{"INSERT INTO lake.i.t SELECT 'x' || i FROM range(3) r(i)", "INSERT INTO lake.i.t SELECT CAST('x' || i AS BIGINT) FROM range(3) r(i)"} {
		_, err = cl.Exec(harness.Context(t), bad, client.WithIdempotencyKey("other"))
		require.Error(t, err)
	}
	res, err := cl.Exec(harness.Context(t), "INSERT INTO lake.i.t SELECT 200 AS id", client.WithIdempotencyKey("other"))
	require.NoError(t, err)
	require.False(t, res.Existing)
	require.Len(t, idsOf(t, c.Table("i", "t")), 101)
}

// The same key eight times at once, in one process each.
func TestKey_ManyAtOnce(t *testing.T) {
	t.Parallel()
	c := newKeyed(t)
	for round := range 3 {
		snapshots := make(chan int64)
		for range 8 {
			go func() {
				row, _, err := write(t, c, fmt.Sprintf("round %d", round))
				if err != nil {
					t.Error(err)
				}
				snapshots <- row.snapshot
			}()
		}
		seen := map[int64]bool{}
		for range 8 {
			seen[<-snapshots] = true
		}
		require.Len(t, seen, 1)
	}
	require.Equal(t, 3, c.Table("i", "t").Snapshots)
	for _, j := range c.JobsAbout("INSERT INTO lake.i.t") {
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState())
	}
	require.Len(t, c.JobsAbout("INSERT INTO lake.i.t"), 3)
}
