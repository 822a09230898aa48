package broker

import (
	"context"

	"github.com/signet-io/signet/coordinator"
)

// Gate is the job's coordinator as the broker sees it.
type Gate interface {
	// Seal checks for cancel and epoch and makes the attempt durable, in one step. Only after it has answered may the request leave. It
	// returns the attempt's number. Errors: ErrFenced, *AlreadyError, and those of coordinator.Machine for an attempt that is open; with any
	// error nothing may be sent.
	Seal(ctx context.Context, a coordinator.Attempt) (seq int, err error)
	// Settle records how attempt seq ended. It is called until it succeeds or answers one of the coordinator's errors, and may therefore
	// be called again with the same outcome.
	Settle(ctx context.Context, seq int, o coordinator.Outcome) error
}

// ErrFenced and AlreadyError are what a Gate refuses with.
var ErrFenced = coordinator.ErrFenced

// AlreadyError says that the job has committed, and where.
type AlreadyError = coordinator.AlreadyError
