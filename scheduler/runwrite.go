package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

// runWrite runs a planned write to its end: tasks, then the commit. restored are attempts of an earlier incarnation.
func (s *Server) runWrite(w *writeState, planner plan.Planner, first plan.Batch, restored []*executorv1.AttemptRef) error {
	j := w.job
	var lease *broker.Lease
	if err := s.stillPermitted(j.owner, j.does()); err != nil {
		return s.endWrite(w, err)
	}
	err := s.overCrashes(j.ctx, "start", func() (err error) {
		lease, _, err = s.lease(j.ctx, w.target, broker.LeaseSpec{JobID: j.id, TableUUID: w.spec.TableUuid, Mode: w.mode, Branch: w.spec.Branch, AllowCreate: w.spec.CreatesTable, Location: w.rec.Location})
		return err
	})
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
	if w.mode == sinkv1.WriteMode_WRITE_MODE_APPEND && !w.isSession() {
		w.here = s.commits.expect(w.target.String())
		defer w.here()
	}
	l := s.newLoop(j, w, planner)
	switch {
	case w.machine.State() != coordinator.Planned:
		err = l.resume(restored)
	case w.isSession():
		l.add(stageRun{tasks: w.tasks})
		err = l.start(first)
	default:
		err = l.start(first)
	}
	if err != nil {
		return s.endWrite(w, err)
	}
	if !w.isSession() && (len(w.tasks) != 1 || !s.commits.crowded(w.target.String())) {
		// The sink loads the table while tasks run. Where many append, it has done so for others, and the only manifest goes with what opens its stream.
		go w.stage().begin()
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

// beginWrite makes the plan of a write durable, with its first attempts and what its stages have left by now.
func (l *loop) beginWrite(launches []*planv1.Task) error {
	w, j := l.w, l.j
	w.tasks = l.stages[len(l.stages)-1].tasks
	w.rec.Tasks, w.rec.Repeatable = len(w.tasks), nil
	if l.planner != nil {
		w.rec.Plan = l.planner.Plan().Explain()
	}
	if len(l.stages) > 1 {
		for _, st := range l.stages {
			w.rec.Repeatable = append(w.rec.Repeatable, st.repeatable)
		}
	}
	told, kept := l.s.lineageOfWrite(w, l.stages), json.RawMessage(nil)
	_, err := w.step(coordinator.Begin{Tasks: len(w.tasks), TableUUID: w.spec.TableUuid}, func(tx *journal.Tx, _ *coordinator.Machine) error {
		j.mu.Lock()
		rec := j.rec
		j.mu.Unlock()
		if rec.CancelledBy != "" {
			return errCancelled
		}
		rec.Write = w.rec
		if err := l.s.tellStart(tx, &rec, told); err != nil {
			return err
		}
		kept = rec.Lineage
		if err := tx.PutJob(&rec); err != nil {
			return err
		}
		for _, st := range l.stages {
			for _, t := range st.tasks {
				if err := tx.PutTask(t); err != nil {
					return err
				}
			}
		}
		return l.put(tx, launches)
	})
	if err == nil {
		l.unsaved, l.rewrite = nil, false
		j.update(func() { j.rec.Lineage = kept })
	}
	return err
}

// save journals what recovery needs before launches leave: attempts that write (S71), and what stages have left. A write that is not planned
// to its end is planned anew after a restart, and a query runs again: of those nothing is journalled.
func (l *loop) save(launches []*planv1.Task) error {
	if l.w == nil || !l.begun || len(launches) == 0 {
		return nil
	}
	if err := fault.Hit("scheduler.attempts.before-journal"); err != nil {
		return err
	}
	if err := l.s.journal.Update(func(tx *journal.Tx) error { return l.put(tx, launches) }); err != nil {
		return err
	}
	l.unsaved, l.rewrite = nil, false
	return fault.Hit("scheduler.attempts.after-journal")
}

func (l *loop) put(tx *journal.Tx, launches []*planv1.Task) error {
	for _, t := range launches {
		if t.GetWrite() == nil {
			continue
		}
		rec := l.w.attemptRecord(t)
		rec.Generation = l.generation[t.AttemptId]
		if err := tx.PutAttempt(rec); err != nil {
			return err
		}
	}
	ids := l.unsaved
	if l.rewrite { // only winners may be there: what was made from a lost output must not meet its successor after a restart (S73)
		if err := tx.DropOutputs(l.j.id); err != nil {
			return err
		}
		ids = nil
		for id := range l.kept {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if err := l.putOutput(tx, id); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) putOutput(tx *journal.Tx, id string) error {
	k := l.kept[id]
	if k == nil {
		return nil
	}
	if winner, _, ok := l.g.Winner(graph.TaskID{Stage: k.stage, Task: k.task}); !ok || winner != id {
		return nil
	}
	b, err := proto.Marshal(k.output)
	if err != nil {
		return err
	}
	return tx.PutOutput(&journal.Output{
		Job: l.j.id, Stage: k.stage, Task: k.task, Attempt: id, Executor: k.executor, Address: k.address, Generation: l.generation[id],
		Rows: k.rows, Bytes: k.bytes, Parts: b,
	})
}

// resume rebuilds the graph from what the journal knows: accepted manifests are winners, outputs are winners while executors have them, and
// open attempts may come back with theirs.
func (l *loop) resume(restored []*executorv1.AttemptRef) error {
	l.begun = true
	rec := graph.Record{State: graph.Running, Phase: graph.PhaseStages, Root: graph.RootCommit, External: l.w.isSession()}
	for _, st := range l.w.before {
		l.add(st)
		rec.Stages = append(rec.Stages, graph.StageRecord{Inputs: st.inputs, Stored: st.stored(), Repeatable: st.repeatable, Tasks: make([]graph.TaskRecord, len(st.tasks))})
	}
	last := int32(len(l.stages) - 1) //nolint:gosec // few
	won, winners := 0, map[string]bool{}
	for _, t := range l.w.tasks {
		if a, ok := l.w.winner(t.Task); ok {
			won++
			winners[a.Attempt] = true
			rec.Attempts = append(rec.Attempts, graph.AttemptRecord{
				ID: a.Attempt, Task: graph.TaskID{Stage: last, Task: t.Task}, Executor: graph.UnknownExecutor, State: "won", Rows: a.Totals.Rows, Bytes: a.Totals.Bytes,
				Generation: l.w.generations[a.Attempt],
			})
		}
	}
	for _, ref := range restored {
		if winners[ref.AttemptId] { // its executor has reported since: reports are taken as soon as the listener is open
			continue
		}
		rec.Attempts = append(rec.Attempts, graph.AttemptRecord{
			ID: ref.AttemptId, Task: graph.TaskID{Stage: last, Task: ref.Task}, Executor: graph.UnknownExecutor, State: "live", Generation: l.w.generations[ref.AttemptId],
		})
	}
	if err := l.restoreOutputs(&rec); err != nil {
		return err
	}
	l.newestGeneration(&rec)
	// Manifests may have been accepted whose stager is gone: everything is staged from the journal.
	l.w.stage().restore(won > 0)
	rec.Finished = l.w.isSession() && won == len(l.w.tasks)
	var actions []graph.Action
	var err error
	if l.g, actions, err = graph.Restore(l.config(), rec); err != nil {
		return err
	}
	for i := range l.stages {
		for _, t := range l.stages[i].tasks {
			l.touched[graph.TaskID{Stage: t.Stage, Task: t.Task}] = true
		}
	}
	l.j.update(func() { l.j.write, l.j.rec.Write = l.w, l.w.rec })
	l.announce()
	if len(restored) > 0 || len(l.kept) > 0 {
		l.j.setPhase(jobRunning, "stages", "waiting for executors to come back with the attempts they had before the restart")
		l.s.spawn(func() {
			l.s.awaitEarlier()
			l.j.send(graph.AdoptionExpired{})
		})
	}
	return l.act(actions)
}

func (l *loop) restoreOutputs(rec *graph.Record) error {
	for _, o := range l.w.outputs {
		out := &planv1.ExchangeOutput{}
		if err := proto.Unmarshal(o.Parts, out); err != nil {
			return errors.Join(journal.ErrDamaged, err)
		}
		l.kept[o.Attempt] = &kept{stage: o.Stage, task: o.Task, executor: o.Executor, address: o.Address, rows: o.Rows, bytes: o.Bytes, output: out}
		rec.Attempts = append(rec.Attempts, graph.AttemptRecord{
			ID: o.Attempt, Task: graph.TaskID{Stage: o.Stage, Task: o.Task}, Executor: o.Executor, State: "won", Rows: o.Rows, Bytes: o.Bytes, Generation: o.Generation,
		})
	}
	return nil
}

// newestGeneration gives each stage the generation of its newest attempts; older ones were being replaced.
func (l *loop) newestGeneration(rec *graph.Record) {
	for _, a := range rec.Attempts {
		st := &rec.Stages[a.Task.Stage]
		st.Generation = max(st.Generation, a.Generation)
	}
	kept := rec.Attempts[:0]
	for _, a := range rec.Attempts {
		if a.Generation < rec.Stages[a.Task.Stage].Generation && rec.Stages[a.Task.Stage].Stored {
			delete(l.kept, a.ID)
			continue
		}
		if a.Generation < rec.Stages[a.Task.Stage].Generation && a.State == "live" {
			a.State, a.Reason = "ended", "what it read was lost"
		}
		if a.Generation > 0 {
			l.generation[a.ID] = a.Generation
		}
		kept = append(kept, a)
	}
	rec.Attempts = kept
}

// adoptGrace is how long a restarted scheduler waits for the executors of its attempts.
func (s *Server) adoptGrace() time.Duration {
	if s.opts.ReconnectGrace > 0 {
		return s.opts.ReconnectGrace
	}
	return 5 * time.Second
}
