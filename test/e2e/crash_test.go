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
	after   bool   // the point comes when the statement has been answered
}

func (c crash) name() string {
	name := c.do + "/" + c.point
	if c.passing > 0 {
		name += fmt.Sprintf("+%d", c.passing)
	}
	return name
}

const (
	bulkFiles, bulkRows = 3, 130 // 3 tasks
	baseline            = 10     // rows, with ids below 0, that are there before
)

// statement is what runs while something dies.
type statement struct {
	prepare string // before; %s is the table
	text    string // %[1]s is the table, %[2]s the input
	rows    int    // of the table afterwards, where it succeeded
	commits int    // snapshots that it adds
	exists  bool   // whether there is a table afterwards, where it succeeded
	fails   bool   // whether it must fail, rather than succeed
}

const withBaseline = "CREATE TABLE %s AS SELECT i AS id FROM range(-10, 0) r(i)"

var statements = map[string]statement{
	"insert": {prepare: withBaseline, text: "INSERT INTO %[1]s SELECT id FROM '%[2]s'", rows: baseline + bulkFiles*bulkRows, commits: 1, exists: true},
	"ctas":   {text: "CREATE TABLE %[1]s AS SELECT id FROM '%[2]s'", rows: bulkFiles * bulkRows, commits: 1, exists: true},
	"create": {text: "CREATE TABLE %[1]s (id BIGINT) PARTITIONED BY (bucket(4, id))", exists: true},
	"drop":   {prepare: withBaseline, text: "DROP TABLE %[1]s"},
	"select": {prepare: withBaseline, text: "SELECT id FROM %[1]s", rows: baseline, exists: true},
	// One of its tasks fails when the others may have written.
	"bad insert": {
		prepare: withBaseline, text: "INSERT INTO %[1]s SELECT CASE WHEN id = 389 THEN error('no such row') ELSE id END FROM '%[2]s'", exists: true, fails: true,
	},
}

// stage is a cluster on which crashes happen one after the other.
type crashStage struct {
	*harness.Cluster
	faults harness.Faults
	env    string
	input  string
	n      int
	states map[string]schedulerv1.JobState // of the jobs that have ended
}

func newCrashStage(t *testing.T, points []string) *crashStage {
	s := &crashStage{faults: harness.NewFaults(t), states: map[string]schedulerv1.JobState{}}
	s.env = s.faults.Env(points...)
	s.input = harness.Bulky(t, t.TempDir(), bulkFiles, bulkRows)
	s.Cluster = harness.New(t, harness.Options{})
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

func (s *crashStage) startScheduler() { s.StartScheduler(s.env, "TMPDIR="+s.tmp()) }
func (s *crashStage) tmp() string     { return filepath.Join(s.Dir, "tmp") }

// revive starts what has died, and says who that was.
func (s *crashStage) revive(t *testing.T) (died string) {
	if s.Scheduler.Ended() {
		require.True(t, s.Scheduler.Killed(), "the scheduler ended by itself")
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

// run executes a statement while the crash happens, and checks what came of it.
func (s *crashStage) run(t *testing.T, c crash) {
	s.Use(t)
	s.n++
	name := fmt.Sprintf("t%d", s.n)
	table, st := "lake.crash."+name, statements[c.do]
	if st.prepare != "" {
		s.SQL(fmt.Sprintf(st.prepare, table))
	}
	before := s.Table("crash", name)
	plugins := s.pluginPIDs(t)
	s.faults.Arm(t, c.point, c.passing)
	defer s.faults.Disarm(t, c.point)

	text := st.text
	if strings.Contains(text, "%[2]s") {
		text = fmt.Sprintf(text, table, s.input)
	} else {
		text = fmt.Sprintf(text, table)
	}
	answer := make(chan error, 1)
	start := time.Now()
	go func() { answer <- s.execute(t, "key of "+name, text) }()

	var err error
	died, answered := "", false
	harness.Eventually(t, c.who+" dies at "+c.point+", and the statement is answered", func() bool {
		if !answered {
			select {
			case err = <-answer:
				answered = true
			default:
			}
		}
		if d := s.revive(t); d != "" {
			died = d
		}
		if died == "" && !s.samePlugins(plugins) {
			died = plugin
		}
		return answered && (died != "" || !c.after)
	})
	t.Logf("answered after %s: %v", time.Since(start).Round(time.Millisecond), err)
	require.Equal(t, c.who, died, "nobody died: the point was not reached, or another process died")
	s.AwaitExecutors(2)
	s.check(t, name, text, before, err)
}

// execute runs a statement through the client, which bears with a scheduler that is away.
func (s *crashStage) execute(t *testing.T, key, text string) error {
	cl, err := client.Dial(s.Address, client.WithRetry(harness.Patience))
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = cl.Exec(harness.Context(t), text, client.WithIdempotencyKey(key))
	return err
}

func (s *crashStage) pluginPIDs(t *testing.T) []int {
	var out []int
	harness.Eventually(t, "the plugin runs", func() bool {
		for _, p := range s.Plugins() {
			out = append(out, p.PID)
		}
		return len(out) > 0
	})
	return out
}

func (s *crashStage) samePlugins(pids []int) bool {
	now := s.Plugins()
	return slices.ContainsFunc(now, func(p harness.Proc) bool { return slices.Contains(pids, p.PID) })
}

// check compares the job's end with the truth of the table, read past Signet (S62).
func (s *crashStage) check(t *testing.T, name, text string, before harness.Table, err error) {
	jobs := s.JobsAbout("lake.crash." + name + " ")
	jobs = append(jobs, s.JobsAbout(text)...)
	jobs = slices.DeleteFunc(jobs, func(j *schedulerv1.Job) bool { return j.GetStatement() != text })
	ids := map[string]*schedulerv1.Job{}
	for _, j := range jobs {
		ids[j.GetJobId()] = j
	}
	require.Len(t, ids, 1, "the statement ran as one job")
	var job *schedulerv1.Job
	for _, job = range ids {
	}
	st := statements[s.kindOf(text)]
	if st.fails {
		require.Error(t, err)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, job.GetState(), job)
	} else {
		require.NoError(t, err)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job.GetState(), job)
	}
	require.False(t, errors.Is(err, client.ErrPending), err)
	s.states[job.GetJobId()] = job.GetState()

	after := s.Table("crash", name)
	require.Equal(t, st.exists, after.Exists)
	if !st.exists {
		return // a dropped table leaves its files, as documented
	}
	want := before
	if !st.fails {
		want.Snapshots += st.commits
	}
	require.Equal(t, want.Snapshots, after.Snapshots)
	if st.commits > 0 || st.fails {
		s.checkRows(t, st, before, after)
	}
	s.checkMarkers(t, job, after, !st.fails && st.commits > 0)
	s.checkNothingElse(t, name)
}

func (s *crashStage) kindOf(text string) string {
	for k, st := range statements {
		head := strings.Fields(st.text)
		if strings.HasPrefix(text, head[0]) && strings.Contains(text, "error(") == st.fails && (st.commits > 0) == strings.Contains(text, "*.parquet'") == !st.fails {
			return k
		}
	}
	return ""
}

// checkRows counts the rows by their ids: once or not at all, and those that were there before, too.
func (s *crashStage) checkRows(t *testing.T, st statement, before, after harness.Table) {
	seen := map[int64]int{}
	for _, f := range after.Files {
		for _, id := range harness.Int64s(t, f, "id") {
			seen[id]++
		}
	}
	for id, n := range seen {
		require.Equal(t, 1, n, "row %d", id)
	}
	if st.fails {
		require.Len(t, seen, int(before.Records))
		require.Equal(t, before.MetadataLocation, after.MetadataLocation, "the table is as before")
		return
	}
	require.Len(t, seen, st.rows)
	require.EqualValues(t, st.rows, after.Records, "what the manifests say")
}

// checkMarkers looks for the job in the table's history: there exactly once if it landed.
func (s *crashStage) checkMarkers(t *testing.T, job *schedulerv1.Job, tab harness.Table, landed bool) {
	found := 0
	for _, snap := range tab.Metadata.Snapshots() {
		if snap.Summary != nil && strings.Contains(snap.Summary.Properties["signet.job-ids"], job.GetJobId()) {
			found++
			marker := snap.Summary.Properties["signet.markers"]
			require.Contains(t, tab.Markers, fmt.Sprintf("%s:%d", marker, snap.SnapshotID))
		}
	}
	markers := map[string]bool{}
	for _, m := range tab.Markers {
		marker, _, _ := strings.Cut(m, ":")
		require.False(t, markers[marker], "marker %s twice", marker)
		markers[marker] = true
	}
	want := 0
	if landed {
		want = 1
	}
	require.Equal(t, want, found, "snapshots of the job")
	require.Len(t, tab.Markers, tab.Snapshots)
}

// checkNothingElse waits for the clean-up: no file of the table that no snapshot refers to, nothing in scratch.
func (s *crashStage) checkNothingElse(t *testing.T, name string) {
	var left []string
	done := harness.Soon(harness.Patience, func() bool {
		left = s.Table("crash", name).Orphans
		scratch, err := filepath.Glob(filepath.Join(s.Dir, "scratch-*", "signet-*", "*"))
		require.NoError(t, err)
		left = append(left, scratch...)
		return len(left) == 0
	})
	require.True(t, done, "left over: %s", strings.Join(left, "\n"))
}
