package scheduler

import (
	"log/slog"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/telemetry"
)

// launched notes an attempt, and gives its task the trace that it runs in. Not called with the job's lock held.
func (v *jobView) launched(t *planv1.Task) {
	plan, rec := v.current()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.off() {
		return
	}
	v.notePlan(plan, rec)
	now, st := time.Now().UTC(), v.stage(t.Stage)
	tv := st.task(t.Task)
	tv.attempts++
	a := &attemptView{id: t.AttemptId, stage: st, task: t.Task, number: tv.attempts, launched: now, exchange: t.GetExchange() != nil}
	v.live[a.id] = a
	if v.restored {
		return // it was logged by the scheduler that launched it
	}
	if tv.won { // its output was lost
		tv.won, st.complete = false, false
		st.done--
		st.rows, st.bytes = st.rows-tv.rows, st.bytes-tv.bytes
	}
	if st.started.IsZero() {
		st.started = now
		v.write(eventlog.Record{Time: now, Type: eventlog.Stage, Event: eventlog.Started, Stage: st.name(), Tasks: st.total})
	}
	a.span = v.startAttempt(a, t)
	v.v.metrics.Attempt(telemetry.AttemptLaunched)
	v.logAttempt(a, eventlog.Record{Time: now, Event: eventlog.Launched})
}

func (st *stageView) name() *eventlog.StageID {
	id := eventlog.StageNumber(st.id)
	return &id
}

// logAttempt is called with mu held.
func (v *jobView) logAttempt(a *attemptView, r eventlog.Record) {
	r.Type, r.Stage, r.Task, r.Attempt, r.Number, r.Executor = eventlog.Attempt, a.stage.name(), &a.task, a.id, int(a.number), a.executor
	v.write(r)
	level := slog.LevelDebug
	if r.Error != nil {
		level = slog.LevelWarn
	}
	if !v.v.log.Enabled(v.j.ctx, level) {
		return
	}
	attrs := []any{"job", v.j.id, "stage", a.stage.id, "task", a.task, "attempt", a.id}
	if a.executor != "" {
		attrs = append(attrs, "executor", a.executor)
	}
	if r.Error != nil {
		attrs = append(attrs, "class", r.Class, "error", r.Error.Message)
	}
	v.v.log.Log(v.j.ctx, level, "task attempt "+r.Event, attrs...)
}

// observeHolder notes which executor has an attempt.
func (s *Server) observeHolder(a *attempt, executor string) {
	if a == nil || executor == "" {
		return
	}
	v := &a.job.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.live[a.ref.AttemptId]; l != nil {
		l.executor = executor
	}
}

// reported takes what the job's loop is told of attempts. Reports of attempts that are over change nothing (S13).
func (v *jobView) reported(ev any) {
	switch ev := ev.(type) {
	case taskAccepted:
		v.succeeded(ev.attempt, ev.rows, ev.bytes)
	case taskDone:
		v.succeeded(ev.attempt, ev.rows, ev.bytes)
	case taskFailed:
		v.over(ev.attempt, telemetry.AttemptFailed, eventlog.Record{
			Event: eventlog.Failed, Class: className(ev.err.GetClass()), Error: &eventlog.Failure{Message: ev.err.GetMessage(), Hint: ev.err.GetHint()},
		})
	case attemptLost:
		v.over(ev.attempt, telemetry.AttemptLost, eventlog.Record{Event: eventlog.Lost, Reason: ev.reason()})
	case attemptAdopted:
		v.held(ev.attempt, ev.executor, true)
	case graph.Launched:
		v.held(ev.Attempt, ev.Executor, false)
	}
}

func (v *jobView) held(attempt, executor string, adopted bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.live[attempt]; a != nil && !v.off() {
		a.executor = executor
		if adopted {
			v.logAttempt(a, eventlog.Record{Event: eventlog.Adopted})
		}
	}
}

func (v *jobView) succeeded(attempt string, rows, bytes int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.live[attempt]
	if a == nil || v.off() {
		return
	}
	delete(v.live, attempt)
	now, st := time.Now().UTC(), a.stage
	if tv := st.task(a.task); !tv.won {
		tv.won, tv.rows, tv.bytes = true, rows, bytes
		st.done++
		st.rows, st.bytes = st.rows+rows, st.bytes+bytes
	}
	st.finished = now
	v.v.metrics.AttemptSucceeded(now.Sub(a.launched), rows, bytes, a.exchange)
	endSpan(a.span, a.executor, "", rows, bytes)
	v.logAttempt(a, eventlog.Record{Time: now, Event: eventlog.Succeeded, Rows: rows, Bytes: bytes, Micros: now.Sub(a.launched).Microseconds()})
	if st.done == st.total {
		v.completed(st, now)
	}
}

// completed logs that a stage is complete. Called with mu held.
func (v *jobView) completed(st *stageView, now time.Time) {
	if st.complete {
		return
	}
	st.complete = true
	v.write(eventlog.Record{
		Time: now, Type: eventlog.Stage, Event: eventlog.Completed, Stage: st.name(), Tasks: st.total, Rows: st.rows, Bytes: st.bytes, Micros: st.took(now).Microseconds(),
	})
}

func (st *stageView) took(now time.Time) time.Duration {
	if st.started.IsZero() {
		return 0
	}
	return max(now.Sub(st.started), 0)
}

// over ends an attempt that did not win.
func (v *jobView) over(attempt, result string, r eventlog.Record) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.live[attempt]; a != nil && !v.off() {
		v.overLocked(a, result, r)
	}
}

func (v *jobView) overLocked(a *attemptView, result string, r eventlog.Record) {
	delete(v.live, a.id)
	v.v.metrics.Attempt(result)
	endSpan(a.span, a.executor, result, 0, 0)
	r.Micros = time.Since(a.launched).Microseconds()
	v.logAttempt(a, r)
}

// stopped notes an attempt that was given up.
func (v *jobView) stopped(attempt, why string) {
	v.over(attempt, telemetry.AttemptStopped, eventlog.Record{Event: eventlog.Stopped, Reason: why})
}

func className(c planv1.ErrorClass) string {
	return lowerName(c.String(), "ERROR_CLASS_")
}
