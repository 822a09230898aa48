package sim

import (
	"errors"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// join registers an executor: the loops of all jobs hear of what it has.
func (w *World) join(e *executor) bool {
	s := w.sched
	if s == nil || e.joined || s.epoch < e.epoch {
		return false
	}
	e.joined, e.epoch = true, s.epoch
	i := slices.IndexFunc(s.known, func(p *process) bool { return p.id == e.id() })
	if i < 0 {
		s.known = append(s.known, &process{exec: e.n, gen: e.gen, id: e.id()})
	} else {
		s.known[i].lost = false
	}
	for _, r := range s.jobs {
		if r == nil {
			continue
		}
		ev := graph.ExecutorJoined{Executor: e.id()}
		for _, t := range e.tasks {
			if t.att.job == r.n {
				ev.Attempts = append(ev.Attempts, t.att.id)
			}
		}
		for _, a := range e.outputs {
			if a.job == r.n {
				ev.Outputs = append(ev.Outputs, a.id)
			}
		}
		r.push(ev, nil)
	}
	return true
}

// giveUp makes an executor a lost one, whether it is or not.
func (w *World) giveUp(s Step) bool {
	for _, p := range w.sched.known {
		if p.exec != s.Exec || p.gen != s.Arg || p.lost {
			continue
		}
		p.lost = true
		if e := w.execs[p.exec]; e.gen == p.gen {
			e.joined = false
		}
		for _, r := range w.sched.jobs {
			if r != nil {
				r.push(graph.ExecutorLost{Executor: p.id, Reason: "silent"}, nil)
			}
		}
		return true
	}
	return false
}

// leave lets a draining executor go when no job needs it.
func (w *World) leave(e *executor) bool {
	if w.sched == nil || !e.joined || !e.draining || len(e.tasks) > 0 {
		return false
	}
	for _, r := range w.sched.jobs {
		if r != nil && (len(r.queue) > 0 || r.g.Holds(e.id())) {
			return false
		}
	}
	for _, m := range w.net {
		if m.exec == e.n && m.kind == mLaunch {
			return false // a session ends in order
		}
	}
	for _, p := range w.sched.known {
		p.lost = p.lost || p.id == e.id()
	}
	saw(SawLeft)
	w.parted = append(w.parted, e.id())
	e.die(w)
	return true
}

// gotStatus takes the end of an attempt that delivers no manifest. It is acknowledged when the loop has journalled what follows.
func (w *World) gotStatus(m *message) {
	r := w.runOf(m.job)
	if r == nil {
		return
	}
	if m.yes {
		r.push(graph.TaskSucceeded{Attempt: m.att.id, Rows: 1}, m)
		return
	}
	r.push(graph.TaskFailed{Attempt: m.att.id, Class: planv1.ErrorClass(m.class), Message: "failed", LostAttempt: m.lost}, m)
}

// gotManifest is the first half of taking a manifest: its files are looked at, which takes time.
func (w *World) gotManifest(m *message) {
	r := w.runOf(m.job)
	if r == nil {
		return
	}
	won, has := r.m.Winner(int(m.att.task.Task))
	switch {
	case has && won.Attempt == m.att.id:
		w.verdict(m, r.m.State() != coordinator.Aborted)
	case !r.open[m.att]:
		w.verdict(m, false)
	case !m.att.file && !r.empty: // the files that it lists are not all there
		r.push(graph.TaskFailed{Attempt: m.att.id, Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: "a file is missing"}, nil)
		w.verdict(m, false)
	default:
		r.checked = append(r.checked, m)
	}
}

// accept is the second half: the attempt is still open, and the manifest is in the journal before its executor hears of it (S71).
func (w *World) accept(r *run, s Step) bool {
	i := slices.IndexFunc(r.checked, func(c *message) bool { return c.att.n == s.Att })
	if i < 0 {
		return false
	}
	m := r.checked[i]
	r.checked = slices.Delete(r.checked, i, i+1)
	if !r.open[m.att] {
		w.gotManifest(m)
		return true
	}
	ev := coordinator.Accept{Task: int(m.att.task.Task), Attempt: m.att.id, Epoch: w.epoch, Digest: "00", Paths: []string{m.att.id}}
	ev.Totals = coordinator.Totals{Files: 1, Rows: 1, Bytes: 1}
	if r.empty {
		ev.Totals, ev.Paths = coordinator.Totals{}, nil
	}
	_, err := w.stepMachine(r, ev)
	switch {
	case errors.Is(err, coordinator.ErrLost), errors.Is(err, coordinator.ErrFenced):
		w.verdict(m, false)
	case err == nil:
		delete(r.open, m.att)
		w.verdict(m, true)
		r.push(graph.TaskSucceeded{Attempt: m.att.id, Rows: 1, Accepted: true}, nil)
	}
	return true // any other error: the executor reports again
}

func (w *World) verdict(m *message, accepted bool) {
	w.point("before the answer to a manifest")
	w.send(&message{kind: mVerdict, job: m.job, att: m.att, exec: m.exec, gen: m.gen, epoch: w.epoch, yes: accepted, call: m.call})
}

// collect is a client that fetches a result from executors.
func (w *World) collect(r *run) bool {
	if r.g.State() != graph.Successful || r.root != graph.RootNone || r.collected {
		return false
	}
	r.collected = true
	r.push(graph.ResultReleased{}, nil)
	return true
}

// write is an external writer in a session: it begins an attempt, uploads, and reports.
func (w *World) write(r *run, s Step) bool {
	sn := r.g.Snapshot()
	if !r.external || sn.Phase != graph.PhaseStages || r.m.State().Final() {
		return false
	}
	if s.Op == OpFinish {
		if r.m.State() == coordinator.Ready {
			r.push(graph.WriteFinished{}, nil)
		}
		return r.m.State() == coordinator.Ready
	}
	if s.Arg < 1 || s.Arg > sn.Tasks {
		return false
	}
	if _, has := r.m.Winner(s.Arg - 1); has {
		return false
	}
	a := w.att(r.newAttempt())
	a.task, a.known, a.content, a.file = graph.TaskID{Task: int32(s.Arg - 1)}, true, uint64(a.n), !r.empty //nolint:gosec // few
	r.open[a] = true
	r.push(graph.AttemptBegun{Task: a.task, Attempt: a.id, Executor: "client"}, nil)
	w.send(&message{kind: mManifest, job: r.n, att: a})
	return true
}
