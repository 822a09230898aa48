package sim

import (
	"encoding/json"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// journal is what survives the scheduler: whatever an update has written when it returns, and nothing of one that did not.
type journal struct {
	jobs   []*jobRecord // by job
	duties []*duty
	full   int // writes that will fail
}

type jobRecord struct {
	graph  graph.Record
	commit *coordinator.Record // nil: the job does not commit

	// keepsPieces
	begun     bool // the write is planned to its end, and goes on after a restart
	rootBegun bool // of a root that is no commit
	outputs   []graph.AttemptRecord
	writes    []graph.AttemptRecord
}

// keeps says how much of a job's graph the journal keeps.
type keeps int

const (
	keepsAll    keeps = iota // the whole record, at every event
	keepsTerse               // the record without what can be missed
	keepsPieces              // what the scheduler keeps: plans, attempts that write, outputs, each when launches leave. Other jobs run again.

	keepsKinds
)

// duty is a prefix to be swept. all: the coordinator says that no file of the job is referenced.
type duty struct {
	att *attempt
	all bool
}

// crashed is how a step of the scheduler ends in the middle.
type crashed struct{ where string }

// point is a place where the scheduler may die.
func (w *World) point(where string) {
	if w.fuse == 0 {
		return
	}
	if w.fuse--; w.fuse == 0 {
		panic(crashed{where})
	}
}

// update writes to the journal. False: it could not be written, and nothing has changed.
func (w *World) update(f func(*journal)) bool {
	w.point("before the journal")
	if w.jrn.full > 0 {
		w.jrn.full--
		saw(SawFull)
		w.tracef("the journal cannot be written")
		return false
	}
	f(&w.jrn)
	w.point("after the journal")
	return true
}

// accepted tells whether an attempt's manifest is in the job's commit record, and the job may still commit it or has.
func (j *journal) accepted(a *attempt) bool {
	rec := j.jobs[a.job]
	if rec == nil || rec.commit == nil || rec.commit.State == coordinator.Aborted {
		return false
	}
	if r := rec.commit.Result; r != nil && r.Unreferenced {
		return false
	}
	for _, acc := range rec.commit.Accepted {
		if acc.Attempt == a.id {
			return true
		}
	}
	return false
}

func (j *journal) owe(a *attempt, all bool) {
	for _, d := range j.duties {
		if d.att == a {
			d.all = d.all || all
			return
		}
	}
	j.duties = append(j.duties, &duty{a, all})
}

// reread is a record as it comes back from a file.
func reread[T any](w *World, rec T) T {
	b, err := json.Marshal(rec)
	if err != nil {
		w.fail("journal", "a record cannot be written: %v", err)
	}
	var out T
	if err := json.Unmarshal(b, &out); err != nil {
		w.fail("journal", "a record cannot be read: %v", err)
	}
	return out
}
