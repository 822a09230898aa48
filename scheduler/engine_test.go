package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/root"
)

func isResult(n *plan.Node) bool { return n.Op == plan.OpResult }

// inParts asks for stages although there is little to read.
func inParts(planner string) map[string]string {
	return map[string]string{plan.SettingPlanner: planner, plan.SettingPartitions: "3"}
}

var bothPlanners = []string{"static", "adaptive"}

func counted(t *testing.T, b []byte) (rows, partitions int64) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	return r.RecordBatch().Column(0).(*array.Int64).Value(0), r.RecordBatch().Column(1).(*array.Int64).Value(0)
}

// A counting root, set on the scheduler, reads every partition of the final stage, once, from the executors' exchanges; its result is in the
// job's status, and all that the stages had kept is freed.
// Numbers in docs/semantics.md: T8.
func TestRoot_CountingRootReadsEverythingOnce_S2_S10_S11_S20_S25_S41(t *testing.T) {
	b := newBench(t, WithRoot(isResult, root.Count))
	x, y := b.actor(), b.actor()
	for _, planner := range bothPlanners {
		id := b.submit("SELECT n", inParts(planner))
		j := b.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
		rows, partitions := counted(t, j.GetInlineResult())
		if planner == "static" {
			require.EqualValues(t, 3, partitions)
		}
		require.EqualValues(t, 10*partitions, rows)
		require.False(t, j.GetHasRows())
		for _, a := range []*actor{x, y} {
			a.mu.Lock()
			for part, n := range a.fetches {
				require.Equal(t, 1, n, part)
			}
			a.mu.Unlock()
		}
		b.freed(x, y)
		require.Contains(t, b.job(id).GetPlan(), "[scheduler] Result")
	}
}

// The root runs instead of the job's end: the job is Running until it has run, to those who poll and to those who watch; other jobs are not held
// up; a cancel ends it, and the late result is discarded.
// Numbers in docs/semantics.md: J2.
func TestRoot_BlockingRoot_S12_S14_S17_S21_S43(t *testing.T) {
	began, release := make(chan struct{}, 8), make(chan struct{})
	var runs atomic.Int32
	blocking := root.Func(func(ctx context.Context, in root.Input, out root.Output) error {
		if runs.Add(1) == 1 {
			began <- struct{}{}
			<-release // whatever becomes of ctx
		}
		return root.Count.Run(context.WithoutCancel(ctx), in, out)
	})
	b := newBench(t, WithRoot(isResult, blocking))
	letGo := sync.OnceFunc(func() { close(release) })
	t.Cleanup(letGo) // before the scheduler stops, which waits for its roots
	x := b.actor()
	id := b.submit("SELECT n", inParts("static"))
	<-began
	require.Equal(t, schedulerv1.JobState_JOB_STATE_RUNNING, b.job(id).GetJob().GetState())
	require.Equal(t, "root", b.job(id).GetJob().GetPhase())
	held := x.rootInput(id)
	require.NotZero(t, held, "what the root reads stays while it runs")

	other := b.end(b.submit("SELECT n", inParts("adaptive")))
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, other.GetState(), "another job is not held up")

	cancelled, _, err := b.client.Cancel(t.Context(), id)
	require.NoError(t, err)
	require.True(t, cancelled)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, b.end(id).GetState())
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", inParts("static"))).GetState(), "whatever was sent to the executor before has arrived")
	require.Equal(t, held, x.rootInput(id), "and also when it has been cancelled and still reads (S43, T6)")
	letGo()
	b.freed(x)
	j := b.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, j.GetState())
	require.Empty(t, j.GetInlineResult())
}

func TestRoot_FailureFailsTheJobOnce_S22_S24_S44(t *testing.T) {
	var runs atomic.Int32
	b := newBench(t, WithRoot(isResult, root.Func(func(context.Context, root.Input, root.Output) error {
		runs.Add(1)
		return errors.New("no room at the inn")
	})))
	x := b.actor()
	j := b.end(b.submit("SELECT n", inParts("static")))
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
	require.Equal(t, "Error running the job's scheduler root: no room at the inn", j.GetError().GetMessage())
	b.freed(x)
	require.EqualValues(t, 1, runs.Load())
}

func TestRoot_PanicFailsItsJobAlone(t *testing.T) {
	var runs atomic.Int32
	b := newBench(t, WithRoot(isResult, root.Func(func(ctx context.Context, in root.Input, out root.Output) error {
		if runs.Add(1) == 1 {
			panic("oh")
		}
		return root.Count.Run(ctx, in, out)
	})))
	b.actor()
	j := b.end(b.submit("SELECT n", inParts("static")))
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
	require.Contains(t, j.GetError().GetMessage(), "internal error: oh")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", inParts("static"))).GetState())
}

// One failed task means no root at all (S15, S19); a retried one still gives one (S16); a repeated report none more (S13).
// Numbers in docs/semantics.md: S50, S55.
func TestRoot_RunsOnceAndOnlyAfterEverything_S13_S15_S16_S19(t *testing.T) {
	var runs, failures atomic.Int32
	b := newBench(t, WithRoot(isResult, root.Func(func(ctx context.Context, in root.Input, out root.Output) error {
		runs.Add(1)
		return root.Count.Run(ctx, in, out)
	})))
	x := b.actor(func(a *actor) {
		a.run = func(task *planv1.Task) *planv1.Error {
			if task.Stage == 1 && task.Task == 1 && failures.Add(1) == 1 {
				return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: "a cable fell out"}
			}
			return nil
		}
	})
	id := b.submit("SELECT n", inParts("static"))
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(id).GetState())
	require.EqualValues(t, 1, runs.Load())
	for _, task := range x.ran() {
		x.report(statusOf(task))
	}
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", inParts("static"))).GetState())
	require.EqualValues(t, 2, runs.Load())

	x.mu.Lock()
	x.run = func(task *planv1.Task) *planv1.Error {
		if task.Stage == 1 && task.Task == 2 {
			return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: "not a number"}
		}
		return nil
	}
	x.mu.Unlock()
	j := b.end(b.submit("SELECT n", inParts("static")))
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
	require.Contains(t, j.GetError().GetMessage(), "not a number")
	require.EqualValues(t, 2, runs.Load())
	b.freed(x)
}

// The loss of the root's input while it runs fails the job, and the input is not made again.
func TestRoot_LostInputFailsTheJob_S40(t *testing.T) {
	began := make(chan struct{}, 1)
	b := newBench(t, WithRoot(isResult, root.Func(func(ctx context.Context, _ root.Input, _ root.Output) error {
		began <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})))
	x := b.actor()
	id := b.submit("SELECT n", inParts("static"))
	<-began
	before := len(x.ran())
	y := b.actor()
	x.die()
	j := b.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
	require.Contains(t, j.GetError().GetMessage(), "input is gone")
	require.Len(t, x.ran(), before)
	require.Empty(t, y.ran())
}

func TestRoot_TimesOutAndWaitsForThePool_S58(t *testing.T) {
	b := newBench(t)
	b.stop()
	b.cfg.Timeouts.Root, b.cfg.Limits.Roots = 300*time.Millisecond, 1
	began := make(chan struct{}, 2)
	b.opts = []Option{WithRoot(isResult, root.Func(func(ctx context.Context, _ root.Input, _ root.Output) error {
		began <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	}))}
	b.start()
	b.actor()
	first := b.submit("SELECT n", inParts("static"))
	<-began
	second := b.submit("SELECT n", inParts("static"))
	for _, id := range []string{first, second} {
		j := b.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
		require.Contains(t, j.GetError().GetMessage(), "timeouts.root")
	}
}

// A root that had begun when the scheduler stopped is not run again (S24).
func TestRoot_NotRunAgainAfterARestart_S24(t *testing.T) {
	began := make(chan struct{}, 2)
	var runs atomic.Int32
	b := newBench(t, WithRoot(isResult, root.Func(func(ctx context.Context, _ root.Input, _ root.Output) error {
		runs.Add(1)
		began <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})))
	b.actor()
	id := b.submit("SELECT n", inParts("static"))
	<-began
	b.stop()
	b.start()
	j := b.end(id)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
	require.Contains(t, j.GetError().GetMessage(), "the scheduler restarted while it ran")
	require.EqualValues(t, 1, runs.Load())
}

// S33 to S35: the refusal names its reason, no task is launched and no root runs.
// Numbers in docs/semantics.md: S52.
func TestRoot_Refusals_S33_S34_S35(t *testing.T) {
	var runs atomic.Int32
	b := newBench(t, WithRoot(isResult, root.Func(func(context.Context, root.Input, root.Output) error { runs.Add(1); return nil })))
	x := b.actor()
	for _, planner := range bothPlanners {
		set := inParts(planner)
		require.Contains(t, b.end(b.submit("CACHE TABLE c AS SELECT n", set)).GetError().GetMessage(), "builds a cache cannot have a scheduler root: ")
		set[plan.SettingPipelined] = "true"
		require.Contains(t, b.end(b.submit("SELECT n", set)).GetError().GetMessage(), "pipelined job cannot have a scheduler root: Result")
	}
	require.Empty(t, x.ran())
	require.Zero(t, runs.Load())
}

// An output that cannot be fetched is made again, and then the task that needed it: uncounted.
// Numbers in docs/semantics.md: J5.
func TestLoop_FetchErrorMakesTheOutputAgain(t *testing.T) {
	b := newBench(t)
	var lost atomic.Pointer[string]
	x := b.actor(func(a *actor) {
		a.run = func(task *planv1.Task) *planv1.Error {
			if task.Stage != 1 || lost.Load() != nil {
				return nil
			}
			id := task.Sources[0].GetExchange().GetParts()[0].AttemptId
			lost.Store(&id)
			return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_FETCH, Message: "no such output", LostAttempt: id}
		}
	})
	j := b.end(b.submit("SELECT n", inParts("static")))
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
	again := 0
	last := map[int32]*planv1.Task{}
	for _, task := range x.ran() {
		if task.Stage == 0 {
			again++
		}
		if task.Stage == 1 {
			for _, p := range task.Sources[0].GetExchange().GetParts() {
				require.Equal(t, x.addr, p.Address)
				require.NotEmpty(t, p.Ticket)
				if p.AttemptId != *lost.Load() {
					last[task.Task] = task
				}
			}
		}
	}
	require.NotEmpty(t, last, "a task read what was made again")
	require.Equal(t, 2, again)
	b.freed(x)
}

// What no working executor reports is a defect of it, counts as a loss, and never ends a job well; what is said under another attempt's id is not taken.
func TestTaskEnded_NonsenseIsNotBelieved(t *testing.T) {
	nonsense := map[string]func(*executorv1.TaskStatus){
		"reports -5 rows": func(st *executorv1.TaskStatus) { st.Rows = -5 },
		"and -9 bytes":    func(st *executorv1.TaskStatus) { st.Bytes = -9 },
	}
	for what, p := range map[string]*planv1.ExchangePartition{
		"partition -1":         {Partition: -1},
		"partition 1073741824": {Partition: 1 << 30},
		"with -1 rows":         {Partition: 1, Rows: -1},
		"partition 0":          {Partition: 0}, // it is there already
	} {
		nonsense[what] = func(st *executorv1.TaskStatus) {
			if st.Output != nil {
				st.Output.Partitions = append(st.Output.Partitions, p)
			}
		}
	}
	for what, spoil := range nonsense {
		b := newBench(t)
		b.actor(func(a *actor) { a.spoil = spoil })
		j := b.end(b.submit("SELECT n", inParts("static")))
		require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState(), what)
		require.Contains(t, j.GetError().GetMessage(), what)
		require.Contains(t, j.GetError().GetMessage(), fmt.Sprintf("was lost %d times", b.cfg.Limits.TaskLosses))
	}
	b := newBench(t)
	said := make(chan *executorv1.TaskStatus, 64)
	b.actor(func(a *actor) {
		a.spoil = func(st *executorv1.TaskStatus) { // the next one of the same attempt is right
			wrong := proto.CloneOf(st)
			wrong.Attempt.Epoch++
			said <- wrong
		}
	})
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", inParts("static"))).GetState())
	wrong := <-said
	b.server.openAttempt(&attempt{ref: &executorv1.AttemptRef{JobId: wrong.Attempt.JobId, AttemptId: wrong.Attempt.AttemptId, Epoch: wrong.Attempt.Epoch - 1}, job: b.server.job(wrong.Attempt.JobId), task: &planv1.Task{}})
	require.ErrorContains(t, b.server.TaskEnded(wrong, "x"), "of another attempt")
	require.NotNil(t, b.server.attempt(wrong.Attempt.AttemptId), "it is still open")
}

// A report that comes again, because its acknowledgement crossed it, does not cost the output that it tells of (S13).
func TestLoop_RepeatedReportKeepsTheOutput_S13(t *testing.T) {
	b := newBench(t)
	var early atomic.Int64
	x := b.actor(func(a *actor) {
		a.repeats = 3
		a.run = func(task *planv1.Task) *planv1.Error {
			if task.Stage == 0 {
				return nil
			}
			for _, src := range task.Sources { // all of them have been reported, several times each
				for _, part := range src.GetExchange().GetParts() {
					a.mu.Lock()
					if a.outputs[part.AttemptId] == nil {
						early.Add(1)
					}
					a.mu.Unlock()
				}
			}
			return nil
		}
	})
	for range 20 {
		j := b.end(b.submit("SELECT n", inParts("static")))
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
	}
	require.Zero(t, early.Load(), "outputs that were freed before they were read")
	b.freed(x)
}

// What several executors keep is freed on each of them, however the job ends (S44, T9).
func TestLoop_EveryExecutorIsCleaned_S44_T9(t *testing.T) {
	for _, end := range []string{"success", "failure", "cancel"} {
		t.Run(end, func(t *testing.T) {
			b := newBench(t)
			reached, hold := make(chan struct{}, 16), make(chan struct{})
			act := func(a *actor) {
				a.staged = stages(3)
				a.run = func(task *planv1.Task) *planv1.Error {
					if task.Stage < 2 {
						return nil
					}
					reached <- struct{}{}
					switch end {
					case "failure":
						return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: "no"}
					case "cancel":
						<-hold
					}
					return nil
				}
			}
			x, y := b.actor(act), b.actor(act)
			id := b.submit("SELECT n", inParts("static"))
			<-reached
			if end == "cancel" {
				require.NotZero(t, x.holding())
				require.NotZero(t, y.holding())
				_, _, err := b.client.Cancel(t.Context(), id)
				require.NoError(t, err)
			}
			b.end(id)
			b.freed(x, y)
			close(hold)
		})
	}
}

// An executor that kept outputs of a job that ended while it was away is told when it comes back.
func TestLoop_OutputsOfEndedJobsAreDroppedAtRegistration(t *testing.T) {
	b := newBench(t)
	x := b.actor()
	id := b.submit("SELECT n", inParts("static"))
	b.end(id)
	b.freed(x)
	x.mu.Lock()
	x.outputs["stale"] = &kept2{ref: statusOf(&planv1.Task{JobId: id, AttemptId: "stale"}).Attempt}
	x.mu.Unlock()
	x.stop()
	x.join()
	b.freed(x)
}

func TestMailbox_NeverWaitsAndKeepsOrder(t *testing.T) {
	m := newMailbox()
	for i := range 1000 {
		m.put(i)
	}
	<-m.wake
	got := m.take()
	require.Len(t, got, 1000)
	require.Equal(t, 7, got[7])
	require.Empty(t, m.take())
	select {
	case <-m.wake:
		t.Fatal("woken for nothing")
	default:
	}
}

func TestStagesOf_WhatTheJournalHolds(t *testing.T) {
	task := func(stage, n int32, reads ...int32) *planv1.Task {
		out := &planv1.Task{Stage: stage, Task: n}
		for _, r := range reads {
			out.Sources = append(out.Sources, &planv1.Source{Kind: &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{Stage: r}}})
		}
		return out
	}
	got, err := stagesOf([]*planv1.Task{task(0, 0), task(0, 1), task(1, 0, 0), task(1, 1, 0), task(2, 0, 0, 1)}, []bool{true, false})
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Len(t, got[0].tasks, 2)
	require.Equal(t, []int32{0, 1}, got[2].inputs)
	require.Equal(t, []bool{true, false, false}, []bool{got[0].repeatable, got[1].repeatable, got[2].repeatable})
	for _, bad := range [][]*planv1.Task{nil, {task(1, 0)}, {task(0, 1)}, {task(0, 0), task(2, 0)}} {
		_, err := stagesOf(bad, nil)
		require.Error(t, err)
	}
}

// S73: after a restart, attempts of a stage that was being made again are not mixed with those before.
func TestNewestGeneration_OlderAttemptsAreOut_S73(t *testing.T) {
	l := &loop{kept: map[string]*kept{"old": {}, "new": {}}, generation: map[string]int{}}
	rec := graph.Record{
		Stages: []graph.StageRecord{{Stored: true, Tasks: make([]graph.TaskRecord, 2)}, {Tasks: make([]graph.TaskRecord, 1)}},
		Attempts: []graph.AttemptRecord{
			{ID: "old", State: "won", Generation: 0},
			{ID: "new", Task: graph.TaskID{Task: 1}, State: "won", Generation: 1},
			{ID: "writes", Task: graph.TaskID{Stage: 1}, State: "live", Generation: 0},
			{ID: "writes again", Task: graph.TaskID{Stage: 1}, State: "live", Generation: 2},
		},
	}
	l.newestGeneration(&rec)
	require.Len(t, rec.Attempts, 3)
	require.Equal(t, "new", rec.Attempts[0].ID)
	require.Equal(t, "ended", rec.Attempts[1].State)
	require.Equal(t, "live", rec.Attempts[2].State)
	require.Equal(t, 1, rec.Stages[0].Generation)
	require.Equal(t, 2, rec.Stages[1].Generation)
	require.NotContains(t, l.kept, "old")
}

// A physical plan runs as given, and its root is split off as off a statement's, under both planners (S6).
// Numbers in docs/semantics.md: S26.
func TestPhysicalPlan_RootAndResult_S6(t *testing.T) {
	columns := []*planv1.Column{{Name: "n", EngineType: "BIGINT"}}
	physical := func() *planv1.PhysicalPlan {
		produce := &planv1.PhysicalTask{Sql: "SELECT n"}
		p := &planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{
			{Tasks: []*planv1.PhysicalTask{produce, produce}, Columns: columns, Exchange: planv1.ExchangeKind_EXCHANGE_KIND_HASH, Keys: []int32{0}, Partitions: 4},
			{},
		}}
		for i := range int32(4) {
			p.Stages[1].Tasks = append(p.Stages[1].Tasks, &planv1.PhysicalTask{Sql: "SELECT n FROM s", Inputs: []*planv1.PhysicalInput{{
				View: "s", Kind: &planv1.PhysicalInput_Stage{Stage: &planv1.StageRead{Partitions: []int32{i}}},
			}}})
		}
		return p
	}
	for _, mode := range []string{"static", "adaptive"} {
		submit := func(b *bench, p *planv1.PhysicalPlan, key string) (string, error) {
			r, err := b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{PhysicalPlan: p, Settings: map[string]string{"signet.planner": mode}, IdempotencyKey: key})
			return r.GetJobId(), err
		}
		b := newBench(t, WithRoot(isResult, root.Count))
		x := b.actor()
		id, err := submit(b, physical(), "")
		require.NoError(t, err)
		j := b.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
		rows, partitions := counted(t, j.GetInlineResult())
		require.EqualValues(t, 4, partitions)
		require.EqualValues(t, 40, rows)
		for _, task := range x.ran() {
			if task.Stage == 1 {
				require.Len(t, task.Sources[0].GetExchange().GetParts(), 2, "its partition of both tasks")
			}
		}

		plain := newBench(t)
		plain.actor()
		id, err = submit(plain, physical(), "once")
		require.NoError(t, err)
		j = plain.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
		require.True(t, j.GetHasRows())
		require.Empty(t, j.GetInlineResult())
		again, err := submit(plain, physical(), "once")
		require.NoError(t, err)
		require.Equal(t, id, again)
		other := physical()
		other.Stages[0].Repeatable = true
		_, err = submit(plain, other, "once")
		require.ErrorContains(t, err, "another statement")

		bad := physical()
		bad.Stages[1].Tasks[0].GetInputs()[0].GetStage().Stage = 1
		_, err = submit(plain, bad, "")
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, "plans have no cycles")
		bad = physical()
		bad.Stages[0].Columns = []*planv1.Column{{Name: "n", EngineType: "VARCHAR"}}
		id, err = submit(plain, bad, "")
		require.NoError(t, err)
		j = plain.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState())
		require.Contains(t, j.GetError().GetMessage(), "declared as (n VARCHAR) and its query gives (n BIGINT)")
	}
}

// A large result is not kept as long as its job.
func TestKeepResult_LargeOnesGo(t *testing.T) {
	b := newBench(t, WithRoot(isResult, root.Rows))
	b.actor()
	id := b.submit("SELECT n", inParts("static"))
	require.NotEmpty(t, b.end(id).GetInlineResult())
	j := b.server.job(id)
	b.eventually("it is over", j.over)
	b.server.dropResult(j)
	again := b.job(id).GetJob()
	require.Empty(t, again.GetInlineResult())
	require.Contains(t, again.GetWarnings()[0], "not kept any more")
	b.stop()
	b.start()
	require.Empty(t, b.job(id).GetJob().GetInlineResult())
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.job(id).GetJob().GetState())
}

// A job that is cancelled before its root is due never runs it (S18), also if the last task still ends well (T2).
func TestRoot_CancelledBefore_S18(t *testing.T) {
	var runs atomic.Int32
	b := newBench(t, WithRoot(isResult, root.Func(func(context.Context, root.Input, root.Output) error { runs.Add(1); return nil })))
	reached, hold := make(chan struct{}, 8), make(chan struct{})
	x := b.actor(func(a *actor) {
		a.run = func(task *planv1.Task) *planv1.Error {
			if task.Stage == 1 {
				reached <- struct{}{}
				<-hold
			}
			return nil
		}
	})
	id := b.submit("SELECT n", inParts("static"))
	for range 3 {
		<-reached
	}
	cancelled, _, err := b.client.Cancel(t.Context(), id)
	require.NoError(t, err)
	require.True(t, cancelled)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, b.end(id).GetState())
	close(hold) // the tasks end well, too late
	b.eventually("their reports are answered", func() bool { return len(x.ran()) >= 4 && x.acked() >= 4 })
	b.freed(x)
	require.Zero(t, runs.Load())
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, b.end(id).GetState())
}

// Settings are checked before a job exists, and are part of what a key stands for.
func TestSubmit_SettingsAreCheckedAndHashed(t *testing.T) {
	b := newBench(t)
	b.actor()
	for name, value := range map[string]string{"signet.nonsense": "1", plan.SettingPlanner: "clever", plan.SettingRoot: "Sort"} {
		_, err := b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SELECT n", Settings: map[string]string{name: value}})
		require.ErrorContains(t, err, name)
	}
	_, err := b.client.Raw().BeginWrite(t.Context(), &schedulerv1.BeginWriteRequest{Table: "lake.a.b", Tasks: 1, Settings: map[string]string{"signet.nonsense": "1"}})
	require.ErrorContains(t, err, "signet.nonsense")
	jobs, err := b.client.Jobs(t.Context(), 10)
	require.NoError(t, err)
	require.Empty(t, jobs)
	_, err = b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SELECT n", IdempotencyKey: "k", Settings: inParts("static")})
	require.NoError(t, err)
	_, err = b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SELECT n", IdempotencyKey: "k", Settings: inParts("adaptive")})
	require.ErrorContains(t, err, "other settings")
}
