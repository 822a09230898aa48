package sim

import (
	"slices"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// executor is one machine on which executors run, one after another.
type executor struct {
	n        int
	gen      int // processes so far
	up       bool
	joined   bool // it has a session with the scheduler that runs now
	draining bool
	epoch    uint64 // of the newest scheduler that it has served
	tasks    []*running
	outputs  []*attempt
}

type workState int

const (
	fetching workState = iota
	working
	reported // successful, and the answer is awaited
	over     // failed or cancelled, and the answer is awaited
)

type running struct {
	att    *attempt
	state  workState
	parts  []part
	report *message
}

// part is an output that an attempt reads: where it was when the attempt was launched.
type part struct {
	att  *attempt
	exec string
}

const slots = 4

func (e *executor) id() string { return "e" + strconv.Itoa(e.n) + "." + strconv.Itoa(e.gen) }

func (e *executor) task(a *attempt) *running {
	for _, r := range e.tasks {
		if r.att == a {
			return r
		}
	}
	return nil
}

func (e *executor) forget(r *running) {
	if i := slices.Index(e.tasks, r); i >= 0 {
		e.tasks = slices.Delete(e.tasks, i, i+1)
	}
}

// executorNamed is the running process with an id, or nil.
func (w *World) executorNamed(id string) *executor {
	for _, e := range w.execs[1:] {
		if e.up && e.id() == id {
			return e
		}
	}
	return nil
}

func (e *executor) receive(w *World, m *message) {
	r := e.task(m.att)
	if m.epoch != e.epoch && m.kind != mVerdict { // S65; a verdict is the answer to a call
		saw(SawOldEpoch)
		w.tracef("refused: it is of epoch %d and this executor serves %d", m.epoch, e.epoch)
		return
	}
	switch m.kind {
	case mLaunch:
		if r != nil {
			return
		}
		r = &running{att: m.att, parts: m.parts}
		if len(r.parts) == 0 {
			w.fetched(r)
		}
		e.tasks = append(e.tasks, r)
	case mCancel:
		if r != nil && r.state < reported { // what was reported goes on being reported: the answer says what becomes of it
			e.end(w, r, planv1.ErrorClass_ERROR_CLASS_KILLED, "")
		}
	case mAck:
		if r != nil && (r.state == over || r.state == reported && !w.jobs[m.job].writes(m.att.task)) {
			e.forget(r)
		}
	case mVerdict:
		if r != nil && r.state == reported && r.report.call == m.call {
			if !m.yes {
				w.deleteFile(m.att, "its executor, which was told that it lost")
			}
			e.forget(r)
		}
	case mFree:
		e.free(m.att)
	}
}

func (e *executor) free(a *attempt) {
	if i := slices.Index(e.outputs, a); i >= 0 {
		e.outputs = slices.Delete(e.outputs, i, i+1)
	}
}

// end is the end of an attempt without success.
func (e *executor) end(w *World, r *running, class planv1.ErrorClass, lost string) {
	w.deleteFile(r.att, "its executor, on which it has failed")
	r.state = over
	r.report = &message{kind: mStatus, job: r.att.job, att: r.att, exec: e.n, gen: e.gen, class: int32(class), lost: lost}
	w.send(r.report)
}

// executors takes a step of an executor.
func (w *World) executors(s Step) bool {
	if s.Exec < 1 || s.Exec >= len(w.execs) {
		return false
	}
	e := w.execs[s.Exec]
	switch s.Op {
	case OpBegin:
		if e.up {
			return false
		}
		*e = executor{n: e.n, gen: e.gen + 1, up: true}
		return true
	case OpDrain:
		if !e.up || e.draining {
			return false
		}
		e.draining = true
		return true
	}
	if !e.up {
		return false
	}
	switch s.Op {
	case OpDie:
		e.die(w)
		return true
	case OpJoin:
		return w.join(e)
	case OpLeave:
		return w.leave(e)
	}
	r := e.task(w.attOf(s))
	if r == nil || s.Att == 0 {
		return false
	}
	switch s.Op {
	case OpFetch, OpNoPart:
		return r.state == fetching && e.fetch(w, r, s.Op == OpNoPart)
	case OpWork:
		return r.state == working && e.work(w, r)
	case OpFail:
		if r.state >= reported {
			return false
		}
		e.end(w, r, planv1.ErrorClass(s.Arg), "")
	case OpReport:
		if r.state < reported || len(w.net) > maxInFlight {
			return false
		}
		again := *r.report
		again.call++
		r.report = &again
		w.send(r.report)
	}
	return true
}

func (e *executor) die(w *World) {
	for _, r := range e.tasks {
		if r.state == working && w.jobs[r.att.job].writes(r.att.task) {
			r.att.file = true // half an upload stays behind
		}
	}
	*e = executor{n: e.n, gen: e.gen}
}

// fetch gets everything that an attempt reads. broken: the network is against it.
func (e *executor) fetch(w *World, r *running, broken bool) bool {
	w.mayRead(r)
	for _, p := range r.parts {
		from := w.executorNamed(p.exec)
		if from == nil || !slices.Contains(from.outputs, p.att) || broken || w.poisonOf(p.att) == poisonFetch {
			w.tracef("the output of %s cannot be fetched from %s", p.att.id, p.exec)
			e.end(w, r, planv1.ErrorClass_ERROR_CLASS_FETCH, p.att.id)
			return true
		}
	}
	w.fetched(r)
	return true
}

// fetched gives an attempt its rows.
func (w *World) fetched(r *running) {
	a := r.att
	a.reads = a.reads[:0]
	h := uint64(14695981039346656037)
	mix := func(v uint64) { h = (h ^ v) * 1099511628211 }
	mix(uint64(a.task.Stage)*64 + uint64(a.task.Task) + 1) //nolint:gosec // small numbers
	for _, p := range r.parts {
		a.reads = append(a.reads, p.att)
		mix(p.att.content)
	}
	if !w.jobs[a.job].stages[a.task.Stage].Repeatable {
		mix(uint64(a.n) << 20) //nolint:gosec // small number
	}
	a.content = h
	r.state = working
}

func (e *executor) work(w *World, r *running) bool {
	a := r.att
	switch w.poisonOf(a) {
	case poisonCrash:
		e.end(w, r, planv1.ErrorClass_ERROR_CLASS_INTERNAL, "")
		return true
	case poisonIO:
		e.end(w, r, planv1.ErrorClass_ERROR_CLASS_IO, "")
		return true
	}
	j := w.jobs[a.job]
	r.state = reported
	r.report = &message{kind: mStatus, job: a.job, att: a, exec: e.n, gen: e.gen, yes: true}
	switch {
	case j.writes(a.task):
		a.file = !j.empty
		r.report.kind = mManifest
	case j.stages[a.task.Stage].Stored:
		e.outputs = append(e.outputs, a)
	}
	w.send(r.report)
	return true
}
