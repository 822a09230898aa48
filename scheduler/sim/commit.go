package sim

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// maxTries bounds how often a sink is asked again after conflicts and deaths.
const maxTries = 8

var errJournal = errors.New("the journal cannot be written")

// stepMachine steps a copy of the coordinator, journals, keeps the copy, acts.
func (w *World) stepMachine(r *run, ev coordinator.Event) (coordinator.Effects, error) {
	next := *r.m
	eff, err := next.Step(ev)
	if err != nil {
		w.tracef("refused: %v", err)
		return eff, err
	}
	if eff.Record != nil {
		ok := w.update(func(j *journal) {
			rec := *j.jobs[r.n]
			rec.commit = eff.Record
			j.jobs[r.n] = &rec
			w.owe(j, r, eff)
		})
		if !ok {
			return eff, errJournal
		}
	}
	was := r.m.State()
	w.mayRelease(r, &next)
	sawCommit(ev, r.m, &next)
	r.m = &next
	if (was == coordinator.Resolving) != (next.State() == coordinator.Resolving) && !next.State().Final() {
		r.push(graph.RootResolving{Unknown: next.State() == coordinator.Resolving}, nil)
	}
	w.effects(r, eff)
	return eff, nil
}

// owe notes the clean-up that the coordinator asks for.
func (w *World) owe(j *journal, r *run, eff coordinator.Effects) {
	for _, a := range eff.Actions {
		if a.Kind != coordinator.ActSweepAll && a.Kind != coordinator.ActSweepLosers {
			continue
		}
		for _, at := range r.atts[1:] {
			if all := a.Kind == coordinator.ActSweepAll; at.known && r.writes(at.task) && (all || !j.accepted(at)) {
				j.owe(at, all)
			}
		}
	}
}

// effects carries out what the coordinator asks for.
func (w *World) effects(r *run, eff coordinator.Effects) {
	for _, a := range eff.Actions {
		w.point("between two actions of the coordinator")
		switch a.Kind {
		case coordinator.ActCallSink:
			r.calling = true
		case coordinator.ActSend:
			r.first = a.Attempt.Seq
			w.sendRequest(r, a.Attempt)
		case coordinator.ActFinish:
			r.calling, r.view = false, nil
			r.push(ending(r.m), nil)
		}
	}
}

// ending is what the root's end means for the job.
func ending(m *coordinator.Machine) graph.Event {
	switch f := m.Failure(); {
	case f == nil:
		return graph.RootSucceeded{Result: []byte(m.Result().Version)}
	case f.Cancelled:
		return graph.RootCancelled{}
	default:
		return graph.RootFailed{Failure: graph.Failure{Message: f.Reason}}
	}
}

func (w *World) sendRequest(r *run, a *coordinator.Attempt) {
	for _, q := range r.requests {
		if q.id == a.SnapshotID {
			q.seq = a.Seq
			w.send(&message{kind: mRequest, job: r.n, epoch: w.epoch, seq: a.Seq, req: q})
			return
		}
	}
	w.fail("coordinator", "job %d is to send snapshot %d, which nobody asked for", r.n, a.SnapshotID)
}

// startRoot is what RunRoot asks for. Check and take are one step (S18).
func (w *World) startRoot(r *run) bool {
	if !r.due {
		return false
	}
	r.due = false
	if err := r.g.TakeRoot(); err != nil {
		w.tracef("refused: %v", err)
		return true
	}
	w.rootTaken(r)
	if !w.update(func(j *journal) {
		rec := *j.jobs[r.n]
		if w.keeps == keepsPieces {
			rec.rootBegun = r.m == nil
		} else {
			rec.graph = r.g.Record()
		}
		j.jobs[r.n] = &rec
	}) {
		panic(crashed{"because the journal cannot be written"})
	}
	if r.m == nil {
		r.rootRuns = true
		return true
	}
	if r.m.State().Final() {
		r.push(ending(r.m), nil)
	}
	if r.m.State() == coordinator.Ready {
		var ev coordinator.Event = coordinator.Start{}
		if r.m.Totals().Files == 0 {
			ev = coordinator.Skip{Version: "base"}
		}
		if _, err := w.stepMachine(r, ev); errors.Is(err, errJournal) {
			panic(crashed{"because the journal cannot be written"})
		}
	}
	return true
}

// cancel is a client's. Where the journal does not say that a root has begun, the coordinator is asked first.
func (w *World) cancel(r *run) bool {
	if w.keeps == keepsPieces && r.m != nil && r.m.State() != coordinator.Planned {
		_, _ = w.stepMachine(r, coordinator.Cancel{Reason: "by the user"})
		if f := r.m.Failure(); f == nil || !f.Cancelled {
			return true
		}
	}
	r.push(graph.Cancel{Reason: "by the user"}, nil)
	return true
}

// cancelRoot asks the coordinator: before the seal a cancel is final, after it the commit decides (S21).
func (w *World) cancelRoot(r *run, a graph.CancelRoot) {
	if r.m == nil {
		r.rootRuns = false
		return
	}
	_, err := w.stepMachine(r, coordinator.Cancel{Reason: a.Reason})
	switch {
	case err != nil:
		r.push(graph.RootCancelRefused{Message: err.Error()}, nil)
	case r.m.CancelPending():
		r.push(graph.RootCancelRefused{Message: "the commit is sealed and may have landed"}, nil)
	}
}

// committing takes a step of the root, the plugin or the broker.
func (w *World) committing(s Step, r *run) bool {
	switch s.Op {
	case OpRoot:
		return w.startRoot(r)
	}
	if r.m == nil {
		return false
	}
	switch s.Op {
	case OpLoad:
		return r.calling && w.load(r)
	case OpSeal:
		return r.calling && r.view != nil && w.seal(r)
	case OpGiveUp:
		if !r.calling {
			return false
		}
		_, _ = w.stepMachine(r, coordinator.Fail{Reason: "the sink refuses the rows"})
	case OpTimeout:
		if r.m.State() != coordinator.Sealed {
			return false
		}
		w.settle(r, w.look(r))
	case OpResolve:
		if r.m.State() != coordinator.Resolving {
			return false
		}
		w.resolve(r)
	case OpLapse:
		return w.lapse(r)
	default:
		return false
	}
	return true
}

// load is where a commit call begins, and begins again after a conflict: the table is read and searched for the marker (C4).
func (w *World) load(r *run) bool {
	if r.tries > maxTries {
		_, _ = w.stepMachine(r, coordinator.Fail{Reason: "too many conflicts"})
		return true
	}
	if q := r.table.marked(r.marker); q != nil {
		_, _ = w.stepMachine(r, coordinator.Found{Version: version(q.id)})
		return true
	}
	w.nextID++
	q := &request{job: r.n, table: r.table, id: w.nextID, parent: r.table.head, number: r.table.last + 1, marker: r.marker}
	for t := range r.stages[r.last()].Tasks {
		if won, ok := r.m.Winner(t); ok {
			q.files = append(q.files, w.att(won.Attempt))
		}
	}
	r.view = q
	return true
}

func version(id int64) string { return strconv.FormatInt(id, 10) }

var empty = json.RawMessage("[]")

func (q *request) attempt(epoch uint64) coordinator.Attempt {
	return coordinator.Attempt{
		Epoch: epoch, Kind: coordinator.KindCatalog, SnapshotID: q.id, Version: version(q.id), Parent: &q.parent, SequenceNumber: q.number,
		TableUUID: "table", Markers: []string{"m"}, Requirements: empty, Updates: empty,
	}
}

// seal asks for the commit point. What the coordinator lets through is sent at once.
func (w *World) seal(r *run) bool {
	q := r.view
	r.view = nil
	r.requests = append(r.requests, q)
	if _, err := w.stepMachine(r, coordinator.Seal{Attempt: q.attempt(w.epoch)}); err != nil {
		r.tries++
	}
	return true
}

// lapse is a plugin of an earlier incarnation that still believes in its lease (S65).
func (w *World) lapse(r *run) bool {
	if r.m.State() != coordinator.Committing || w.epoch < 2 {
		return false
	}
	next := *r.m
	q := &request{id: 1, number: r.table.last + 1}
	if _, err := next.Step(coordinator.Seal{Attempt: q.attempt(w.epoch - 1)}); err == nil {
		w.fail("epoch", "job %d: a seal of epoch %d was given in epoch %d", r.n, w.epoch-1, w.epoch)
	}
	return true
}

// killPlugin ends the process of the sink: its calls fail, and are made again.
func (w *World) killPlugin() bool {
	did := false
	for _, r := range w.sched.jobs {
		if r != nil && r.calling {
			r.view, did = nil, true
			r.tries++
		}
	}
	return did
}
