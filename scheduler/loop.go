package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/journal"
)

// loop drives the graph of one job: it turns what executors report into events, and actions into launches and journal writes. The
// job's goroutine owns it, so that a root that blocks delays no other job (S17).
type loop struct {
	s       *Server
	j       *job
	w       *writeState // nil: a query
	tasks   []*planv1.Task
	g       *graph.Graph
	failure *graph.Failure
	root    bool // the root is due
	done    bool
}

func (s *Server) newLoop(j *job, w *writeState, tasks []*planv1.Task) *loop {
	return &loop{s: s, j: j, w: w, tasks: tasks}
}

func (l *loop) config() graph.Config {
	return graph.Config{MaxFailures: l.s.cfg.Limits.TaskRetries + 1, MaxLosses: l.s.cfg.Limits.TaskRetries + 1, NewAttempt: uuid.NewString}
}

// runQuery runs the one task of a SELECT.
func (s *Server) runQuery(j *job, task *planv1.Task) error {
	l := s.newLoop(j, nil, []*planv1.Task{task})
	j.setPhase(jobRunning, "stages", "")
	l.g = graph.New(l.config())
	if err := l.apply(graph.Planned{Stages: []graph.StageSpec{{Tasks: 1}}, Durable: true}); err != nil {
		return err
	}
	return l.run()
}

// runWrite runs a planned write to its end: tasks, then the commit. restored are attempts of an earlier incarnation.
func (s *Server) runWrite(w *writeState, restored []*executorv1.AttemptRef) error {
	j := w.job
	lease, _, err := s.lease(j.ctx, w.target, broker.LeaseSpec{JobID: j.id, TableUUID: w.spec.TableUuid, Mode: w.mode, AllowCreate: w.spec.CreatesTable, Location: w.rec.Location})
	if err != nil {
		return s.endWrite(w, err)
	}
	w.mu.Lock()
	w.lease = lease
	w.mu.Unlock()
	defer func() {
		lease.Close()
		w.keepCreated(lease)
		s.spawn(func() { s.sweepMetadata(w) })
	}()
	l := s.newLoop(j, w, w.tasks)
	begun := time.Now()
	if w.machine.State() == coordinator.Planned {
		err = l.begin()
		j.timed("journal-plan", begun)
	} else {
		err = l.resume(restored)
	}
	if err != nil {
		return s.endWrite(w, err)
	}
	if !w.isSession() {
		go w.stage().begin() // the sink loads the table while tasks run
	}
	start := time.Now()
	if err := l.run(); err != nil {
		return s.endWrite(w, err)
	}
	j.timed("tasks", start)
	if err := l.g.TakeRoot(); err != nil {
		return s.endWrite(w, err)
	}
	return s.endWrite(w, rootFailure(s.runCommit(w)))
}

// rootFailure says where a commit failed (S22).
func rootFailure(err error) error {
	if err == nil || errors.Is(err, errCancelled) || errors.Is(err, context.Canceled) {
		return err
	}
	f := *asFailure(err)
	f.Message = "Error running the job's scheduler root: " + f.Message
	return &f
}

// begin makes the plan and its first attempts durable in one transaction, before any executor hears of them (S71).
func (l *loop) begin() error {
	l.g = graph.New(l.config())
	actions := l.g.Apply(graph.Planned{
		Stages: []graph.StageSpec{{Tasks: len(l.tasks)}}, Root: graph.RootCommit, Durable: true, External: l.w.isSession(),
	})
	launches := l.launches(actions)
	if err := l.w.begin(launches); err != nil {
		return err
	}
	l.announce()
	return l.dispatch(launches)
}

// resume rebuilds the graph from what the journal knows: accepted manifests are winners, and open attempts may come back with
// their executors.
func (l *loop) resume(restored []*executorv1.AttemptRef) error {
	rec := graph.Record{State: graph.Running, Phase: graph.PhaseStages, Root: graph.RootCommit, Durable: true, External: l.w.isSession()}
	rec.Stages = []graph.StageRecord{{Tasks: make([]graph.TaskRecord, len(l.tasks))}}
	won, winners := 0, map[string]bool{}
	for _, t := range l.tasks {
		if a, ok := l.w.winner(t.Task); ok {
			won++
			winners[a.Attempt] = true
			rec.Attempts = append(rec.Attempts, graph.AttemptRecord{ID: a.Attempt, Task: graph.TaskID{Task: t.Task}, Executor: "before the restart", State: "won", Rows: a.Totals.Rows, Bytes: a.Totals.Bytes})
		}
	}
	for _, ref := range restored {
		if winners[ref.AttemptId] { // its executor has reported since: reports are taken as soon as the listener is open
			continue
		}
		rec.Attempts = append(rec.Attempts, graph.AttemptRecord{ID: ref.AttemptId, Task: graph.TaskID{Task: ref.Task}, Executor: "before the restart", State: "live"})
	}
	// Manifests may have been accepted whose stager is gone: everything is staged from the journal.
	l.w.stage().restore(won > 0)
	rec.Finished = l.w.isSession() && won == len(l.tasks)
	var actions []graph.Action
	var err error
	if l.g, actions, err = graph.Restore(l.config(), rec); err != nil {
		return err
	}
	l.announce()
	if len(restored) > 0 {
		l.j.setPhase(jobRunning, "stages", "waiting for executors to come back with the attempts they had before the restart")
		time.AfterFunc(l.s.adoptGrace(), func() { l.j.send(graph.AdoptionExpired{}) })
	}
	return l.act(actions)
}

// announce shows the job as running.
func (l *loop) announce() {
	if l.w != nil {
		l.j.update(func() { l.j.write, l.j.rec.Write = l.w, l.w.rec })
	}
	l.publish()
	l.j.setPhase(jobRunning, "stages", "")
}

// adoptGrace is how long a restarted scheduler waits for the executors of its attempts.
func (s *Server) adoptGrace() time.Duration {
	if s.opts.ReconnectGrace > 0 {
		return s.opts.ReconnectGrace
	}
	return 5 * time.Second
}

// apply gives the graph one event and does what it asks for.
func (l *loop) apply(ev graph.Event) error {
	err := l.act(l.g.Apply(ev))
	l.publish()
	return err
}

// launches makes the attempts that actions ask for.
func (l *loop) launches(actions []graph.Action) []*planv1.Task {
	var out []*planv1.Task
	for _, a := range actions {
		if a, ok := a.(graph.Launch); ok {
			out = append(out, l.attempt(l.tasks[a.Task.Task], a.Attempt))
		}
	}
	return out
}

func (l *loop) attempt(t *planv1.Task, id string) *planv1.Task {
	if l.w != nil {
		return l.w.attemptTask(t, id)
	}
	return &planv1.Task{JobId: l.j.id, Stage: t.Stage, Task: t.Task, AttemptId: id, Epoch: l.s.journal.Epoch(), Sql: t.Sql, Sources: t.Sources, Work: t.Work}
}

// act carries out actions. Launches are journalled together, before the first of them leaves.
func (l *loop) act(actions []graph.Action) error {
	launches := l.launches(actions)
	if l.w != nil && len(launches) > 0 {
		err := l.s.journal.Update(func(tx *journal.Tx) error {
			for _, t := range launches {
				if err := tx.PutAttempt(l.w.attemptRecord(t)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case graph.CancelAttempt:
			l.stop(a.Attempt, a.Reason)
		case graph.Sweep:
			l.stop(a.Attempt, "the attempt was given up")
		case graph.RunRoot:
			l.root = true
		case graph.Finish:
			l.done, l.failure = true, a.Failure
		}
	}
	return l.dispatch(launches)
}

func (l *loop) dispatch(launches []*planv1.Task) error {
	for _, t := range launches {
		if err := fault.Hit("scheduler.launch.before"); err != nil {
			return err
		}
		l.s.openAttempt(&attempt{ref: refOf(t), job: l.j, task: t})
		l.s.pool.Launch(t)
	}
	return nil
}

// stop closes an attempt that is not wanted any more. Its files are a duty of the job's end, or of its executor before that.
func (l *loop) stop(id, why string) {
	if a := l.s.attempt(id); a != nil {
		l.s.closeAttempt(id)
		l.s.pool.Cancel(a.ref, why)
	}
	l.j.update(func() { delete(l.j.running, id) })
}

// run takes events until the root is due, or the job has ended.
func (l *loop) run() error {
	for {
		switch {
		case l.failure != nil:
			return &jobFailure{JobError: journal.JobError{Code: failureCode(l.failure.Code), Message: l.failure.Message, Hint: l.failure.Hint}}
		case l.root || l.done:
			return nil
		}
		select {
		case <-l.j.ctx.Done():
			return context.Cause(l.j.ctx)
		case ev := <-l.j.events:
			if err := l.apply(l.translate(ev)); err != nil {
				return err
			}
		case <-l.waitForExecutor():
			if l.s.pool.Connected() == 0 {
				return fail(codeNoExec, "start one with: signet executor --scheduler "+l.s.addr, "no executor came within %s", l.s.emptyGrace())
			}
		}
	}
}

func failureCode(code string) string {
	switch code {
	case graph.CodeUser, graph.CodeIO:
		return codeUser
	case graph.CodeResource:
		return codeResource
	default:
		return codeInternal
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
func (l *loop) translate(ev any) graph.Event {
	switch ev := ev.(type) {
	case taskAccepted:
		l.closed(ev.attempt)
		return graph.TaskSucceeded{Attempt: ev.attempt, Rows: ev.rows, Bytes: ev.bytes}
	case taskDone:
		l.closed(ev.attempt)
		return graph.TaskSucceeded{Attempt: ev.attempt, Rows: ev.rows, Bytes: ev.bytes}
	case taskFailed:
		l.s.log.Warn("task attempt failed", "job", l.j.id, "attempt", ev.attempt, "class", ev.err.Class.String(), "error", ev.err.Message)
		return graph.TaskFailed{Attempt: ev.attempt, Class: ev.err.Class, Message: ev.err.Message, Hint: ev.err.Hint}
	case attemptLost:
		return graph.TaskLost{Attempt: ev.attempt, Reason: "executor " + ev.executor + " was lost"}
	case attemptAdopted:
		l.s.log.Info("attempt adopted", "job", l.j.id, "attempt", ev.attempt, "executor", ev.executor)
		return graph.Launched{Attempt: ev.attempt, Executor: ev.executor}
	case graph.Event:
		if _, ok := ev.(graph.AdoptionExpired); ok {
			l.j.setPhase(jobRunning, "stages", "")
		}
		return ev
	}
	return graph.Progress{} // of no attempt: changes nothing
}

// closed takes a won attempt out of the running ones.
func (l *loop) closed(id string) {
	l.s.closeAttempt(id)
	l.j.update(func() { delete(l.j.running, id) })
}

// publish lets others see the graph.
func (l *loop) publish() {
	snap, views := l.g.Snapshot(), l.g.TaskViews()
	stages := int32(snap.Stages) //nolint:gosec // few
	if l.w != nil {
		stages++ // the scheduler's own, last
	}
	infos, attempts := make([]*schedulerv1.TaskInfo, len(views)), make([]string, len(views))
	for i, v := range views {
		attempts[i] = v.Attempt
		infos[i] = &schedulerv1.TaskInfo{
			Stage: v.Stage, Task: v.Task, State: v.State, Attempts: int32(v.Attempts), Executor: v.Executor, //nolint:gosec // few
			Rows: v.Rows, Bytes: v.Bytes, Error: v.LastErr,
		}
	}
	l.j.update(func() {
		l.j.tasks, l.j.attempts = infos, attempts
		p := &l.j.progress
		p.Stages, p.StagesDone, p.Tasks, p.TasksDone = stages, int32(snap.StagesDone), int32(snap.Tasks), int32(snap.TasksDone) //nolint:gosec // few
		p.Running, p.Rows, p.Bytes = int32(min(snap.Running+snap.Waiting, snap.Tasks-snap.TasksDone)), snap.Rows, snap.Bytes    //nolint:gosec // few
	})
}

// endWrite makes the coordinator's state follow an error that ends the job, so that nothing commits afterwards. A shutdown changes nothing.
func (s *Server) endWrite(w *writeState, err error) error {
	if err == nil || w.isFinal() || s.stoppedByShutdown(w.job) {
		return err
	}
	if errors.Is(context.Cause(w.job.ctx), errCancelled) {
		if _, serr := w.step(coordinator.Cancel{Reason: "cancelled by the client"}, nil); serr != nil {
			s.log.Debug("cancel of a write", "job", w.job.id, "error", serr)
		}
		return err
	}
	return s.failWrite(w, asFailure(err))
}

func (w *writeState) isSession() bool { return w.job.rec.Session != nil }
