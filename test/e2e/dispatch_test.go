package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/test/harness"
)

var policies = []string{"push", "pull"}

// combinations runs a test under both planners and both policies.
func combinations(t *testing.T, f func(t *testing.T, name string, set map[string]string)) {
	for _, planner := range planners {
		for _, policy := range policies {
			t.Run(planner+" "+policy, func(t *testing.T) { f(t, planner+"_"+policy, settings(planner, "signet.task_policy", policy)) })
		}
	}
}

// commitsOf are the plugin processes that the scheduler had commit a job, as it logged.
func commitsOf(t *testing.T, c *harness.Cluster, job string) (pids []int) {
	t.Helper()
	b, err := os.ReadFile(c.SchedulerLog())
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)the sink commits" job=`+job+` .*plugin=(\d+)$`).FindAllSubmatch(b, -1) {
		pid, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

func pidsOf(list []harness.Proc) (out []int) {
	for _, p := range list {
		out = append(out, p.PID)
	}
	return out
}

// The commit of an INSERT over several stages runs once, in the scheduler's child process: every executor is dead by the time it begins, and none of
// them ever had a child (S55: it need not bear with being run by several tasks).
func TestEndToEnd_S50_S51(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "commit")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	e := newEngineWith(t, "", harness.Options{SchedulerEnv: []string{fault.Env + "=scheduler.root.before-commit=pause(" + gate + ")"}})
	want := e.SQL("SELECT k, g, count(*) FROM lake.e.facts GROUP BY k, g ORDER BY k, g", "--set", "signet.max_tasks=1")
	combinations(t, func(t *testing.T, name string, set map[string]string) {
		e.Use(t)
		e.SQL("CREATE TABLE lake.e.t_" + name + " (k BIGINT, g BIGINT, n BIGINT)")
		require.NoError(t, os.Remove(gate))
		id := e.submit("INSERT INTO lake.e.t_"+name+" SELECT k, g, count(*) AS n FROM lake.e.facts GROUP BY k, g", set)
		harness.Eventually(t, "all tasks are done and the commit is due", func() bool { return e.job(id).GetJob().GetPhase() == "root" })
		for _, task := range e.job(id).GetTasks() {
			require.Equal(t, "done", task.GetState())
		}
		require.Greater(t, len(e.job(id).GetTasks()), 3, "it has several stages")
		for _, p := range e.Executors {
			if !p.Ended() {
				require.Empty(t, harness.Below(p.PID()), "an executor has no children")
				p.Kill()
				p.Wait(t)
			}
		}
		require.Zero(t, e.Table("e", "t_"+name).Snapshots)
		require.NoError(t, os.WriteFile(gate, nil, 0o600))
		j := e.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
		committed := commitsOf(t, e.Cluster, id)
		require.Len(t, committed, 1, "once")
		require.Contains(t, pidsOf(e.Plugins()), committed[0], "in the scheduler's child process")
		tab := e.Table("e", "t_"+name)
		require.Equal(t, 1, tab.Snapshots)
		require.Len(t, tab.Markers, 1)
		require.Empty(t, tab.DataOrphans())
		for n := range e.Executors {
			e.RestartExecutor(n)
		}
		e.AwaitExecutors(3)
		require.Equal(t, want, e.SQL("SELECT k, g, n FROM lake.e.t_"+name+" ORDER BY k, g"))
	})
}

// A refusal reaches the client, before any task.
func TestEndToEnd_S52(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "")
	combinations(t, func(t *testing.T, _ string, set map[string]string) {
		e.Use(t)
		set["signet.pipelined"] = "true"
		before := len(commitsOf(t, e.Cluster, `\S+`))
		r := e.Run(append([]string{"sql", "-q", "INSERT INTO lake.e.empty SELECT k, s FROM lake.e.facts"}, flags(set)...)...)
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Err, "a pipelined job cannot have a scheduler root")
		require.Zero(t, e.Table("e", "empty").Snapshots)
		require.Len(t, commitsOf(t, e.Cluster, `\S+`), before, "no sink was asked to commit")
	})
}

// A Flight SQL client reads what a root has to say, and rows.
func TestEndToEnd_S53(t *testing.T) {
	t.Parallel()
	c, addr := flightCluster(t, harness.Options{Executors: 2})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	for _, planner := range planners {
		for _, policy := range policies {
			t.Run(planner+" "+policy, func(t *testing.T) {
				table := "t_" + planner + "_" + policy
				flightUpdate(t, cl, "CREATE TABLE lake.f."+table+" (id BIGINT, s VARCHAR)")
				ctx := metadata.AppendToOutgoingContext(harness.Context(t), plan.SettingPlanner, planner, plan.SettingTaskPolicy, policy)
				info, err := cl.Execute(ctx, "INSERT INTO lake.f."+table+" SELECT i, 'x' FROM range(1000) r(i)")
				require.NoError(t, err)
				said := flightRows(ctx, t, cl, info)
				require.Len(t, said, 1)
				require.Contains(t, said[0], `"rows":1000`)
				require.Len(t, commitsOf(t, c, string(info.AppMetadata)), 1)
				require.Equal(t, 1, c.Table("f", table).Snapshots)
				info, err = cl.Execute(ctx, "SELECT count(*) AS n FROM lake.f."+table)
				require.NoError(t, err)
				require.Equal(t, []string{`{"n":1000}`}, flightRows(ctx, t, cl, info))
			})
		}
	}
	_, err := cl.Execute(metadata.AppendToOutgoingContext(harness.Context(t), plan.SettingPlanner, "clever"), "SELECT 1")
	require.ErrorContains(t, err, "want static or adaptive")
}

// Executors have nothing of a catalog: no configuration, credential or open file, and no client in their binary.
func TestEndToEnd_S54(t *testing.T) {
	t.Parallel()
	const secret = "cAnArY-catalog-71f0a2"
	e := newEngineWith(t, "", harness.Options{
		SchedulerEnv: []string{"CANARY_S54=" + secret}, Config: "plugins:\n  secrets:\n    iceberg: {one: {env: CANARY_S54}}\n",
	})
	e.StartExecutor() // and one that joins when there is work
	look := func(t *testing.T) {
		t.Helper()
		for _, p := range e.Executors {
			dir := fmt.Sprintf("/proc/%d", p.PID())
			var text []byte
			for _, f := range []string{"environ", "cmdline"} {
				b, err := os.ReadFile(filepath.Join(dir, f))
				require.NoError(t, err)
				text = append(text, b...)
			}
			for _, word := range []string{secret, "catalog.db", "sqlite", "postgres", "signet.yaml", "warehouse", "SIGNET_CATALOGS"} {
				require.NotContains(t, string(text), word)
			}
			require.False(t, harness.MemoryHolds(t, p.PID(), []byte(secret)))
			fds, err := os.ReadDir(filepath.Join(dir, "fd"))
			require.NoError(t, err)
			for _, fd := range fds {
				to, _ := os.Readlink(filepath.Join(dir, "fd", fd.Name())) // it may be closed by now
				for _, word := range []string{"catalog.db", "journal.db", "signet.yaml", ".metadata.json"} {
					require.NotContains(t, to, word)
				}
			}
			require.Empty(t, harness.Below(p.PID()))
		}
	}
	combinations(t, func(t *testing.T, name string, set map[string]string) {
		e.Use(t)
		e.SQL("CREATE TABLE lake.e.c_"+name+" AS SELECT k, count(*) AS n FROM lake.e.facts GROUP BY k", flags(set)...)
		require.Equal(t, "97", e.Value("SELECT count(*) FROM lake.e.c_"+name))
		look(t)
	})
	e.Use(t)
	require.False(t, harness.MemoryHolds(t, e.Executors[0].PID(), []byte("catalog.db")), "not even the catalog's name")
}

// An executor that is drained in the middle of a query of several stages gets nothing more, and its process ends with code 0 when nobody needs what it
// has; the rows are right, and nothing was made twice.
func TestDrain_InTheMiddleOfAQuery(t *testing.T) {
	t.Parallel()
	const query = "SELECT f.g, n.name, count(*) AS c, sum(f.id) AS s FROM lake.e.facts f JOIN lake.e.names n USING (k) GROUP BY ALL"
	for _, planner := range planners {
		for _, policy := range policies {
			t.Run(planner+" "+policy, func(t *testing.T) {
				t.Parallel()
				e := newEngine(t, "exchange.fetch.before-part=pause(${gate})")
				want := sorted(e.SQL(query, "--set", "signet.max_tasks=1"))
				id := e.submit(query, settings(planner, "signet.broadcast_bytes", "0", "signet.task_policy", policy))
				e.awaitDone(id, 0, 3)
				drained := e.Executors[1]
				r := e.Run("executor", "drain", e.executorID(drained.PID()), "--reason", "a new kernel")
				require.Equal(t, 0, r.Code, r.Err)
				require.Contains(t, r.Out, "draining ")
				require.Contains(t, e.Run("info").Out, ", leaving")
				require.False(t, drained.Ended(), "others need what it has")
				e.open()
				j := e.end(id)
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
				require.Equal(t, want, sorted(e.rowsOf(j)))
				<-drained.Done
				require.NoError(t, drained.Err, "it ended with code 0")
				require.Equal(t, 3, attempts(e.job(id), 0), "nothing was made again")
				harness.Eventually(t, "the scheduler knows", func() bool { return e.Registered() == 2 })
				require.Equal(t, want, sorted(e.SQL(query, flags(settings(planner))...)), "the others work on")
				e.freed()
			})
		}
	}
}

// An executor that dies while it leaves costs what the death of any other does: work, and no row.
func TestCrash_WhileDraining(t *testing.T) {
	t.Parallel()
	const query = "SELECT k, count(*) AS c, sum(id) AS s FROM lake.e.facts GROUP BY k"
	for _, point := range []string{"executor.drain.received", "executor.drain.before-leave"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, "")
			want := sorted(e.SQL(query, "--set", "signet.max_tasks=1"))
			e.Executors[1].Kill()
			e.Executors[1].Wait(t)
			e.RestartExecutor(1, fault.Env+"="+point+"=kill")
			e.AwaitExecutors(3)
			id := e.submit(query, settings("adaptive"))
			e.awaitDone(id, 0, 1)
			drained := e.Executors[1]
			e.Run("executor", "drain", e.executorID(drained.PID()))
			j := e.end(id)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
			require.Equal(t, want, sorted(e.rowsOf(j)))
			<-drained.Done
			require.True(t, drained.Killed())
			harness.Eventually(t, "the scheduler knows", func() bool { return e.Registered() == 2 })
			require.Equal(t, want, sorted(e.SQL(query, flags(settings("static"))...)))
		})
	}
}

// A drain with a limit ends although others still need what the executor has: that is made again.
func TestDrain_LimitLetsOthersMakeItAgain(t *testing.T) {
	t.Parallel()
	const query = "SELECT k, count(*) AS c FROM lake.e.facts GROUP BY k"
	e := newEngine(t, "")
	t.Cleanup(func() { e.open() })
	for _, n := range []int{0, 2} { // those that read from the other
		e.Executors[n].Kill()
		e.Executors[n].Wait(t)
		e.RestartExecutor(n, fault.Env+"="+replaceGate("exchange.fetch.before-part=pause(${gate})", e.gate))
	}
	e.AwaitExecutors(3)
	id := e.submit(query, settings("static"))
	e.awaitDone(id, 0, 3)
	drained := e.Executors[1]
	r := e.Run("executor", "drain", e.executorID(drained.PID())[:8], "--limit", "10ms")
	require.Equal(t, 0, r.Code, r.Err)
	<-drained.Done
	require.NoError(t, drained.Err)
	e.open()
	j := e.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
	require.Len(t, e.rowsOf(j), 97)
	require.Greater(t, attempts(e.job(id), 0), 3)
	e.freed()
	require.Equal(t, 1, e.Run("executor", "drain", "nobody").Code)
	require.Equal(t, 2, e.Run("executor", "drain", "x", "--limit=-1s").Code)
}

// executorID is the id of the executor with a process id.
func (e *engine) executorID(pid int) string {
	e.t.Helper()
	info, err := e.Client().Info(harness.Context(e.t))
	require.NoError(e.t, err)
	at := slices.IndexFunc(info.GetExecutors(), func(x *schedulerv1.Executor) bool { return int(x.GetPid()) == pid })
	require.GreaterOrEqual(e.t, at, 0)
	return info.GetExecutors()[at].GetId()
}

// A task that hangs gets a second attempt elsewhere, and the job ends with its rows once; what the first one writes later is swept.
func TestSpeculation_SecondAttemptOfAHangingTask_S72(t *testing.T) {
	t.Parallel()
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			gate := filepath.Join(t.TempDir(), "gate")
			e := newEngineWith(t, "", harness.Options{SchedulerEnv: []string{"SIGNET_DISPATCH_SPECULATIVE_TASKS=2", "SIGNET_DISPATCH_STRAGGLER_AGE=300ms", "SIGNET_DISPATCH_TASK_POLICY=" + policy}})
			t.Cleanup(func() { _ = os.WriteFile(gate, nil, 0o600) })
			e.Executors[0].Kill()
			e.Executors[0].Wait(t)
			e.RestartExecutor(0, fault.Env+"=executor.copy.after=1*pause("+gate+")")
			harness.Eventually(t, "the one that will hang is there", func() bool { return e.Registered() == 3 })
			e.SQL("CREATE TABLE lake.e.copy (id BIGINT, k BIGINT)")
			id := e.submit("INSERT INTO lake.e.copy SELECT id, k FROM lake.e.facts", settings("static"))
			j := e.end(id)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
			twice := 0
			for _, task := range e.job(id).GetTasks() {
				twice += int(task.GetAttempts()) - 1
			}
			require.Positive(t, twice, "a second attempt was made")
			require.Equal(t, [][]string{{"120000", "120000"}}, e.SQL("SELECT count(*), count(DISTINCT id) FROM lake.e.copy"))
			require.Equal(t, 1, e.Table("e", "copy").Snapshots)
			require.NoError(t, os.WriteFile(gate, nil, 0o600))
			harness.Eventually(t, "what the late attempt wrote is gone", func() bool { return len(e.Table("e", "copy").DataOrphans()) == 0 })
		})
	}
}

// The command can ask instead of subscribing.
func TestSQL_Poll_S28(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	require.Equal(t, "42", strings.TrimSpace(c.SQL("SELECT 42 AS x", "--poll")[0][0]))
	c.Fail(1, "SELECT nope", "nope")
}

// A job that pulls goes on after the scheduler was killed in the middle of a task: its executors come back with what they run, and ask again (S71).
func TestPull_SurvivesARestart_S71(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "exchange.fetch.before-part=pause(${gate})")
	e.SQL("CREATE TABLE lake.e.sums (k BIGINT, n BIGINT)")
	id := e.submit("INSERT INTO lake.e.sums SELECT k, count(*) AS n FROM lake.e.facts GROUP BY k", settings("static", "signet.task_policy", "pull"))
	harness.Eventually(t, "its last stage runs", func() bool {
		for _, task := range e.job(id).GetTasks() {
			if task.GetStage() == 1 && task.GetExecutor() != "" {
				return true
			}
		}
		return false
	})
	e.Scheduler.Kill()
	e.Scheduler.Wait(t)
	e.StartScheduler()
	e.AwaitExecutors(3)
	e.open()
	j := e.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
	require.Equal(t, 1, e.Table("e", "sums").Snapshots)
	require.Equal(t, [][]string{{"97", "120000"}}, e.SQL("SELECT count(*), sum(n) FROM lake.e.sums"))
	for _, task := range e.job(id).GetTasks() {
		require.EqualValues(t, 1, task.GetAttempts(), "what ran was taken up again")
	}
	require.Equal(t, "97", e.SQL("SELECT count(DISTINCT k) FROM lake.e.facts", "--set", "signet.task_policy=pull")[0][0])
}

// No client of a catalog, no sink and nothing of the scheduler is linked into the executor.
func TestExecutorBinary_LinksNoCatalog_S54(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "./cmd/signet-executor")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "github.com/signet-io/signet/executor")
	for _, dep := range deps {
		require.NotRegexp(t, `^github.com/signet-io/signet/(catalog|client|coordinator|plugins|scheduler|sinks)(/|$)|sqlite|pgx|lib/pq|iceberg-go|go-plugin|internal/objects/(gcs|azure)|Azure/|cloud.google.com|golang.org/x/oauth2`, dep)
	}
}
