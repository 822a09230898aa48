package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

var planners = []string{"static", "adaptive"}

// engine is a cluster of three executors with tables of several files.
type engine struct {
	*harness.Cluster
	t    *testing.T
	gate string
}

// newEngine starts one. Executors pause at points, if any, until the gate is opened.
func newEngine(t *testing.T, points string) *engine {
	return newEngineWith(t, points, harness.Options{})
}

func newEngineWith(t *testing.T, points string, opts harness.Options) *engine {
	e := &engine{t: t, gate: filepath.Join(t.TempDir(), "gate")}
	e.Cluster = harness.New(t, opts)
	for range 3 {
		e.addExecutor(points)
	}
	e.AwaitExecutors(3)
	e.SQL("CREATE SCHEMA lake.e; CREATE TABLE lake.e.facts AS SELECT i AS id, i % 97 AS k, i % 10 AS g, 'v' || (i % 37) AS s, i / 4.0 AS d FROM range(20000) r(i)")
	for n := 1; n < 6; n++ {
		e.SQL(fmt.Sprintf("INSERT INTO lake.e.facts SELECT i AS id, i %% 97 AS k, i %% 10 AS g, CASE WHEN i %% 5 > 0 THEN 'v' || (i %% 37) END AS s, i / 4.0 AS d FROM range(%d, %d) r(i)", n*20000, n*20000+20000))
	}
	e.SQL("CREATE TABLE lake.e.names AS SELECT i AS k, 'name ' || i AS name FROM range(60) r(i); INSERT INTO lake.e.names SELECT i AS k, 'name ' || i AS name FROM range(60, 120) r(i); CREATE TABLE lake.e.empty (k BIGINT, x VARCHAR)")
	return e
}

func (e *engine) addExecutor(points string) {
	var env []string
	if points != "" {
		env = []string{fault.Env + "=" + replaceGate(points, e.gate)}
		e.t.Cleanup(func() { e.open() })
	}
	e.StartExecutor(env...)
}

func (e *engine) open() { require.NoError(e.t, os.WriteFile(e.gate, nil, 0o600)) }

func settings(planner string, more ...string) map[string]string {
	out := map[string]string{"signet.planner": planner, "signet.min_task_bytes": "1000"}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

func flags(set map[string]string) []string {
	var out []string
	for k, v := range set {
		out = append(out, "--set", k+"="+v)
	}
	return out
}

func (e *engine) submit(sql string, set map[string]string) string {
	e.t.Helper()
	r, err := e.Client().Raw().Submit(harness.Context(e.t), &schedulerv1.SubmitRequest{Sql: sql, Settings: set})
	require.NoError(e.t, err)
	return r.GetJobId()
}

func (e *engine) job(id string) *schedulerv1.GetJobResponse {
	e.t.Helper()
	j, err := e.Client().Job(harness.Context(e.t), id)
	require.NoError(e.t, err)
	return j
}

// awaitDone waits until n tasks of a stage are done.
func (e *engine) awaitDone(id string, stage int32, n int) {
	e.t.Helper()
	harness.Eventually(e.t, fmt.Sprintf("%d tasks of stage %d are done", n, stage), func() bool {
		done := 0
		for _, t := range e.job(id).GetTasks() {
			if t.GetStage() == stage && t.GetState() == "done" {
				done++
			}
		}
		return done >= n
	})
}

func (e *engine) end(id string) *schedulerv1.Job {
	e.t.Helper()
	j, err := e.Client().Wait(harness.Context(e.t), id, nil)
	require.NoError(e.t, err)
	return j
}

// rowsOf prints the rows of a finished job, sorted unless the query orders them.
func (e *engine) rowsOf(j *schedulerv1.Job) [][]string {
	e.t.Helper()
	rows, err := e.Client().Rows(harness.Context(e.t), j)
	require.NoError(e.t, err)
	defer rows.Close()
	var out [][]string
	for rows.Next() {
		b := rows.RecordBatch()
		for i := range int(b.NumRows()) {
			var row []string
			for _, c := range b.Columns() {
				row = append(row, c.ValueStr(i))
			}
			out = append(out, row)
		}
	}
	require.NoError(e.t, rows.Err())
	return out
}

func sorted(rows [][]string) [][]string {
	slices.SortFunc(rows, slices.Compare[[]string])
	return rows
}

// freed waits until no executor keeps an output (S41, S44).
func (e *engine) freed() {
	e.t.Helper()
	var left []string
	ok := harness.Soon(harness.Patience, func() bool {
		left = nil
		for i := range e.Executors {
			found, err := filepath.Glob(filepath.Join(e.Dir, fmt.Sprintf("scratch-%d", i), "*", "*", "*", "*.parquet"))
			require.NoError(e.t, err)
			more, err := filepath.Glob(filepath.Join(e.Dir, fmt.Sprintf("scratch-%d", i), "*", "*", "*.parquet"))
			require.NoError(e.t, err)
			if e.Executors[i].Ended() {
				continue // its own next start removes them
			}
			left = append(append(left, found...), more...)
		}
		return len(left) == 0
	})
	require.True(e.t, ok, "left on executors: %v", left)
}

// Every kind of distributed query gives the rows that one DuckDB gives, under both planners.
func TestEngine_QueriesOverSeveralExecutors(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "")
	for name, c := range map[string]struct {
		sql     string
		ordered bool
		whole   bool // not worth stages
		set     []string
	}{
		"group by":        {sql: "SELECT g, count(*) AS n, sum(id) AS s, min(d) AS a, max(s) AS b, avg(k) AS m, count(DISTINCT s) AS u FROM lake.e.facts GROUP BY g"},
		"group of nulls":  {sql: "SELECT s, count(*) AS n FROM lake.e.facts GROUP BY s"},
		"one row":         {sql: "SELECT count(*), sum(id), avg(d) FROM lake.e.facts"},
		"hash join":       {sql: "SELECT f.g, n.name, count(*) AS c FROM lake.e.facts f JOIN lake.e.names n USING (k) GROUP BY ALL", set: []string{"signet.broadcast_bytes", "0"}},
		"broadcast join":  {sql: "SELECT f.g, n.name, count(*) AS c FROM lake.e.facts f JOIN lake.e.names n USING (k) GROUP BY ALL"},
		"left join":       {sql: "SELECT f.k, n.name, count(*) AS c FROM lake.e.facts f LEFT JOIN lake.e.names n ON n.k = f.k AND n.k < 40 GROUP BY ALL", set: []string{"signet.broadcast_bytes", "0"}},
		"join with empty": {sql: "SELECT f.g, count(x) FROM lake.e.facts f LEFT JOIN lake.e.empty USING (k) GROUP BY g"},
		"union all":       {sql: "SELECT k, s FROM lake.e.facts WHERE id % 7 = 0 UNION ALL SELECT k, name FROM lake.e.names"},
		"order by limit":  {sql: "SELECT id, s FROM lake.e.facts ORDER BY d DESC, id LIMIT 20", ordered: true},
		"top of groups":   {sql: "SELECT k, sum(d) AS t FROM lake.e.facts GROUP BY k ORDER BY t DESC, k LIMIT 7", ordered: true},
		"filter":          {sql: "SELECT id, d FROM lake.e.facts WHERE k = 5 AND g = 3"},
		"same names":      {sql: "SELECT id AS x, k AS x FROM lake.e.facts WHERE id % 1000 = 7"},
		"many partitions": {sql: "SELECT id, count(*) FROM lake.e.facts GROUP BY id", set: []string{"signet.partitions", "29"}},
	} {
		t.Run(name, func(t *testing.T) {
			e.Use(t)
			want := e.SQL(c.sql, "--set", "signet.max_tasks=1")
			require.NotEmpty(t, want)
			for _, planner := range planners {
				set := settings(planner, c.set...)
				got := e.SQL(c.sql, flags(set)...)
				if !c.ordered {
					sorted(want)
					sorted(got)
				}
				require.Equal(t, want, got, planner)
				text := strings.Join(slices.Concat(e.SQL("EXPLAIN "+c.sql, flags(set)...)...), "\n")
				require.Contains(t, text, "3 tasks", "it ran distributed")
			}
		})
	}
	e.Use(t)
	e.freed()
}

// An executor that holds outputs dies while they are fetched: what it had is made again, and the rows are right (S40, S73).
func TestEngine_ExecutorWithOutputsIsKilled(t *testing.T) {
	t.Parallel()
	const query = "SELECT f.g, n.name, count(*) AS c, sum(f.id) AS s FROM lake.e.facts f JOIN lake.e.names n USING (k) GROUP BY ALL"
	for _, planner := range planners {
		t.Run(planner, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, "exchange.fetch.before-part=pause(${gate})")
			want := sorted(e.SQL(query, "--set", "signet.max_tasks=1"))
			id := e.submit(query, settings(planner, "signet.broadcast_bytes", "0"))
			e.awaitDone(id, 0, 3)
			e.Executors[1].Kill()
			e.Executors[1].Wait(t)
			e.open()
			j := e.end(id)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
			require.Equal(t, want, sorted(e.rowsOf(j)))
			e.freed()
		})
	}
}

// INSERT from an aggregation into a partitioned table whose rows are to be distributed by hash: each partition of the table is one file, of one
// task, also where an executor that holds outputs dies meanwhile.
func TestEngine_InsertFromAggregationIntoPartitions(t *testing.T) {
	t.Parallel()
	for _, planner := range planners {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s kill=%v", planner, kill), func(t *testing.T) {
				t.Parallel()
				points := ""
				if kill {
					points = "exchange.fetch.before-part=pause(${gate})"
				}
				e := newEngine(t, points)
				e.SQL("CREATE TABLE lake.e.sums (k BIGINT, g BIGINT, n BIGINT) PARTITIONED BY (g) WITH ('write.distribution-mode' = 'hash')")
				id := e.submit("INSERT INTO lake.e.sums SELECT k, g, count(*) AS n FROM lake.e.facts GROUP BY k, g", settings(planner))
				if kill {
					e.awaitDone(id, 0, 2)
					e.Executors[0].Kill()
					e.Executors[0].Wait(t)
					e.open()
				}
				j := e.end(id)
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
				tab := e.Table("e", "sums")
				require.Equal(t, 1, tab.Snapshots)
				require.Len(t, tab.Files, 10, "each partition is written by one task")
				require.Equal(t, [][]string{{"970", "120000"}}, e.SQL("SELECT count(*), sum(n) FROM lake.e.sums"))
				require.Equal(t, e.SQL("SELECT k, g, count(*) FROM lake.e.facts GROUP BY k, g ORDER BY k, g", "--set", "signet.max_tasks=1"), e.SQL("SELECT k, g, n FROM lake.e.sums ORDER BY k, g"))
				if kill {
					require.Greater(t, attempts(e.job(id), 0), 3, "what was lost was made again")
				}
				e.freed()
			})
		}
	}
}

func attempts(j *schedulerv1.GetJobResponse, stage int32) int {
	n := 0
	for _, t := range j.GetTasks() {
		if t.GetStage() == stage {
			n += int(t.GetAttempts())
		}
	}
	return n
}

// A scheduler that comes back finds the outputs of a write's earlier stages on their executors and goes on from there; those of an executor
// that died meanwhile are made again (S62, S71).
func TestEngine_SchedulerRestartsBetweenStages(t *testing.T) {
	t.Parallel()
	for _, planner := range planners {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s kill=%v", planner, kill), func(t *testing.T) {
				t.Parallel()
				e := newEngine(t, "exchange.fetch.before-part=pause(${gate})")
				e.SQL("CREATE TABLE lake.e.sums (k BIGINT, n BIGINT)")
				id := e.submit("INSERT INTO lake.e.sums SELECT k, count(*) AS n FROM lake.e.facts GROUP BY k", settings(planner))
				e.awaitDone(id, 0, 3)
				harness.Eventually(t, "the next stage runs", func() bool { return attempts(e.job(id), 1) > 0 })
				e.Scheduler.Kill()
				e.Scheduler.Wait(t)
				if kill {
					e.Executors[2].Kill()
					e.Executors[2].Wait(t)
				}
				e.StartScheduler()
				if kill {
					e.AwaitExecutors(2)
				} else {
					e.AwaitExecutors(3)
				}
				e.open()
				j := e.end(id)
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
				require.Equal(t, 1, e.Table("e", "sums").Snapshots)
				require.Equal(t, [][]string{{"97", "120000"}}, e.SQL("SELECT count(*), sum(n) FROM lake.e.sums"))
				if !kill {
					require.Equal(t, 3, attempts(e.job(id), 0), "what executors still had was not made again")
				}
				e.freed()
			})
		}
	}
}

// A cancelled query and a failed one leave nothing on executors (S44).
func TestEngine_CancelledAndFailedJobsAreFreed(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "exchange.fetch.before-part=pause(${gate})")
	id := e.submit("SELECT k, count(*) FROM lake.e.facts GROUP BY k", settings("static"))
	e.awaitDone(id, 0, 3)
	cancelled, message, err := e.Client().Cancel(harness.Context(t), id)
	require.NoError(t, err)
	require.True(t, cancelled, message)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, e.end(id).GetState())
	e.open()
	e.freed()
	r := e.Run(append([]string{"sql", "-q", "SELECT k, sum(CASE WHEN k = 3 THEN CAST(s AS INT) ELSE 1 END) FROM lake.e.facts GROUP BY k"}, flags(settings("static"))...)...)
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "INT32")
	e.freed()
}

// A root that is no commit: its result comes inside the job's status, under a cap, and no client opens a connection to an executor for it.
func TestEngine_RootGivesItsRowsInline_S2_S10_S20_S25_S29_S36(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "")
	const query = "SELECT g, count(*) AS n, max(s) AS s FROM lake.e.facts GROUP BY g ORDER BY g"
	want := e.SQL(query)
	for _, planner := range planners {
		set := settings(planner, "signet.scheduler.root", "Result")
		res, err := e.Client().Exec(harness.Context(t), query, client.WithSettings(set))
		require.NoError(t, err)
		require.NotEmpty(t, res.Job.GetInlineResult())
		require.False(t, res.Job.GetHasRows())
		rows, err := res.Rows(harness.Context(t))
		require.NoError(t, err)
		require.True(t, rows.Inline())
		rows.Close()
		require.Equal(t, want, e.SQL(query, flags(set)...), planner)
		plan := e.job(res.Job.GetJobId()).GetPlan()
		require.True(t, strings.HasPrefix(plan, "[scheduler] Result"), plan)

		polled, err := e.Client(client.WithPolling()).Exec(harness.Context(t), query, client.WithSettings(set)) // S28
		require.NoError(t, err)
		require.NotEmpty(t, polled.Job.GetInlineResult())

		_, err = e.Client().Exec(harness.Context(t), "SELECT id, s, d, 'some text that makes the rows wide enough for the cap of one message: ' || id FROM lake.e.facts, range(3)", client.WithSettings(set))
		require.ErrorContains(t, err, "Error running the job's scheduler root")
		require.ErrorContains(t, err, "limits.max_inline_bytes")
	}
	res, err := e.Client().Exec(harness.Context(t), query, client.WithSettings(settings("static"))) // S26
	require.NoError(t, err)
	require.Empty(t, res.Job.GetInlineResult())
	e.freed()
}

// Where rows leave before a root could decide, a root is refused, before any task (S33 to S35, S52).
func TestEngine_RefusalsReachTheClient_S33_S34_S35_S52(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "")
	for sql, c := range map[string]struct {
		set  []string
		want string
	}{
		"SELECT g, count(*) FROM lake.e.facts GROUP BY g":                  {[]string{"signet.pipelined", "true", "signet.scheduler.root", "Result"}, "a pipelined job cannot have a scheduler root"},
		"INSERT INTO lake.e.empty SELECT k, s FROM lake.e.facts":           {[]string{"signet.pipelined", "true"}, "a pipelined job cannot have a scheduler root"},
		"CACHE TABLE c AS SELECT g, count(*) FROM lake.e.facts GROUP BY g": {[]string{"signet.scheduler.root", "Result"}, "builds a cache cannot have a scheduler root"},
	} {
		for _, planner := range planners {
			id := e.submit(sql, settings(planner, c.set...))
			j := e.end(id)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
			require.Contains(t, j.GetError().GetMessage(), c.want)
			require.Empty(t, e.job(id).GetTasks(), "no task was launched")
		}
	}
	require.Zero(t, e.Table("e", "empty").Snapshots)
}

// CACHE TABLE keeps a result under a name of its principal, over restarts, until UNCACHE TABLE.
func TestEngine_CachedTables(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "")
	for _, planner := range planners {
		e.SQL("CACHE TABLE Daily AS SELECT g, count(*) AS n, max(s) AS s, sum(d) AS d FROM lake.e.facts GROUP BY g", flags(settings(planner))...)
		const all = "SELECT g, n, s, d FROM daily ORDER BY g"
		want := e.SQL("SELECT g, count(*) AS n, max(s) AS s, sum(d) AS d FROM lake.e.facts GROUP BY g ORDER BY g")
		require.Equal(t, want, e.SQL(all))
		require.Equal(t, "12000", e.Value("SELECT count(*) FROM lake.e.facts JOIN DAILY USING (g) WHERE g = 4"))
		e.Fail(1, "CACHE TABLE daily AS SELECT 1 AS x", "there is a cached table daily")
		e.freed()

		e.Scheduler.Kill()
		e.Scheduler.Wait(t)
		e.StartScheduler()
		e.AwaitExecutors(3)
		require.Equal(t, want, e.SQL(all))
		e.SQL("UNCACHE TABLE daily; UNCACHE TABLE IF EXISTS daily")
		e.Fail(1, "UNCACHE TABLE daily", "there is no cached table daily")
		e.Fail(1, all, "daily")
		left, err := filepath.Glob(filepath.Join(e.Dir, "data", "cache", "*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	e.SQL("CACHE TABLE nothing AS SELECT g, s FROM lake.e.facts WHERE id < 0")
	require.Equal(t, "0", e.Value("SELECT count(*) FROM nothing"))
	e.Fail(1, "CACHE TABLE h AS SELECT sum(id) AS x FROM lake.e.facts", "which a cached table cannot hold")
	e.Fail(1, "CACHE TABLE h AS SELECT id AS x, k AS X FROM lake.e.facts", "two columns are called")
}

// A pipelined query gives rows while it runs.
func TestEngine_PipelinedRowsComeEarly(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	c := harness.New(t, harness.Options{})
	c.StartExecutor(fault.Env + "=" + replaceGate("executor.result.before-check=pause(${gate})", gate))
	c.AwaitExecutors(1)
	t.Cleanup(func() { _ = os.WriteFile(gate, nil, 0o600) })
	cl := c.Client()
	r, err := cl.Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{
		Sql: "SELECT i, 'some text to fill a chunk of the result ' || i AS s FROM range(200000) r(i)", Settings: map[string]string{"signet.pipelined": "true"},
	})
	require.NoError(t, err)
	harness.Eventually(t, "it runs", func() bool {
		j, err := cl.Job(harness.Context(t), r.GetJobId())
		return err == nil && j.GetJob().GetState() == schedulerv1.JobState_JOB_STATE_RUNNING
	})
	st, err := cl.Raw().FetchResult(harness.Context(t), &schedulerv1.FetchResultRequest{JobId: r.GetJobId()})
	require.NoError(t, err)
	m, err := st.Recv()
	require.NoError(t, err)
	require.NotEmpty(t, m.GetData())
	j, err := cl.Job(harness.Context(t), r.GetJobId())
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_RUNNING, j.GetJob().GetState(), "the first rows are here, and the job runs on")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	job, err := cl.Wait(harness.Context(t), r.GetJobId(), nil)
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job.GetState())
	rows, err := cl.Rows(harness.Context(t), job)
	require.NoError(t, err)
	defer rows.Close()
	n := int64(0)
	for rows.Next() {
		n += rows.RecordBatch().NumRows()
	}
	require.NoError(t, rows.Err())
	require.EqualValues(t, 200_000, n)
}

func TestEngine_BadSettings(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{})
	r := c.Run("sql", "-q", "SELECT 1", "--set", "signet.plannr=static")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, `no setting "signet.plannr"`)
	require.Contains(t, r.Err, "signet.planner")
	r = c.Run("sql", "-q", "SELECT 1", "--set", "signet.planner=clever")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "want static or adaptive")
	require.Empty(t, c.Jobs())
}

// A commit that is not let through in time fails its job, and nothing of it lands; once it is let through no time limit ends it (S58).
func TestEngine_CommitHasATimeUntilItsSeal_S58(t *testing.T) {
	t.Parallel()
	for point, ends := range map[string]schedulerv1.JobState{
		"scheduler.root.before-commit": schedulerv1.JobState_JOB_STATE_FAILED,
		"scheduler.seal.after-journal": schedulerv1.JobState_JOB_STATE_SUCCESSFUL,
	} {
		t.Run(point, func(t *testing.T) {
			c := harness.New(t, harness.Options{Executors: 1, SchedulerEnv: []string{"SIGNET_TIMEOUTS_ROOT=2s", fault.Env + "=" + point + "=sleep(4s)"}})
			c.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")
			r, err := c.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: "INSERT INTO lake.h.t SELECT 1 AS id"})
			require.NoError(t, err)
			j, err := c.Client().Wait(harness.Context(t), r.GetJobId(), nil)
			require.NoError(t, err)
			require.Equal(t, ends, j.GetState(), "%v", j.GetError())
			if ends == schedulerv1.JobState_JOB_STATE_FAILED {
				require.Contains(t, j.GetError().GetMessage(), "was not let through within 2s")
				require.Zero(t, c.Table("h", "t").Snapshots)
			} else {
				require.Equal(t, 1, c.Table("h", "t").Snapshots)
			}
		})
	}
}
