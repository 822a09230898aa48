package graph

import (
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
	stage    *stage
	state    taskState
	queued   bool
	failures int
	losses   int
	reruns   int // times that its output was lost
	live     int // attempts
	winner   *attempt
	attempts []*attempt // oldest first
	avoid    []string
	lastErr  string
}

func (g *Graph) taskEvent(ev Event) {
	switch e := ev.(type) {
	case Launched:
		if a := g.attempts[e.Attempt]; a != nil && a.state == attemptLive {
			g.place(a, e.Executor)
			a.orphan = false
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
			g.measure(a, e.Rows, e.Bytes)
		}
	case Straggling:
		g.straggling(e)
	case ExecutorJoined:
		g.joined(e)
	case ExecutorLost:
		g.executorLost(e)
	case AdoptionExpired:
		g.adoptionExpired()
	}
}

func (g *Graph) launch(t *task) {
	a := &attempt{id: g.cfg.NewAttempt()}
	beside := t.live > 0
	g.add(t, a)
	g.emit(Launch{
		Task: t.id, Attempt: a.id, Number: len(t.attempts), Generation: a.generation, Avoid: slices.Clone(t.avoid), Speculative: beside,
	})
}

// set changes a task's state and keeps its stage's counts.
func (g *Graph) set(t *task, to taskState) {
	s := t.stage
	was := s.complete()
	s.count(t.state, -1)
	s.count(to, 1)
	t.state = to
	if was != s.complete() {
		g.dirty = true
	}
	if to == taskPending {
		s.enqueue(t)
	}
}

// begun notes an attempt of an external writer. One for a task that is done, or after the end, is not taken up: its report is refused.
func (g *Graph) begun(e AttemptBegun) {
	t := g.task(e.Task)
	if t == nil || !g.external || g.attempts[e.Attempt] != nil || g.state != Running || g.phase != PhaseStages || t.state == taskDone {
		return
	}
	g.add(t, &attempt{id: e.Attempt, executor: e.Executor})
}

// straggling launches a second attempt of a task beside a slow one.
func (g *Graph) straggling(e Straggling) {
	a := g.attempts[e.Attempt]
	switch {
	case a == nil || a.state != attemptLive || a.task.live != 1 || g.external || g.state != Running:
	case g.doubled >= g.cfg.MaxSpeculative || !g.ready(a.task.stage):
	case g.cfg.MaxInFlight > 0 && g.live >= g.cfg.MaxInFlight:
	default:
		a.task.avoidExecutor(a.executor)
		g.launch(a.task)
	}
}

// succeeded makes the first attempt of a task its winner and gives up the others (T1).
func (g *Graph) succeeded(e TaskSucceeded) {
	a := g.attempts[e.Attempt]
	if e.Accepted && !mutated("accepted-refused") {
		g.revive(a)
	}
	if err := g.Verdict(e.Attempt); err != nil {
		g.emit(Reply{Attempt: e.Attempt, Reason: err.Error()})
		switch { // it may have left an output all the same
		case a == nil:
			g.freeData([]StoredAttempt{{Attempt: e.Attempt}})
		case a.task.stage.stored:
			g.freeData([]StoredAttempt{{a.id, a.executor}})
		}
		return
	}
	g.emit(Reply{Attempt: e.Attempt, Won: true})
	if a.state == attemptWon {
		if mutated("duplicate-runs-root") && g.phase == PhaseRoot {
			g.emit(RunRoot{})
		}
		return // repeated until acknowledged; S13
	}
	g.settle(a)
	g.measure(a, e.Rows, e.Bytes)
	t := a.task
	a.state, t.winner, t.lastErr = attemptWon, a, ""
	if t.stage.stored {
		g.hold(a)
	}
	for _, other := range t.attempts {
		if other.state == attemptLive && !mutated("second-goes-on") {
			g.stop(other, "another attempt of the task was first")
		}
	}
	g.set(t, taskDone)
}

// revive takes back an attempt that was given up when its output had been accepted already: what is accepted cannot be taken back. If what
// it read has been replaced since, the job cannot go on.
func (g *Graph) revive(a *attempt) {
	if a == nil || a.state != attemptEnded || g.state != Running || a.task.winner != nil {
		return
	}
	if a.generation != a.task.stage.generation && !mutated("mixed-by-acceptance") {
		g.fail(tainted(a.task, "the input of attempt "+a.id+" was lost"))
		return
	}
	g.enliven(a)
	if a.task.state == taskPending {
		g.set(a.task, taskRunning)
	}
}

// giveUp ends a live attempt and makes its task pending, if nothing else runs it. ok is false for attempts that are not live.
func (g *Graph) giveUp(attemptID, reason string) (t *task, a *attempt, ok bool) {
	a = g.attempts[attemptID]
	if a == nil || a.state != attemptLive {
		return nil, nil, false
	}
	t = a.task
	t.lastErr = reason
	g.end(a, reason)
	if t.live == 0 {
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
	if t.losses >= g.cfg.MaxLosses && !mutated("losses-uncounted") && !g.state.Terminal() {
		g.fail(Failure{
			Code:    CodeLost,
			Message: fmt.Sprintf("task %s was lost %d times, last: %s", t.id, t.losses, reason),
			Hint:    "the executors' logs say how they ended; limits.task_losses says how many of them one task may have",
		})
	}
}

func (g *Graph) failed(e TaskFailed) {
	switch e.Class {
	case planv1.ErrorClass_ERROR_CLASS_KILLED:
		if mutated("kills-counted") {
			g.counted(e, CodeIO)
		}
		g.retry(e.Attempt, e.Message)
	case planv1.ErrorClass_ERROR_CLASS_LIMIT:
		if _, _, ok := g.giveUp(e.Attempt, e.Message); ok && !g.state.Terminal() {
			g.fail(Failure{Code: CodeResource, Message: e.Message, Hint: e.Hint})
		}
	case planv1.ErrorClass_ERROR_CLASS_USER:
		if mutated("user-errors-retried") {
			g.counted(e, CodeUser)
		}
		if _, _, ok := g.giveUp(e.Attempt, e.Message); ok && !g.state.Terminal() {
			g.fail(Failure{Code: CodeUser, Message: e.Message, Hint: e.Hint})
		}
	case planv1.ErrorClass_ERROR_CLASS_IO:
		g.counted(e, CodeIO)
	case planv1.ErrorClass_ERROR_CLASS_RESOURCE:
		g.counted(e, CodeResource)
	case planv1.ErrorClass_ERROR_CLASS_FETCH:
		g.fetchFailed(e)
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
	if (t.failures >= g.cfg.MaxFailures && !mutated("failures-uncounted") || mutated("failures-final")) && !g.state.Terminal() {
		g.fail(Failure{Code: code, Message: fmt.Sprintf("task %s failed %d times, last: %s", t.id, t.failures, e.Message), Hint: e.Hint})
	}
}

func (t *task) avoidExecutor(id string) {
	if id != "" && !slices.Contains(t.avoid, id) {
		t.avoid = append(t.avoid, id)
	}
}
