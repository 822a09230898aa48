package flightsql

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// cancelWait is how long a cancel waits for the job to have ended.
const cancelWait = 2 * time.Second

// CancelFlightInfo cancels the job of a FlightInfo. Where it is too late the trailer signet-message says what happened instead. arrow-go routes
// CancelQuery here too.
func (s *server) CancelFlightInfo(ctx context.Context, req *flight.CancelFlightInfoRequest) (flight.CancelFlightInfoResult, error) {
	who := s.Principal(ctx)
	id, ok := s.jobOf(who, req.GetInfo())
	if !ok {
		return flight.CancelFlightInfoResult{}, unknownHandle("FlightInfo")
	}
	cancelled, msg, err := s.backend.Cancel(who, id)
	if err != nil {
		return flight.CancelFlightInfoResult{}, asStatus(err)
	}
	if !cancelled {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(MessageHeader, msg)) // fails outside of gRPC only
		return flight.CancelFlightInfoResult{Status: flight.CancelStatusNotCancellable}, nil
	}
	ctx, stop := context.WithTimeout(ctx, cancelWait)
	defer stop()
	job, err := s.await(ctx, who, id)
	switch {
	case err != nil: // it is under way
		return flight.CancelFlightInfoResult{Status: flight.CancelStatusCancelling}, nil
	case job.GetState() == schedulerv1.JobState_JOB_STATE_CANCELLED:
		return flight.CancelFlightInfoResult{Status: flight.CancelStatusCancelled}, nil
	}
	return flight.CancelFlightInfoResult{Status: flight.CancelStatusNotCancellable}, nil
}

// jobOf finds the job by a ticket, or by what a poll put into the metadata.
func (s *server) jobOf(who string, info *flight.FlightInfo) (string, bool) {
	for _, e := range info.GetEndpoint() {
		if e.GetTicket() == nil {
			continue
		}
		if t, err := fsql.GetStatementQueryTicket(e.GetTicket()); err == nil {
			if id, ok := s.openTicket(who, t.GetStatementHandle()); ok {
				return id, true
			}
		}
	}
	return s.seal.open(kindPoll, who, info.GetAppMetadata())
}

// BeginTransaction refuses.
func (s *server) BeginTransaction(context.Context, fsql.ActionBeginTransactionRequest) ([]byte, error) {
	return nil, errTransactions
}

// EndTransaction refuses.
func (s *server) EndTransaction(context.Context, fsql.ActionEndTransactionRequest) error {
	return errTransactions
}

// BeginSavepoint refuses.
func (s *server) BeginSavepoint(context.Context, fsql.ActionBeginSavepointRequest) ([]byte, error) {
	return nil, errTransactions
}

// EndSavepoint refuses.
func (s *server) EndSavepoint(context.Context, fsql.ActionEndSavepointRequest) error {
	return errTransactions
}

// RenewFlightEndpoint refuses: rows are kept for a fixed time.
func (s *server) RenewFlightEndpoint(context.Context, *flight.RenewFlightEndpointRequest) (*flight.FlightEndpoint, error) {
	return nil, unsupported("renewing endpoints is not supported: rows are kept for %s after the statement's end", s.Kept)
}

// GetFlightInfoSubstraitPlan refuses.
func (s *server) GetFlightInfoSubstraitPlan(context.Context, fsql.StatementSubstraitPlan, *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return nil, errSubstrait
}

// GetSchemaSubstraitPlan refuses.
func (s *server) GetSchemaSubstraitPlan(context.Context, fsql.StatementSubstraitPlan, *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	return nil, errSubstrait
}

// PollFlightInfoSubstraitPlan refuses.
func (s *server) PollFlightInfoSubstraitPlan(context.Context, fsql.StatementSubstraitPlan, *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return nil, errSubstrait
}
