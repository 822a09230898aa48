package scheduler

import (
	"errors"
	"net/http"
	"os"
	"slices"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/rest"
)

// request gives the principal of an HTTP request, or says why there is none.
func (g *guard) request(r *http.Request, token string) (string, *rest.Refusal) {
	cert := verified(r.TLS)
	who, no := g.client(r.Context(), token, cert, "header")
	if no == nil {
		return who, nil
	}
	if g.refused != nil {
		g.refused(r.RemoteAddr, r.Method+" "+r.URL.Path, commonName(cert), no.why)
	}
	return "", &rest.Refusal{Why: no.why, Unavailable: no.unavailable}
}

// restBackend answers what the REST API asks.
type restBackend struct{ v *views }

// State implements rest.Backend.
func (b *restBackend) State(who string) rest.State {
	s, now := b.v.s, b.v.snapshot()
	out := rest.State{
		Version: s.opts.Version, Cluster: s.cfg.Cluster, Epoch: s.journal.Epoch(), PID: os.Getpid(), Started: b.v.started, Address: s.addr, Isolation: s.isolationText,
		Catalogs: s.visibleCatalogs(who), Executors: now.Executors, Slots: now.Slots, Running: now.RunningTasks, Queued: now.QueuedTasks, Jobs: map[string]int{},
		Events: rest.EventLog{Written: now.EventsWritten, Dropped: now.EventsDropped, Queued: now.EventsQueued},
	}
	if out.Catalogs == nil {
		out.Catalogs = []string{}
	}
	for state := range now.Jobs {
		out.Jobs[state] = 0
	}
	for _, j := range s.jobsNewestFirst() {
		if s.seenBy(j, who) {
			j.mu.Lock()
			out.Jobs[stateText(j.state)]++
			j.mu.Unlock()
		}
	}
	return out
}

// Executors implements rest.Backend.
func (b *restBackend) Executors() []rest.Executor {
	out := []rest.Executor{}
	for _, e := range b.v.s.pool.Executors() {
		out = append(out, rest.Executor{ID: e.ID, Host: e.Host, PID: e.PID, Slots: e.Slots, Running: e.Running, Connected: e.Connected, Leaving: e.Leaving, LastSeen: e.LastSeen.UTC()})
	}
	return out
}

// Jobs implements rest.Backend.
func (b *restBackend) Jobs(who string, f rest.Filter) []rest.Job {
	var out []rest.Job
	for _, j := range b.v.s.jobsNewestFirst() {
		if len(out) == f.Limit {
			break
		}
		if !b.v.s.seenBy(j, who) && !mutant.On("scheduler/everybody-sees-all") {
			continue
		}
		j.mu.Lock()
		state, kind := stateText(j.state), j.rec.Kind
		j.mu.Unlock()
		if (f.State == "" || f.State == state) && (f.Kind == "" || f.Kind == kind) {
			out = append(out, b.show(j))
		}
	}
	return out
}

func (b *restBackend) find(who, id string) *job {
	if j := b.v.s.job(id); j != nil && b.v.s.seenBy(j, who) {
		return j
	}
	return nil
}

// Job implements rest.Backend.
func (b *restBackend) Job(who, id string) (rest.Job, bool) {
	j := b.find(who, id)
	if j == nil {
		return rest.Job{}, false
	}
	return b.show(j), true
}

// show is a job without secrets (T7).
func (b *restBackend) show(j *job) rest.Job {
	j.mu.Lock()
	p, rec := j.describe(), j.rec
	j.mu.Unlock()
	text, g := b.v.redact.Text, p.Progress
	out := rest.Job{
		ID: p.JobId, Principal: p.Principal, Statement: text(p.Statement), Kind: p.Kind, State: stateText(p.State), Phase: p.Phase, Message: text(p.Message),
		Progress: rest.Progress{
			Stages: int(g.Stages), StagesDone: int(g.StagesDone), Tasks: int(g.Tasks), TasksDone: int(g.TasksDone), Running: int(g.Running), Rows: g.Rows, Bytes: g.Bytes,
		},
		Warnings: b.v.redact.Texts(p.Warnings), Settings: b.v.redact.Settings(rec.Settings), HasRows: p.HasRows, Submitted: rec.Submitted, TimingsMicros: p.TimingsMicros, Trace: traceID(rec.Trace),
	}
	if out.Warnings == nil {
		out.Warnings = []string{}
	}
	if out.Settings == nil {
		out.Settings = map[string]string{}
	}
	if e := p.Error; e != nil {
		out.Error = &rest.JobError{Code: e.Code, Message: text(e.Message), Hint: text(e.Hint)}
	}
	if isTerminal(p.State) {
		out.Finished = &rec.Finished
	}
	out.Commit = (*rest.Commit)(loggedCommit(rec.Landing))
	return out
}

// Plan implements rest.Backend.
func (b *restBackend) Plan(who, id string) (string, bool) {
	j := b.find(who, id)
	if j == nil {
		return "", false
	}
	plan, _ := j.view.current()
	if plan == "" {
		if end := b.history(j); end != nil {
			plan = end.Plan
		}
	}
	return b.v.redact.Text(plan), true
}

// history is the end that the event log has of a job that had ended before this process started; nil of all others.
func (b *restBackend) history(j *job) *eventlog.Record {
	if !j.view.endedBefore() {
		return nil
	}
	path, err := eventlog.Path(b.v.events.Dir(), j.id)
	if err != nil {
		return nil
	}
	end, err := eventlog.EndOf(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.v.log.Warn("cannot read a job's history", "job", j.id, "error", err)
	}
	return end
}

// Stages implements rest.Backend.
func (b *restBackend) Stages(who, id string, limit int) ([]rest.Stage, bool) {
	j := b.find(who, id)
	if j == nil {
		return nil, false
	}
	if end := b.history(j); end != nil && len(end.Stages) > 0 {
		return b.stagesOf(end), true
	}
	plan, rec := j.view.current()
	j.mu.Lock()
	state, tasks := stateText(j.state), slices.Clone(j.tasks)
	j.mu.Unlock()
	byStage := tasksByStage(tasks)
	var out []rest.Stage
	v := &j.view
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, st := range v.list(plan, tasks, rec) {
		r := rest.Stage{ID: rest.StageID(st.id), State: st.state(state), Plan: b.v.redact.Text(st.plan), TasksTotal: st.total}
		if n, ok := st.id.Number(); ok {
			r.Tasks = b.tasks(byStage[n], limit)
			r.Metrics = &rest.Metrics{TasksDone: st.done, Attempts: st.attempts, Rows: st.rows, Bytes: st.bytes, Micros: st.took.Microseconds()}
			if !st.started.IsZero() {
				r.Metrics.Started = &st.started
			}
		}
		out = append(out, r)
	}
	return out, true
}

func tasksByStage(tasks []*schedulerv1.TaskInfo) map[int32][]*schedulerv1.TaskInfo {
	out := map[int32][]*schedulerv1.TaskInfo{}
	for _, t := range tasks {
		out[t.Stage] = append(out[t.Stage], t)
	}
	return out
}

func (b *restBackend) tasks(list []*schedulerv1.TaskInfo, limit int) []rest.Task {
	out := []rest.Task{}
	for _, t := range list[:min(len(list), limit)] {
		out = append(out, rest.Task{
			Task: int(t.Task), State: t.State, Attempts: int(t.Attempts), Executor: t.Executor, Rows: t.Rows, Bytes: t.Bytes, Error: b.v.redact.Text(t.Error),
		})
	}
	return out
}

// stagesOf are the stages of a job of which only the event log tells.
func (b *restBackend) stagesOf(end *eventlog.Record) []rest.Stage {
	var out []rest.Stage
	for _, st := range end.Stages {
		r := rest.Stage{ID: rest.StageID(st.ID), State: st.State, Plan: b.v.redact.Text(st.Plan), TasksTotal: st.Tasks}
		if st.ID != eventlog.SchedulerStage {
			r.Metrics = &rest.Metrics{TasksDone: st.Done, Attempts: st.Attempts, Rows: st.Rows, Bytes: st.Bytes, Micros: st.Micros}
		}
		out = append(out, r)
	}
	return out
}

// Cancel implements rest.Backend.
func (b *restBackend) Cancel(who, id string) (_ rest.Job, refused string, found bool) {
	j := b.find(who, id)
	if j == nil {
		return rest.Job{}, "", false
	}
	j.mu.Lock()
	state := j.state
	j.mu.Unlock()
	if isTerminal(state) && !mutant.On("scheduler/ended-jobs-cancelled") {
		return rest.Job{}, "the job has ended: " + stateName(state), true
	}
	if !b.v.s.mayCancel(j, who) {
		b.v.s.noteRefused(auditEvent{Reason: refusedPermission, Principal: who, Job: id, Message: notForAll})
		return rest.Job{}, notForAll, true
	}
	ok, message := b.v.s.cancelJob(b.v.s.ctx, j, who)
	if !ok {
		return rest.Job{}, b.v.redact.Text(message), true
	}
	return b.show(j), "", true
}

// NotReady implements rest.Backend.
func (b *restBackend) NotReady() []string {
	var why []string
	select {
	case <-b.v.s.stopping:
		why = append(why, "the scheduler is stopping")
	default:
	}
	if err := b.v.s.journal.View(func(*journal.Tx) error { return nil }); err != nil {
		why = append(why, "the journal cannot be read")
	} else if b.v.s.journal.Err() != nil {
		why = append(why, "the journal is damaged")
	} else if b.v.s.journal.Full() != nil {
		why = append(why, "there is no room for the journal on its file system")
	}
	return why
}
