package coordinator

import (
	"errors"
	"fmt"
)

// Why an event is refused. Every error of Step wraps one of them, or is an *AlreadyError.
var (
	// ErrFenced: cancelled, failed, or of another epoch; the job will never commit through this caller.
	ErrFenced = errors.New("fenced: the job is closed or belongs to a newer scheduler")
	// ErrNotReady: too early; not every task has an accepted manifest, or the commit has not started.
	ErrNotReady = errors.New("not ready")
	// ErrStarted: the step was taken before.
	ErrStarted = errors.New("already started")
	// ErrSealed: an attempt is sealed; wait for its outcome.
	ErrSealed = errors.New("an attempt is sealed and its outcome is awaited")
	// ErrUnsettled: the outcome is unknown; only landed, found or dead settle it.
	ErrUnsettled = errors.New("the outcome of a sent request is unknown")
	// ErrNoSeal: no attempt is sealed.
	ErrNoSeal = errors.New("no attempt is sealed")
	// ErrStale: about an attempt other than the sealed one.
	ErrStale = errors.New("not the sealed attempt")
	// ErrLost: another attempt of the task was accepted first.
	ErrLost = errors.New("another attempt of the task was accepted first")
	// ErrContent: the same attempt reported different content before.
	ErrContent = errors.New("the attempt reported other content before")
	// ErrNoTask: the job has no such task.
	ErrNoTask = errors.New("no such task")
	// ErrDuplicatePath: a data file was accepted before, or stands twice.
	ErrDuplicatePath = errors.New("duplicate path")
	// ErrNotEmpty: files were accepted, so there is something to commit.
	ErrNotEmpty = errors.New("there are files to commit")
	// ErrInvalid: the event itself is malformed.
	ErrInvalid = errors.New("invalid event")
	// ErrContradiction: the event contradicts a final state; a defect or a tampered table.
	ErrContradiction = errors.New("contradicts what is final")
	// ErrCorrupt: a record that no machine wrote.
	ErrCorrupt = errors.New("corrupt commit record")
)

// AlreadyError refuses an event because the job has committed; it says where.
type AlreadyError struct {
	Version  string
	Location string
}

func (e *AlreadyError) Error() string {
	return fmt.Sprintf("the job has committed version %q (%s)", e.Version, e.Location)
}

// EndedError refuses an event because the job was cancelled or has failed.
type EndedError struct{ Failure Failure }

func (e *EndedError) Error() string {
	if e.Failure.Cancelled {
		return "the job was cancelled: " + e.Failure.Reason
	}
	return "the job has failed: " + e.Failure.Reason
}

// Unwrap makes an ended job a fenced one.
func (e *EndedError) Unwrap() error { return ErrFenced }

// LostError tells the loser of a task who won.
type LostError struct {
	Task            int
	Attempt, Winner string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("attempt %s of task %d lost: attempt %s was accepted first", e.Attempt, e.Task, e.Winner)
}

// Unwrap makes it an ErrLost.
func (e *LostError) Unwrap() error { return ErrLost }
