package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/signet-io/signet/client"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1 // a statement failed, or what was asked for does not exist
	ExitUsage       = 2 // wrong arguments or configuration
	ExitUnreachable = 3 // no scheduler answers, or the embedded cluster does not start
	ExitCancelled   = 4 // cancelled: nothing of the statement is visible
	ExitUnknown     = 5 // the statement was submitted and its end is not known; it may commit
)

// exitError carries the code that an error ends the process with, and what to do about it.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

func withHint(code int, err error, hint string) error {
	return &exitError{code: code, err: err, hint: hint}
}

// errForced is the cause with which a second Ctrl-C ends the waiting.
var errForced = errors.New("interrupted a second time")

// errInterrupted ends work that has no job yet, or whose job no longer matters.
var errInterrupted = errors.New("interrupted")

// exitCode is the one place that maps errors to codes.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, client.ErrPending): // before any other: it wraps what ended the waiting
		return ExitUnknown
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, client.ErrUnreachable):
		return ExitUnreachable
	case errors.Is(err, client.ErrCancelled), errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return ExitCancelled
	default:
		return ExitFailed
	}
}

// report prints an error and the way out of it.
func report(w io.Writer, err error) {
	fmt.Fprintf(w, "error: %s\n", strings.TrimSpace(err.Error()))
	for _, h := range hints(err) {
		fmt.Fprintf(w, "hint: %s\n", h)
	}
}

func hints(err error) []string {
	var out []string
	var e *exitError
	if errors.As(err, &e) && e.hint != "" {
		return []string{e.hint}
	}
	var said *client.Error
	if errors.As(err, &said) && said.Hint != "" {
		out = append(out, said.Hint)
	}
	var p *client.PendingError
	switch {
	case errors.As(err, &p) && p.JobID != "":
		out = append(out, fmt.Sprintf("the statement may still commit; `signet job %s` tells how it ended", p.JobID))
	case errors.As(err, &p):
		out = append(out, "the statement may have run; `signet jobs` lists what the scheduler knows")
	case errors.Is(err, client.ErrUnreachable):
		out = append(out, "is a scheduler running there? `signet scheduler --config signet.yaml` starts one; without --scheduler, `signet sql` needs none")
	case errors.Is(err, client.ErrUnauthenticated):
		out = append(out, "pass the token with --token-file FILE or SIGNET_TOKEN_FILE")
	}
	return out
}
