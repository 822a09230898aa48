package scheduler

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/scheduler/journal"
)

// clientAPI serves scheduler.v1. It turns errors into gRPC codes and decides nothing else.
type clientAPI struct {
	schedulerv1.UnimplementedSchedulerServer
	s *Server
}

// Submit implements scheduler.v1.
func (a *clientAPI) Submit(ctx context.Context, r *schedulerv1.SubmitRequest) (*schedulerv1.SubmitResponse, error) {
	ctx, span := a.s.arriving(ctx)
	j, existing, err := a.s.submit(principal(ctx), r, span.mark)
	span.submitted(j, existing, err)
	if err != nil {
		return nil, grpcError(err)
	}
	return &schedulerv1.SubmitResponse{JobId: j.id, Existing: existing}, nil
}

// lookup finds a job that the caller may see.
func (a *clientAPI) lookup(ctx context.Context, id string) (*job, error) {
	j := a.s.job(id)
	if j == nil || !a.s.seenBy(j, principal(ctx)) {
		return nil, status.Errorf(codes.NotFound, "no job %q; signet jobs lists yours", id)
	}
	return j, nil
}

// Watch implements scheduler.v1: it sends the newest state whenever there is one, so that a slow reader skips states but
// never the terminal one (T4).
func (a *clientAPI) Watch(r *schedulerv1.WatchRequest, st grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
	j, err := a.lookup(st.Context(), r.JobId)
	if err != nil {
		return err
	}
	pace := time.NewTimer(0) // runs out when the next status may be sent
	defer pace.Stop()
	for {
		if err := a.paced(st.Context(), j, pace); err != nil {
			return err
		}
		snap, changed := j.snapshot()
		if mutant.On("scheduler/end-not-sent") && isTerminal(snap.State) {
			return nil
		}
		if err := st.Send(&schedulerv1.WatchResponse{Job: snap}); err != nil {
			return err
		}
		if isTerminal(snap.State) {
			return nil
		}
		pace.Reset(watchPause)
		select {
		case <-changed:
		case <-st.Context().Done():
			return st.Context().Err()
		case <-a.s.stopping:
			return errStopping
		}
	}
}

// watchPause is the least time between two statuses of a job that runs. A short statement has a dozen of them, which nobody can look at; its end is sent at
// once.
const watchPause = 100 * time.Millisecond

var errStopping = status.Error(codes.Unavailable, "the scheduler is stopping; the job goes on when it is back")

// paced waits for the pace or for the job's end, whichever is first.
func (a *clientAPI) paced(ctx context.Context, j *job, pace *time.Timer) error {
	for {
		ended, changed := j.ended()
		if ended {
			return nil
		}
		select {
		case <-pace.C:
			return nil
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-a.s.stopping:
			return errStopping
		}
	}
}

// GetJob implements scheduler.v1.
func (a *clientAPI) GetJob(ctx context.Context, r *schedulerv1.GetJobRequest) (*schedulerv1.GetJobResponse, error) {
	j, err := a.lookup(ctx, r.JobId)
	if err != nil {
		return nil, err
	}
	snap, _ := j.snapshot()
	return &schedulerv1.GetJobResponse{Job: snap, Plan: j.planText(), Tasks: j.taskInfos(a.s.pool.Holder)}, nil
}

func (j *job) planText() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.plan
}

// ListJobs implements scheduler.v1.
func (a *clientAPI) ListJobs(ctx context.Context, r *schedulerv1.ListJobsRequest) (*schedulerv1.ListJobsResponse, error) {
	limit := int(cmp.Or(r.Limit, 100))
	out, size := &schedulerv1.ListJobsResponse{}, 0
	for _, j := range a.s.jobsNewestFirst() {
		if !a.s.seenBy(j, principal(ctx)) {
			continue
		}
		snap, _ := j.snapshot()
		snap.InlineResult = nil
		if size += proto.Size(snap); size > rpc.MaxPayload {
			break // the newest fit
		}
		if out.Jobs = append(out.Jobs, snap); len(out.Jobs) == limit {
			break
		}
	}
	return out, nil
}

const notForAll = "jobs of schedules are cancelled by operators: auth.tokens has operator: true for them"

// mayCancel tells who may cancel a job: its owner, and of a schedule's an operator.
func (s *Server) mayCancel(j *job, who string) bool { return j.owner == who || s.mayOperate(who) }

// CancelJob implements scheduler.v1.
func (a *clientAPI) CancelJob(ctx context.Context, r *schedulerv1.CancelJobRequest) (*schedulerv1.CancelJobResponse, error) {
	j, err := a.lookup(ctx, r.JobId)
	if err != nil {
		return nil, err
	}
	if !a.s.mayCancel(j, principal(ctx)) {
		a.s.noteRefused(auditEvent{Reason: refusedPermission, Principal: principal(ctx), Job: j.id, Message: notForAll})
		return nil, status.Error(codes.PermissionDenied, notForAll)
	}
	ok, msg := a.s.cancelJob(ctx, j, principal(ctx))
	return &schedulerv1.CancelJobResponse{Cancelled: ok, Message: msg}, nil
}

// FetchResult implements scheduler.v1.
func (a *clientAPI) FetchResult(r *schedulerv1.FetchResultRequest, st grpc.ServerStreamingServer[schedulerv1.FetchResultResponse]) error {
	j, err := a.lookup(st.Context(), r.JobId)
	if err != nil {
		return err
	}
	end, err := a.s.fetches.begin(principal(st.Context()))
	if err != nil {
		return err
	}
	defer end()
	j.mu.Lock()
	out := j.output
	j.mu.Unlock()
	gone := status.Errorf(codes.FailedPrecondition, "job %s has no rows to fetch: its result is inline, was fetched too long ago, or was lost with a restart; run the query again", j.id)
	if out == nil {
		return gone
	}
	if at := out.located(); at != nil {
		from := a.s.relay(j.id, at.part)
		defer from.Close()
		_, err := io.CopyBuffer(sendResult{st}, struct{ io.Reader }{from}, make([]byte, fetchChunk))
		return err
	}
	if out.pipelined { // as they come
		err := out.follow(j.done, func(b []byte) error { return st.Send(&schedulerv1.FetchResultResponse{Data: slices.Clone(b)}) })
		switch {
		case errors.Is(err, errSpoiled):
			return status.Errorf(codes.Aborted, "job %s: %v; what was read so far is not its result", j.id, err)
		case errors.Is(err, errOutputGone):
			return status.Errorf(codes.FailedPrecondition, "job %s ended without a result, or its rows were fetched too long ago", j.id)
		}
		return err
	}
	err = out.read(func(f *os.File, size int64) error {
		n, err := io.CopyBuffer(sendResult{st}, io.NewSectionReader(f, 0, size), make([]byte, fetchChunk))
		if err == nil && n < size {
			return status.Errorf(codes.DataLoss, "spooled result: it has %d bytes less than it had", size-n)
		}
		return err
	})
	if errors.Is(err, errOutputGone) {
		return gone
	}
	return err
}

// sendResult is a writer for a result's rows.
type sendResult struct {
	grpc.ServerStreamingServer[schedulerv1.FetchResultResponse]
}

func (s sendResult) Write(b []byte) (int, error) {
	return len(b), s.Send(&schedulerv1.FetchResultResponse{Data: slices.Clone(b)})
}

// GetInfo implements scheduler.v1.
func (a *clientAPI) GetInfo(ctx context.Context, _ *schedulerv1.GetInfoRequest) (*schedulerv1.GetInfoResponse, error) {
	out := &schedulerv1.GetInfoResponse{
		Version: a.s.opts.Version, Cluster: a.s.cfg.Cluster, Epoch: a.s.journal.Epoch(), Catalogs: a.s.visibleCatalogs(principal(ctx)),
		Isolation: a.s.isolationText, Pid: int32(os.Getpid()), //nolint:gosec // pids fit
	}
	for _, e := range a.s.pool.Executors() {
		if e.Connected {
			out.Executors = append(out.Executors, &schedulerv1.Executor{
				Id: e.ID, Host: e.Host, Slots: int32(e.Slots), Running: int32(e.Running), LastSeenMillis: e.LastSeen.UnixMilli(), Pid: int32(e.PID), Leaving: e.Leaving, //nolint:gosec // small numbers
			})
		}
	}
	return out, nil
}

// DrainExecutor implements scheduler.v1. Executors are everybody's, so that not everybody may send them away.
func (a *clientAPI) DrainExecutor(ctx context.Context, r *schedulerv1.DrainExecutorRequest) (*schedulerv1.DrainExecutorResponse, error) {
	if who := principal(ctx); !a.s.mayOperate(who) {
		a.s.noteRefused(auditEvent{Reason: refusedPermission, Principal: who, Message: "it may not drain executors"})
		return nil, status.Errorf(codes.PermissionDenied, "%s may not drain executors: auth.tokens has no operator: true for it", who)
	}
	const maxReason = 1024
	if r.LimitMillis < 0 || len(r.Reason) > maxReason {
		return nil, status.Errorf(codes.InvalidArgument, "a drain has a limit of 0 (none) or more, and a reason of at most %d bytes", maxReason)
	}
	id, err := a.s.pool.Drain(r.ExecutorId, cmp.Or(r.Reason, "asked for by "+principal(ctx)), time.Duration(min(r.LimitMillis, maxDrain.Milliseconds()))*time.Millisecond)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	return &schedulerv1.DrainExecutorResponse{ExecutorId: id}, nil
}

// maxDrain is as good as for ever.
const maxDrain = 365 * 24 * time.Hour

// grpcError is the one edge where errors become codes.
func grpcError(err error) error {
	var f *jobFailure
	if !errors.As(err, &f) {
		if errors.Is(err, journal.ErrMissing) {
			return status.Error(codes.NotFound, err.Error())
		}
		if errors.Is(err, journal.ErrFull) {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
		if _, ok := status.FromError(err); ok {
			return err
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return status.FromContextError(err).Err()
		}
		return status.Error(codes.Internal, err.Error())
	}
	code := map[string]codes.Code{
		codeUser: codes.InvalidArgument, codeNotFound: codes.NotFound, codeDenied: codes.PermissionDenied, codeExists: codes.AlreadyExists, codeConflict: codes.Aborted,
		codeRefused: codes.FailedPrecondition, codeCancelled: codes.Canceled, codeNoExec: codes.Unavailable, codeResource: codes.ResourceExhausted,
	}[f.Code]
	if code == codes.OK {
		code = codes.Internal
	}
	msg := f.Message
	if f.Hint != "" {
		msg += "\n" + f.Hint
	}
	return status.Error(code, msg)
}
