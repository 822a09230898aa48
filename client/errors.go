package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// Sentinels for errors.Is.
var (
	// ErrUnreachable: no scheduler answered, and nothing was submitted.
	ErrUnreachable = errors.New("scheduler unreachable")
	// ErrCancelled: the job ended Cancelled; nothing of it is visible.
	ErrCancelled = errors.New("cancelled")
	// ErrNotFound: the scheduler knows no such job.
	ErrNotFound = errors.New("not found")
	// ErrUnauthenticated: the token is missing or wrong.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrPending: the job's end is not known; see PendingError.
	ErrPending = errors.New("outcome unknown")
)

// Error is what the scheduler said: a job's error, or the refusal of a call.
type Error struct {
	Code    string // stable name: user, not-found, conflict, cancelled, internal, ...
	Message string
	Hint    string // what to do; may be empty
	JobID   string // empty where there was no job
	kind    error  // a sentinel, or nil
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// Is lets errors.Is find the sentinel of the error's kind.
func (e *Error) Is(target error) bool { return e.kind != nil && target == e.kind }

// PendingError says that a job was submitted, or may have been, and that its end is not known. It is not a failure: the statement may
// still commit. Asking again, by job id or by submitting under the same key, is safe.
type PendingError struct {
	JobID          string // empty: the answer to the submission itself was lost
	IdempotencyKey string
	Phase          string // the last phase seen, resolving for instance
	Cause          error
}

func (e *PendingError) Error() string {
	var b strings.Builder
	if e.JobID == "" {
		b.WriteString("the statement was sent, but the answer was lost")
	} else {
		fmt.Fprintf(&b, "job %s was submitted, but its end is not known", e.JobID)
	}
	if e.Phase != "" {
		fmt.Fprintf(&b, " (phase %s)", e.Phase)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

func (e *PendingError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrPending}
	}
	return []error{ErrPending, e.Cause}
}

// jobError turns a terminal job into nil or its error.
func jobError(job *schedulerv1.Job) error {
	var kind error
	switch job.GetState() {
	case schedulerv1.JobState_JOB_STATE_SUCCESSFUL:
		return nil
	case schedulerv1.JobState_JOB_STATE_CANCELLED:
		kind = ErrCancelled
	}
	e := &Error{Code: job.GetError().GetCode(), Message: job.GetError().GetMessage(), Hint: job.GetError().GetHint(), JobID: job.GetJobId(), kind: kind}
	if e.Code == "" {
		e.Code = "internal"
		if kind != nil {
			e.Code = "cancelled"
		}
	}
	if e.Message == "" {
		e.Message = "the job ended " + StateName(job.GetState()) + " without a reason"
		if kind != nil {
			e.Message = "the job was cancelled"
		}
	}
	return e
}

// callError maps a gRPC error: the one place where codes are read. A JobError among the status details is the scheduler's own word.
func callError(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	e := &Error{Code: codeName(st.Code()), Message: st.Message()}
	switch st.Code() {
	case codes.Canceled:
		return fmt.Errorf("%w: %s", context.Canceled, st.Message())
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %s", context.DeadlineExceeded, st.Message())
	case codes.Unavailable:
		return fmt.Errorf("%w: %s", ErrUnreachable, st.Message())
	case codes.NotFound:
		e.kind = ErrNotFound
	case codes.Unimplemented: // some other gRPC server
		return fmt.Errorf("%w: what listens there is no Signet scheduler (%s); is it the port of Flight SQL?", ErrUnreachable, st.Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		e.kind = ErrUnauthenticated
	}
	for _, d := range st.Details() {
		if je, ok := d.(*schedulerv1.JobError); ok {
			e.Code, e.Message, e.Hint = je.GetCode(), je.GetMessage(), je.GetHint()
		}
	}
	return e
}

// codeName spells a gRPC code as the job errors spell theirs.
func codeName(c codes.Code) string {
	var b strings.Builder
	for i, r := range c.String() {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// StateName spells a job state as people read it.
func StateName(s schedulerv1.JobState) string {
	n := strings.TrimPrefix(s.String(), "JOB_STATE_")
	return n[:1] + strings.ToLower(n[1:])
}

// Terminal says whether a job in this state can still change.
func Terminal(s schedulerv1.JobState) bool {
	switch s {
	case schedulerv1.JobState_JOB_STATE_SUCCESSFUL, schedulerv1.JobState_JOB_STATE_FAILED, schedulerv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}
