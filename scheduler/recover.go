package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

// recover reads the journal into memory. Nothing runs yet: executors may only come when their attempts are known.
func (s *Server) recover() error {
	var open []*job
	err := s.journal.View(func(tx *journal.Tx) error {
		return tx.Jobs(func(rec *journal.Job) error {
			if !rec.State.Terminal() { // it runs again; of one that has ended the rows are gone, and who asks for them is to hear that
				rec.HasRows = false
			}
			j := newJob(s.ctx, *rec)
			j.progress.Tasks, j.progress.Rows, j.progress.Bytes = int32(rec.Progress.Tasks), rec.Progress.Rows, rec.Progress.Bytes //nolint:gosec // small number
			if rec.State == journal.StateSuccessful {
				j.progress.TasksDone, j.progress.Stages = j.progress.Tasks, int32(rec.Progress.Stages) //nolint:gosec // few
				j.progress.StagesDone = j.progress.Stages
			}
			s.jobs[rec.ID] = j
			if j.upkeep {
				s.scheduled++
			}
			s.observeRecovered(j)
			if !rec.State.Terminal() {
				open = append(open, j)
			}
			if rec.Untidy {
				s.toTidy = append(s.toTidy, j)
			}
			s.keepResult(j)
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, j := range open {
		if err := s.recoverJob(j); err != nil {
			return fmt.Errorf("job %s: %w", j.id, err)
		}
	}
	if err := s.recoverGroups(open); err != nil {
		return err
	}
	return s.keepBodies(open)
}

// keepBodies forgets the commit objects beside the journal that no sealed attempt needs.
func (s *Server) keepBodies(open []*job) error {
	var sealed []*coordinator.Attempt
	for _, j := range open {
		if j.write != nil && j.write.machine.Open() != nil {
			sealed = append(sealed, j.write.machine.Open())
		}
	}
	return s.broker.KeepBodies(sealed)
}

// recoverJob prepares an open job: one that was planned gets its write state back, with the attempts that may still be running.
func (s *Server) recoverJob(j *job) error {
	s.toResume, j.again = append(s.toResume, j), true
	if j.rec.Write == nil {
		return nil
	}
	w, err := s.restoreWrite(j)
	if err != nil {
		return err
	}
	j.write, j.plan = w, j.rec.Write.Plan
	return s.journal.View(func(tx *journal.Tx) error {
		return tx.Attempts(j.id, func(a *journal.Attempt) error {
			if won, ok := w.machine.Winner(int(a.Task)); ok {
				w.generations[a.ID] = a.Generation
				if won.Attempt != a.ID {
					s.log.Debug("attempt lost before the restart", "attempt", a.ID)
				}
				return nil
			}
			w.generations[a.ID] = a.Generation
			task := w.task(a.Stage, a.Task)
			if task == nil {
				return fmt.Errorf("attempt %s of unknown task %d", a.ID, a.Task)
			}
			ref := &executorv1.AttemptRef{JobId: a.Job, Stage: a.Stage, Task: a.Task, AttemptId: a.ID, Epoch: a.Epoch}
			s.openAttempt(&attempt{ref: ref, job: j, task: task})
			w.restored = append(w.restored, ref)
			return nil
		})
	})
}

func (s *Server) restoreWrite(j *job) (*writeState, error) {
	r := j.rec.Write
	entry := s.catalogs[r.Catalog]
	if entry == nil {
		return nil, fmt.Errorf("it writes to catalog %q, which is not configured any more; put it back, or move the journal away to forget the job", r.Catalog)
	}
	spec := &planv1.WriteSpec{}
	if err := proto.Unmarshal(r.Spec, spec); err != nil {
		return nil, fmt.Errorf("%w: write spec: %w", journal.ErrDamaged, err)
	}
	var stages []stageRun
	var outputs []*journal.Output
	var machine *coordinator.Machine
	err := s.journal.View(func(tx *journal.Tx) (err error) {
		tasks, err := tx.Tasks(j.id)
		if err != nil {
			return err
		}
		if r.Tasks > 0 || j.rec.Session != nil {
			if stages, err = stagesOf(tasks, r.Repeatable); err != nil {
				return err
			}
		}
		if err := tx.Outputs(j.id, func(o *journal.Output) error { outputs = append(outputs, o); return nil }); err != nil {
			return err
		}
		rec, err := commitState(tx, j.id)
		if err != nil {
			return err
		}
		machine, _, err = coordinator.Restore(rec, s.journal.Epoch())
		return err
	})
	if err != nil {
		return nil, err
	}
	t := &target{entry: entry, ident: append(append(catalog.Ident{}, r.Schema...), r.Table), who: j.owner}
	t.does = doneTo(j.rec.Does, r.Catalog, entry.schemaOf(t.ident))
	w, err := newWriteState(s, j, t, sinkv1.WriteMode(r.Mode), spec, machine)
	if err != nil {
		return nil, err
	}
	w.rec, w.resumed, w.before, w.outputs, w.generations = r, true, stages, outputs, map[string]int{}
	if len(stages) > 0 {
		w.tasks = stages[len(stages)-1].tasks
	}
	j.stored.Store(len(stages) > 1)
	if machine.State().Final() {
		close(w.settled)
	}
	return w, nil
}

// stagesOf puts the journalled tasks of a write into stages. What a stage reads follows from its tasks' sources.
func stagesOf(tasks []*planv1.Task, repeatable []bool) ([]stageRun, error) {
	var out []stageRun
	for _, t := range tasks {
		switch at := int(t.Stage); {
		case at == len(out):
			out = append(out, stageRun{repeatable: at < len(repeatable) && repeatable[at]})
		case at != len(out)-1:
			return nil, fmt.Errorf("%w: task %d of stage %d follows stage %d", journal.ErrDamaged, t.Task, t.Stage, len(out)-1)
		}
		st := &out[len(out)-1]
		if int(t.Task) != len(st.tasks) {
			return nil, fmt.Errorf("%w: stage %d has task %d in the place of task %d", journal.ErrDamaged, t.Stage, t.Task, len(st.tasks))
		}
		st.tasks = append(st.tasks, t)
		for _, src := range t.Sources {
			if ex := src.GetExchange(); ex != nil && !slices.Contains(st.inputs, ex.Stage) {
				st.inputs = append(st.inputs, ex.Stage)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: a write without tasks", journal.ErrDamaged)
	}
	return out, nil
}

// resume starts what recover found open.
func (s *Server) resume() {
	for _, j := range s.toResume {
		s.log.Info("job goes on after a restart", "job", j.id, "kind", j.rec.Kind, "planned", j.rec.Write != nil)
		j.turn = s.admitted.enter(j.owner, j.rec.Write != nil) // a commit may be under way
		s.spawn(func() { s.run(j) })
	}
	for _, j := range s.toTidy {
		s.spawn(func() { s.tidyWork(j) })
	}
	s.toResume, s.toTidy = nil, nil
}

// resumeWrite takes up a planned write: an open seal is resolved first, then tasks go on from their accepted manifests.
func (s *Server) resumeWrite(j *job) error {
	w := j.write
	w.mu.Lock()
	state, sealed := w.machine.State(), w.machine.Open()
	w.mu.Unlock()
	switch state {
	case coordinator.Committed: // the end is journalled in one transaction with it; only a record of an older format gets here
		return nil
	case coordinator.Aborted:
		s.spawn(func() { s.sweepMetadata(w) })
		w.mu.Lock()
		f := w.machine.Failure()
		w.mu.Unlock()
		if f.Cancelled {
			j.update(func() { j.cancelBy = "the client, before a restart" })
			j.cancel(errCancelled)
			return errCancelled
		}
		return fail(codeRefused, "", "%s", f.Reason)
	case coordinator.Sealed, coordinator.Resolving:
		if err := s.resolveSealed(w, *sealed); err != nil {
			return err
		}
		if w.isFinal() {
			s.spawn(func() { s.sweepMetadata(w) })
			_, err := w.decided(nil)
			return err
		}
	}
	s.noteRunning(j)
	if w.taskless() {
		return s.commitTaskless(w)
	}
	return s.runWrite(w, nil, plan.Batch{}, w.restored)
}

// resolveSealed finds out what became of an attempt that an earlier incarnation sealed.
func (s *Server) resolveSealed(w *writeState, a coordinator.Attempt) error {
	if a.Group != "" {
		return s.resolveGroup(w, a)
	}
	// The record says Resolving under this epoch before anything is sent.
	if err := s.journal.Update(func(tx *journal.Tx) error { return putMachine(tx, w) }); err != nil {
		return err
	}
	outcome, err := s.resolve(w, a)
	if err != nil {
		return err
	}
	ev, err := outcome.Event(a.Seq)
	if err != nil {
		return err
	}
	if err := w.settle(ev); err != nil {
		return err
	}
	s.broker.Forget(&a)
	return nil
}

// resolve sends the frozen request of an earlier incarnation until it has an end (S67).
func (s *Server) resolve(w *writeState, a coordinator.Attempt) (coordinator.Outcome, error) {
	w.job.setPhase(jobRunning, "resolving", "a commit request was sent before a restart; it is sent again until it lands or can never land")
	spec, err := w.commitLease(s.ctx, nil)
	if err != nil {
		return coordinator.Outcome{}, err
	}
	for s.ctx.Err() == nil {
		outcome, err := s.broker.Resolve(s.ctx, spec, a)
		if err == nil {
			return outcome, nil
		}
		if errors.Is(err, context.Canceled) {
			break
		}
		s.log.Warn("cannot resolve yet", "job", w.job.id, "error", err)
		pause(s.ctx, time.Second)
	}
	return coordinator.Outcome{}, context.Cause(s.ctx)
}

// sealedGroup is a group whose outcome an earlier incarnation left open. The first of its jobs that goes on resolves it for all.
type sealedGroup struct {
	once sync.Once
	gate *groupGate
	err  error
}

// recoverGroups puts the writes together that were sealed together.
func (s *Server) recoverGroups(open []*job) error {
	s.groups = map[string]*sealedGroup{}
	for _, j := range open { // in the order of their ids
		if j.write == nil {
			continue
		}
		a := j.write.machine.Open()
		if a == nil || a.Group == "" {
			continue
		}
		g := s.groups[a.Group]
		if g == nil {
			g = &sealedGroup{gate: &groupGate{s: s}}
			s.groups[a.Group] = g
		}
		g.gate.writes = append(g.gate.writes, j.write)
	}
	return s.journal.View(func(tx *journal.Tx) error {
		for id, g := range s.groups {
			slices.SortFunc(g.gate.writes, func(a, b *writeState) int { return cmp.Compare(a.job.id, b.job.id) })
			var err error
			if g.gate.rec, err = groupRecord(tx, id); err != nil {
				return fmt.Errorf("group %s: %w", id, err)
			}
		}
		return nil
	})
}

// resolveGroup is resolveSealed for all units of a group, once.
func (s *Server) resolveGroup(w *writeState, a coordinator.Attempt) error {
	g := s.groups[a.Group]
	g.once.Do(func() {
		g.err = s.journal.Update(func(tx *journal.Tx) error {
			for _, w := range g.gate.writes {
				if err := putMachine(tx, w); err != nil {
					return err
				}
			}
			return nil
		})
		if g.err != nil {
			return
		}
		outcome, err := s.resolve(w, a)
		if err != nil {
			g.err = err
			return
		}
		for g.err = g.gate.Settle(s.ctx, a.Seq, outcome); g.err != nil && s.ctx.Err() == nil; g.err = g.gate.Settle(s.ctx, a.Seq, outcome) {
			s.log.Warn("cannot record an outcome yet", "job", w.job.id, "error", g.err)
			pause(s.ctx, journalRetry)
		}
		if g.err == nil {
			s.broker.Forget(&a)
		}
	})
	return g.err
}

func putMachine(tx *journal.Tx, w *writeState) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.machine.Record()
	return putCommit(tx, &rec, nil)
}

// waitSealed gives sealed commits the time until ctx ends to settle, so that a stop leaves as little as possible to resolve.
func (s *Server) waitSealed(ctx context.Context) {
	for {
		var wait <-chan struct{}
		for _, j := range s.jobsNewestFirst() {
			j.mu.Lock()
			w := j.write
			j.mu.Unlock()
			if w == nil {
				continue
			}
			w.mu.Lock()
			if st := w.machine.State(); st == coordinator.Sealed {
				wait = w.changed
			}
			w.mu.Unlock()
		}
		if wait == nil {
			return
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return
		}
	}
}
