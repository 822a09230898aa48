package executor

import (
	"context"
	"fmt"
	"os"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/internal/fault"
)

// checkPrefix accepts <location>/<job>/<stage>/<task>/<attempt> of this very attempt: nothing else is written to, and nothing else is
// deleted.
func checkPrefix(prefix string, ref *executorv1.AttemptRef) error {
	path, err := prefix, upload.CheckRemote(prefix)
	if !upload.IsRemote(prefix) {
		path, err = upload.LocalPath(prefix)
	}
	if err != nil {
		return err
	}
	want := fmt.Sprintf("/%s/%d/%d/%s", ref.GetJobId(), ref.GetStage(), ref.GetTask(), ref.GetAttemptId())
	if ref.GetJobId() == "" || ref.GetAttemptId() == "" || !strings.HasSuffix(path, want) || path == want {
		return fmt.Errorf("prefix %s is not that of attempt %s: want a path that ends in %s", prefix, ref.GetAttemptId(), want)
	}
	return nil
}

// sweep removes what an attempt left, after it has ended here (S72). It confirms with a status, which the scheduler acknowledges.
func (e *Executor) sweep(req *executorv1.SweepPrefix) {
	e.work.Go(func() {
		ref := req.GetAttempt()
		if err := checkPrefix(req.GetPrefix(), ref); err != nil {
			e.log.Error("refusing to sweep", "error", err)
			return
		}
		a := e.lookup(ref.GetAttemptId())
		if a != nil {
			a.cancel(fmt.Errorf("%w: its files are swept", errKilled))
			select {
			case <-a.done:
			case <-e.life.Done():
				return
			}
		}
		ctx := context.WithoutCancel(e.life)
		err := fault.Hit("executor.sweep.before")
		if err == nil {
			err = os.RemoveAll(e.scratch.attemptDir(ref.GetAttemptId()))
		}
		n := 0
		if err == nil {
			n, err = e.storeFor(ref, req.GetPrefix()).RemovePrefix(ctx, req.GetPrefix())
		}
		if err != nil {
			e.log.Warn("sweep failed; the scheduler will ask again", "prefix", req.GetPrefix(), "error", err)
			return
		}
		e.log.Info("swept", "prefix", req.GetPrefix(), "files", n)
		e.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: &executorv1.TaskStatus{
			Attempt: ref, Error: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_KILLED, Message: "swept"},
		}}})
	})
}
