package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// Who dies.
const (
	scheduler = "scheduler"
	executor  = "executor"
	plugin    = "plugin"
)

// crash is a process that dies at a fault point while a statement runs.
type crash struct {
	point   string
	passing int    // hits that it survives
	who     string // whose point it is
	do      string // a statement of statements
	again   string // another point, where the scheduler that recovers dies too
	after   bool   // the point comes when the statement may have been answered
	lost    bool   // it takes away the answer of a statement that cannot be told from another's: it fails, and says so
	sampled bool   // the same is done to another statement too: one in three is run, unless SIGNET_CRASHES=all
}

func (c crash) name() string {
	name := c.do + "/" + c.point
	if c.passing > 0 {
		name += fmt.Sprintf("+%d", c.passing)
	}
	if c.again != "" {
		name += "," + c.again
	}
	return name
}

const (
	bulkFiles, bulkRows = 3, 130 // 3 tasks
	baseline            = 10     // rows, with ids below 0, that are there before
)

// statement is what runs while something dies.
type statement struct {
	prepare  string // before; %s is the table
	staged   string // after that, under the wap.id w
	moved    string // after that, on main
	text     string
	rows     int    // of the table afterwards
	commits  int    // snapshots that it adds
	exists   bool   // whether there is a table afterwards
	fails    bool   // whether it must fail, rather than succeed
	mayFail  string // for this reason, and nothing of it is there then
	set      map[string]string
	answers  int    // rows of the result
	then     string // a query that must give rowsOf rows afterwards
	rowsOf   int
	unmarked bool // it defines a table and takes no seal: the log has no marker of it
}

// withSmallFiles has the same rows in five files.
const withSmallFiles = "CREATE TABLE %[1]s AS SELECT i AS id FROM range(-10, -8) r(i); INSERT INTO %[1]s SELECT i FROM range(-8, -6) r(i); " +
	"INSERT INTO %[1]s SELECT i FROM range(-6, -4) r(i); INSERT INTO %[1]s SELECT i FROM range(-4, -2) r(i); INSERT INTO %[1]s SELECT i FROM range(-2, 0) r(i)"

// withMergeOnRead has one row deleted by an earlier statement, and another updated.
func withMergeOnRead(version string) string {
	return "CREATE TABLE %[1]s WITH ('format-version' = '" + version + "', " + mergeOnRead + ") AS SELECT i AS id FROM range(-12, 0) r(i); " +
		"DELETE FROM %[1]s WHERE id = -11; UPDATE %[1]s SET id = -20 WHERE id = -12; DELETE FROM %[1]s WHERE id = -20"
}

const (
	deleteSome = "DELETE FROM {table} WHERE id IN (SELECT -id FROM '{input}') AND id > -6"
	// mergeSome deletes half of the rows, updates the other half and adds what the table has not.
	mergeSome = "MERGE INTO {table} AS t USING '{input}' AS s ON t.id = -s.id WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET id = t.id - 1000 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
)

// withPads has the columns of the input.
const withPads = "CREATE TABLE %s AS SELECT i AS id, 'x'::BLOB AS pad FROM range(-10, 0) r(i)"

// withStaging lets statements be staged.
const withStaging = "CREATE TABLE %s PARTITIONED BY (bucket(2, id)) WITH ('write.wap.enabled' = 'true', 'format-version' = '3') AS SELECT i AS id FROM range(-10, 0) r(i)"

const withBaseline = "CREATE TABLE %s AS SELECT i AS id FROM range(-10, 0) r(i)"

var statements = map[string]statement{
	"insert": {prepare: withBaseline, text: "INSERT INTO {table} SELECT id FROM '{input}'", rows: baseline + bulkFiles*bulkRows, commits: 1, exists: true},
	"insert v1": {
		prepare: "CREATE TABLE %s WITH ('format-version' = '1') AS SELECT i AS id FROM range(-10, 0) r(i)", text: "INSERT INTO {table} SELECT id FROM '{input}'",
		rows: baseline + bulkFiles*bulkRows, commits: 1, exists: true,
	},
	"ctas":   {text: "CREATE TABLE {table} AS SELECT id FROM '{input}'", rows: bulkFiles * bulkRows, commits: 1, exists: true},
	"create": {text: "CREATE TABLE {table} (id BIGINT) PARTITIONED BY (bucket(4, id))", exists: true},
	"drop":   {prepare: withBaseline, text: "DROP TABLE {table}"},
	"overwrite": {
		prepare: withBaseline, text: "INSERT OVERWRITE {table} SELECT id FROM '{input}'", rows: bulkFiles * bulkRows, commits: 1, exists: true,
	},
	"overwrite by filter": {
		prepare: "CREATE TABLE %s PARTITIONED BY (p) AS SELECT i AS id, i & 1 AS p FROM range(-10, 0) r(i)",
		text:    "INSERT INTO {table} REPLACE WHERE p = 0 SELECT id, 0 AS p FROM '{input}'", rows: baseline/2 + bulkFiles*bulkRows, commits: 1, exists: true,
	},
	"delete": {prepare: withBaseline, text: "DELETE FROM {table} WHERE id IN (SELECT -id FROM '{input}') AND id > -6", rows: baseline - 5, commits: 1, exists: true},
	"merge": {
		prepare: withBaseline, text: "MERGE INTO {table} AS t USING '{input}' AS s ON t.id = -s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
		rows: bulkFiles*bulkRows - baseline, commits: 1, exists: true,
	},
	"delete on read":    {prepare: withMergeOnRead("2"), text: deleteSome, rows: baseline - 5, commits: 1, exists: true},
	"delete by vectors": {prepare: withMergeOnRead("3"), text: deleteSome, rows: baseline - 5, commits: 1, exists: true},
	"merge on read":     {prepare: withMergeOnRead("2"), text: mergeSome, rows: bulkFiles*bulkRows - 5, commits: 1, exists: true},
	"merge by vectors":  {prepare: withMergeOnRead("3"), text: mergeSome, rows: bulkFiles*bulkRows - 5, commits: 1, exists: true},
	"truncate":          {prepare: withBaseline, text: "TRUNCATE TABLE {table}", commits: 1, exists: true},
	"replace": {
		prepare: withBaseline, text: "CREATE OR REPLACE TABLE {table} AS SELECT id FROM '{input}'", rows: bulkFiles * bulkRows, commits: 1, exists: true,
	},
	"alter": {
		prepare: withBaseline, text: "ALTER TABLE {table} ADD COLUMN extra VARCHAR COMMENT 'x'", rows: baseline, exists: true,
		then: "SELECT id FROM {table} WHERE extra IS NULL", rowsOf: baseline,
	},
	"rewrite": {prepare: withSmallFiles, text: "CALL system.rewrite_data_files(table => '{table}')", rows: baseline, commits: 1, exists: true},
	"add files": {
		prepare: withPads, text: "ALTER TABLE {table} ADD FILES FROM '{input}'", rows: baseline + bulkFiles*bulkRows, commits: 1, exists: true,
		then: "SELECT id FROM {table} WHERE id >= 0", rowsOf: bulkFiles * bulkRows,
	},
	"add copies":        {prepare: withPads, text: "ALTER TABLE {table} ADD FILES FROM '{input}' WITH (copy = true)", rows: baseline + bulkFiles*bulkRows, commits: 1, exists: true},
	"rewrite manifests": {prepare: withSmallFiles, text: "CALL system.rewrite_manifests('{table}')", rows: baseline, commits: 1, exists: true},
	"publish": {
		prepare: withStaging, staged: "INSERT INTO %s SELECT i FROM range(100, 105) r(i)", moved: "INSERT INTO %s VALUES (50)",
		text: "CALL system.publish_changes('{table}', 'w')", rows: baseline + 6, commits: 1, exists: true,
	},
	"publish partitions": {
		prepare: "CREATE TABLE %s PARTITIONED BY (p) WITH ('write.wap.enabled' = 'true') AS SELECT i AS id, i & 1 AS p FROM range(-10, 0) r(i)",
		staged:  "INSERT OVERWRITE PARTITIONS INTO %s SELECT i AS id, CAST(0 AS BIGINT) AS p FROM range(100, 105) r(i)", moved: "INSERT INTO %s VALUES (50, 1)",
		text: "CALL system.publish_changes('{table}', 'w')", rows: baseline/2 + 6, commits: 1, exists: true,
	},
	"publish at once": {
		prepare: withStaging, staged: "DELETE FROM %s WHERE id < -5", text: "CALL system.publish_changes('{table}', 'w')", rows: baseline - 5, exists: true,
	},
	"select": {prepare: withBaseline, text: "SELECT id FROM {table}", rows: baseline, exists: true},
	// One of its tasks fails when the others may have written.
	"bad insert": {
		prepare: withBaseline, text: "INSERT INTO {table} SELECT CASE WHEN id = 389 THEN error('no such row') ELSE id END AS id FROM '{input}'",
		rows: baseline, exists: true, fails: true,
	},
	"staged insert": {
		prepare: withBaseline, text: "INSERT INTO {table} SELECT a.id FROM '{input}' a JOIN '{input}' b USING (id) GROUP BY a.id",
		rows: baseline + bulkFiles*bulkRows, commits: 1, exists: true, set: stagedSettings,
	},
	"staged select": {
		prepare: withBaseline, text: "SELECT id, count(*) AS n FROM '{input}' GROUP BY id -- {table}",
		rows: baseline, exists: true, set: stagedSettings, answers: bulkFiles * bulkRows,
	},
	// Which rows of the first stage are which partition's depends on when they are computed. What they have become a part of cannot be taken back once it is accepted (S73).
	"unrepeatable insert": {
		mayFail: "is accepted, and what it read would not come out the same again",
		prepare: withBaseline, text: "INSERT INTO {table} SELECT CAST(round(x) AS BIGINT) FROM (SELECT id, min(id) + sum(id / 1e300) AS x FROM '{input}' GROUP BY id) q GROUP BY x",
		rows: baseline + bulkFiles*bulkRows, commits: 1, exists: true, set: stagedSettings,
	},
	"cache": {
		prepare: withBaseline, text: "CACHE TABLE cached_{name} AS SELECT id, count(*) AS n FROM '{input}' GROUP BY id -- {table}",
		rows: baseline, exists: true, set: map[string]string{"signet.min_task_bytes": "1000"}, answers: 1, then: "SELECT id FROM cached_{name}", rowsOf: bulkFiles * bulkRows,
	},
	"root select": {
		prepare: withBaseline, text: "SELECT id, count(*) AS n FROM '{input}' GROUP BY id -- {table}",
		rows: baseline, exists: true, set: map[string]string{"signet.min_task_bytes": "1000", "signet.scheduler.root": "Result"}, answers: bulkFiles * bulkRows,
	},
}

// stage is a cluster on which crashes happen one after the other.
type crashStage struct {
	*harness.Cluster
	faults harness.Faults
	env    string
	input  string
	sinks  int // plugin processes
	n      int
	states map[string]schedulerv1.JobState // of the jobs that have ended
}

func newCrashStage(t *testing.T, points []string, catalogs string) *crashStage {
	s := &crashStage{sinks: 1 + strings.Count(catalogs, "type: sink") + strings.Count(catalogs, "type: delta"), faults: harness.NewFaults(t), states: map[string]schedulerv1.JobState{}}
	s.env = s.faults.Env(points...)
	raw := t.TempDir()
	s.input = harness.Bulky(t, raw, bulkFiles, bulkRows)
	catalogs = "    add_files_paths: [file://" + raw + "]\n" + catalogs
	s.Cluster = harness.New(t, harness.Options{CatalogConfig: catalogs})
	tmp := filepath.Join(s.Dir, "tmp")
	require.NoError(t, os.Mkdir(tmp, 0o700))
	s.Scheduler.Terminate(t)
	s.startScheduler()
	s.StartExecutor(s.env, "TMPDIR="+tmp)
	s.StartExecutor(s.env, "TMPDIR="+tmp)
	s.AwaitExecutors(2)
	s.SQL("CREATE SCHEMA lake.crash")
	return s
}

// startScheduler starts one that bears it that each of three executors dies once under one task.
func (s *crashStage) startScheduler() {
	s.StartScheduler(s.env, "TMPDIR="+s.tmp(), "SIGNET_LIMITS_TASK_LOSSES=4")
}

func (s *crashStage) tmp() string { return filepath.Join(s.Dir, "tmp") }

// revive starts what has died, and says who that was.
func (s *crashStage) revive(t *testing.T, again string) (died string) {
	if s.Scheduler.Ended() {
		require.True(t, s.Scheduler.Killed(), "the scheduler ended by itself: %v", s.Scheduler.Err)
		if again != "" {
			s.faults.ArmAhead(t, again)
			s.StartSchedulerToDie(s.env, "TMPDIR="+s.tmp())
			s.faults.Disarm(t, again)
		}
		s.startScheduler()
		died = scheduler
	}
	for i, p := range s.Executors {
		if p.Ended() {
			require.True(t, p.Killed(), "%s ended by itself", p.Name)
			s.RestartExecutor(i, s.env, "TMPDIR="+s.tmp())
			died = executor
		}
	}
	return died
}

// awaitAll waits until everybody is back.
func (s *crashStage) awaitAll(t *testing.T) {
	harness.Eventually(t, "everybody is back", func() bool {
		s.revive(t, "")
		return s.Registered() == len(s.Executors)
	})
}

// renewSupervisor gives the plugin a new supervisor: the old one waits longer after each crash.
func (s *crashStage) renewSupervisor(t *testing.T) {
	s.Scheduler.Terminate(t)
	s.startScheduler()
	s.AwaitExecutors(len(s.Executors))
}

// execute runs a statement through the client, which bears with a scheduler that is away.
func (s *crashStage) execute(t *testing.T, key, text string) error {
	var err error
	harness.Soon(harness.Patience, func() bool { // if it died while it was dialled nothing was submitted
		_, err = s.ask(t, key, text, nil)
		return !errors.Is(err, client.ErrUnreachable)
	})
	return err
}

// ask is execute with settings. It returns how many rows came back.
func (s *crashStage) ask(t *testing.T, key, text string, set map[string]string) (int, error) {
	cl, err := client.Dial(s.Address, client.WithRetry(harness.Patience))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	r, err := cl.Exec(harness.Context(t), text, client.WithIdempotencyKey(key), client.WithSettings(set))
	if err != nil || set == nil {
		return 0, err
	}
	return countRows(t, r)
}

// trial is one statement during which something dies.
type trial struct {
	*crashStage
	t      *testing.T
	crash  crash
	st     statement
	name   string
	text   string
	before harness.Table
}

// run executes a statement while the crash happens, and checks what came of it. How often one process of several passes a point depends on
// which tasks it gets: if none has passed it often enough, the statement runs again, and less is let pass.
func (s *crashStage) run(t *testing.T, c crash) {
	s.Use(t)
	s.revive(t, "") // whom an earlier failure has left dead
	for !s.try(t, c) {
		require.Positive(t, c.passing, "answered, and nobody has died: the point was not reached")
		t.Logf("no process has passed %s %d times", c.point, c.passing)
		c.passing--
	}
}

// try says whether the point was reached.
func (s *crashStage) try(t *testing.T, c crash) bool {
	s.n++
	x := &trial{crashStage: s, t: t, crash: c, st: statements[c.do], name: fmt.Sprintf("t%d", s.n)}
	table := "lake.crash." + x.name
	if x.st.prepare != "" {
		s.SQL(fmt.Sprintf(x.st.prepare, table))
	}
	if x.st.staged != "" {
		s.SQL(fmt.Sprintf(x.st.staged, table), "--set", "signet.wap_id=w")
	}
	if x.st.moved != "" {
		s.SQL(fmt.Sprintf(x.st.moved, table))
	}
	x.text = x.fill(x.st.text)
	x.before = s.Table("crash", x.name)
	reached, err := x.crashing()
	if !reached {
		require.Equal(t, x.st.fails, err != nil, err)
		return false
	}
	s.awaitAll(t)
	x.check(err)
	return true
}

// fill puts names into a statement.
func (x *trial) fill(text string) string {
	return strings.NewReplacer("{table}", "lake.crash."+x.name, "{name}", x.name, "{input}", x.input).Replace(text)
}

// crashing runs the statement, revives who dies, and returns whether somebody did, and the answer.
func (x *trial) crashing() (bool, error) {
	if x.crash.who == plugin {
		x.renewSupervisor(x.t)
	}
	plugins := x.pluginPIDs()
	x.faults.Arm(x.t, x.crash.point, x.crash.passing)
	defer x.faults.Disarm(x.t, x.crash.point)
	answer := make(chan error, 1)
	start := time.Now()
	go func() {
		var n int
		var err error
		harness.Soon(harness.Patience, func() bool { // if it died while it was dialled nothing was submitted
			n, err = x.ask(x.t, "key of "+x.name, x.text, x.st.set)
			return !errors.Is(err, client.ErrUnreachable)
		})
		if err == nil && x.st.answers > 0 && n != x.st.answers {
			err = fmt.Errorf("%d rows came back, of %d", n, x.st.answers)
		}
		answer <- err
	}()
	var err error
	died := ""
	var answered time.Time
	harness.Eventually(x.t, x.crash.who+" dies at "+x.crash.point+", and the statement is answered", func() bool {
		if answered.IsZero() {
			select {
			case err = <-answer:
				answered = time.Now()
			default:
			}
		}
		if d := x.revive(x.t, x.crash.again); d != "" {
			died = d
		}
		if x.crash.who == plugin && !x.samePlugins(plugins) {
			died = plugin
		}
		if answered.IsZero() {
			return false
		}
		return died != "" || !x.crash.after && time.Since(answered) > time.Second // a death is seen a moment later
	})
	x.t.Logf("answered after %s: %v", answered.Sub(start).Round(time.Millisecond), err)
	if died == "" {
		return false, err
	}
	require.Equal(x.t, x.crash.who, died)
	return true, err
}

// pluginPIDs are those of all sinks, which start by themselves.
func (x *trial) pluginPIDs() []int {
	var out []int
	harness.Eventually(x.t, "the plugins run", func() bool {
		out = nil
		for _, p := range x.Plugins() {
			out = append(out, p.PID)
		}
		return len(out) >= x.sinks
	})
	return out
}

func (x *trial) samePlugins(pids []int) bool {
	now := x.Plugins()
	return !slices.ContainsFunc(pids, func(pid int) bool {
		return !slices.ContainsFunc(now, func(p harness.Proc) bool { return p.PID == pid })
	})
}

// check compares the job's end with the truth of the table, read past Signet (S62).
func (x *trial) check(err error) {
	t := x.t
	jobs := x.JobsAbout("lake.crash." + x.name)
	jobs = slices.DeleteFunc(jobs, func(j *schedulerv1.Job) bool { return j.GetStatement() != x.text })
	require.Len(t, jobs, 1, "the statement ran as one job")
	job, want := jobs[0], schedulerv1.JobState_JOB_STATE_SUCCESSFUL
	switch {
	case x.crash.lost:
		want = schedulerv1.JobState_JOB_STATE_FAILED
		if x.st.answers > 0 {
			require.ErrorContains(t, err, "the scheduler restarted while it ran")
		} else {
			require.ErrorContains(t, err, "made by it, or by another")
		}
	case x.st.fails:
		want = schedulerv1.JobState_JOB_STATE_FAILED
		require.Error(t, err)
	case x.st.mayFail != "" && err != nil:
		want = schedulerv1.JobState_JOB_STATE_FAILED
		require.ErrorContains(t, err, x.st.mayFail)
		x.st.rows, x.st.commits = baseline, 0
	default:
		require.NoError(t, err)
	}
	require.Equal(t, want, job.GetState(), job)
	require.NotErrorIs(t, err, client.ErrPending)
	x.states[job.GetJobId()] = job.GetState()

	if x.st.then != "" && !x.crash.lost {
		require.Len(t, x.SQL(x.fill(x.st.then)), x.st.rowsOf)
	}
	after := x.Table("crash", x.name)
	require.Equal(t, x.st.exists, after.Exists)
	if !x.st.exists {
		return // a dropped table leaves its files, as documented
	}
	require.Equal(t, x.before.Snapshots+x.st.commits, after.Snapshots)
	x.checkRows(after)
	requireLanded(t, after, job.GetJobId(), x.st.commits)
	x.awaitClean(t, x.name, x.mayStay)
}

// checkRows counts the rows by their ids: once or not at all, and those that were there before, too.
func (x *trial) checkRows(after harness.Table) {
	require.Len(x.t, idsOf(x.t, after), x.st.rows)
	require.EqualValues(x.t, x.st.rows, after.Records, "what the manifests say")
	if x.st.fails {
		require.Equal(x.t, x.before.MetadataLocation, after.MetadataLocation, "the table is as before")
	}
}

// idsOf reads the ids from a table's data files and delete files; none may come twice.
func idsOf(t *testing.T, tab harness.Table) map[int64]bool {
	seen := map[int64]bool{}
	for _, id := range tab.IDs(t, "id") {
		require.False(t, seen[id], "row %d is there twice", id)
		seen[id] = true
	}
	return seen
}

// requireLanded looks for a job in the table's history, and checks that each snapshot's marker is there once.
func requireLanded(t *testing.T, tab harness.Table, job string, times int) {
	found, markers := 0, map[string]bool{}
	for _, m := range tab.Markers {
		marker, _, _ := strings.Cut(m, ":")
		require.False(t, markers[marker], "marker %s twice", marker)
		markers[marker] = true
	}
	units := 0
	for _, snap := range tab.Metadata.Snapshots() {
		own := strings.Split(snap.Summary.Properties["signet.markers"], ",")
		units += len(own)
		if strings.Contains(snap.Summary.Properties["signet.job-ids"], job) {
			found++
			for _, m := range own {
				require.Contains(t, tab.Markers, fmt.Sprintf("%s:%d", m, snap.SnapshotID))
			}
		}
	}
	require.Equal(t, times, found, "snapshots of the job")
	require.Len(t, tab.Markers, units)
}

// awaitClean waits for the clean-up: no file of the table that no snapshot refers to, nothing in scratch.
func (s *crashStage) awaitClean(t *testing.T, name string, mayStay func(string) bool) {
	var left []string
	done := harness.Soon(harness.Patience, func() bool {
		left = slices.DeleteFunc(s.Table("crash", name).Orphans, func(path string) bool {
			return strings.HasSuffix(path, ".metadata.json") || mayStay != nil && mayStay(path)
		})
		scratch, err := filepath.Glob(filepath.Join(s.Dir, "scratch-*", "signet-*", "*-*-*-*-*")) // of attempts
		require.NoError(t, err)
		left = append(left, scratch...)
		return len(left) == 0
	})
	require.True(t, done, "left over:\n%s", strings.Join(left, "\n"))
}

// mayStay: a scheduler that dies between writing the table's next metadata and the swap that makes it current leaves that one file
// (awaitClean), and one that dies while it removes metadata that no snapshot refers to leaves the rest to orphan removal. Data files never stay.
func (x *trial) mayStay(path string) bool {
	return x.crash.again == "broker.sweep.before" && strings.HasSuffix(path, ".avro")
}

// leftovers are what processes that have ended in order must not leave.
func (s *crashStage) leftovers(t *testing.T) []string {
	var out []string
	for _, pattern := range []string{"tmp/*", "scratch-*/*", "data/plugins/*"} {
		found, err := filepath.Glob(filepath.Join(s.Dir, pattern))
		require.NoError(t, err)
		out = append(out, found...)
	}
	return out
}
