package executor

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/write"
	"github.com/signet-io/signet/internal/bounded"
	"github.com/signet-io/signet/internal/mutant"
)

// attempt is one try of a task, from its launch until the scheduler has acknowledged its end.
type attempt struct {
	ref    *executorv1.AttemptRef
	task   *planv1.Task
	ctx    context.Context //nolint:containedctx // the attempt's life
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when nothing of it runs any more

	left    write.Left     // of its sources, in their store; nil: nothing
	traffic signed.Traffic // to and from object stores

	rows, bytes atomic.Int64
	running     atomic.Bool // holds a slot
	reported    atomic.Bool // a manifest has begun to leave this process
	unwanted    atomic.Bool // its output was freed before it was there

	status *executorv1.TaskStatus // guarded by Executor.mu; repeated until acknowledged
}

func refOf(t *planv1.Task) *executorv1.AttemptRef {
	return &executorv1.AttemptRef{JobId: t.GetJobId(), Stage: t.GetStage(), Task: t.GetTask(), AttemptId: t.GetAttemptId(), Epoch: t.GetEpoch()}
}

// add enters an attempt; nil if it is there already, or if the executor takes nothing new.
func (e *Executor) add(task *planv1.Task, polled bool) (a *attempt, leaving bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if polled {
		e.asked--
	}
	if _, ok := e.attempts[task.GetAttemptId()]; ok || e.stopping || e.draining {
		return nil, !ok
	}
	a = &attempt{ref: refOf(task), task: task, done: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancelCause(signed.Counted(e.life, &a.traffic))
	e.attempts[task.GetAttemptId()] = a
	return a, false
}

// about is the log of one attempt.
func (e *Executor) about(a *attempt) *slog.Logger {
	return e.log.With("job", a.ref.GetJobId(), "stage", a.ref.GetStage(), "task", a.ref.GetTask(), "attempt", a.ref.GetAttemptId())
}

func (e *Executor) lookup(id string) *attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attempts[id]
}

// forget ends the executor's interest in an attempt: its end has been acknowledged.
func (e *Executor) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.attempts, id)
	e.changed()
	e.ask()
}

// ask asks the scheduler for as many tasks as there are slots that nothing runs in and nothing was asked for yet; they come from jobs whose policy is
// pull. An attempt holds its slot until its end is acknowledged, as the scheduler counts it. e.mu is held.
func (e *Executor) ask() {
	n := e.cfg.Slots - len(e.attempts) - e.asked
	if n <= 0 || e.session == nil || e.leaving() != "" {
		return
	}
	e.asked += n
	e.session.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Poll{Poll: &executorv1.Poll{Tasks: int32(n)}}}) //nolint:gosec // slots are few
}

// changed wakes those who wait for attempts to go; e.mu is held.
func (e *Executor) changed() {
	close(e.wake)
	e.wake = make(chan struct{})
}

func (e *Executor) all() []*attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*attempt, 0, len(e.attempts))
	for _, a := range e.attempts {
		out = append(out, a)
	}
	return out
}

// end records how an attempt ended without a manifest, and sends it; heartbeats and reconnects repeat it until it is acknowledged (T5).
func (e *Executor) end(a *attempt, st *executorv1.TaskStatus) {
	e.mu.Lock()
	if st.GetOutput() != nil && a.unwanted.Load() { // freed between its making and here
		st = &executorv1.TaskStatus{Error: freedError("nobody needs it")}
	}
	st.Attempt = a.ref
	st.Error = bounded.Error(st.Error) // what cannot be sent would be repeated for ever
	a.status = st
	e.mu.Unlock()
	e.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: st}})
}

// unacknowledged are the statuses to repeat.
func (e *Executor) unacknowledged() []*executorv1.TaskStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*executorv1.TaskStatus
	for _, a := range e.attempts {
		if a.status != nil && !mutant.On("executor/status-sent-once") {
			out = append(out, a.status)
		}
	}
	return out
}

func (e *Executor) heartbeat() *executorv1.Heartbeat {
	h := &executorv1.Heartbeat{RssBytes: residentBytes()}
	for _, a := range e.all() {
		if !a.running.Load() {
			continue
		}
		h.Running++
		h.Progress = append(h.Progress, &executorv1.TaskProgress{
			AttemptId: a.ref.GetAttemptId(), Rows: a.rows.Load(), Bytes: max(a.bytes.Load(), dirBytes(filepath.Join(e.scratch.attemptDir(a.ref.GetAttemptId()), write.FilesDir))),
		})
	}
	return h
}
