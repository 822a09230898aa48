package scheduler

import (
	"maps"
	"slices"
	"strings"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/commitreport"
	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/telemetry"
)

// observeEnded is called once for each job, when its end is durable and shown.
func (s *Server) observeEnded(j *job, rec journal.Job) {
	j.mu.Lock()
	plan, timings, tasks := planOf(j.plan, rec), maps.Clone(j.timings), slices.Clone(j.tasks)
	j.mu.Unlock()
	v := &j.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.off() {
		return
	}
	v.notePlan(plan, rec)
	state := stateText(terminal(rec.State))
	for _, a := range v.live {
		v.overLocked(a, telemetry.AttemptStopped, eventlog.Record{Event: eventlog.Stopped, Reason: "the job has ended"})
	}
	v.endRoot(state, rec)
	end := endRecord(j.id, rec)
	end.Plan, end.TimingsMicros = plan, timings
	for _, st := range v.list(plan, tasks, rec) {
		r := eventlog.StageRecord{ID: st.id, Plan: st.plan, Tasks: st.total, State: st.state(state), Done: st.done, Attempts: st.attempts, Rows: st.rows, Bytes: st.bytes, Micros: st.took.Microseconds()}
		if end.Stages = append(end.Stages, r); st.id != eventlog.SchedulerStage {
			end.Rows, end.Bytes = st.rows, st.bytes // what the last stage gave is what the job gave
		}
	}
	v.write(end)
	v.v.metrics.JobEnded(cmpKind(rec.Kind), state, rec.Finished.Sub(rec.Submitted))
	v.ended = rec.Finished
	v.endJobSpan(rec)
	for _, st := range v.stages { // only the times are still asked for
		st.tasks = nil
	}
}

// endRoot is called with mu held.
func (v *jobView) endRoot(state string, rec journal.Job) {
	if v.root.IsZero() {
		return
	}
	at, event := rec.Finished, eventlog.Succeeded
	if rec.State != journal.StateSuccessful {
		event = eventlog.Failed
	}
	took := max(at.Sub(v.root), 0)
	v.v.metrics.RootEnded(state, took)
	stage := eventlog.SchedulerStage
	v.write(eventlog.Record{Time: at, Type: eventlog.Root, Event: event, Stage: &stage, Micros: took.Microseconds(), Error: loggedFailure(rec)})
}

func endRecord(id string, rec journal.Job) eventlog.Record {
	return eventlog.Record{
		Time: rec.Finished, Type: eventlog.End, Job: id, Kind: rec.Kind, State: stateText(terminal(rec.State)), Micros: rec.Finished.Sub(rec.Submitted).Microseconds(),
		Error: loggedFailure(rec), Warnings: rec.Warnings, Commit: loggedCommit(rec.Landing),
	}
}

// loggedCommit is nil for jobs that committed nothing that their format counts.
func loggedCommit(l *journal.Landing) *eventlog.Commit {
	if l == nil {
		return nil
	}
	n := func(key string) int64 {
		n, _ := commitreport.Count(l.Summary, key)
		return n
	}
	known := func(key string) *int64 {
		if n, ok := commitreport.Count(l.Summary, key); ok {
			return &n
		}
		return nil
	}
	return &eventlog.Commit{
		SnapshotID: l.SnapshotID, SequenceNumber: l.SequenceNumber, Operation: l.Operation,
		AddedFiles: n("added-data-files"), RemovedFiles: n("deleted-data-files"), AddedDeleteFiles: n("added-delete-files"), RemovedDeleteFiles: n("removed-delete-files"),
		AddedRows: n("added-records"), RemovedRows: n("deleted-records"), Partitions: known("changed-partition-count"), TotalFiles: known("total-data-files"), TotalRows: known("total-records"),
	}
}

func loggedFailure(rec journal.Job) *eventlog.Failure {
	if rec.Error == nil {
		return nil
	}
	return &eventlog.Failure{Code: rec.Error.Code, Message: rec.Error.Message, Hint: rec.Error.Hint}
}

// cmpKind is a job's kind as a label; a statement that could not be parsed has none.
func cmpKind(kind string) string {
	if kind == "" {
		return "unknown"
	}
	return kind
}

func stateText(s schedulerv1.JobState) string { return lowerName(s.String(), "JOB_STATE_") }

func lowerName(name, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(name, prefix))
}
