package graph

import (
	"errors"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

type taskState string

const (
	taskPending taskState = ""
	taskRunning taskState = "running"
	taskDone    taskState = "done"
)

type task struct {
	id       TaskID
	state    taskState
	failures int
	losses   int
	winner   string
	attempts []string // oldest first
	avoid    []string
	lastErr  string
}

type attemptState string

const (
	attemptLive  attemptState = "live"
	attemptWon   attemptState = "won"
	attemptEnded attemptState = "ended" // swept
)

type attempt struct {
	id       string
	task     TaskID
	executor string // empty: not sent yet
	state    attemptState
	reason   string // why it ended
	orphan   bool   // of an earlier incarnation, and no executor has claimed it yet
	rows     int64
	bytes    int64
}

func (g *Graph) taskEvent(ev Event) {
	switch e := ev.(type) {
	case Launched:
		if a := g.attempts[e.Attempt]; a != nil && a.state == attemptLive {
			a.executor, a.orphan = e.Executor, false
		}
	case LaunchFailed:
		g.retry(e.Attempt, "it could not be sent to an executor: "+e.Reason)
	case AttemptBegun:
		g.begun(e)
	case TaskSucceeded:
		g.succeeded(e)
	case TaskFailed:
		g.failed(e)
	case TaskLost:
		g.lost(e.Attempt, e.Reason)
	case Progress:
		if a := g.attempts[e.Attempt]; a != nil && a.state == attemptLive {
			a.rows, a.bytes = e.Rows, e.Bytes
		}
	case ExecutorJoined:
		g.joined(e)
	case ExecutorLost:
		g.executorLost(e)
	case AdoptionExpired:
		for _, id := range slices.Clone(g.order) {
			if a := g.attempts[id]; a.orphan {
				g.retry(id, "no executor claimed it after the scheduler's restart")
			}
		}
	}
}

func (g *Graph) launch(t *task) {
	a := &attempt{id: g.cfg.NewAttempt(), task: t.id, state: attemptLive}
	g.add(t, a)
	g.emit(Launch{Task: t.id, Attempt: a.id, Number: len(t.attempts), Avoid: slices.Clone(t.avoid)})
}

func (g *Graph) add(t *task, a *attempt) {
	g.attempts[a.id] = a
	g.order = append(g.order, a.id)
	g.live++
	t.attempts = append(t.attempts, a.id)
	g.set(t, taskRunning)
}

// set changes a task's state and keeps its stage's counts.
func (g *Graph) set(t *task, to taskState) {
	s := g.stages[t.id.Stage]
	s.count(t.state, -1)
	s.count(to, 1)
	t.state = to
}

// begun notes an attempt of an external writer. One for a task that is done, or after the end, is not taken up: its report is refused.
func (g *Graph) begun(e AttemptBegun) {
	t := g.task(e.Task)
	if t == nil || !g.external || g.attempts[e.Attempt] != nil || g.state != Running || g.phase != PhaseStages || t.state == taskDone {
		return
	}
	g.add(t, &attempt{id: e.Attempt, task: e.Task, executor: e.Executor, state: attemptLive})
}

// Verdict says whether the attempt would win if it succeeded now: nil, or the reason why not. It is nil for the winner itself.
func (g *Graph) Verdict(attemptID string) error {
	a := g.attempts[attemptID]
	switch {
	case a == nil:
		return errors.New("this job has no such attempt")
	case a.state == attemptWon:
		return nil
	case a.state == attemptEnded && a.reason != "":
		return fmt.Errorf("the attempt was given up: %s", a.reason)
	case g.state.Terminal():
		return fmt.Errorf("the job is %s", g.state)
	}
	return nil
}

// succeeded makes the first attempt of a task its winner and gives up the others (T1).
func (g *Graph) succeeded(e TaskSucceeded) {
	if err := g.Verdict(e.Attempt); err != nil {
		g.emit(Reply{Attempt: e.Attempt, Reason: err.Error()})
		return
	}
	g.emit(Reply{Attempt: e.Attempt, Won: true})
	a := g.attempts[e.Attempt]
	if a.state == attemptWon {
		return // repeated until acknowledged; S13
	}
	t := g.task(a.task)
	a.state, a.orphan, a.rows, a.bytes = attemptWon, false, e.Rows, e.Bytes
	g.live--
	g.set(t, taskDone)
	t.winner, t.lastErr = a.id, ""
	for _, id := range t.attempts {
		if other := g.attempts[id]; other.state == attemptLive {
			g.stop(other, "another attempt of the task was first")
		}
	}
}

// stop ends a live attempt whose executor may still work on it.
func (g *Graph) stop(a *attempt, reason string) {
	g.emit(CancelAttempt{Attempt: a.id, Executor: a.executor, Reason: reason})
	g.end(a, reason)
}

// end gives an attempt up for good: its files are swept, so it can never win any more.
func (g *Graph) end(a *attempt, reason string) {
	if a.state == attemptLive {
		g.live--
	}
	a.state, a.reason, a.orphan = attemptEnded, reason, false
	g.emit(Sweep{Attempt: a.id, Executor: a.executor})
}

// giveUp ends a live attempt and makes its task pending, if nothing else runs it. ok is false for attempts that are not live.
func (g *Graph) giveUp(attemptID, reason string) (t *task, a *attempt, ok bool) {
	a = g.attempts[attemptID]
	if a == nil || a.state != attemptLive {
		return nil, nil, false
	}
	t = g.task(a.task)
	t.lastErr = reason
	g.end(a, reason)
	if !slices.ContainsFunc(t.attempts, func(id string) bool { return g.attempts[id].state == attemptLive }) {
		g.set(t, taskPending)
	}
	return t, a, true
}

func (g *Graph) retry(attemptID, reason string) { g.giveUp(attemptID, reason) }

func (g *Graph) lost(attemptID, reason string) {
	t, a, ok := g.giveUp(attemptID, reason)
	if !ok {
		return
	}
	t.avoidExecutor(a.executor)
	t.losses++
	if t.losses >= g.cfg.MaxLosses && !g.state.Terminal() {
		g.fail(Failure{
			Code:    CodeLost,
			Message: fmt.Sprintf("task %s was lost %d times, last: %s", t.id, t.losses, reason),
			Hint:    "the executors' logs say how they ended; limits.task_retries says how often a task is tried again",
		})
	}
}

func (g *Graph) failed(e TaskFailed) {
	switch e.Class {
	case planv1.ErrorClass_ERROR_CLASS_KILLED:
		g.retry(e.Attempt, e.Message)
	case planv1.ErrorClass_ERROR_CLASS_USER:
		if _, _, ok := g.giveUp(e.Attempt, e.Message); ok && !g.state.Terminal() {
			g.fail(Failure{Code: CodeUser, Message: e.Message, Hint: e.Hint})
		}
	case planv1.ErrorClass_ERROR_CLASS_IO:
		g.counted(e, CodeIO)
	case planv1.ErrorClass_ERROR_CLASS_RESOURCE:
		g.counted(e, CodeResource)
	default: // INTERNAL, and classes of later versions: as bad as a lost executor
		g.lost(e.Attempt, e.Message)
	}
}

func (g *Graph) counted(e TaskFailed, code string) {
	t, a, ok := g.giveUp(e.Attempt, e.Message)
	if !ok {
		return
	}
	t.avoidExecutor(a.executor)
	t.failures++
	if t.failures >= g.cfg.MaxFailures && !g.state.Terminal() {
		g.fail(Failure{Code: code, Message: fmt.Sprintf("task %s failed %d times, last: %s", t.id, t.failures, e.Message), Hint: e.Hint})
	}
}

func (t *task) avoidExecutor(id string) {
	if id != "" && !slices.Contains(t.avoid, id) {
		t.avoid = append(t.avoid, id)
	}
}

// joined answers for each attempt that an executor says it has. A winner is adopted too: its report was not acknowledged, and an
// executor removes the files of what is not adopted.
func (g *Graph) joined(e ExecutorJoined) {
	for _, id := range e.Attempts {
		if err := g.claim(id, e.Executor); err != nil {
			g.emit(CancelAttempt{Attempt: id, Executor: e.Executor, Reason: err.Error()})
			continue
		}
		g.emit(AdoptAttempt{Attempt: id, Executor: e.Executor})
	}
	for _, id := range slices.Clone(g.order) {
		a := g.attempts[id]
		if a.state == attemptLive && a.executor == e.Executor && !slices.Contains(e.Attempts, id) {
			g.retry(id, "executor "+e.Executor+" registered again and does not know it")
		}
	}
}

// claim gives an attempt to the executor that says it has it.
func (g *Graph) claim(id, executor string) error {
	if err := g.Verdict(id); err != nil {
		return err
	}
	a := g.attempts[id]
	if a.executor != "" && a.executor != executor {
		return fmt.Errorf("the attempt belongs to executor %s", a.executor)
	}
	a.executor, a.orphan = executor, false
	return nil
}

// executorLost retries what the executor was running. What it had delivered is gone too, unless output is durable (S60).
func (g *Graph) executorLost(e ExecutorLost) {
	reason := "executor " + e.Executor + " was lost"
	if e.Reason != "" {
		reason += ": " + e.Reason
	}
	for _, id := range slices.Clone(g.order) {
		a := g.attempts[id]
		if a.executor != e.Executor {
			continue
		}
		if a.state == attemptLive {
			g.lost(id, reason)
		} else if a.state == attemptWon && !g.durable && g.state == Running {
			g.outputLost(a, reason)
		}
		if g.state.Terminal() {
			return
		}
	}
}

// outputLost runs a task again whose output is gone while others still need it. Once the root reads, it is too late (S40).
func (g *Graph) outputLost(a *attempt, reason string) {
	if g.phase != PhaseStages {
		begun := g.rootBegun()
		g.fail(Failure{Code: CodeLost, Message: "the scheduler root's input is gone: " + reason, Hint: "submit the statement again"})
		if begun {
			g.emit(CancelRoot{Reason: reason})
		}
		return
	}
	t := g.task(a.task)
	g.end(a, reason)
	g.set(t, taskPending)
	t.winner, t.lastErr = "", reason
}
