package exchangeclient

import (
	"errors"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// ErrNoTLS: the executor is on another machine, and there is nothing to verify its certificate with.
var ErrNoTLS = errors.New("its exchange needs TLS, and this process was told of no certificate authority")

// LostError says that a part cannot be had, so the task that wrote it has to run again. It names the attempt.
type LostError struct {
	Attempt  string
	Executor string
	Address  string
	Task     int32
	Err      error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the output of attempt %s (task %d) cannot be fetched from executor %s at %s: %v", e.Attempt, e.Task, e.Executor, e.Address, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

func lost(part *planv1.ExchangePart, err error) error {
	return &LostError{Attempt: part.GetAttemptId(), Executor: part.GetExecutorId(), Address: part.GetAddress(), Task: part.GetTask(), Err: err}
}
