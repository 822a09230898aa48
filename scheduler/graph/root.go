package graph

import (
	"errors"
	"fmt"
)

// ErrRootRefused is why TakeRoot fails.
var ErrRootRefused = errors.New("the scheduler root must not run")

// stagesDone ends the stages: the job succeeds, or its root is due.
func (g *Graph) stagesDone(resume bool) {
	if g.root == RootNone || mutated("root-left-out") {
		g.finish(Finish{State: Successful})
		return
	}
	if !resume {
		g.phase = PhaseRoot
	}
	g.emit(RunRoot{Resume: resume})
	if mutated("root-twice") {
		g.emit(RunRoot{Resume: resume})
	}
}

// TakeRoot lets the caller run the root: once, and only while the job is Running and the root is due. From here on a cancel goes to the
// root. The caller journals it (Record.Taken) before the root does anything that lasts: a restart that does not know that a commit had
// begun would let a cancel end the job without asking its coordinator. It fails with ErrRootRefused; the caller then runs nothing and
// reports nothing.
func (g *Graph) TakeRoot() error {
	switch {
	case g.state != Running && !mutated("root-after-end"):
		return fmt.Errorf("%w: the job is %s", ErrRootRefused, g.state)
	case g.phase == PhaseStages:
		return fmt.Errorf("%w: stages are not complete", ErrRootRefused)
	case g.due:
		return fmt.Errorf("%w: its input has not come back yet", ErrRootRefused)
	case g.taken && !mutated("root-twice"):
		return fmt.Errorf("%w: it has been started", ErrRootRefused)
	}
	g.taken = true
	return nil
}

// rootBegun reports whether the root may have done something: in this incarnation, or in one before.
func (g *Graph) rootBegun() bool { return g.taken || g.resumed }

func (g *Graph) rootEvent(ev Event) {
	if (g.state != Running || !g.rootBegun()) && !mutated("late-result") {
		return // S21: the late result of a cancelled root is discarded
	}
	switch e := ev.(type) {
	case RootSucceeded:
		g.finish(Finish{State: Successful, Result: e.Result})
	case RootFailed:
		f := e.Failure
		if !mutated("root-unnamed") {
			f.Message = "Error running the job's scheduler root: " + f.Message
		}
		if f.Code == "" {
			f.Code = CodeRoot
		}
		g.fail(f)
	case RootResolving:
		g.resolving(e.Unknown)
	case RootCancelled:
		g.finish(Finish{State: Cancelled, Reason: g.reason})
	case RootCancelRefused:
		g.answer(false, e.Message)
	}
}

const unknownOutcome = "its commit was sent and the outcome is not known yet; the job runs until it is"

func (g *Graph) resolving(unknown bool) {
	if !unknown {
		g.phase = PhaseRoot
		return
	}
	g.phase = PhaseResolving
	g.answer(false, unknownOutcome)
}

// answer tells those who wait for an answer of the root to their cancel.
func (g *Graph) answer(cancelled bool, message string) {
	if g.asked {
		g.asked = false
		g.emit(AnswerCancel{Cancelled: cancelled, Message: message})
	}
}

func (g *Graph) cancel(e Cancel) {
	switch {
	case g.state == Cancelled:
		g.emit(AnswerCancel{Cancelled: true, Message: "the job was already cancelled"})
	case g.state.Terminal() && !mutated("cancel-after-success"):
		g.emit(AnswerCancel{Message: fmt.Sprintf("the job is %s", g.state)})
	case g.rootBegun() && g.root == RootCommit && !mutated("cancel-at-once"):
		g.cancelCommit(e)
	default:
		begun := g.rootBegun()
		g.finish(Finish{State: Cancelled, Reason: e.Reason})
		if begun {
			g.emit(CancelRoot(e))
		}
		g.emit(AnswerCancel{Cancelled: true})
	}
}

// cancelCommit asks the coordinator once; it knows whether the seal has been taken.
func (g *Graph) cancelCommit(e Cancel) {
	if g.phase == PhaseResolving {
		g.emit(AnswerCancel{Message: unknownOutcome})
		return
	}
	if g.asked {
		return
	}
	g.asked, g.reason = true, e.Reason
	g.emit(CancelRoot(e))
}

func (g *Graph) fail(f Failure) {
	g.failure = &f
	g.finish(Finish{State: Failed, Failure: &f})
}

// finish ends the job. Only a successful job keeps what its winners wrote; the last stage's output stays on its executors where the
// client still has to fetch it (S41, S42, S44).
func (g *Graph) finish(f Finish) {
	g.state, g.phase, g.reason = f.State, "", f.Reason
	g.emit(f)
	g.answer(f.State == Cancelled, endMessage(f))
	free := g.free(f.State == Successful && g.root == RootNone)
	for _, a := range g.order {
		switch {
		case a.state == attemptLive:
			g.stop(a, fmt.Sprintf("the job is %s", f.State))
		case a.state == attemptWon && f.State != Successful:
			g.end(a, fmt.Sprintf("the job is %s", f.State))
		}
	}
	if !mutated("kept-for-ever") {
		g.freeData(free)
	}
}

func endMessage(f Finish) string {
	switch f.State {
	case Cancelled:
		return ""
	case Failed:
		return "the job failed: " + f.Failure.Message
	}
	return "it was too late: the job has succeeded"
}

func (g *Graph) free(keepLast bool) []StoredAttempt {
	var out []StoredAttempt
	for _, s := range g.stages {
		if !keepLast || !s.last() {
			out = append(out, g.letGo(s)...)
		}
	}
	return out
}

func (g *Graph) freeData(outputs []StoredAttempt) {
	if len(outputs) > 0 {
		g.emit(FreeData{Attempts: outputs})
	}
}

func (g *Graph) release() {
	if g.state == Successful && g.root == RootNone {
		g.released = true
		g.freeData(g.free(false))
	}
}
