package flightsql

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// jobCodes gives the codes of job errors their gRPC codes; all others are Internal.
var jobCodes = map[string]codes.Code{
	"user": codes.InvalidArgument, "not-found": codes.NotFound, "denied": codes.PermissionDenied, "exists": codes.AlreadyExists, "conflict": codes.Aborted, "refused": codes.FailedPrecondition,
	"cancelled": codes.Canceled, "no-executor": codes.Unavailable, "resource": codes.ResourceExhausted, "restart": codes.Aborted,
}

// jobStatus is the error of a job that did not succeed. The JobError goes along as a detail.
func jobStatus(job *schedulerv1.Job) error {
	e := job.GetError()
	if e == nil {
		e = &schedulerv1.JobError{Code: "internal", Message: "the job ended without a reason"}
		if job.GetState() == schedulerv1.JobState_JOB_STATE_CANCELLED {
			e = &schedulerv1.JobError{Code: "cancelled", Message: "the job was cancelled"}
		}
	}
	code, ok := jobCodes[e.GetCode()]
	if !ok {
		code = codes.Internal
	}
	msg := e.GetMessage()
	if e.GetHint() != "" {
		msg += "\n" + e.GetHint()
	}
	st := status.New(code, msg)
	if with, err := st.WithDetails(e); err == nil {
		st = with
	}
	return st.Err()
}

// asStatus gives every error a code.
func asStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func unsupported(format string, args ...any) error {
	return status.Errorf(codes.Unimplemented, format, args...)
}

// guarded turns a panic into an error: arrow-go's readers panic on broken messages.
func guarded(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = invalid("%s: broken Arrow data: %v", what, r)
		}
	}()
	return f()
}

var errTransactions = unsupported("transactions are not supported: every statement commits by itself, as a whole or not at all; leave autocommit on")

func noTransaction(id []byte) error {
	if len(id) > 0 {
		return errTransactions
	}
	return nil
}

func unknownHandle(what string) error {
	return status.Error(codes.NotFound, fmt.Sprintf("unknown %s: it is not yours, has expired, was closed, or is of a scheduler that has been restarted", what))
}
