package flightsql

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// A client that polls gets an answer at once, can cancel the job by the FlightInfo in it, and comes back by the descriptor. The job is cancelled if
// it does not come back.

// pollWait is how long a poll waits for the job's end. pollFirst is that of the first one, which is for the handle to cancel by.
const (
	pollWait  = 2 * time.Second
	pollFirst = 50 * time.Millisecond
)

// PollFlightInfoStatement begins the statement.
func (s *server) PollFlightInfoStatement(ctx context.Context, cmd fsql.StatementQuery, desc *flight.FlightDescriptor) (*flight.PollInfo, error) {
	if err := noTransaction(cmd.GetTransactionId()); err != nil {
		return nil, err
	}
	return s.begin(ctx, s.statement(ctx, cmd.GetQuery()), desc)
}

// PollFlightInfoPreparedStatement begins it.
func (s *server) PollFlightInfoPreparedStatement(ctx context.Context, cmd fsql.PreparedStatementQuery, desc *flight.FlightDescriptor) (*flight.PollInfo, error) {
	st, err := s.bound(ctx, cmd.GetPreparedStatementHandle(), true)
	if err != nil {
		return nil, err
	}
	return s.begin(ctx, st, desc)
}

func (s *server) begin(ctx context.Context, st Statement, desc *flight.FlightDescriptor) (*flight.PollInfo, error) {
	who := s.Principal(ctx)
	id, existing, err := s.backend.Submit(who, st)
	if err != nil {
		return nil, asStatus(err)
	}
	_ = grpc.SendHeader(ctx, metadata.Pairs(JobHeader, id)) // fails outside of gRPC only
	s.calls.polled(who, id, existing, false)
	return s.poll(ctx, who, id, desc, pollFirst)
}

// PollFlightInfo goes on by the descriptor of an earlier answer.
func (s *server) PollFlightInfo(ctx context.Context, desc *flight.FlightDescriptor) (*flight.PollInfo, error) {
	who := s.Principal(ctx)
	id, ok := s.seal.open(kindPoll, who, desc.GetCmd())
	if !ok {
		return nil, unknownHandle("descriptor")
	}
	return s.poll(ctx, who, id, desc, pollWait)
}

func (s *server) poll(ctx context.Context, who, id string, desc *flight.FlightDescriptor, wait time.Duration) (*flight.PollInfo, error) {
	wctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	job, err := s.await(wctx, who, id)
	if err != nil {
		if wctx.Err() == nil || ctx.Err() != nil {
			return nil, err
		}
		if job, _, err = s.backend.Job(who, id); err != nil {
			return nil, unknownHandle("descriptor")
		}
	}
	s.calls.polled(who, id, true, terminal(job))
	switch {
	case !terminal(job):
		return s.unfinished(who, job, desc), nil
	case job.GetState() != schedulerv1.JobState_JOB_STATE_SUCCESSFUL:
		return nil, jobStatus(job)
	}
	info, err := s.info(who, job, desc)
	if err != nil {
		return nil, err
	}
	done := 1.0
	return &flight.PollInfo{Info: info, Progress: &done}, nil
}

func (s *server) unfinished(who string, job *schedulerv1.Job, desc *flight.FlightDescriptor) *flight.PollInfo {
	expires := time.Now().Add(pollLease)
	// The descriptor outlives the lease: one that comes too late hears what became of the job.
	handle := s.seal.make(kindPoll, who, job.GetJobId(), expires.Add(s.Kept))
	out := &flight.PollInfo{
		Info:             &flight.FlightInfo{FlightDescriptor: desc, TotalRecords: -1, TotalBytes: -1, AppMetadata: handle},
		FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: handle},
		ExpirationTime:   timestamppb.New(expires),
	}
	if p := job.GetProgress(); p.GetTasks() > 0 {
		share := float64(p.GetTasksDone()) / float64(p.GetTasks())
		out.Progress = &share
	}
	return out
}
