package graph

import (
	"fmt"
	"slices"
)

// Restore makes the job that a record describes, in a new incarnation of the scheduler, and says what to do first. A job that was being
// planned is Queued again. Attempts on executors, and outputs that lie there, wait for ExecutorJoined or AdoptionExpired, which must come if
// there are any; an attempt that was not sent yet is given up, and should an executor know it after all, it is refused. The root of a commit
// is due again, marked Resume, if it had begun; stages that are to come are asked for again.
//
// A record may be put together from a journal that holds less than the graph did, or is a little older or newer in parts. Of several winners of
// a stored stage's task the newest holds. Stored stages need not be run to their end if nobody will read them. Where it follows from the record
// that an attempt has read what will be replaced by something else, it is given up, or, if it was accepted, the job fails (S73).
func Restore(cfg Config, r Record) (*Graph, []Action, error) {
	g := New(cfg)
	g.state, g.phase, g.root, g.more, g.external = r.State, r.Phase, r.Root, r.More, r.External
	g.finished, g.asked, g.released, g.reason, g.failure = r.Finished, r.Asked, r.Released, r.Reason, r.Failure
	if g.state == Planning {
		g.state = Queued
	}
	for _, sr := range r.Stages {
		if err := g.restoreStage(sr, len(r.Attempts)); err != nil {
			return nil, nil, err
		}
	}
	for _, ar := range r.Attempts {
		if err := g.restoreAttempt(ar); err != nil {
			return nil, nil, err
		}
	}
	for _, s := range g.stages {
		s.fill()
	}
	if g.state == Running {
		g.resume(r.Taken)
	}
	return g, g.out, nil
}

func (g *Graph) restoreStage(sr StageRecord, attempts int) error {
	s := newStage(int32(len(g.stages)), StageSpec{Tasks: len(sr.Tasks), Inputs: sr.Inputs, Stored: sr.Stored, Repeatable: sr.Repeatable}) //nolint:gosec // as many as there were
	s.freed, s.generation, s.losses = sr.Freed, sr.Generation, sr.Losses
	for _, e := range sr.LostFrom {
		if s.lostFrom == nil {
			s.lostFrom = map[string]int{}
		}
		s.lostFrom[e] = attempts
	}
	for j, tr := range sr.Tasks {
		t := s.tasks[j]
		t.failures, t.losses, t.reruns, t.avoid, t.lastErr = tr.Failures, tr.Losses, tr.Reruns, slices.Clone(tr.Avoid), tr.LastErr
	}
	return g.link(s)
}

func (g *Graph) restoreAttempt(ar AttemptRecord) error {
	t := g.task(ar.Task)
	if t == nil || g.attempts[ar.ID] != nil {
		return fmt.Errorf("attempt %s of task %s: no such task, or twice in the record", ar.ID, ar.Task)
	}
	a := &attempt{
		id: ar.ID, task: t, executor: ar.Executor, state: attemptEnded, generation: ar.Generation, reason: ar.Reason, rows: ar.Rows, bytes: ar.Bytes,
	}
	s := t.stage
	switch attemptState(ar.State) {
	case attemptLive:
		g.register(a)
		g.enliven(a)
		a.orphan = true
		if t.state == taskPending {
			g.restoreState(t, taskRunning)
		}
	case attemptWon:
		if t.winner != nil && !s.stored {
			return fmt.Errorf("task %s has two winners, %s and %s", t.id, t.winner.id, a.id)
		}
		g.register(a)
		g.restoreWinner(t, a, ar.Gone)
	case attemptEnded:
		g.register(a)
	default:
		return fmt.Errorf("attempt %s is %q, which is no state", ar.ID, ar.State)
	}
	return nil
}

func (g *Graph) restoreState(t *task, to taskState) {
	t.stage.count(t.state, -1)
	t.stage.count(to, 1)
	t.state = to
}

func (g *Graph) restoreWinner(t *task, a *attempt, gone bool) {
	s := t.stage
	if old := t.winner; old != nil {
		g.present(old)
		g.end(old, "attempt "+a.id+" of the task won later")
	}
	a.state, t.winner = attemptWon, a
	g.rows += a.rows
	g.bytes += a.bytes
	if s.stored && !s.freed {
		a.gone, a.orphan = gone, !gone && g.state == Running
		if gone {
			s.gone++
		} else {
			g.hold(a)
		}
		if gone || a.orphan {
			s.absent++
		}
	}
	g.restoreState(t, taskDone)
}

// resume goes on with a Running job.
func (g *Graph) resume(begun bool) {
	g.skipUnread()
	switch {
	case g.phase == PhaseStages:
		for _, s := range g.stages {
			if g.resumeStage(s); g.state != Running {
				return
			}
		}
		g.dirty = true
		g.planning = mutated("plan-forgotten")
		g.advance()
	case !begun || mutated("root-forgotten"):
		g.due = true
		g.advance()
	case g.root == RootCommit:
		g.resumed = true
		g.stagesDone(true)
		if g.asked {
			g.emit(CancelRoot{Reason: g.reason})
		}
	default:
		g.fail(Failure{Code: CodeRoot, Message: "the scheduler restarted while it ran the job's scheduler root", Hint: "look whether it took effect, then submit the statement again"})
	}
}

// skipUnread finds the stages that all have read who will: their outputs may be freed and their winners forgotten.
func (g *Graph) skipUnread() {
	if g.more {
		return
	}
	for i := len(g.stages) - 1; i >= 0; i-- {
		s := g.stages[i]
		unread := !s.last()
		for _, r := range s.readers {
			unread = unread && r.closed
		}
		s.skipped = s.stored && unread && !s.complete()
		s.closed = s.complete() && (!s.stored || unread)
	}
}

// resumeStage gives up what must not go on. The stages that it reads have been seen to.
func (g *Graph) resumeStage(s *stage) {
	waits, replaced := false, false
	for _, in := range s.inputs {
		waits = waits || !g.stages[in].complete()
		replaced = replaced || g.stages[in].replaced && !mutated("restart-mixes")
	}
	s.replaced = !s.complete() && !s.repeatable || replaced
	if replaced && !s.closed && s.pend < len(s.tasks) { // some have read
		s.generation++
		if s.stored {
			g.redo(s, "what it has read was lost before the restart")
		}
	}
	for _, t := range s.tasks {
		for _, a := range t.attempts {
			switch old := a.generation < s.generation; {
			case a.state == attemptWon && old && !s.stored:
				g.fail(tainted(t, "what attempt "+a.id+" has read was lost before the restart"))
				return
			case a.state != attemptLive:
			case t.winner != nil:
				g.stop(a, "another attempt of the task was first")
			case a.executor == "":
				g.retry(a.id, "the scheduler restarted before it was sent")
			case waits || old || s.skipped:
				g.stop(a, "what it reads was lost before the restart")
				if t.live == 0 {
					g.set(t, taskPending)
				}
			}
		}
	}
}
