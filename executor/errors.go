package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/manifest"
)

// errKilled is the cause of contexts that were cancelled from outside; the text after it is the reason.
var errKilled = errors.New("cancelled")

// planError says what an error of a task means for its job.
func planError(ctx context.Context, inst *duckdb.Instance, scratch string, err error) *planv1.Error {
	if ctx.Err() != nil {
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_KILLED, Message: context.Cause(ctx).Error()}
	}
	if re := (*upload.ResourceError)(nil); errors.As(err, &re) {
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_RESOURCE, Message: re.Error(), Hint: re.Hint}
	}
	if perr := storeError(err); perr != nil {
		return perr
	}
	if isUser(err) {
		return duckdb.PlanError(err)
	}
	if le := (*exchangeclient.LostError)(nil); errors.As(err, &le) {
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_FETCH, Message: le.Error(), LostAttempt: le.Attempt}
	}
	if errors.Is(err, exchangeclient.ErrNoTLS) {
		return &planv1.Error{
			Class: planv1.ErrorClass_ERROR_CLASS_RESOURCE, Message: err.Error(),
			Hint: "start every executor that runs beside others on other machines with --tls-ca FILE or --tls",
		}
	}
	if te := (*transferError)(nil); errors.As(err, &te) {
		if status.Code(te.err) == codes.ResourceExhausted {
			return &planv1.Error{
				Class: planv1.ErrorClass_ERROR_CLASS_RESOURCE, Message: te.Error(),
				Hint: "free space in the scheduler's data directory, or raise its limit of open files; the message says which it wants",
			}
		}
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: te.Error()}
	}
	if errors.Is(err, manifest.ErrTooLarge) {
		return &planv1.Error{
			Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: "the description of a data file is too large to be committed: " + err.Error(),
			Hint: "partition by shorter values, or limit the table's metrics",
		}
	}
	if errors.Is(err, upload.ErrPrefix) { // no other executor could write there either
		return refusedPlace(err)
	}
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	var errno syscall.Errno
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return noSpace(scratch, err.Error())
	case errors.Is(err, fault.ErrInjected), errors.As(err, &pathErr), errors.As(err, &linkErr), errors.As(err, &errno):
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: err.Error()}
	}
	var out *planv1.Error
	if inst != nil {
		out = inst.PlanError(err)
	} else {
		out = duckdb.PlanError(err)
	}
	if out.GetClass() == planv1.ErrorClass_ERROR_CLASS_RESOURCE && out.GetHint() == "" {
		return noSpace(scratch, out.GetMessage())
	}
	return out
}

// refusedPlace is for what the plan says, which no other attempt changes.
func refusedPlace(err error) *planv1.Error {
	return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: err.Error(), Hint: "check the table's location and its property write.data.path"}
}

// unfit is why a task was not begun. One of another session may fit elsewhere; a place for its files that is none will not become one.
func unfit(err error) *planv1.Error {
	if errors.Is(err, upload.ErrPrefix) {
		return refusedPlace(err)
	}
	return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: err.Error()}
}

func isUser(err error) bool {
	var ue *duckdb.UserError
	return errors.As(err, &ue)
}

func noSpace(dir, message string) *planv1.Error {
	out := &planv1.Error{
		Class: planv1.ErrorClass_ERROR_CLASS_RESOURCE, Message: message,
		Hint: "free space in " + dir + ", or give the executor another scratch directory",
	}
	if free, err := upload.Free(dir); err == nil {
		out.Message = fmt.Sprintf("%s (scratch %s: %d bytes free)", message, dir, free)
	}
	return out
}
