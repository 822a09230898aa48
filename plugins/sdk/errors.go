package sdk

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hostv1 "github.com/signet-io/signet/api/host/v1"
)

// Kinds of refusal, short.
const (
	Conflict  = hostv1.RefusalKind_REFUSAL_KIND_CONFLICT
	Unknown   = hostv1.RefusalKind_REFUSAL_KIND_UNKNOWN
	Permanent = hostv1.RefusalKind_REFUSAL_KIND_PERMANENT
	Already   = hostv1.RefusalKind_REFUSAL_KIND_ALREADY
	Fenced    = hostv1.RefusalKind_REFUSAL_KIND_FENCED
	Retryable = hostv1.RefusalKind_REFUSAL_KIND_RETRYABLE
	NotFound  = hostv1.RefusalKind_REFUSAL_KIND_NOT_FOUND
	Exists    = hostv1.RefusalKind_REFUSAL_KIND_EXISTS
)

// Sentinels for errors.Is: each matches a RefusalError of its kind.
var (
	ErrConflict  = errors.New("conflict")
	ErrUnknown   = errors.New("outcome unknown")
	ErrPermanent = errors.New("refused")
	ErrAlready   = errors.New("already committed")
	ErrFenced    = errors.New("lease is fenced")
	ErrRetryable = errors.New("nothing was sent")
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	// ErrNoHost is returned by every Host method outside a call, or before the host has connected.
	ErrNoHost = errors.New("no host: use sdk.HostFrom with the context of a sink's method")
)

// kinds is the one table between refusal kinds, sentinels and gRPC codes.
var kinds = map[hostv1.RefusalKind]struct {
	err  error
	code codes.Code
}{
	Conflict:  {ErrConflict, codes.Aborted},
	Unknown:   {ErrUnknown, codes.Unknown},
	Permanent: {ErrPermanent, codes.FailedPrecondition},
	Already:   {ErrAlready, codes.AlreadyExists},
	Fenced:    {ErrFenced, codes.FailedPrecondition},
	Retryable: {ErrRetryable, codes.Unavailable},
	NotFound:  {ErrNotFound, codes.NotFound},
	Exists:    {ErrExists, codes.AlreadyExists},
}

// RefusalError is a definite answer of the host, or of a sink, with its kind. Unknown is the one kind that is not definite.
type RefusalError struct {
	Kind     hostv1.RefusalKind
	Message  string
	Version  string // Already: where the job's commit is
	Location string
}

// Refuse is how a sink refuses: Refuse(Permanent, "column %q has type %s, which this format cannot store; cast it to VARCHAR", ...).
func Refuse(kind hostv1.RefusalKind, format string, args ...any) error {
	return &RefusalError{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func (e *RefusalError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	if k, ok := kinds[e.Kind]; ok {
		return k.err.Error()
	}
	return "refused: " + e.Kind.String()
}

// Is matches the sentinel of the error's kind.
func (e *RefusalError) Is(target error) bool {
	k, ok := kinds[e.Kind]
	return ok && k.err == target
}

// GRPCStatus carries the refusal over the wire as a status detail.
func (e *RefusalError) GRPCStatus() *status.Status {
	code := codes.Unknown
	if k, ok := kinds[e.Kind]; ok {
		code = k.code
	}
	st, err := status.New(code, e.Error()).WithDetails(&hostv1.Refusal{Kind: e.Kind, Message: e.Message, Version: e.Version, Location: e.Location})
	if err != nil {
		return status.New(code, e.Error())
	}
	return st
}

// FromStatus gives the RefusalError in a gRPC error, or the error as it is.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	if own := new(RefusalError); errors.As(err, &own) {
		return err
	}
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*hostv1.Refusal); ok {
			return &RefusalError{Kind: r.GetKind(), Message: r.GetMessage(), Version: r.GetVersion(), Location: r.GetLocation()}
		}
	}
	return err
}

type refusalKind = hostv1.RefusalKind
