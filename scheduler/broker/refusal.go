package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/objects"
)

// Kinds of refusal, short.
const (
	kindConflict  = hostv1.RefusalKind_REFUSAL_KIND_CONFLICT
	kindUnknown   = hostv1.RefusalKind_REFUSAL_KIND_UNKNOWN
	kindPermanent = hostv1.RefusalKind_REFUSAL_KIND_PERMANENT
	kindAlready   = hostv1.RefusalKind_REFUSAL_KIND_ALREADY
	kindFenced    = hostv1.RefusalKind_REFUSAL_KIND_FENCED
	kindRetryable = hostv1.RefusalKind_REFUSAL_KIND_RETRYABLE
	kindNotFound  = hostv1.RefusalKind_REFUSAL_KIND_NOT_FOUND
	kindExists    = hostv1.RefusalKind_REFUSAL_KIND_EXISTS
)

// Refusal is the error of every call that the broker refuses.
type Refusal struct {
	Kind     hostv1.RefusalKind
	Message  string
	Version  string
	Location string
	code     codes.Code
}

func (r *Refusal) Error() string { return r.Message }

// refusalCodes maps kinds to gRPC codes. A permanent refusal is PermissionDenied unless the refusal says otherwise.
var refusalCodes = map[hostv1.RefusalKind]codes.Code{
	kindConflict:  codes.Aborted,
	kindUnknown:   codes.Unknown,
	kindPermanent: codes.PermissionDenied,
	kindAlready:   codes.AlreadyExists,
	kindFenced:    codes.FailedPrecondition,
	kindRetryable: codes.Unavailable,
	kindNotFound:  codes.NotFound,
	kindExists:    codes.AlreadyExists,
}

// GRPCStatus makes the refusal a status with itself as the detail.
func (r *Refusal) GRPCStatus() *status.Status {
	code := r.code
	if code == codes.OK {
		code = refusalCodes[r.Kind]
	}
	st := status.New(code, r.Message)
	if d, err := st.WithDetails(&hostv1.Refusal{Kind: r.Kind, Message: r.Message, Version: r.Version, Location: r.Location}); err == nil {
		return d
	}
	return st
}

func refuse(kind hostv1.RefusalKind, format string, a ...any) *Refusal {
	return &Refusal{Kind: kind, Message: fmt.Sprintf(format, a...)}
}

// invalid refuses a request that no sink in order would make.
func invalid(format string, a ...any) *Refusal {
	return &Refusal{Kind: kindPermanent, Message: fmt.Sprintf(format, a...), code: codes.InvalidArgument}
}

// unauthenticated refuses a call without a live lease. It is the same whatever was wrong with the lease.
func unauthenticated() *Refusal {
	return &Refusal{Kind: kindFenced, Message: "no such lease: it is missing, was closed, or belongs to an earlier scheduler", code: codes.Unauthenticated}
}

func alreadyAt(version, location string) *Refusal {
	return &Refusal{Kind: kindAlready, Message: "the job has committed: version " + version, Version: version, Location: location}
}

// toRefusal gives every error that leaves the broker its kind. A definite answer of a catalog is passed on as it is, because it tells the user
// what to do. Of other causes the plugin learns nothing: they may name hosts and paths. op says what failed, and the log has the rest.
func toRefusal(op string, err error) error {
	if err == nil {
		return nil
	}
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	var done *AlreadyError
	if errors.As(err, &done) {
		return alreadyAt(done.Version, done.Location)
	}
	for _, m := range refusals {
		if !errors.Is(err, m.err) {
			continue
		}
		if m.telling {
			return refuse(m.kind, "%s: %s", op, clip(err.Error(), maxLogValue))
		}
		return refuse(m.kind, "%s: %s", op, m.err)
	}
	if store := new(objects.Error); errors.As(err, &store) {
		return refuse(kindRetryable, "%s failed: %s", op, storeTrouble(store))
	}
	var errno syscall.Errno // which says what is wrong with the storage, and names nothing
	switch {
	case !errors.As(err, &errno):
		return refuse(kindRetryable, "%s failed", op)
	case errors.Is(errno, syscall.EROFS), errors.Is(errno, fs.ErrPermission):
		return refuse(kindPermanent, "%s: %s", op, errno)
	}
	return refuse(kindRetryable, "%s failed: %s", op, errno)
}

// storeTrouble is what an object store said, without the names of hosts and objects.
func storeTrouble(e *objects.Error) string {
	text := "the object store did not answer as it should"
	for _, known := range []error{objects.ErrDenied, objects.ErrExpired, objects.ErrSkew, objects.ErrNoBucket, objects.ErrRegion, objects.ErrBusy, objects.ErrUnknown} {
		if errors.Is(e, known) {
			text = "the object store: " + known.Error()
			break
		}
	}
	if e.Code != "" {
		text += " (" + clip(e.Code, maxLogValue) + ")"
	}
	if e.Hint != "" {
		text += "; " + clip(e.Hint, maxLogValue)
	}
	return text
}

// refusals maps sentinels to kinds, the more telling first.
var refusals = []struct {
	err     error
	kind    hostv1.RefusalKind
	telling bool // its text is meant for the user
}{
	{storage.ErrOutside, kindPermanent, false},
	{storage.ErrUnsupported, kindPermanent, false},
	{storage.ErrNotFound, kindNotFound, false},
	{storage.ErrExists, kindExists, false},
	{storage.ErrChanged, kindConflict, false},
	{coordinator.ErrFenced, kindFenced, false},
	{coordinator.ErrUnsettled, kindUnknown, false},
	{coordinator.ErrSealed, kindUnknown, false},
	{coordinator.ErrInvalid, kindPermanent, false},
	{coordinator.ErrStale, kindPermanent, false},
	{coordinator.ErrNoSeal, kindPermanent, false},
	{coordinator.ErrContradiction, kindPermanent, false},
	{catalog.ErrNotFound, kindNotFound, true},
	{catalog.ErrExists, kindExists, true},
	{catalog.ErrConflict, kindConflict, true},
	{catalog.ErrPermanent, kindPermanent, true},
	{context.Canceled, kindRetryable, false},
	{context.DeadlineExceeded, kindRetryable, false},
}
