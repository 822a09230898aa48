package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/scheduler/dispatch"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

// loop drives the graph of one job: it turns what executors report into events, and actions into launches, journal writes and further
// planning. The job's goroutine owns it, so that a root that blocks delays no other job (S17).
type loop struct {
	s       *Server
	j       *job
	w       *writeState  // nil: a query
	planner plan.Planner // nil: an external session, or a write that was planned before a restart
	root    *rootRun     // nil: none, or a commit
	check   *checked     // VALIDATE: tasks that would write only check; nil: they write
	g       *graph.Graph
	stages  []stageRun
	kept    map[string]*kept // by attempt: what winners have left on executors
	rows    map[int32]partIndex
	infos   []*schedulerv1.TaskInfo
	touched map[graph.TaskID]bool
	bytes   int64 // of all tasks

	begun      bool // the plan of a write is journalled
	unsaved    []string
	rewrite    bool // outputs in the journal may be those of attempts that do not win any more
	generation map[string]int
	avoid      map[string][]string // of attempts that have not been launched yet
	pull       bool                // executors ask for the job's tasks
	inFlight   int                 // as the graph knows it
	pace       *pace               // nil: no second attempts

	failure *graph.Failure
	result  []byte
	due     bool // the commit is due
	done    bool
}

// stageRun is a stage that runs: its tasks without attempts.
type stageRun struct {
	tasks      []*planv1.Task
	inputs     []int32
	repeatable bool
	firstInfo  int
}

func (st *stageRun) stored() bool { return len(st.tasks) > 0 && st.tasks[0].GetExchange() != nil }

func (s *Server) newLoop(j *job, w *writeState, p plan.Planner) *loop {
	l := &loop{
		s: s, j: j, w: w, planner: p, kept: map[string]*kept{}, rows: map[int32]partIndex{}, touched: map[graph.TaskID]bool{}, generation: map[string]int{},
		avoid: map[string][]string{}, pull: s.taskPolicy(j) == policyPull,
	}
	l.pace = l.newPace()
	return l
}

const policyPull = "pull"

// taskPolicy is the job's own, or the configuration's.
func (s *Server) taskPolicy(j *job) string {
	return cmp.Or(j.settings().TaskPolicy, s.cfg.Dispatch.TaskPolicy)
}

// leastInFlight is enough for a cluster that is only just coming up.
const leastInFlight = 256

// capacity bounds the attempts of one job that are launched at one time: as many as keep the executors busy until the next are, however many tasks
// the job has.
func (s *Server) capacity() int { return max(leastInFlight, 4*s.pool.Slots()) }

func (l *loop) config() graph.Config {
	l.inFlight = l.s.capacity()
	return graph.Config{
		MaxFailures: l.s.cfg.Limits.TaskRetries + 1, MaxLosses: l.s.cfg.Limits.TaskLosses, MaxInFlight: l.inFlight, MaxSpeculative: l.maxSpeculative(),
		NewAttempt: uuid.NewString,
	}
}

func (l *loop) rootKind() graph.RootKind {
	switch {
	case l.w != nil:
		return graph.RootCommit
	case l.root != nil:
		return graph.RootPlain
	}
	return graph.RootNone
}

// start runs the first stages.
func (l *loop) start(first plan.Batch) error {
	l.g = graph.New(l.config())
	if err := l.take(first); err != nil {
		return err
	}
	ev := graph.Planned{Stages: l.specs(0), Root: l.rootKind(), More: first.More, External: l.w != nil && l.w.isSession()}
	return l.launchPlanned(l.g.Apply(ev), first.More)
}

// planMore plans the next stages from what the last ones have left.
func (l *loop) planMore() error {
	from := len(l.stages)
	begun := time.Now()
	batch, err := l.planner.Next(l.measures())
	l.j.timed("plan-more", begun)
	if err != nil {
		f := asFailure(planFailure(err))
		return l.act(l.g.Apply(graph.PlanFailed{Failure: graph.Failure{Code: f.Code, Message: f.Message, Hint: f.Hint}}))
	}
	if err := l.take(batch); err != nil {
		return err
	}
	return l.launchPlanned(l.g.Apply(graph.StagesAdded{Stages: l.specs(from), More: batch.More}), batch.More)
}

// launchPlanned carries out what newly planned stages bring about. Once a write is planned to its end, plan and first attempts are made
// durable in one transaction, before any executor hears of them (S71).
func (l *loop) launchPlanned(actions []graph.Action, more bool) error {
	if l.w == nil || more || l.begun {
		l.announce()
		return l.act(actions)
	}
	launches := l.launches(actions)
	start := time.Now()
	if err := l.beginWrite(launches); err != nil {
		return err
	}
	l.j.timed("journal-plan", start)
	l.begun = true
	l.j.update(func() { l.j.write, l.j.rec.Write = l.w, l.w.rec })
	l.announce()
	return l.carryOut(actions, launches)
}

// announce shows the job as running.
func (l *loop) announce() {
	if l.planner != nil {
		text := l.planner.Plan().Explain()
		l.j.update(func() { l.j.plan = text })
	}
	l.publish()
	l.j.setPhase(jobRunning, "stages", "")
}

// act carries out actions. Launches are journalled together, before the first of them leaves.
func (l *loop) act(actions []graph.Action) error {
	launches := l.launches(actions)
	if err := l.save(launches); err != nil {
		return err
	}
	return l.carryOut(actions, launches)
}

func (l *loop) carryOut(actions []graph.Action, launches []*planv1.Task) error {
	more := false
	for _, a := range actions {
		switch a := a.(type) {
		case graph.CancelAttempt:
			l.stop(a.Attempt, a.Reason)
		case graph.Sweep:
			l.stop(a.Attempt, "the attempt was given up")
			l.forget(a.Attempt)
		case graph.FreeData:
			l.free(a.Attempts)
		case graph.PlanMore:
			more = true
		case graph.RunRoot:
			if l.root == nil {
				l.due = true
				continue
			}
			if err := l.runRoot(); err != nil {
				return err
			}
		case graph.CancelRoot:
			l.root.stop(a.Reason)
		case graph.Finish:
			l.done, l.failure, l.result = true, a.Failure, a.Result
		}
	}
	if err := l.dispatch(launches); err != nil {
		return err
	}
	if more {
		return l.planMore()
	}
	return nil
}

func (l *loop) dispatch(launches []*planv1.Task) error {
	for _, t := range launches {
		if err := fault.Hit("scheduler.launch.before"); err != nil {
			return err
		}
		if n := proto.Size(t); n > rpc.MaxPayload {
			return fail(codeResource, "read fewer or larger files in one task: set signet.max_tasks higher", "task %d/%d takes %d bytes; at most %d can be sent to an executor", t.Stage, t.Task, n, rpc.MaxPayload)
		}
		l.s.openAttempt(&attempt{ref: refOf(t), job: l.j, task: t})
		if mutant.On("scheduler/settings-in-tasks") {
			t.Sql += fmt.Sprintf(" /* %v */", l.j.rec.Settings)
		}
		l.s.pool.Launch(dispatch.Work{Task: t, Pull: l.pull, Avoid: l.avoid[t.AttemptId]})
		delete(l.avoid, t.AttemptId)
	}
	return nil
}

// stop closes an attempt that is not wanted any more. Its files are a duty of the job's end, or of its executor before that.
func (l *loop) stop(id, why string) {
	l.touch(id)
	l.pace.end(id)
	l.j.view.stopped(id, why)
	if a := l.close(id); a != nil {
		l.s.pool.Cancel(a.ref, why)
	}
	l.j.update(func() { delete(l.j.running, id) })
}

// close returns nil if the attempt was not open.
func (l *loop) close(id string) *attempt {
	if l.w != nil {
		return l.w.giveUp(id)
	}
	a := l.s.attempt(id)
	l.s.closeAttempt(id)
	return a
}

// run takes events until the commit is due, or the job has ended.
func (l *loop) run() error {
	look, stop := l.pace.every()
	defer stop()
	for {
		switch {
		case l.failure != nil:
			return &jobFailure{JobError: journal.JobError{Code: failureCode(l.failure.Code), Message: l.failure.Message, Hint: l.failure.Hint}}
		case l.due || l.done:
			return nil
		}
		select {
		case <-l.j.ctx.Done():
			return context.Cause(l.j.ctx)
		case <-l.j.events.wake:
			if err := l.handle(l.j.events.take()); err != nil {
				return err
			}
		case now := <-look:
			if err := l.speculate(now); err != nil {
				return err
			}
		case <-l.waitForExecutor():
			if l.s.pool.Connected() == 0 {
				return fail(codeNoExec, "start one with: signet executor --scheduler "+l.s.addr, "no executor came within %s", l.s.emptyGrace())
			}
		}
	}
}

// handle applies what was reported.
func (l *loop) handle(events []any) error {
	if n := l.s.capacity(); n != l.inFlight {
		l.inFlight = n
		if err := l.act(l.g.Apply(graph.Capacity{InFlight: n})); err != nil {
			return err
		}
	}
	for _, ev := range events {
		for _, e := range l.translate(ev) {
			if err := l.act(l.g.Apply(e)); err != nil {
				return err
			}
		}
		if err := l.j.spoiled(); err != nil {
			return err
		}
		if l.due || l.done {
			break
		}
	}
	l.publish()
	return nil
}

func failureCode(code string) string {
	switch code {
	case graph.CodeUser, graph.CodeIO:
		return codeUser
	case graph.CodeResource:
		return codeResource
	case graph.CodeInternal, graph.CodeLost, graph.CodeRoot:
		return codeInternal
	default: // of a root or of the planner, which use the client's codes
		return code
	}
}

func (s *Server) emptyGrace() time.Duration {
	if s.opts.EmptyGrace > 0 {
		return s.opts.EmptyGrace
	}
	return time.Minute
}

// waitForExecutor is a timer while work waits and no executor is there; nil otherwise.
func (l *loop) waitForExecutor() <-chan time.Time {
	if l.w != nil && l.w.isSession() || l.s.pool.Connected() > 0 || l.s.pool.Queued(l.j.id) == 0 {
		return nil
	}
	l.j.setPhase(jobRunning, "stages", "waiting for an executor")
	return time.After(l.s.emptyGrace())
}

// translate makes graph events of what the gateway reports.
func (l *loop) translate(ev any) []graph.Event {
	l.j.view.reported(ev)
	switch ev := ev.(type) {
	case taskAccepted:
		l.closed(ev.attempt, ev.bytes)
		return []graph.Event{graph.TaskSucceeded{Attempt: ev.attempt, Rows: ev.rows, Bytes: ev.bytes, Accepted: true}}
	case taskDone:
		l.closed(ev.attempt, ev.bytes)
		l.keep(ev)
		if l.check != nil {
			l.check.files[ev.attempt] = ev.files
		}
		return []graph.Event{
			graph.Launched{Attempt: ev.attempt, Executor: ev.executor},
			graph.TaskSucceeded{Attempt: ev.attempt, Rows: ev.rows, Bytes: ev.bytes},
		}
	case doneAgain:
		if l.g.Verdict(ev.attempt) != nil {
			l.s.pool.Free(ev.executor, l.j.id, []string{ev.attempt})
		}
		return nil
	case taskFailed:
		l.touch(ev.attempt)
		out := []graph.Event{graph.TaskFailed{Attempt: ev.attempt, Class: ev.err.Class, Message: ev.err.Message, Hint: ev.err.Hint, LostAttempt: ev.err.LostAttempt}}
		if ev.executor != "" { // so that the next attempt may avoid it
			out = append([]graph.Event{graph.Launched{Attempt: ev.attempt, Executor: ev.executor}}, out...)
		}
		l.rewrite = l.rewrite || ev.err.LostAttempt != ""
		return out
	case attemptLost:
		l.touch(ev.attempt)
		return []graph.Event{graph.TaskLost{Attempt: ev.attempt, Reason: ev.reason()}}
	case graph.Launched:
		l.touch(ev.Attempt)
		l.pace.start(ev.Attempt)
		return []graph.Event{ev}
	case attemptAdopted:
		l.touch(ev.attempt)
		l.pace.start(ev.attempt)
		l.s.log.Info("attempt adopted", "job", l.j.id, "attempt", ev.attempt, "executor", ev.executor)
		return []graph.Event{graph.Launched{Attempt: ev.attempt, Executor: ev.executor}}
	case graph.AdoptionExpired:
		l.rewrite = true
		l.j.setPhase(jobRunning, "stages", "")
		return []graph.Event{ev}
	case graph.ExecutorLost, graph.ExecutorJoined:
		l.rewrite = true
		e, _ := ev.(graph.Event)
		return []graph.Event{e}
	case graph.AttemptBegun:
		l.touched[ev.Task] = true
		return []graph.Event{ev}
	case graph.Event:
		return []graph.Event{ev}
	}
	return nil
}

// closed takes a won attempt out of the running ones.
func (l *loop) closed(id string, bytes int64) {
	l.touch(id)
	if t, ok := l.g.TaskOf(id); ok {
		l.pace.done(t.Stage, id, bytes)
	}
	l.s.closeAttempt(id)
	l.j.update(func() { delete(l.j.running, id) })
}

func refOf(t *planv1.Task) *executorv1.AttemptRef {
	return &executorv1.AttemptRef{JobId: t.JobId, Stage: t.Stage, Task: t.Task, AttemptId: t.AttemptId, Epoch: t.Epoch}
}

// rootFailure says where a commit failed (S22).
func rootFailure(err error) error {
	if err == nil || errors.Is(err, errCancelled) || errors.Is(err, context.Canceled) {
		return err
	}
	f := *asFailure(err)
	f.Message = "Error running the job's scheduler root: " + f.Message
	if mutant.On("scheduler/cause-dropped") {
		f.Message = "Error running the job's scheduler root"
	}
	return &f
}
