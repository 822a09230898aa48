package sim

import (
	"slices"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// startScheduler is a new incarnation: it reads the journal and takes up what it finds.
func (w *World) startScheduler() {
	w.epoch++
	w.sched = &scheduler{epoch: w.epoch, jobs: make([]*run, len(w.jobs))}
	for n, rec := range w.jrn.jobs {
		if rec != nil {
			w.jobs[n].submitted = true
			w.sched.jobs[n] = w.restore(w.jobs[n], rec)
		}
	}
}

func (w *World) restore(j *job, rec *jobRecord) *run {
	from := reread(w, rec.graph)
	switch w.keeps {
	case keepsTerse:
		from = terse(from, rec.commit)
	case keepsPieces:
		from = w.piecesOf(j, rec)
	}
	if j.external {
		w.addAccepted(j, &from, rec.commit)
	}
	g, actions, err := graph.Restore(j.config(), from)
	if err != nil {
		w.fail("restore", "job %d: %v", j.n, err)
	}
	r := &run{job: j, g: g, open: map[*attempt]bool{}}
	r.planning = g.State() == graph.Queued
	r.orphans = g.State() == graph.Running
	var eff coordinator.Effects
	if rec.commit != nil {
		if r.m, eff, err = coordinator.Restore(reread(w, *rec.commit), w.epoch); err != nil {
			w.fail("restore", "job %d: %v", j.n, err)
		}
	}
	w.sched.jobs[j.n] = r
	for _, a := range from.Attempts {
		if at := w.att(a.ID); a.State == "live" && g.Verdict(a.ID) == nil {
			r.open[at] = true
		}
	}
	// What was accepted is in the coordinator's record before the graph hears of it.
	if rec.commit != nil && g.State() == graph.Running {
		for _, acc := range rec.commit.Accepted {
			actions = append(actions, g.Apply(graph.TaskSucceeded{Attempt: acc.Attempt, Accepted: true})...)
		}
	}
	w.carry(r, actions, nil)
	w.effects(r, eff)
	w.tell(r)
	return r
}

// addAccepted adds attempts of an external writer that were accepted before the graph had heard of them.
func (w *World) addAccepted(j *job, r *graph.Record, c *coordinator.Record) {
	if r.State != graph.Running || len(r.Stages) == 0 {
		return
	}
	for _, acc := range c.Accepted {
		if !slices.ContainsFunc(r.Attempts, func(a graph.AttemptRecord) bool { return a.ID == acc.Attempt }) {
			r.Attempts = append(r.Attempts, graph.AttemptRecord{ID: acc.Attempt, Task: w.att(acc.Attempt).task, Executor: graph.UnknownExecutor, State: "won"})
			j.won[w.att(acc.Attempt).task] = w.att(acc.Attempt)
		}
	}
}

// terse is a record as a journal holds it that keeps no more than it has to: no counters, no attempt that was given up, and of those
// whose output does not lie on executors not where they run. What is accepted is in the coordinator's record alone.
func terse(r graph.Record, c *coordinator.Record) graph.Record {
	accepted := map[string]bool{}
	if c != nil {
		for _, a := range c.Accepted {
			accepted[a.Attempt] = true
		}
	}
	if r.State != graph.Running {
		return r
	}
	for i := range r.Stages {
		s := &r.Stages[i]
		s.Tasks, s.Losses, s.LostFrom = make([]graph.TaskRecord, len(s.Tasks)), 0, nil
	}
	var kept []graph.AttemptRecord
	for _, a := range r.Attempts {
		if accepted[a.ID] {
			a.State = "won"
		}
		if a.State == "ended" {
			continue
		}
		if !r.Stages[a.Task.Stage].Stored && a.Executor != "" {
			a.Executor = graph.UnknownExecutor
		}
		a.Reason, a.Rows, a.Bytes = "", 0, 0
		kept = append(kept, a)
	}
	r.Attempts = kept
	return r
}
