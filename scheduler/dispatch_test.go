package scheduler

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

var bothPolicies = []string{"push", "pull"}

func with(set map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		set[more[i]] = more[i+1]
	}
	return set
}

// The setting overrules the configuration, and either policy runs a job to its end under both planners.
func TestDispatch_Policies_S50(t *testing.T) {
	for _, byDefault := range bothPolicies {
		b := newBenchWith(t, func(c *config.Config) { c.Dispatch.TaskPolicy = byDefault })
		x, y := b.actor(), b.actor()
		for _, planner := range bothPlanners {
			for _, policy := range append(bothPolicies, "") {
				set := inParts(planner)
				if policy != "" {
					set[plan.SettingTaskPolicy] = policy
				} else {
					policy = byDefault
				}
				id := b.submit("SELECT n", set)
				j := b.end(id)
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
				for _, a := range []*actor{x, y} {
					a.mu.Lock()
					for _, task := range a.tasks {
						if task.JobId == id {
							require.Equal(t, policy == "pull", a.polled[task.AttemptId])
						}
					}
					a.mu.Unlock()
				}
			}
		}
		b.freed(x, y)
	}
}

// A job that pulls waits for executors that ask, however many others there are.
func TestDispatch_PullGoesToThoseWhoAsk(t *testing.T) {
	b := newBench(t)
	mute, asks := b.actor(func(a *actor) { a.mute = true }), b.actor(func(a *actor) { a.mute, a.slots = true, 2 })
	id := b.submit("SELECT n", with(inParts("static"), plan.SettingTaskPolicy, "pull"))
	b.eventually("its first task is queued", func() bool { return b.server.pool.Queued(id) == 1 })
	asks.poll(1)
	b.eventually("the next stage is queued", func() bool { return b.server.pool.Queued(id) == 3 })
	asks.poll(1)
	b.eventually("one of it is run", func() bool { return len(asks.ran()) == 2 })
	b.eventually("the others wait", func() bool { return b.server.pool.Queued(id) == 2 })
	asks.mu.Lock()
	asks.mute = false
	asks.mu.Unlock()
	asks.poll(2)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(id).GetState())
	require.Empty(t, mute.ran())
	require.Greater(t, len(asks.ran()), 3)
}

// People and the graph know who has an attempt while it runs, and one that failed on an executor is tried on another.
func TestDispatch_FailedTaskGoesToAnotherExecutor(t *testing.T) {
	for _, policy := range bothPolicies {
		b := newBench(t)
		gate := make(chan struct{})
		once := sync.OnceFunc(func() { close(gate) })
		t.Cleanup(once)
		bad := b.actor(func(a *actor) {
			a.run = func(task *planv1.Task) *planv1.Error {
				if task.Stage == 0 {
					return nil
				}
				return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: "the disk is on fire"}
			}
		})
		good := b.actor(func(a *actor) {
			a.run = func(task *planv1.Task) *planv1.Error {
				if task.Stage == 1 {
					<-gate
				}
				return nil
			}
		})
		id := b.submit("SELECT n", with(inParts("static"), plan.SettingTaskPolicy, policy))
		b.eventually("all that failed has moved", func() bool {
			n := 0
			for _, task := range b.job(id).GetTasks() {
				if task.GetStage() == 1 && task.GetExecutor() == good.id {
					n++
				}
			}
			return n == 3
		})
		once()
		j := b.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
		seen := map[string]bool{}
		for _, task := range bad.ran() {
			key := fmt.Sprint(task.Stage, "/", task.Task)
			require.False(t, seen[key], "task %s came back to the executor that it failed on", key)
			seen[key] = true
		}
	}
}

// A task that takes much longer than its like gets a second attempt, on another executor; the first that ends counts, and the other is told to stop.
func TestDispatch_StragglerGetsASecondAttempt_S72(t *testing.T) {
	for _, planner := range bothPlanners {
		for _, policy := range bothPolicies {
			t.Run(planner+" "+policy, func(t *testing.T) {
				b := newBenchWith(t, func(c *config.Config) {
					c.Dispatch.SpeculativeTasks, c.Dispatch.StragglerAge, c.Dispatch.TaskPolicy = 1, 60*time.Millisecond, policy
				})
				gate := make(chan struct{})
				once := sync.OnceFunc(func() { close(gate) })
				t.Cleanup(once)
				var mu sync.Mutex
				var first string // the attempt that hangs
				run := func(task *planv1.Task) *planv1.Error {
					mu.Lock()
					hang := task.Stage == 0 && task.Task == 1 && first == ""
					if hang {
						first = task.AttemptId
					}
					mu.Unlock()
					if hang {
						<-gate
					}
					return nil
				}
				x, y := b.actor(func(a *actor) { a.run = run }), b.actor(func(a *actor) { a.run = run })
				id := b.submitPlan(manyTasks(5), map[string]string{plan.SettingPlanner: planner})
				j := b.end(id)
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
				attempts := map[string][]string{} // of the task, by executor
				for _, a := range []*actor{x, y} {
					for _, task := range a.ran() {
						if task.Stage == 0 && task.Task == 1 {
							attempts[a.id] = append(attempts[a.id], task.AttemptId)
						}
					}
				}
				require.Len(t, attempts[x.id], 1)
				require.Len(t, attempts[y.id], 1)
				for _, a := range []*actor{x, y} { // what reads the stage reads the second attempt alone (T1)
					for _, task := range a.ran() {
						for _, src := range task.Sources {
							for _, part := range src.GetExchange().GetParts() {
								require.NotEqual(t, first, part.AttemptId)
							}
						}
					}
				}
				once()
				b.freed(x, y) // what the late one has left, too
			})
		}
	}
}

// Second attempts are off unless they are asked for, and in jobs whose rows leave as they come.
func TestDispatch_NoSecondAttemptsByDefault(t *testing.T) {
	b := newBench(t)
	j := newJob(t.Context(), journal.Job{})
	require.Zero(t, b.server.newLoop(j, nil, nil).config().MaxSpeculative)
	b.server.cfg.Dispatch.SpeculativeTasks = 3
	require.Equal(t, 3, b.server.newLoop(j, nil, nil).config().MaxSpeculative)
	j = newJob(t.Context(), journal.Job{Settings: map[string]string{plan.SettingPipelined: "true"}})
	require.Zero(t, b.server.newLoop(j, nil, nil).config().MaxSpeculative)
}

// A job of many tasks has only so many of them launched as keep the executors busy.
func TestDispatch_LaunchesAreBounded(t *testing.T) {
	const tasks = 3000
	b := newBench(t)
	gate := make(chan struct{})
	once := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(once)
	x := b.actor(func(a *actor) {
		a.slots = 16
		a.run = func(*planv1.Task) *planv1.Error { <-gate; return nil }
	})
	id := b.submitPlan(manyTasks(tasks), nil)
	b.eventually("all slots are busy", func() bool { return len(x.ran()) == 16 })
	b.eventually("and so much waits", func() bool { return b.server.pool.Queued(id) == leastInFlight-16 })
	once()
	most := 0
	done := make(chan *schedulerv1.Job, 1)
	go func() {
		defer close(done) // also if the wait for the end has failed the test
		done <- b.end(id)
	}()
	for ended := false; !ended; {
		select {
		case j := <-done:
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
			ended = true
		case <-time.After(time.Millisecond):
			most = max(most, b.server.pool.Queued(id))
		}
	}
	require.LessOrEqual(t, most, leastInFlight)
	require.Len(t, x.ran(), tasks+1, "and the one that reads them")
}

// A task that takes its executors along fails its job, which names the task; another job goes on.
func TestDispatch_PoisonTaskFailsItsJob(t *testing.T) {
	for _, policy := range bothPolicies {
		b := newBench(t)
		for n := range b.cfg.Limits.TaskLosses {
			a := b.actor(func(a *actor) {
				a.slots = 1 // nobody else is to go with it
				a.run = func(task *planv1.Task) *planv1.Error {
					if task.Stage == 1 && task.Task == 2 {
						a.die()
					}
					return nil
				}
			})
			if n == 0 {
				b.submit("SELECT n", with(inParts("static"), plan.SettingTaskPolicy, policy))
			}
			b.eventually("it has taken one along", func() bool {
				for _, e := range b.server.pool.Executors() {
					if e.ID == a.id {
						return false
					}
				}
				return true
			})
		}
		j := b.end(b.server.jobsNewestFirst()[0].id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
		require.Contains(t, j.GetError().GetMessage(), fmt.Sprintf("task 1/2 was lost %d times", b.cfg.Limits.TaskLosses))
		require.NotEmpty(t, j.GetError().GetHint())
		b.actor()
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", inParts("static"))).GetState())
	}
}

// Work without executors waits, says so, and ends when the grace time does.
func TestDispatch_EmptyClusterWaitsAndFails(t *testing.T) {
	b := newBench(t)
	b.server.opts.EmptyGrace = 300 * time.Millisecond
	dying := func() { // answers analyses, and is gone with the first task
		a := b.actor()
		a.mu.Lock()
		a.run = func(*planv1.Task) *planv1.Error { a.die(); return nil }
		a.mu.Unlock()
	}
	dying()
	id := b.submitPlan(manyTasks(3), nil)
	b.eventually("it says what it waits for", func() bool { return b.job(id).GetJob().GetMessage() == "waiting for an executor" })
	j := b.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
	require.Equal(t, codeNoExec, j.GetError().GetCode())
	require.Contains(t, j.GetError().GetHint(), "signet executor --scheduler")
	b.server.opts.EmptyGrace = time.Minute
	dying()
	id = b.submitPlan(manyTasks(3), nil)
	b.eventually("it waits", func() bool { return b.server.pool.Queued(id) == 3 })
	b.actor()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(id).GetState())
}

func TestDrain_ByClient(t *testing.T) {
	b := newBench(t)
	x, y := b.actor(), b.actor()
	id, err := b.client.DrainExecutor(t.Context(), x.id[:8], "new kernel", time.Minute)
	require.NoError(t, err)
	require.Equal(t, x.id, id)
	b.eventually("it hears", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.drains) == 1 && x.drains[0].GetReason() == "new kernel" && x.drains[0].GetLimitMillis() == 60_000
	})
	for _, policy := range bothPolicies {
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", with(inParts("static"), plan.SettingTaskPolicy, policy))).GetState())
	}
	require.Empty(t, x.ran())
	require.NotEmpty(t, y.ran())
	info, err := b.client.Info(t.Context())
	require.NoError(t, err)
	for _, e := range info.GetExecutors() {
		require.Equal(t, e.GetId() == x.id, e.GetLeaving())
	}
	_, err = b.client.DrainExecutor(t.Context(), "nobody", "", 0)
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = b.client.Raw().DrainExecutor(t.Context(), &schedulerv1.DrainExecutorRequest{ExecutorId: y.id, LimitMillis: -1})
	require.Equal(t, codes.InvalidArgument, status.Code(err))

	b.server.cfg.Auth.Tokens = []config.Token{{Principal: "a"}, {Principal: "b", Operator: true}}
	require.False(t, b.server.mayOperate("a"))
	require.True(t, b.server.mayOperate("b"))
	require.False(t, b.server.mayOperate(localPrincipal))
	_, err = b.client.DrainExecutor(t.Context(), y.id, "", 0)
	require.ErrorContains(t, err, "operator")
	require.Empty(t, y.drains)
}

// manyTasks is a plan whose first stage has n tasks.
func manyTasks(n int32) *planv1.PhysicalPlan {
	p := &planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{{Exchange: planv1.ExchangeKind_EXCHANGE_KIND_GATHER}, {Tasks: []*planv1.PhysicalTask{{
		Sql: "SELECT n FROM s", Inputs: []*planv1.PhysicalInput{{View: "s", Kind: &planv1.PhysicalInput_Stage{Stage: &planv1.StageRead{}}}},
	}}}}}
	for range n {
		p.Stages[0].Tasks = append(p.Stages[0].Tasks, &planv1.PhysicalTask{Sql: "SELECT n"})
	}
	return p
}
