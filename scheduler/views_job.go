package scheduler

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/journal"
)

// maxLogged bounds a statement in the event log, in bytes.
const maxLogged = 64 << 10

// jobView is what the views have seen of a job. Its lock may be taken while the job's own is held, never the other way round.
type jobView struct {
	mu       sync.Mutex
	v        *views // nil until the job is entered or recovered
	j        *job
	span     trace.Span // of the whole job, if this process was asked for it
	old      bool       // it had ended before this process started
	restored bool       // attempts that are opened now are those of an earlier incarnation
	ended    time.Time  // zero while it runs
	plan     string     // the newest that was logged
	stages   map[int32]*stageView
	live     map[string]*attemptView
	root     time.Time // when it began
	phases   string    // the newest that was logged
}

// stageView measures a stage. tasks is let go of at the job's end.
type stageView struct {
	id       int32
	total    int
	done     int
	rows     int64
	bytes    int64
	started  time.Time
	finished time.Time // of the newest success
	complete bool      // and logged
	tasks    map[int32]*taskView
}

type taskView struct {
	attempts    int32
	won         bool
	rows, bytes int64
}

type attemptView struct {
	id       string
	stage    *stageView
	task     int32
	number   int32
	launched time.Time
	executor string
	exchange bool
	span     trace.Span
}

// observeEntered is called with the server's lock held, before the job runs.
func (s *Server) observeEntered(j *job) {
	v := &j.view
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bind(s, j)
	v.write(eventlog.Record{
		Time: j.rec.Submitted, Type: eventlog.Submitted, Principal: j.owner, Statement: clip(j.rec.SQL, maxLogged), Settings: s.views.redact.Settings(j.rec.Settings), Trace: traceID(j.rec.Trace),
	})
}

func (v *jobView) bind(s *Server, j *job) {
	v.v, v.j, v.stages, v.live = s.views, j, map[int32]*stageView{}, map[string]*attemptView{}
}

// observeRecovered is called for every job of the journal, before anything runs.
func (s *Server) observeRecovered(j *job) {
	v := &j.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if j.rec.State.Terminal() {
		v.v, v.j, v.old, v.ended = s.views, j, true, j.rec.Finished
		return
	}
	v.bind(s, j)
	v.restored = true
	v.write(eventlog.Record{Type: eventlog.Recovered})
}

func (v *jobView) endedBefore() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.old
}

// write logs an event of the job. Called with mu held; after the end nothing is logged.
func (v *jobView) write(r eventlog.Record) {
	r.Job = v.j.id
	if r.Time.IsZero() {
		r.Time = time.Now().UTC()
	}
	v.v.events.Write(r)
}

func (v *jobView) off() bool { return v.v == nil || !v.ended.IsZero() }

// phase is called with the job's lock held.
func (v *jobView) phase(phase string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.off() {
		return
	}
	v.restored = false
	if phase == v.phases {
		return
	}
	v.phases = phase
	switch phase {
	case "root":
		for _, id := range slices.Sorted(maps.Keys(v.stages)) { // also where tasks were done before a restart
			v.completed(v.stages[id], time.Now().UTC())
		}
		if v.root.IsZero() {
			v.root = time.Now().UTC()
			stage := eventlog.SchedulerStage
			v.write(eventlog.Record{Time: v.root, Type: eventlog.Root, Event: eventlog.Started, Stage: &stage})
		}
	case "resolving":
		v.write(eventlog.Record{Type: eventlog.Phase, Phase: phase})
	}
}

// planned announces tasks before they are launched; a job whose stages are planned one after the other is told of all so far.
func (v *jobView) planned(tasks []*planv1.Task) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.off() {
		return
	}
	counts := map[int32]int{}
	for _, t := range tasks {
		counts[t.Stage]++
	}
	for id, n := range counts {
		v.stage(id).total = n
	}
}

// stage is called with mu held.
func (v *jobView) stage(id int32) *stageView {
	st := v.stages[id]
	if st == nil {
		st = &stageView{id: id, tasks: map[int32]*taskView{}}
		v.stages[id] = st
	}
	return st
}

func (st *stageView) task(n int32) *taskView {
	t := st.tasks[n]
	if t == nil {
		t = &taskView{}
		st.tasks[n] = t
	}
	return t
}

// outcome notes what became of a commit request.
func (v *jobView) outcome(o coordinator.Outcome) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.off() {
		return
	}
	v.v.metrics.CommitOutcome(o.Kind.String())
	stage := eventlog.SchedulerStage
	v.write(eventlog.Record{Type: eventlog.Root, Event: "commit " + o.Kind.String(), Stage: &stage, Reason: o.Reason})
}

// current is the job's plan and record now.
func (v *jobView) current() (string, journal.Job) {
	v.mu.Lock()
	j := v.j
	v.mu.Unlock()
	if j == nil {
		return "", journal.Job{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return planOf(j.plan, j.rec), j.rec
}

// notePlan logs a plan that is new, or longer than before. Called with mu held.
func (v *jobView) notePlan(plan string, rec journal.Job) {
	if plan == "" || plan == v.plan {
		return
	}
	v.plan = plan
	if v.restored {
		return // it was logged by the scheduler that made it
	}
	var stages []eventlog.StageRecord
	for _, st := range v.list(plan, nil, rec) {
		stages = append(stages, eventlog.StageRecord{ID: st.id, Plan: st.plan, Tasks: st.total})
	}
	if mutant.On("scheduler/another-plan-logged") {
		plan = splitPlan(plan).root
	}
	v.write(eventlog.Record{Type: eventlog.Planned, Kind: rec.Kind, Plan: plan, Stages: stages})
}
