package sim

import (
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// recordOf is what the journal holds of a job after an event.
func (w *World) recordOf(r *run, m *coordinator.Machine, old *jobRecord, actions []graph.Action) *jobRecord {
	rec := &jobRecord{}
	if w.keeps == keepsPieces && !r.g.State().Terminal() {
		*rec = *old
		w.keepPieces(rec, r, m, actions)
	} else {
		rec.graph = r.g.Record()
	}
	if m != nil {
		c := m.Record()
		rec.commit = &c
	}
	return rec
}

// worthKeeping tells whether an event has changed what the journal holds in pieces.
func (w *World) worthKeeping(r *run, m *coordinator.Machine, actions []graph.Action) bool {
	if r.g.State().Terminal() || m != nil && m.State() != r.m.State() {
		return true
	}
	for _, a := range actions {
		if _, ok := a.(graph.Launch); ok && m != nil && w.jrn.jobs[r.n].begun {
			return true
		}
	}
	return false
}

// keepPieces notes attempts that write before they are launched, and what winners have left before it is read. A write that is not planned
// to its end is planned anew after a restart, and any other job runs again.
func (w *World) keepPieces(rec *jobRecord, r *run, m *coordinator.Machine, actions []graph.Action) {
	sn := r.g.Snapshot()
	if m == nil || sn.State != graph.Running || sn.More {
		return
	}
	launches := !rec.begun
	rec.begun = true
	for _, a := range actions {
		l, ok := a.(graph.Launch)
		launches = launches || ok
		if ok && r.writes(l.Task) {
			rec.writes = append(rec.writes[:len(rec.writes):len(rec.writes)], graph.AttemptRecord{
				ID: l.Attempt, Task: l.Task, Executor: graph.UnknownExecutor, State: "live", Generation: l.Generation,
			})
		}
	}
	if !launches {
		return
	}
	rec.outputs = nil
	for _, a := range r.g.Record().Attempts {
		if _, _, ok := r.g.Winner(a.Task); ok && a.State == "won" && r.stages[a.Task.Stage].Stored {
			rec.outputs = append(rec.outputs, graph.AttemptRecord{ID: a.ID, Task: a.Task, Executor: a.Executor, State: "won", Generation: a.Generation})
		}
	}
}

// piecesOf puts a record together from what the journal holds.
func (w *World) piecesOf(j *job, rec *jobRecord) graph.Record {
	switch {
	case rec.graph.State.Terminal():
		return reread(w, rec.graph)
	case rec.commit != nil && rec.commit.State == coordinator.Committed:
		return graph.Record{State: graph.Successful, Root: j.root}
	case rec.commit != nil && rec.commit.State == coordinator.Aborted:
		if f := rec.commit.Failure; !f.Cancelled {
			return graph.Record{State: graph.Failed, Root: j.root, Failure: &graph.Failure{Message: f.Reason}}
		}
		return graph.Record{State: graph.Cancelled, Root: j.root}
	case rec.rootBegun:
		return graph.Record{State: graph.Running, Phase: graph.PhaseRoot, Root: j.root, Taken: true}
	case !rec.begun:
		clear(j.won)
		return graph.Record{State: graph.Queued}
	}
	out := graph.Record{State: graph.Running, Phase: graph.PhaseStages, Root: graph.RootCommit, External: j.external}
	for _, st := range j.stages {
		out.Stages = append(out.Stages, graph.StageRecord{Inputs: st.Inputs, Stored: st.Stored, Repeatable: st.Repeatable, Tasks: make([]graph.TaskRecord, st.Tasks)})
	}
	out.Finished = j.external && len(rec.commit.Accepted) == j.stages[0].Tasks
	accepted := map[string]bool{}
	for _, acc := range rec.commit.Accepted {
		accepted[acc.Attempt] = true
	}
	for _, a := range append(append([]graph.AttemptRecord{}, rec.outputs...), rec.writes...) {
		if accepted[a.ID] {
			a.State = "won"
		}
		if st := &out.Stages[a.Task.Stage]; a.Generation > st.Generation {
			st.Generation = a.Generation
		}
		out.Attempts = append(out.Attempts, a)
	}
	kept := out.Attempts[:0]
	for _, a := range out.Attempts {
		if a.Generation == out.Stages[a.Task.Stage].Generation || a.State == "won" && !out.Stages[a.Task.Stage].Stored {
			kept = append(kept, a)
		}
	}
	out.Attempts = kept
	for _, a := range rec.outputs {
		w.att(a.ID).freed = false // if it was to be freed that was not kept; whoever has let go of it will not say that he has it
	}
	return out
}

// oweLosers notes the clean-up of all that a job that ends leaves behind.
func (w *World) oweLosers(j *journal, r *run) {
	for _, at := range r.atts[1:] {
		if at.known && r.writes(at.task) && !j.accepted(at) {
			j.owe(at, false)
		}
	}
}
