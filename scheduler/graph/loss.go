package graph

import "fmt"

// outputGone notes that a winner's output cannot be had. Whether its task runs again depends on who needs it (repair). Once a root
// reads, it is too late (S40).
func (g *Graph) outputGone(a *attempt, reason string) {
	s := a.task.stage
	if a.state != attemptWon || !s.stored || s.freed || a.gone || g.state != Running || mutated("loss-unnoticed") {
		return
	}
	if g.phase != PhaseStages {
		if s.last() && g.root == RootPlain && !mutated("root-input-loss-unnoticed") {
			g.rootInputGone(reason)
		}
		return
	}
	if !a.orphan {
		s.absent++
	}
	s.gone++
	a.gone, a.orphan, a.reason = true, false, reason
	g.drop(a)
	g.dirty = true
}

func (g *Graph) rootInputGone(reason string) {
	begun := g.rootBegun()
	g.fail(Failure{Code: CodeLost, Message: "the scheduler root's input is gone: " + reason, Hint: "submit the statement again"})
	if begun {
		g.emit(CancelRoot{Reason: reason})
	}
}

// fetchFailed: the attempt could not read the output of another, whose task runs again. A failure that blames no attempt that it reads
// is a failure of its own.
func (g *Graph) fetchFailed(e TaskFailed) {
	a, from := g.attempts[e.Attempt], g.attempts[e.LostAttempt]
	if a == nil || a.state != attemptLive {
		return
	}
	if from == nil || from.state != attemptWon || !from.task.stage.stored || !a.task.stage.reads(from.task.stage) {
		g.counted(e, CodeIO)
		return
	}
	g.giveUp(e.Attempt, e.Message)
	g.outputGone(from, "its output could not be fetched: "+e.Message)
}

// repair runs the tasks again whose output is gone while somebody needs it. That may replace what later stages have read, so that they
// need other outputs again: it goes on until nothing that is needed is gone.
func (g *Graph) repair() {
	for again := true; again && g.state == Running; {
		again = false
		for i := len(g.stages) - 1; i >= 0 && g.state == Running; i-- {
			if s := g.stages[i]; s.gone > 0 && s.needed() {
				again = g.remake(s) || again
			}
		}
	}
}

// needed tells whether somebody will read the stage's output: a task that is not done yet, or whoever reads the last stage.
func (s *stage) needed() bool {
	for _, r := range s.readers {
		if !r.complete() {
			return true
		}
	}
	return s.last()
}

// remake runs the tasks of a stage again whose output is gone. Who is reading it waits for it. If it may come out otherwise, all that was
// made from it is made again, too (S73). It returns whether there were any.
func (g *Graph) remake(s *stage) bool {
	why := ""
	for _, t := range s.tasks {
		a := t.winner
		if a == nil || !a.gone {
			continue
		}
		why = fmt.Sprintf("its input of stage %d is gone: %s", s.id, a.reason)
		if f := g.countLoss(t, a); f != nil {
			g.fail(*f)
			return false
		}
		t.avoidExecutor(a.executor)
		g.reopen(t, a.reason)
	}
	if !s.repeatable && !mutated("never-tainted") {
		g.taint(s, why, map[*stage]bool{})
		return why != ""
	}
	for _, r := range s.readers {
		g.interrupt(r, why)
	}
	return why != ""
}

// countLoss counts a lost output, for its task and for those that wait for it, so that a job that cannot get on ends. What one executor loses is
// counted once per stage that reads it, however many outputs are missed one by one; only what it made afterwards counts again.
func (g *Graph) countLoss(t *task, a *attempt) *Failure {
	t.reruns++
	if mutated("reruns-uncounted") {
		return nil
	}
	if t.reruns > g.cfg.MaxLosses {
		return &Failure{Code: CodeLost, Message: fmt.Sprintf("the output of task %s was lost %d times, last: %s", t.id, t.reruns, a.reason), Hint: lossHint}
	}
	for _, r := range t.stage.readers {
		known := a.seq < r.lostFrom[a.executor]
		if known || r.lossEvent == g.events || r.complete() && t.stage.repeatable {
			continue
		}
		if r.lostFrom == nil {
			r.lostFrom = map[string]int{}
		}
		r.lostFrom[a.executor], r.lossEvent = len(g.order), g.events
		if r.losses++; r.losses > g.cfg.MaxLosses {
			return &Failure{Code: CodeLost, Message: fmt.Sprintf("the input of stage %d was lost %d times, last: %s", r.id, r.losses, a.reason), Hint: lossHint}
		}
	}
	return nil
}

const lossHint = "the executors' logs say more; submit the statement again when they stay up"

// interrupt ends the attempts that read what is gone. Their tasks wait, and nothing is counted.
func (g *Graph) interrupt(s *stage, why string) {
	if s.done+s.pend == len(s.tasks) || mutated("reader-goes-on") {
		return
	}
	for _, t := range s.tasks {
		if t.state != taskRunning {
			continue
		}
		for _, a := range t.attempts {
			if a.state == attemptLive {
				g.stop(a, why)
			}
		}
		t.lastErr = why
		g.set(t, taskPending)
	}
}

// taint runs everything again that was made from the output of a stage, or from what was made from it.
func (g *Graph) taint(s *stage, why string, seen map[*stage]bool) {
	for _, r := range s.readers {
		if seen[r] {
			continue
		}
		seen[r] = true
		r.generation++
		if r.done > 0 && !r.stored {
			g.fail(tainted(r.tasks[r.firstDone()], why))
			return
		}
		if !r.closed { // of a closed stage only what was made from it matters
			g.redo(r, why)
		}
		if mutated("taint-stops") {
			continue
		}
		if g.taint(r, why, seen); g.state != Running {
			return
		}
	}
}

// redo runs all tasks of a stage again.
func (g *Graph) redo(s *stage, why string) {
	g.interrupt(s, why)
	for _, t := range s.tasks {
		if t.state == taskDone {
			g.reopen(t, why)
		}
	}
}

func (s *stage) firstDone() int {
	for i, t := range s.tasks {
		if t.state == taskDone {
			return i
		}
	}
	return 0
}

// tainted is the end of a job that would mix rows of two runs.
func tainted(t *task, why string) Failure {
	return Failure{
		Code:    CodeLost,
		Message: fmt.Sprintf("task %s is accepted, and what it read would not come out the same again: %s", t.id, why),
		Hint:    "submit the statement again",
	}
}

// reopen takes the win from a task's winner. Its output is freed even if it is gone: it may be there, and only out of reach.
func (g *Graph) reopen(t *task, reason string) {
	a := t.winner
	g.freeData([]StoredAttempt{{a.id, a.executor}})
	g.present(a) // as far as the counts go
	g.end(a, reason)
	t.winner, t.lastErr = nil, reason
	g.set(t, taskPending)
}

// freeUnneeded frees the outputs of stages that no task will read again: those who read them are complete, and nothing can make them run
// again. Stages that are still to be planned may read any.
func (g *Graph) freeUnneeded() {
	if g.more {
		return
	}
	var free []StoredAttempt
	over := g.allComplete() && g.outputsPresent()
	for i := len(g.stages) - 1; i >= 0; i-- {
		s := g.stages[i]
		unread := !s.last()
		for _, r := range s.readers {
			unread = unread && r.closed
		}
		s.closed = s.complete() && (!s.stored || unread || s.last() && over || mutated("freed-early"))
		if s.complete() && (unread || over && mutated("root-input-freed")) {
			free = append(free, g.letGo(s)...)
		}
	}
	g.freeData(free)
}

// letGo frees the outputs of a stage, also those that are taken to be gone: their executor may come back.
func (g *Graph) letGo(s *stage) []StoredAttempt {
	if !s.stored || s.freed {
		return nil
	}
	s.freed = true
	var out []StoredAttempt
	for _, t := range s.tasks {
		a := t.winner
		if a == nil {
			continue
		}
		out = append(out, StoredAttempt{a.id, a.executor})
		g.drop(a)
		g.present(a)
	}
	return out
}
