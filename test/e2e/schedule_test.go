package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// scheduled is a cluster whose catalog has a schedule, with the schema lake.s.
func scheduled(t *testing.T, when string, env ...string) *harness.Cluster {
	t.Helper()
	c := harness.New(t, harness.Options{
		Executors: 1, SchedulerEnv: env, CatalogConfig: "    maintenance: {expire_snapshots: {" + when + "}}\n",
		Config: httpConfig,
	})
	c.SQL("CREATE SCHEMA lake.s")
	return c
}

// shortLived makes a table whose snapshots may all go but the newest.
func shortLived(c *harness.Cluster, table, more string) {
	c.SQL("CREATE TABLE lake.s." + table + " (id BIGINT) TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1'" + more + ")")
}

func inserts(c *harness.Cluster, table string, n int) {
	for i := range n {
		c.SQL(fmt.Sprintf("INSERT INTO lake.s.%s VALUES (%d)", table, i))
	}
}

// expiries are the scheduled jobs of a table, newest first.
func expiries(c *harness.Cluster, table string) []*schedulerv1.Job {
	return c.JobsAbout(fmt.Sprintf("CALL system.expire_snapshots(table => 'lake.s.%s')", table))
}

// shrunk waits until a table has so many snapshots, and nothing lies around that none of them needs.
func shrunk(t *testing.T, c *harness.Cluster, table string, snapshots int) {
	t.Helper()
	harness.Eventually(t, table+" has few snapshots", func() bool { return len(c.SQL("SHOW SNAPSHOTS FROM lake.s."+table)) == snapshots })
	harness.Eventually(t, table+" has no other files", func() bool { return len(c.Table("s", table).Orphans) == 0 }) // those of the snapshots are not in doubt by now
}

// J18: those that are to be left out are.
func TestSchedule_ByCommits(t *testing.T) {
	t.Parallel()
	c := scheduled(t, "after_commits: 3")
	shortLived(c, "t", ", 'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '2'")
	shortLived(c, "kept", ", 'signet.maintenance.expire-snapshots' = 'false'")
	shortLived(c, "shared", ", 'gc.enabled' = 'false'")
	inserts(c, "t", 2)
	inserts(c, "kept", 3)
	inserts(c, "shared", 3)
	counted := func(result, n string) bool {
		text := (&viewed{held: &held{Cluster: c, t: t}}).rest("GET", "/api/metrics", "", 200)
		return strings.Contains(text, `signet_maintenance_total{catalog="lake",procedure="expire_snapshots",result="`+result+`"} `+n+"\n")
	}
	harness.Eventually(t, "the excluded tables are looked at", func() bool { return counted("excluded", "2") })
	require.Empty(t, expiries(c, "t"), "two commits are not three")
	inserts(c, "t", 1)
	shrunk(t, c, "t", 1)
	harness.Eventually(t, "its job ends", func() bool {
		jobs := expiries(c, "t")
		return len(jobs) == 1 && jobs[0].GetState() == schedulerv1.JobState_JOB_STATE_SUCCESSFUL
	})
	require.Equal(t, "signet/maintenance", expiries(c, "t")[0].GetPrincipal())
	harness.Eventually(t, "it is counted", func() bool { return counted("done", "1") })
	inserts(c, "t", 3)
	shrunk(t, c, "t", 1)
	require.Equal(t, "6", c.Value("SELECT count(*) FROM lake.s.t"))
	files, err := filepath.Glob(filepath.Join(c.Dir, "warehouse", "s", "t", "metadata", "*.metadata.json"))
	require.NoError(t, err)
	require.Len(t, files, 3, "the current one and two before it")
	for _, table := range []string{"kept", "shared"} {
		require.Equal(t, 3, c.Table("s", table).Snapshots)
		require.Empty(t, expiries(c, table))
	}
	c.Fail(1, "ALTER TABLE lake.s.t SET TBLPROPERTIES ('signet.maintenance.expire-snapshots' = 'no')", "want true or false")
}

// All tables come to their turn in each period, also those that the scheduler has not written.
func TestSchedule_ByPeriod(t *testing.T) {
	t.Parallel()
	c := scheduled(t, "every: 1s")
	c.SQL("CREATE SCHEMA lake.r; CREATE TABLE lake.r.\"o'dd t\" (id BIGINT) TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')")
	shortLived(c, "t", "")
	for range 2 {
		inserts(c, "t", 2)
		c.SQL("INSERT INTO lake.r.\"o'dd t\" VALUES (1)")
		shrunk(t, c, "t", 1)
		harness.Eventually(t, "the other schema's, too", func() bool { return len(c.SQL(`SHOW SNAPSHOTS FROM lake.r."o'dd t"`)) == 1 })
	}
	c.SQL("DROP TABLE lake.s.t")
	shortLived(c, "u", "")
	inserts(c, "u", 2)
	shrunk(t, c, "u", 1)
	for _, j := range c.AwaitJobs() {
		require.Equal(t, "Successful", j.State, "%v", j)
	}
}

// J16: a restart begins no second run of a table in the same period; those whose turn has not come have it.
func TestSchedule_OverRestarts(t *testing.T) {
	t.Parallel()
	c := scheduled(t, "every: 24h, after_commits: 100")
	again := func() {
		c.Scheduler.Terminate(t)
		c.StartScheduler()
		c.AwaitExecutors(1)
	}
	shortLived(c, "t", "")
	inserts(c, "t", 3)
	again()
	shrunk(t, c, "t", 1)
	inserts(c, "t", 2)
	shortLived(c, "u", "")
	inserts(c, "u", 3)
	again()
	shrunk(t, c, "u", 1)
	require.Equal(t, 3, c.Table("s", "t").Snapshots, "it has had its run")
	require.Len(t, expiries(c, "t"), 1)
}

// What this scheduler committed before a restart counts.
func TestSchedule_CountsOverARestart(t *testing.T) {
	t.Parallel()
	c := scheduled(t, "after_commits: 4")
	shortLived(c, "t", "")
	inserts(c, "t", 3)
	c.Scheduler.Terminate(t)
	c.StartScheduler()
	c.AwaitExecutors(1)
	require.Equal(t, 3, c.Table("s", "t").Snapshots)
	inserts(c, "t", 1)
	shrunk(t, c, "t", 1)
	require.Len(t, expiries(c, "t"), 1)
}

// J17: a table that cannot be maintained is left alone for longer each time, also over a restart, and is in nobody's way.
func TestSchedule_FailuresBackOff(t *testing.T) {
	t.Parallel()
	c := scheduled(t, "after_commits: 2")
	shortLived(c, "bad", "")
	shortLived(c, "good", "")
	inserts(c, "bad", 1)
	c.RewriteMetadata("s", "bad", func(md map[string]any) {
		md["properties"].(map[string]any)["history.expire.max-snapshot-age-ms"] = "soon"
	})
	inserts(c, "bad", 1)
	harness.Eventually(t, "it fails", func() bool {
		jobs := expiries(c, "bad")
		return len(jobs) > 0 && jobs[0].GetState() == schedulerv1.JobState_JOB_STATE_FAILED
	})
	require.Contains(t, expiries(c, "bad")[0].GetError().GetMessage(), "max-snapshot-age-ms")
	for range 2 {
		inserts(c, "bad", 3)
		inserts(c, "good", 2)
		shrunk(t, c, "good", 1)
		c.Scheduler.Terminate(t)
		c.StartScheduler()
		c.AwaitExecutors(1)
	}
	jobs := expiries(c, "bad")
	wait := int64(60_000)
	for i := len(jobs) - 1; i > 0; i-- { // one, unless this machine took minutes
		require.GreaterOrEqual(t, jobs[i-1].GetSubmittedMillis(), jobs[i].GetFinishedMillis()+wait)
		wait *= 2
	}
	require.Equal(t, "8", c.Value("SELECT count(*) FROM lake.s.bad"))
}

// The scheduler dies at each step of a scheduled expiry: one job does it, nothing is left, and nothing is missing.
func TestSchedule_OverCrashes(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"scheduler.submit.after-journal", "scheduler.expire.after-commit", "upkeep.expire.before-remove", "scheduler.expire.before-done", "broker.alter.before", "broker.alter.after",
	} {
		t.Run(point, func(t *testing.T) {
			faults := harness.NewFaults(t)
			env := faults.Env(point)
			c := scheduled(t, "after_commits: 3", env)
			shortLived(c, "t", "")
			inserts(c, "t", 2)
			passing := 0
			if point == "scheduler.submit.after-journal" {
				passing = 1 // the INSERT itself
			}
			faults.Arm(t, point, passing)
			answer := make(chan error, 1)
			go func() {
				cl, err := client.Dial(c.Address, client.WithRetry(harness.Patience))
				if err != nil {
					answer <- err
					return
				}
				defer cl.Close()
				_, err = cl.Exec(harness.Context(t), "INSERT INTO lake.s.t VALUES (7)", client.WithIdempotencyKey("third"))
				answer <- err
			}()
			c.Scheduler.Wait(t)
			require.True(t, c.Scheduler.Killed())
			faults.Disarm(t, point)
			c.StartScheduler(env)
			require.NoError(t, <-answer)
			shrunk(t, c, "t", 1)
			c.AwaitExecutors(1)
			require.Equal(t, "3", c.Value("SELECT count(*) FROM lake.s.t"))
			for _, j := range c.AwaitJobs() {
				require.Equal(t, "Successful", j.State, "%v", j)
			}
			require.Len(t, expiries(c, "t"), 1)
		})
	}
}

// Writers and readers notice nothing of expiries beside them: no statement fails, and no row is missing.
func TestSchedule_BesideWritersAndReaders(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 15
	c := scheduled(t, "after_commits: 2, every: 1s")
	shortLived(c, "t", "")
	cl := c.Client()
	ctx := harness.Context(t)
	errs := make(chan error, writers+1)
	over := make(chan struct{})
	for w := range writers {
		go func() {
			for i := range each {
				if _, err := cl.Exec(ctx, fmt.Sprintf("INSERT INTO lake.s.t VALUES (%d)", w*each+i)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	go func() {
		for last := int64(0); ; {
			rows, err := rowsOf(ctx, cl, "lake.s.t")
			if err == nil && rows < last {
				err = fmt.Errorf("%d rows, and %d before", rows, last)
			}
			if last = rows; err != nil {
				errs <- err
				return
			}
			select {
			case <-over:
				errs <- nil
				return
			default:
			}
		}
	}()
	for range writers {
		require.NoError(t, <-errs)
	}
	close(over)
	require.NoError(t, <-errs)
	shrunk(t, c, "t", 1)
	require.Equal(t, fmt.Sprint(writers*each), c.Value("SELECT count(DISTINCT id) FROM lake.s.t"))
	for _, j := range c.AwaitJobs() {
		require.Equal(t, "Successful", j.State, "%v", j)
	}
}

// rowsOf counts the rows that reading a table's files gives.
func rowsOf(ctx context.Context, cl *client.Client, table string) (n int64, err error) {
	rows, err := cl.Query(ctx, "SELECT id FROM "+table)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		n += rows.RecordBatch().NumRows()
	}
	err = rows.Err()
	rows.Close()
	return n, err
}
