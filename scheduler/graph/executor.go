package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// UnknownExecutor stands in the record of an attempt of which nobody has noted where it runs: any executor may claim it.
const UnknownExecutor = "before the restart"

type attemptIndex map[*attempt]struct{}

// hold notes that the attempt is its executor's matter.
func (g *Graph) hold(a *attempt) {
	if a.executor == "" {
		return
	}
	if g.held[a.executor] == nil {
		g.held[a.executor] = attemptIndex{}
	}
	g.held[a.executor][a] = struct{}{}
}

func (g *Graph) drop(a *attempt) {
	if set := g.held[a.executor]; set != nil {
		if delete(set, a); len(set) == 0 {
			delete(g.held, a.executor)
		}
	}
}

// place gives an attempt to an executor.
func (g *Graph) place(a *attempt, executor string) {
	if a.executor == executor {
		return
	}
	g.drop(a)
	if a.state == attemptLive {
		if a.executor == "" {
			g.waiting--
		}
		if executor == "" {
			g.waiting++
		}
	}
	a.executor = executor
	g.hold(a)
}

// of lists what an executor has, oldest first.
func (g *Graph) of(executor string) []*attempt {
	out := make([]*attempt, 0, len(g.held[executor]))
	for a := range g.held[executor] {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *attempt) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// Holds tells whether an executor runs an attempt of the job or keeps an output that may still be read: it may not leave without loss.
func (g *Graph) Holds(executor string) bool { return len(g.held[executor]) > 0 }

// joined answers for each attempt that an executor says it has. A winner is adopted too: its report was not acknowledged, and an
// executor removes the files of what is not adopted.
func (g *Graph) joined(e ExecutorJoined) {
	has := make(map[string]bool, len(e.Attempts))
	for _, id := range e.Attempts {
		if err := g.claim(id, e.Executor); err != nil {
			g.emit(CancelAttempt{Attempt: id, Executor: e.Executor, Reason: err.Error()})
			continue
		}
		has[id] = true
		g.emit(AdoptAttempt{Attempt: id, Executor: e.Executor})
	}
	var free []StoredAttempt
	kept := make(map[string]bool, len(e.Outputs))
	for _, id := range e.Outputs {
		if kept[id] = g.returned(g.attempts[id], e.Executor); !kept[id] && !has[id] {
			free = append(free, StoredAttempt{id, e.Executor})
		}
	}
	reason := "executor " + e.Executor + " registered again and does not know it"
	for _, a := range g.of(e.Executor) {
		switch {
		case has[a.id] || kept[a.id]:
		case a.state == attemptLive:
			g.retry(a.id, reason)
		default:
			g.outputGone(a, reason)
		}
	}
	g.freeData(free)
}

// claim gives an attempt to the executor that says it has it.
func (g *Graph) claim(id, executor string) error {
	if err := g.Verdict(id); err != nil {
		return err
	}
	a := g.attempts[id]
	switch {
	case a.state == attemptWon && a.task.stage.stored:
		if !g.returned(a, executor) {
			return fmt.Errorf("nobody needs the attempt's output, or it belongs to executor %s", a.executor)
		}
		return nil
	case a.executor != executor && !a.mayMove():
		return fmt.Errorf("the attempt belongs to executor %s", a.executor)
	}
	if a.state == attemptLive {
		g.place(a, executor)
	}
	a.orphan = false
	return nil
}

func (a *attempt) mayMove() bool {
	return a.executor == UnknownExecutor && (a.orphan || a.state == attemptWon)
}

// returned notes that an executor has the output of a winner. It returns false if nobody needs it.
func (g *Graph) returned(a *attempt, executor string) bool {
	if a == nil || a.state != attemptWon || !a.task.stage.stored || a.task.stage.freed || a.executor != executor && !a.mayMove() {
		return false
	}
	g.place(a, executor)
	g.present(a)
	g.hold(a)
	return true
}

// present notes that a winner's output is at hand again.
func (g *Graph) present(a *attempt) {
	s := a.task.stage
	if a.gone {
		s.gone--
	}
	if a.gone || a.orphan {
		s.absent--
		g.dirty = true
	}
	a.gone, a.orphan = false, false
}

// executorLost retries what the executor was running. What it had delivered is gone too, unless it is durable (S60).
func (g *Graph) executorLost(e ExecutorLost) {
	reason := "executor " + e.Executor + " was lost"
	if e.Reason != "" {
		reason += ": " + e.Reason
	}
	for _, a := range g.of(e.Executor) {
		if a.state == attemptLive {
			g.lost(a.id, reason)
		} else {
			g.outputGone(a, reason)
		}
		if g.state.Terminal() {
			return
		}
	}
}

// adoptionExpired gives up what no executor has claimed since the restart.
func (g *Graph) adoptionExpired() {
	reason := "no executor claimed it after the scheduler's restart"
	for _, a := range g.order {
		switch {
		case !a.orphan || mutated("orphans-forgotten"):
		case a.state == attemptLive:
			g.retry(a.id, reason)
		default:
			g.outputGone(a, reason)
		}
	}
}
