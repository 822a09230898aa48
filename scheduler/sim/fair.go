package sim

import (
	"slices"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// maxRounds bounds how long jobs may take to end once nothing goes wrong any more.
const maxRounds = 300

// fair lets the world work: everybody is up, everything arrives in order, everything that waits gets its turn, and time passes when
// nothing else happens. Every job has to end, and nothing may be left behind.
func (w *World) fair() {
	w.fuse, w.jrn.full = 0, 0
	if !slices.ContainsFunc(w.execs[1:], func(e *executor) bool { return !e.draining }) {
		w.execs = append(w.execs, &executor{n: len(w.execs), up: true}) // help comes
	}
	rounds := 0
	for idle := 0; idle < 2 && rounds < maxRounds; rounds++ {
		idle++
		if w.turn() || w.later() {
			idle = 0
		}
		if w.ended() && len(w.net) == 0 && len(w.jrn.duties) == 0 && idle == 0 {
			idle = 1 // the last messages are on their way
		}
		if rounds%20 == 19 { // a request on a parent that was rolled back is dead only when somebody commits
			for i := range w.tables {
				w.Do(Step{Op: OpOther, Job: i + 1})
			}
		}
		if rounds == maxRounds-1 {
			w.fail("stuck", "after %d rounds in which nothing went wrong: %s", rounds, w.state())
		}
	}
	if !w.ended() {
		w.fail("stuck", "nothing goes on: %s", w.state())
	}
	w.clean()
}

func (w *World) ended() bool {
	for _, j := range w.jobs[1:] {
		if j.submitted && j.told == "" {
			return false
		}
	}
	return true
}

// over tells whether there is nothing more to see.
func (w *World) over() bool {
	for _, j := range w.jobs[1:] {
		if j.told == "" {
			return false
		}
	}
	return true
}

func (w *World) try(did *bool, s Step) {
	if w.Do(s) {
		*did = true
	}
}

// turn gives everybody a turn.
func (w *World) turn() (did bool) {
	if w.sched == nil {
		w.try(&did, Step{Op: OpStart})
	}
	for _, e := range w.execs[1:] {
		if !e.up {
			w.try(&did, Step{Op: OpBegin, Exec: e.n})
		}
		if !e.joined {
			w.try(&did, Step{Op: OpJoin, Exec: e.n})
		}
	}
	for n := len(w.net); n > 0 && len(w.net) > 0; n-- {
		w.try(&did, w.net[0].step(OpDeliver))
	}
	for _, j := range w.jobs[1:] {
		if r := w.runOf(j.n); r != nil {
			w.turnOf(r, &did)
		}
	}
	for _, e := range w.execs[1:] {
		for _, t := range e.tasks {
			if op := map[workState]Op{fetching: OpFetch, working: OpWork}[t.state]; op != OpNone {
				w.try(&did, Step{Op: op, Job: t.att.job, Att: t.att.n, Exec: e.n})
			}
		}
	}
	return did
}

func (w *World) turnOf(r *run, did *bool) {
	for len(r.queue) > 0 {
		w.try(did, Step{Op: OpLoop, Job: r.n})
	}
	for len(r.checked) > 0 {
		w.try(did, Step{Op: OpAccept, Job: r.n, Att: r.checked[0].att.n})
	}
	if r.planning {
		w.try(did, Step{Op: OpPlan, Job: r.n})
	}
	for _, e := range w.execs[1:] {
		for len(r.waiting) > 0 && w.Do(Step{Op: OpDispatch, Job: r.n, Exec: e.n}) {
			*did = true
		}
	}
	if r.due {
		w.try(did, Step{Op: OpRoot, Job: r.n})
	}
	if r.external && len(r.checked) == 0 && len(w.net) == 0 && r.g.Phase() == graph.PhaseStages {
		for t := range r.stages[0].Tasks {
			w.try(did, Step{Op: OpWrite, Job: r.n, Arg: t + 1})
		}
		w.try(did, Step{Op: OpFinish, Job: r.n})
	}
	if r.rootRuns {
		w.try(did, Step{Op: OpRead, Job: r.n})
	}
	if r.calling && r.m.State() == coordinator.Committing {
		w.try(did, Step{Op: OpLoad, Job: r.n})
		w.try(did, Step{Op: OpSeal, Job: r.n})
	}
}

// later is what happens when time passes.
func (w *World) later() (did bool) {
	for _, p := range w.sched.known {
		if e := w.execs[p.exec]; !p.lost && (!e.up || e.gen != p.gen) {
			w.try(&did, Step{Op: OpLost, Exec: p.exec, Arg: p.gen})
		}
	}
	for _, e := range w.execs[1:] {
		for _, t := range e.tasks {
			if t.state >= reported {
				w.try(&did, Step{Op: OpReport, Job: t.att.job, Att: t.att.n, Exec: e.n})
			}
		}
		if e.draining && len(e.tasks) == 0 {
			w.try(&did, Step{Op: OpLeave, Exec: e.n})
		}
	}
	for _, j := range w.jobs[1:] {
		r := w.runOf(j.n)
		if r == nil {
			continue
		}
		if r.orphans {
			w.try(&did, Step{Op: OpExpire, Job: r.n})
		}
		if r.m != nil && r.m.Open() != nil {
			w.try(&did, Step{Op: OpTimeout, Job: r.n})
			w.try(&did, Step{Op: OpResolve, Job: r.n})
		}
		if r.told != "" && !r.collected {
			w.try(&did, Step{Op: OpCollect, Job: r.n})
		}
	}
	w.sweepAll(&did)
	return did
}

func (w *World) sweepAll(did *bool) {
	for i := 0; i < len(w.jrn.duties); {
		n, a := len(w.jrn.duties), w.jrn.duties[i].att
		w.Do(Step{Op: OpSweep, Job: a.job, Att: a.n})
		if len(w.jrn.duties) < n {
			*did = true
		} else {
			i++
		}
	}
}

// clean checks that the end is one: whatever still comes changes nothing, and nothing is left.
func (w *World) clean() {
	for _, t := range w.tables {
		for _, head := range append([]int64{t.head}, t.log...) { // main may be set back to any parent (C33)
			t.head = head
			for _, q := range w.late {
				if q.table == t {
					w.arrive(q)
				}
			}
		}
	}
	for _, j := range w.jobs[1:] {
		for _, a := range j.atts[1:] {
			if a.file && (j.landed == nil || !j.landed.has(a)) {
				w.fail("orphan", "the file of %s is nobody's and is never deleted (S61)", a.id)
			}
		}
	}
	for _, e := range w.execs[1:] {
		for _, a := range e.outputs {
			w.fail("kept", "executor %s keeps the output of %s for ever (S44)", e.id(), a.id)
		}
	}
}
