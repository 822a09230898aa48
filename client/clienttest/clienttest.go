// Package clienttest is a scheduler for tests of what talks to one. It speaks scheduler.v1 over a real socket and runs nothing: hooks say
// what it answers.
package clienttest

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/rpc"
)

// Scheduler answers over a real socket. Each hook replaces one call; the defaults run every statement to success at once.
type Scheduler struct {
	schedulerv1.UnimplementedSchedulerServer

	mu      sync.Mutex
	submits []*schedulerv1.SubmitRequest
	byKey   map[string]string
	watches int
	polls   int
	tokens  []string

	// OnSubmit gets the number of the call, from 1. An error is the answer, although the job exists.
	OnSubmit func(n int, r *schedulerv1.SubmitRequest) error
	// OnWatch gets the number of the subscription, from 1.
	OnWatch  func(n int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error
	OnJob    func(n int) (*schedulerv1.Job, error)
	OnList   func() []*schedulerv1.Job
	OnFetch  func(s grpc.ServerStreamingServer[schedulerv1.FetchResultResponse]) error
	OnCancel func(id string) (*schedulerv1.CancelJobResponse, error)
}

// Seen is what a scheduler was asked.
type Seen struct {
	Submits        []*schedulerv1.SubmitRequest
	Keys           int // different ones
	Watches, Polls int
	Tokens         []string
}

// Seen is a copy of what was asked so far.
func (f *Scheduler) Seen() Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Seen{Submits: slices.Clone(f.submits), Keys: len(f.byKey), Watches: f.watches, Polls: f.polls, Tokens: slices.Clone(f.tokens)}
}

// Submit implements scheduler.v1.
func (f *Scheduler) Submit(ctx context.Context, r *schedulerv1.SubmitRequest) (*schedulerv1.SubmitResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	f.tokens = append(f.tokens, md.Get("authorization")...)
	f.submits = append(f.submits, r)
	id, existing := f.byKey[r.GetIdempotencyKey()]
	if !existing {
		id = "job-" + r.GetIdempotencyKey()
		f.byKey[r.GetIdempotencyKey()] = id
	}
	if f.OnSubmit != nil {
		if err := f.OnSubmit(len(f.submits), r); err != nil {
			return nil, err
		}
	}
	return &schedulerv1.SubmitResponse{JobId: id, Existing: existing}, nil
}

// Watch implements scheduler.v1.
func (f *Scheduler) Watch(_ *schedulerv1.WatchRequest, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
	f.mu.Lock()
	f.watches++
	n := f.watches
	f.mu.Unlock()
	if f.OnWatch != nil {
		return f.OnWatch(n, s)
	}
	return s.Send(&schedulerv1.WatchResponse{Job: &schedulerv1.Job{State: schedulerv1.JobState_JOB_STATE_SUCCESSFUL}})
}

// GetJob implements scheduler.v1.
func (f *Scheduler) GetJob(_ context.Context, r *schedulerv1.GetJobRequest) (*schedulerv1.GetJobResponse, error) {
	f.mu.Lock()
	f.polls++
	n := f.polls
	f.mu.Unlock()
	if f.OnJob == nil {
		return nil, status.Errorf(codes.NotFound, "no job %s", r.GetJobId())
	}
	j, err := f.OnJob(n)
	return &schedulerv1.GetJobResponse{Job: j}, err
}

// FetchResult implements scheduler.v1.
func (f *Scheduler) FetchResult(_ *schedulerv1.FetchResultRequest, s grpc.ServerStreamingServer[schedulerv1.FetchResultResponse]) error {
	return f.OnFetch(s)
}

// ListJobs implements scheduler.v1.
func (f *Scheduler) ListJobs(context.Context, *schedulerv1.ListJobsRequest) (*schedulerv1.ListJobsResponse, error) {
	return &schedulerv1.ListJobsResponse{Jobs: f.OnList()}, nil
}

// CancelJob implements scheduler.v1.
func (f *Scheduler) CancelJob(_ context.Context, r *schedulerv1.CancelJobRequest) (*schedulerv1.CancelJobResponse, error) {
	return f.OnCancel(r.GetJobId())
}

// Start serves until the test ends and returns the address.
func (f *Scheduler) Start(t testing.TB) string {
	t.Helper()
	f.byKey = map[string]string{}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := grpc.NewServer(rpc.ServerOptions()...)
	schedulerv1.RegisterSchedulerServer(srv, f)
	go func() { _ = srv.Serve(lis) }() // ends with Stop
	t.Cleanup(srv.Stop)
	return lis.Addr().String()
}

// Succeeded is a successful job.
func Succeeded() *schedulerv1.Job {
	return &schedulerv1.Job{JobId: "j", State: schedulerv1.JobState_JOB_STATE_SUCCESSFUL}
}

// Running is a running job.
func Running(phase string) *schedulerv1.Job {
	return &schedulerv1.Job{JobId: "j", State: schedulerv1.JobState_JOB_STATE_RUNNING, Phase: phase}
}

// ArrowStream is a result: a text column s and its row numbers n.
func ArrowStream(t testing.TB, texts ...string) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i, s := range texts {
		b.Field(0).(*array.StringBuilder).Append(s)
		b.Field(1).(*array.Int64Builder).Append(int64(i))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return buf.Bytes()
}
