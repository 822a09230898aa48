package sim

import (
	"slices"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// emitted checks what the graph asks for before anything of it is done.
func (w *World) emitted(r *run, actions []graph.Action) {
	state := r.g.State()
	w.sawActions(r, actions)
	for _, a := range actions {
		switch a := a.(type) {
		case graph.Launch:
			at := w.att(a.Attempt)
			at.task, at.known, at.beside = a.Task, true, a.Speculative
			if state == graph.Successful || r.told != "" {
				w.fail("launch", "attempt %s of job %d is launched in state %s", a.Attempt, r.n, state)
			}
		case graph.Sweep:
			if at := w.att(a.Attempt); r.won[at.task] == at && !r.stages[at.task.Stage].Stored && state != graph.Failed && state != graph.Cancelled {
				w.fail("swept", "attempt %s, the winner of task %s of job %d, is swept while the job is %s", a.Attempt, at.task, r.n, state)
			}
		case graph.FreeData:
			w.mayFree(r, a)
		case graph.RunRoot:
			if r.roots++; r.roots > 1 {
				w.fail("root", "the root of job %d is due twice (S13)", r.n)
			}
		case graph.AnswerCancel:
			if a.Cancelled && state != graph.Cancelled {
				w.fail("told", "job %d is %s, and a client is told that it is cancelled", r.n, state)
			}
		}
	}
}

// note is what an observer knows of actions that are durable.
func (w *World) note(j *journal, r *run, a graph.Action) {
	switch a := a.(type) {
	case graph.Sweep:
		if at := w.att(a.Attempt); r.writes(at.task) && w.keeps != keepsPieces { // there they are owed at the job's end
			j.owe(at, false)
		}
	case graph.Reply:
		if at := w.att(a.Attempt); a.Won {
			if old := r.won[at.task]; old != nil && old != at && !r.stages[at.task.Stage].Stored {
				w.fail("winner", "task %s of job %d has two winners, %s and %s (T1)", at.task, r.n, old.id, at.id)
			}
			r.won[at.task] = at
		}
	case graph.FreeData:
		for _, o := range a.Attempts {
			if at := w.att(o.Attempt); at != nil {
				at.freed = true
			}
		}
	}
}

func (w *World) mayFree(r *run, a graph.FreeData) {
	if r.g.State() != graph.Running {
		return
	}
	for _, o := range a.Attempts {
		if at := w.att(o.Attempt); at != nil && r.won[at.task] == at && r.g.Verdict(at.id) == nil && at.task.Stage == r.last() {
			w.fail("freed", "attempt %s holds input of the root of job %d, which has not run yet, and is freed (S43)", at.id, r.n)
		}
	}
}

// rootTaken checks S15 and S18: every task has a winner, and the job runs.
func (w *World) rootTaken(r *run) {
	if r.g.State() != graph.Running || r.told != "" {
		w.fail("root", "the root of job %d is taken while the job is %s (S18)", r.n, r.g.State())
	}
	for i, s := range r.stages {
		for t := range s.Tasks {
			if r.won[graph.TaskID{Stage: int32(i), Task: int32(t)}] == nil { //nolint:gosec // few
				w.fail("root", "the root of job %d is taken and task %d/%d has no winner (S15)", r.n, i, t)
			}
		}
	}
}

// mayRead checks that an attempt which may still win finds its input: it was not freed, and no executor was let go with it.
func (w *World) mayRead(t *running) {
	r := w.runOf(t.att.job)
	if r == nil || r.g.State() != graph.Running || r.g.Verdict(t.att.id) != nil {
		return
	}
	for _, p := range t.parts {
		switch {
		case p.att.freed:
			w.fail("freed", "attempt %s of job %d reads the output of %s, which was freed", t.att.id, r.n, p.att.id)
		case slices.Contains(w.parted, p.exec):
			w.fail("left", "attempt %s of job %d reads the output of %s, whose executor was let go", t.att.id, r.n, p.att.id)
		}
	}
}

// readRoot is a plain root that reads every partition of the last stage (S10).
func (w *World) readRoot(r *run) bool {
	if !r.rootRuns {
		return false
	}
	r.rootRuns = false
	last := int(r.last())
	for t := range r.stages[last].Tasks {
		id, from, ok := r.g.Winner(graph.TaskID{Stage: int32(last), Task: int32(t)}) //nolint:gosec // few
		at := w.att(id)
		if !ok || at == nil {
			w.fail("root", "the root of job %d runs and task %d/%d has no output", r.n, last, t)
		}
		if !r.stages[last].Stored {
			continue
		}
		if at.freed {
			w.fail("freed", "the root of job %d reads the output of %s, which was freed (S43)", r.n, id)
		}
		e := w.executorNamed(from)
		if e == nil || !slices.Contains(e.outputs, at) {
			r.push(graph.RootFailed{Failure: graph.Failure{Message: "the output of " + id + " cannot be fetched"}}, nil)
			return true
		}
	}
	r.push(graph.RootSucceeded{}, nil)
	return true
}

// tell tells clients a job's end, and checks that it is one, and the truth.
func (w *World) tell(r *run) {
	state := r.g.State()
	if r.told != "" && state != r.told {
		w.fail("final", "job %d was %s and is %s", r.n, r.told, state)
	}
	if !state.Terminal() || r.told != "" {
		return
	}
	w.tracef("job %d is %s", r.n, state)
	r.told = state
	if state == graph.Successful {
		w.truthOfSuccess(r)
		return
	}
	if r.landed != nil {
		w.fail("told", "job %d is told to be %s, and its rows are in the table", r.n, state)
	}
	if w.mayLand(r, 0) {
		w.fail("told", "job %d is told to be %s while its request may still land", r.n, state)
	}
}

// mayLand tells whether a request of the job, or the one of a snapshot, is on its way and could still land.
func (w *World) mayLand(r *run, id int64) bool {
	can := func(q *request) bool { return q.job == r.n && (id == 0 || q.id == id) && r.table.landable(q) }
	for _, m := range w.net {
		if m.kind == mRequest && can(m.req) {
			return true
		}
	}
	return slices.ContainsFunc(w.late, can)
}

// mayRelease checks that an attempt which is given up can never land (S67).
func (w *World) mayRelease(r *run, next *coordinator.Machine) {
	a := r.m.Open()
	if a == nil || next.State() == coordinator.Committed || next.Open() != nil && next.Open().Seq == a.Seq {
		return
	}
	if w.mayLand(r, a.SnapshotID) {
		w.fail("released", "snapshot %d of job %d is given up while its request may still land (S67)", a.SnapshotID, r.n)
	}
}

func (w *World) truthOfSuccess(r *run) {
	if r.root != graph.RootCommit {
		var last []*attempt
		for t := range r.stages[r.last()].Tasks {
			last = append(last, r.won[graph.TaskID{Stage: r.last(), Task: int32(t)}]) //nolint:gosec // few
		}
		w.oneRun(r.job, last)
		return
	}
	res := r.m.Result()
	switch {
	case res == nil || r.m.State() != coordinator.Committed:
		w.fail("told", "job %d is told to be successful, and its commit is %s", r.n, r.m.State())
	case res.Skipped:
		if r.landed != nil || !r.empty && r.stages[r.last()].Tasks > 0 {
			w.fail("told", "job %d had rows and committed nothing", r.n)
		}
	case r.landed != nil && version(r.landed.id) == res.Version && !res.Already:
	case r.landed == nil && res.Already && r.table.marked(r.marker) != nil && version(r.table.marked(r.marker).id) == res.Version:
	default:
		w.fail("told", "job %d is told to have committed %+v, which the table does not say", r.n, *res)
	}
}

// landed checks a snapshot that has just become visible.
func (w *World) landed(q *request) {
	j := w.jobs[q.job]
	if j.landed != nil {
		w.fail("once", "job %d lands twice, as snapshots %d and %d", j.n, j.landed.id, q.id)
	}
	for _, other := range j.table.snaps {
		if other != nil && other != q && other.marker == q.marker {
			w.fail("once", "jobs %d and %d, which are the same, both land", other.job, q.job)
		}
	}
	if j.told != "" {
		w.fail("told", "job %d lands after a client was told that it is %s", j.n, j.told)
	}
	j.landed = q
	if len(q.files) != j.stages[j.last()].Tasks {
		w.fail("rows", "job %d lands with the files of %d of %d tasks", j.n, len(q.files), j.stages[j.last()].Tasks)
	}
	tasks := map[graph.TaskID]bool{}
	for _, a := range q.files {
		if !a.file || tasks[a.task] {
			w.fail("rows", "job %d lands with attempt %s of task %s, whose file is gone, or which is in twice", j.n, a.id, a.task)
		}
		tasks[a.task] = true
		if !w.jrn.accepted(a) {
			w.fail("rows", "job %d lands with attempt %s, which was not accepted (S69)", j.n, a.id)
		}
	}
	w.oneRun(j, q.files)
}

// oneRun checks S73: wherever an output was read, directly or not, it held the same rows.
func (w *World) oneRun(j *job, final []*attempt) {
	rows := map[graph.TaskID]*attempt{}
	seen := map[*attempt]bool{}
	var visit func(a *attempt)
	visit = func(a *attempt) {
		if a == nil || seen[a] {
			return
		}
		seen[a] = true
		if other := rows[a.task]; other != nil && other.content != a.content {
			w.fail("mixed", "the result of job %d holds rows of attempts %s and %s of task %s, which differ (S73)", j.n, other.id, a.id, a.task)
		}
		rows[a.task] = a
		for _, p := range a.reads {
			visit(p)
		}
	}
	for _, a := range final {
		visit(a)
	}
}

// deleteFile deletes what an attempt wrote, which must be nobody's.
func (w *World) deleteFile(a *attempt, who string) {
	if !a.file {
		return
	}
	a.file = false
	w.tracef("the file of %s is deleted by %s", a.id, who)
	if q := w.jobs[a.job].landed; q != nil && q.has(a) {
		w.fail("deleted", "the file of %s is deleted by %s, and snapshot %d refers to it", a.id, who, q.id)
	}
	if w.jrn.accepted(a) {
		w.fail("deleted", "the file of %s is deleted by %s, and its manifest was accepted (S60)", a.id, who)
	}
}

// sweep carries out a duty (S61, S72). While the attempt may still write it stays.
func (w *World) sweep(s Step) bool {
	i := slices.IndexFunc(w.jrn.duties, func(d *duty) bool { return d.att.job == s.Job && d.att.n == s.Att })
	if i < 0 {
		return false
	}
	d := w.jrn.duties[i]
	if d.all || !w.jrn.accepted(d.att) {
		w.deleteFile(d.att, "the scheduler")
	}
	if w.busy(d.att) {
		return true
	}
	w.update(func(j *journal) { j.duties = slices.Delete(j.duties, i, i+1) })
	return true
}

func (w *World) busy(a *attempt) bool {
	for _, m := range w.net {
		if m.kind == mLaunch && m.att == a {
			return true
		}
	}
	for _, e := range w.execs[1:] {
		if r := e.task(a); r != nil && r.state < over {
			return true
		}
	}
	return false
}
