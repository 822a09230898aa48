package sim

import (
	"strings"
	"sync/atomic"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// Sight is something that schedules have to lead to. A simulation that never gets there proves nothing about it.
type Sight int

// What has to be seen.
const (
	SawSuccess Sight = iota
	SawFailure
	SawCancel
	SawCancelAtRoot
	SawCancelRefused
	SawSkipped
	SawAlready
	SawConflict
	SawDead
	SawResolving
	SawFoundLater
	SawRefused
	SawLateRequest
	SawRerun
	SawTaint
	SawTaintFails
	SawRevived
	SawSpeculation
	SawLateLoser
	SawAdopted
	SawOrphan
	SawResumedRoot
	SawPlanMoreAgain
	SawFreedEarly
	SawRootInputGone
	SawInputLimit
	SawLossLimit
	SawRetryLimit
	SawOldEpoch
	SawLeft
	SawFull
	SawSplitCrash

	sights
)

var sightNames = [sights]string{
	"a job succeeds", "a job fails", "a job is cancelled", "a commit is cancelled before its seal", "a cancel comes too late", "a job without rows commits nothing",
	"a key that has committed is found", "a conflict", "a request dies", "an unknown outcome", "an unknown outcome is found", "a refusal for good", "a request gets lost",
	"an output is made again", "what was made from it is made again", "it was accepted already", "an attempt that was given up has been accepted",
	"a second attempt wins", "a loser reports", "an attempt goes on after a restart", "nobody claims an attempt", "a commit is resumed", "further stages are asked for again",
	"an output is freed while the job runs", "a root loses its input", "an input is lost too often", "a task is lost too often", "a task fails too often",
	"a message of an older scheduler", "an executor is let go", "the journal is full", "a crash inside a step",
}

func (s Sight) String() string { return sightNames[s] }

// Sights counts what was seen, over all worlds.
type Sights [sights]atomic.Int64

var seen Sights

// Seen returns how often each was seen, and which never was.
func Seen() (counts map[string]int64, never []string) {
	counts = map[string]int64{}
	for i := range sights {
		n := seen[i].Load()
		if counts[i.String()] = n; n == 0 {
			never = append(never, i.String())
		}
	}
	return counts, never
}

func saw(s Sight) { seen[s].Add(1) }

// sawActions looks at what a job's graph asks for.
func (w *World) sawActions(r *run, actions []graph.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case graph.Launch:
			if a.Generation > 0 {
				saw(SawTaint)
			}
		case graph.AdoptAttempt:
			saw(SawAdopted)
		case graph.RunRoot:
			if a.Resume {
				saw(SawResumedRoot)
			}
		case graph.FreeData:
			if r.g.State() == graph.Running {
				saw(SawFreedEarly)
			}
		case graph.Reply:
			if at := w.att(a.Attempt); a.Won && r.won[at.task] == nil && at.beside {
				saw(SawSpeculation)
			} else if !a.Won {
				saw(SawLateLoser)
			}
		case graph.CancelAttempt:
			if strings.Contains(a.Reason, "its input of stage") {
				saw(SawRerun)
			}
		case graph.Sweep:
			w.sawSweep(r, a)
		case graph.Finish:
			sawEnd(a)
		}
	}
}

func (w *World) sawSweep(r *run, a graph.Sweep) {
	at := w.att(a.Attempt)
	if r.m != nil && w.jrn.accepted(at) && r.g.State() == graph.Running {
		saw(SawRevived)
	}
	for _, v := range r.g.TaskViews() {
		if v.TaskID == at.task && strings.Contains(v.LastErr, "no executor claimed it") {
			saw(SawOrphan)
		}
	}
}

func sawEnd(f graph.Finish) {
	switch f.State {
	case graph.Successful:
		saw(SawSuccess)
	case graph.Cancelled:
		saw(SawCancel)
	case graph.Failed:
		saw(SawFailure)
		for part, s := range map[string]Sight{
			"root's input is gone": SawRootInputGone, "was lost": SawLossLimit, "failed 4 times": SawRetryLimit, "is accepted, and": SawTaintFails, "the input of stage": SawInputLimit,
		} {
			if strings.Contains(f.Failure.Message, part) {
				saw(s)
			}
		}
	}
}

// sawCommit looks at a step of a coordinator.
func sawCommit(ev coordinator.Event, before, after *coordinator.Machine) {
	from, to := before.State(), after.State()
	switch ev.(type) {
	case coordinator.Cancel:
		if from == coordinator.Committing && to == coordinator.Aborted {
			saw(SawCancelAtRoot)
		}
		if after.CancelPending() {
			saw(SawCancelRefused)
		}
	case coordinator.Skip:
		saw(SawSkipped)
	case coordinator.Conflict:
		saw(SawConflict)
	case coordinator.Dead:
		saw(SawDead)
	case coordinator.Unknown:
		saw(SawResolving)
	case coordinator.Refused:
		saw(SawRefused)
	case coordinator.Found:
		if after.Result() != nil && after.Result().Already {
			saw(SawAlready)
		} else if from == coordinator.Resolving {
			saw(SawFoundLater)
		}
	}
}
