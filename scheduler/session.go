package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

// maxSessionTasks bounds what a client may announce.
const maxSessionTasks = 100_000

// An external write session is a job whose tasks run elsewhere: another engine writes files below the prefixes it is given and
// reports their task manifests; the commit is the same as every other one.

// BeginWrite implements scheduler.v1.
func (a *clientAPI) BeginWrite(ctx context.Context, r *schedulerv1.BeginWriteRequest) (*schedulerv1.BeginWriteResponse, error) {
	if r.Tasks < 1 || r.Tasks > maxSessionTasks {
		return nil, status.Errorf(codes.InvalidArgument, "tasks is %d; a session has 1 to %d", r.Tasks, maxSessionTasks)
	}
	j, existing, err := a.s.submitSession(principal(ctx), r)
	if err != nil {
		return nil, grpcError(err)
	}
	w, err := a.s.sessionReady(ctx, j)
	if err != nil {
		return nil, grpcError(err)
	}
	out := &schedulerv1.BeginWriteResponse{JobId: j.id, Existing: existing}
	if w != nil {
		out.Spec = publicSpec(w.spec)
	}
	return out, nil
}

// publicSpec is the write spec without what only the sink understands.
func publicSpec(spec *planv1.WriteSpec) *planv1.WriteSpec {
	out := &planv1.WriteSpec{
		TableUuid: spec.TableUuid, Schema: spec.Schema, SchemaId: spec.SchemaId, SpecId: spec.SpecId, Partition: spec.Partition,
		SortOrderId: spec.SortOrderId, Sort: spec.Sort, Files: spec.Files, DataLocation: spec.DataLocation, FormatVersion: spec.FormatVersion,
		BaseVersion: spec.BaseVersion, Warnings: spec.Warnings,
	}
	return out
}

func (s *Server) submitSession(principal string, r *schedulerv1.BeginWriteRequest) (*job, bool, error) {
	text := fmt.Sprintf("INSERT INTO %s FROM EXTERNAL SESSION (%d TASKS)", r.Table, r.Tasks)
	req := &schedulerv1.SubmitRequest{Sql: text, IdempotencyKey: r.IdempotencyKey, Settings: r.Settings}
	if err := checkSubmit(req); err != nil {
		return nil, false, err
	}
	rec, err := newRecord(principal, s.cfg.Cluster, req)
	if err != nil {
		return nil, false, err
	}
	rec.Kind, rec.Session = kindSession, &journal.Session{Table: r.Table, Tasks: int(r.Tasks)}
	return s.enter(rec)
}

// sessionReady waits until the session is planned; nil when its job has ended.
func (s *Server) sessionReady(ctx context.Context, j *job) (*writeState, error) {
	for {
		snap, changed := j.snapshot()
		j.mu.Lock()
		w := j.write
		j.mu.Unlock()
		switch {
		case snap.Error != nil:
			return nil, &jobFailure{JobError: journal.JobError{Code: snap.Error.Code, Message: snap.Error.Message, Hint: snap.Error.Hint}}
		case isTerminal(snap.State), w != nil && snap.State == jobRunning:
			return w, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// runSession plans the write and waits for its manifests.
func (s *Server) runSession(j *job) error {
	name, err := tableName(j.rec.Session.Table)
	if err != nil {
		return err
	}
	p, err := s.planAppend(name, j)
	if err != nil {
		return err
	}
	p.text = "external write session on " + p.target.String()
	if err := s.prepareInsert(j.ctx, j, p); err != nil {
		return err
	}
	t := p.target
	tasks := make([]*planv1.Task, j.rec.Session.Tasks)
	for i := range tasks {
		tasks[i] = &planv1.Task{JobId: j.id, Task: int32(i), Work: &planv1.Task_Write{Write: &planv1.WriteTask{}}} //nolint:gosec // bounded above
	}
	w, err := newWriteState(s, j, t, p.mode, p.spec, coordinator.New(j.id, s.journal.Epoch()))
	if err != nil {
		return err
	}
	w.tasks = tasks
	if w.rec, err = writeRecord(p); err != nil {
		return err
	}
	return s.runWrite(w, nil, plan.Batch{}, nil)
}

// session finds the caller's open session.
func (a *clientAPI) session(ctx context.Context, id string) (*job, *writeState, error) {
	j, err := a.lookup(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if j.rec.Session == nil {
		return nil, nil, status.Errorf(codes.FailedPrecondition, "job %s is no external write session", id)
	}
	w, err := a.s.sessionReady(ctx, j)
	if err != nil {
		return nil, nil, grpcError(err)
	}
	return j, w, nil
}

// BeginAttempt implements scheduler.v1: the attempt is journalled before its prefix is told (S71).
func (a *clientAPI) BeginAttempt(ctx context.Context, r *schedulerv1.BeginAttemptRequest) (*schedulerv1.BeginAttemptResponse, error) {
	j, w, err := a.session(ctx, r.JobId)
	if err != nil {
		return nil, err
	}
	if w == nil || w.isFinal() {
		return nil, status.Errorf(codes.FailedPrecondition, "session %s has ended", j.id)
	}
	task := w.task(0, r.Task)
	if task == nil {
		return nil, status.Errorf(codes.InvalidArgument, "session %s has %d tasks; there is no task %d", j.id, len(w.tasks), r.Task)
	}
	at, err := w.newAttempt(task)
	if errors.Is(err, errDecided) {
		return nil, status.Errorf(codes.FailedPrecondition, "session %s has ended", j.id)
	}
	if err != nil {
		return nil, grpcError(err)
	}
	j.send(graph.AttemptBegun{Task: graph.TaskID{Stage: task.Stage, Task: task.Task}, Attempt: at.AttemptId, Executor: "client"})
	return &schedulerv1.BeginAttemptResponse{AttemptId: at.AttemptId, Prefix: at.GetWrite().Prefix, Epoch: at.Epoch, Stage: at.Stage}, nil
}

// AcceptManifest implements scheduler.v1.
func (a *clientAPI) AcceptManifest(st grpc.ClientStreamingServer[schedulerv1.AcceptManifestRequest, schedulerv1.AcceptManifestResponse]) error {
	r := manifest.NewReader(manifest.Limits{})
	checked := false
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := r.Add(m.Chunk); err != nil {
			return status.Errorf(codes.InvalidArgument, "task manifest: %v", err)
		}
		if h := r.Header(); h != nil && !checked {
			if _, _, err := a.session(st.Context(), h.JobId); err != nil {
				return err
			}
			checked = true
		}
	}
	if !r.Done() {
		return status.Error(codes.InvalidArgument, "task manifest: the stream ended before its trailer")
	}
	ok, reason, err := a.s.acceptManifest(st.Context(), r)
	if err != nil {
		return grpcError(err)
	}
	return st.SendAndClose(&schedulerv1.AcceptManifestResponse{Accepted: ok, Reason: reason})
}

// FinishWrite implements scheduler.v1: it starts the commit, and waits for its end.
func (a *clientAPI) FinishWrite(ctx context.Context, r *schedulerv1.FinishWriteRequest) (*schedulerv1.FinishWriteResponse, error) {
	j, w, err := a.session(ctx, r.JobId)
	if err != nil {
		return nil, err
	}
	if w != nil && !w.isFinal() {
		w.mu.Lock()
		var missing []string
		for i := range w.tasks {
			if _, ok := w.machine.Winner(i); !ok {
				missing = append(missing, fmt.Sprint(i))
			}
		}
		w.mu.Unlock()
		if len(missing) > 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "%d of %d tasks have no accepted manifest: %s", len(missing), len(w.tasks), clip(strings.Join(missing, ", "), 200))
		}
	}
	j.send(graph.WriteFinished{})
	for {
		snap, changed := j.snapshot()
		if isTerminal(snap.State) || snap.Phase == "resolving" {
			return &schedulerv1.FinishWriteResponse{Job: snap}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// AbortWrite implements scheduler.v1.
func (a *clientAPI) AbortWrite(ctx context.Context, r *schedulerv1.AbortWriteRequest) (*schedulerv1.AbortWriteResponse, error) {
	j, err := a.lookup(ctx, r.JobId)
	if err != nil {
		return nil, err
	}
	if ok, msg := a.s.cancelJob(ctx, j, principal(ctx)); !ok {
		return nil, status.Error(codes.FailedPrecondition, msg)
	}
	return &schedulerv1.AbortWriteResponse{}, nil
}
