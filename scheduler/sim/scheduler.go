package sim

import (
	"slices"
	"strconv"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// scheduler is one incarnation: all that is lost with its process. It does with the graph and the coordinator what the package scheduler does:
// journal first, then act; reports are taken beside the job's loop, which hears of them through a queue.
type scheduler struct {
	epoch uint64
	jobs  []*run // by job
	known []*process
}

// process is an executor as the scheduler knows it.
type process struct {
	exec, gen int
	id        string
	lost      bool
}

// run is a job in the scheduler's memory.
type run struct {
	*job
	g *graph.Graph
	m *coordinator.Machine // nil: it does not commit

	queue     []event
	waiting   []graph.Launch
	open      map[*attempt]bool // attempts whose reports are taken
	checked   []*message        // manifests that were found in order, and are not accepted yet
	planning  bool              // a plan, or more of one, is awaited
	due       bool              // the root
	calling   bool              // the plugin's Commit is in flight
	view      *request          // what the plugin is about to ask for
	tries     int
	first     int // the seal whose first answer is awaited
	roots     int // RunRoot
	orphans   bool
	collected bool // the client has its result, or had its time to
}

// event waits for the job's loop. ack is the message to acknowledge when what follows from it is journalled.
type event struct {
	ev  graph.Event
	ack *message
}

func (r *run) push(ev graph.Event, ack *message) { r.queue = append(r.queue, event{ev, ack}) }

func (w *World) runOf(n int) *run {
	if w.sched == nil || n < 1 || n >= len(w.sched.jobs) {
		return nil
	}
	return w.sched.jobs[n]
}

func (j *job) config() graph.Config {
	return graph.Config{MaxInFlight: j.inFlight, MaxSpeculative: j.speculative, MaxLosses: j.losses, NewAttempt: j.newAttempt}
}

// submit makes a job durable. While a job holds the key there is no other; when a job that has committed was forgotten there is, and finds the
// marker (S64).
func (w *World) submit(j *job) bool {
	if j.submitted {
		return false
	}
	for _, other := range w.jobs[1:j.n] {
		if other.marker == j.marker && other.told == "" {
			return false
		}
	}
	r := &run{job: j, g: graph.New(j.config()), open: map[*attempt]bool{}, planning: true}
	if j.root == graph.RootCommit {
		r.m = coordinator.New(strconv.Itoa(j.n), w.sched.epoch)
	}
	if !w.update(func(jr *journal) { jr.jobs[j.n] = r.record() }) {
		return true
	}
	j.submitted = true
	w.sched.jobs[j.n] = r
	return true
}

func (r *run) record() *jobRecord {
	rec := &jobRecord{graph: r.g.Record()}
	if r.m != nil {
		c := r.m.Record()
		rec.commit = &c
	}
	return rec
}

// loop takes a job's next event.
func (w *World) loop(r *run) bool {
	if len(r.queue) == 0 {
		return false
	}
	e := r.queue[0]
	r.queue = r.queue[1:]
	w.tracef("job %d: %T%+v", r.n, e.ev, e.ev)
	w.carry(r, r.g.Apply(e.ev), e.ack)
	return true
}

// carry journals what an event has changed, and carries out what the graph asks for.
func (w *World) carry(r *run, actions []graph.Action, ack *message) {
	w.emitted(r, actions)
	m, eff := w.follow(r, actions)
	write := func(j *journal) {
		for _, a := range actions {
			w.note(j, r, a)
		}
		j.jobs[r.n] = w.recordOf(r, m, j.jobs[r.n], actions)
		w.owe(j, r, eff)
		if w.keeps == keepsPieces && r.told == "" && r.g.State().Terminal() {
			w.oweLosers(j, r)
		}
	}
	if w.keeps == keepsPieces && !w.worthKeeping(r, m, actions) {
		write(&w.jrn) // nothing but what an observer notes
	} else if !w.update(write) {
		panic(crashed{"because the journal cannot be written"}) // a loop that cannot remember must not go on
	}
	r.m = m
	for _, a := range actions {
		w.point("between two actions")
		w.act(r, a)
	}
	w.effects(r, eff)
	if ack != nil {
		w.toExecutor(ack.exec, &message{kind: mAck, job: r.n, att: ack.att, exec: ack.exec, gen: ack.gen, epoch: w.epoch})
	}
	w.tell(r)
}

// follow steps the coordinator with what the graph has decided, in the same transaction: the tasks are known, or the job ends without a commit.
func (w *World) follow(r *run, actions []graph.Action) (*coordinator.Machine, coordinator.Effects) {
	if r.m == nil {
		return nil, coordinator.Effects{}
	}
	m := *r.m
	var eff coordinator.Effects
	sn := r.g.Snapshot()
	if m.State() == coordinator.Planned && sn.State == graph.Running && !sn.More {
		var err error
		if eff, err = m.Step(coordinator.Begin{Tasks: r.stages[r.last()].Tasks}); err != nil {
			w.fail("coordinator", "job %d: %v", r.n, err)
		}
	}
	for _, a := range actions {
		f, ok := a.(graph.Finish)
		if !ok || f.State == graph.Successful || m.State().Final() {
			continue
		}
		var ev coordinator.Event = coordinator.Cancel{Reason: f.Reason}
		if f.State == graph.Failed {
			ev = coordinator.Fail{Reason: f.Failure.Message}
		}
		var err error
		if eff, err = m.Step(ev); err != nil {
			w.fail("told", "job %d ends %s while its commit is open: %v", r.n, f.State, err)
		}
	}
	return &m, eff
}

// act carries out one action of the graph.
func (w *World) act(r *run, a graph.Action) {
	switch a := a.(type) {
	case graph.Launch:
		r.waiting = append(r.waiting, a)
		r.open[w.att(a.Attempt)] = true
	case graph.CancelAttempt:
		w.cancelAttempt(r, a)
	case graph.Sweep:
		delete(r.open, w.att(a.Attempt))
	case graph.FreeData:
		for _, o := range a.Attempts {
			for _, e := range w.execs[1:] {
				if at := w.att(o.Attempt); at != nil && e.up && (o.Executor == e.id() || o.Executor == "") {
					w.toExecutor(e.n, &message{kind: mFree, job: r.n, att: at, exec: e.n, gen: e.gen, epoch: w.epoch})
				}
			}
		}
	case graph.PlanMore:
		if r.asked {
			saw(SawPlanMoreAgain)
		}
		r.asked = true
		r.planning = true
	case graph.RunRoot:
		r.due = true
	case graph.CancelRoot:
		w.cancelRoot(r, a)
	case graph.Finish:
		r.waiting, r.rootRuns = nil, false // a root that is due is refused when it is taken
		clear(r.open)
	}
}

func (w *World) cancelAttempt(r *run, a graph.CancelAttempt) {
	at := w.att(a.Attempt)
	r.waiting = slices.DeleteFunc(r.waiting, func(l graph.Launch) bool { return l.Attempt == a.Attempt })
	if at == nil {
		return
	}
	delete(r.open, at)
	if e := w.executorNamed(a.Executor); e != nil {
		w.toExecutor(e.n, &message{kind: mCancel, job: r.n, att: at, exec: e.n, gen: e.gen, epoch: w.epoch})
	}
}

// toExecutor sends on an executor's session, if it has one.
func (w *World) toExecutor(exec int, m *message) {
	if w.execs[exec].joined {
		w.send(m)
	}
}

// scheduled takes a step of the scheduler or its plugin for one job.
func (w *World) scheduled(s Step, j *job) bool {
	if s.Op == OpSubmit {
		return w.submit(j)
	}
	r := w.runOf(j.n)
	if r == nil {
		return false
	}
	switch s.Op {
	case OpCancel:
		return w.cancel(r)
	case OpCollect:
		return w.collect(r)
	case OpWrite, OpFinish:
		return w.write(r, s)
	case OpPlan, OpPlanFails:
		return w.plan(r, s.Op == OpPlanFails)
	case OpLoop:
		return w.loop(r)
	case OpDispatch:
		return w.dispatch(r, s)
	case OpAccept:
		return w.accept(r, s)
	case OpStraggle:
		if a := w.attOf(s); a != nil && s.Att > 0 {
			r.push(graph.Straggling{Attempt: a.id}, nil)
			return true
		}
		return false
	case OpExpire:
		did := r.orphans
		if did {
			r.orphans = false
			r.push(graph.AdoptionExpired{}, nil)
		}
		return did
	case OpRead:
		return w.readRoot(r)
	}
	return w.committing(s, r)
}

// plan answers what the graph asks for.
func (w *World) plan(r *run, fails bool) bool {
	if !r.planning {
		return false
	}
	r.planning = false
	have := r.g.Snapshot().Stages
	switch first := r.g.State() == graph.Queued; {
	case fails:
		r.push(graph.PlanFailed{Failure: graph.Failure{Code: graph.CodeUser, Message: "no such column"}}, nil)
	case first:
		r.push(graph.Planned{Stages: r.stages[:r.known], Root: r.root, More: r.known < len(r.stages), External: r.external}, nil)
	default:
		r.push(graph.StagesAdded{Stages: r.stages[have : have+1], More: have+1 < len(r.stages)}, nil)
	}
	return true
}

// dispatch hands the oldest waiting attempt to an executor. What it reads lies with the winners of the stages before.
func (w *World) dispatch(r *run, s Step) bool {
	if len(r.waiting) == 0 || s.Exec < 1 || s.Exec >= len(w.execs) {
		return false
	}
	e := w.execs[s.Exec]
	if !e.joined || e.draining || len(e.tasks) >= slots {
		return false
	}
	l := r.waiting[0]
	r.waiting = r.waiting[1:]
	m := &message{kind: mLaunch, job: r.n, att: w.att(l.Attempt), exec: e.n, gen: e.gen, epoch: w.epoch}
	for _, in := range r.stages[l.Task.Stage].Inputs {
		for t := range r.stages[in].Tasks {
			id, from, ok := r.g.Winner(graph.TaskID{Stage: in, Task: int32(t)}) //nolint:gosec // few
			if !ok {
				w.fail("input", "attempt %s of job %d, task %s, leaves without the output of task %d/%d", l.Attempt, r.n, l.Task, in, t)
			}
			m.parts = append(m.parts, part{w.att(id), from})
		}
	}
	r.push(graph.Launched{Attempt: l.Attempt, Executor: e.id()}, nil)
	w.send(m)
	return true
}
