package graph

import (
	"errors"
	"fmt"
)

type attemptState string

const (
	attemptLive  attemptState = "live"
	attemptWon   attemptState = "won"
	attemptEnded attemptState = "ended" // swept
)

type attempt struct {
	id         string
	seq        int // its place in the order of all
	task       *task
	generation int    // of its stage when it was launched
	executor   string // empty: not sent yet
	state      attemptState
	reason     string // why it ended, or why its output is gone
	orphan     bool   // of an earlier incarnation, and no executor has claimed it yet
	gone       bool   // it won, and its output cannot be had
	rows       int64
	bytes      int64
}

// add takes up a new attempt.
func (g *Graph) add(t *task, a *attempt) {
	a.task, a.generation = t, t.stage.generation
	g.register(a)
	g.enliven(a)
	if t.state == taskPending {
		g.set(t, taskRunning)
	}
}

// register makes an attempt known, in whatever state.
func (g *Graph) register(a *attempt) {
	a.seq = len(g.order)
	g.attempts[a.id] = a
	g.order = append(g.order, a)
	a.task.attempts = append(a.task.attempts, a)
}

func (g *Graph) enliven(a *attempt) {
	a.state, a.reason = attemptLive, ""
	g.live++
	a.task.live++
	if a.task.live == 2 {
		g.doubled++
	}
	if a.executor == "" {
		g.waiting++
	} else {
		g.hold(a)
	}
	g.rows += a.rows
	g.bytes += a.bytes
}

// settle takes an attempt out of the live ones.
func (g *Graph) settle(a *attempt) {
	g.live--
	a.task.live--
	if a.task.live == 1 {
		g.doubled--
	}
	if a.executor == "" {
		g.waiting--
	}
	g.drop(a)
	a.orphan = false
}

func (g *Graph) measure(a *attempt, rows, bytes int64) {
	g.rows += rows - a.rows
	g.bytes += bytes - a.bytes
	a.rows, a.bytes = rows, bytes
}

// Verdict says whether the attempt would win if it succeeded now: nil, or the reason why not. It is nil for the winner itself.
func (g *Graph) Verdict(attemptID string) error {
	a := g.attempts[attemptID]
	switch {
	case a == nil:
		return errors.New("this job has no such attempt")
	case a.state == attemptWon:
		return nil
	case a.state == attemptEnded && a.reason != "" && !mutated("late-success"):
		return fmt.Errorf("the attempt was given up: %s", a.reason)
	case g.state.Terminal():
		return fmt.Errorf("the job is %s", g.state)
	}
	return nil
}

// stop ends a live attempt whose executor may still work on it.
func (g *Graph) stop(a *attempt, reason string) {
	g.emit(CancelAttempt{Attempt: a.id, Executor: a.executor, Reason: reason})
	g.end(a, reason)
}

// end gives an attempt up for good: its files are swept.
func (g *Graph) end(a *attempt, reason string) {
	if a.state == attemptLive {
		g.settle(a)
	} else {
		g.drop(a)
	}
	g.rows -= a.rows
	g.bytes -= a.bytes
	a.state, a.reason, a.orphan, a.gone = attemptEnded, reason, false, false
	g.emit(Sweep{Attempt: a.id, Executor: a.executor})
}
