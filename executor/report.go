package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/internal/mutant"
)

// reportTimeout bounds one try of a report.
const reportTimeout = 2 * time.Minute

// report delivers a write task's manifest, again and again until there is an answer (S71, T5). A refusal ends the attempt as well as an
// acceptance does; its files stay for the scheduler to sweep, for it alone knows whether an earlier report of them was accepted.
func (e *Executor) report(a *attempt, files []*planv1.DataFile, replaced []*planv1.ReplacedFile) {
	w := a.task.GetWrite()
	chunks, err := manifest.Encode(&planv1.ManifestHeader{
		JobId: a.ref.GetJobId(), Stage: a.ref.GetStage(), Task: a.ref.GetTask(), AttemptId: a.ref.GetAttemptId(), Epoch: a.ref.GetEpoch(),
		TableUuid: w.GetSpec().GetTableUuid(), SchemaId: w.GetSpec().GetSchemaId(), SpecId: w.GetSpec().GetSpecId(), Prefix: w.GetPrefix(),
	}, files, replaced...)
	if err == nil {
		err = fault.Hit("executor.report.before")
	}
	if err != nil {
		e.fail(a, planError(a.ctx, nil, e.scratch.Path, err))
		return
	}
	if a.ctx.Err() != nil { // cancelled at the last moment: nothing has left yet
		e.fail(a, planError(a.ctx, nil, e.scratch.Path, a.ctx.Err()))
		return
	}
	a.reported.Store(true)
	pause := backoff{e.cfg.MinBackoff, e.cfg.MaxBackoff, 0}
	for e.life.Err() == nil {
		answer, err := e.reportOnce(chunks)
		if err == nil {
			if !answer.GetAccepted() {
				e.about(a).Info("manifest refused", "reason", answer.GetReason())
			}
			e.forget(a.ref.GetAttemptId())
			return
		}
		if status.Code(err) == codes.InvalidArgument { // no repetition will change that
			e.end(a, &executorv1.TaskStatus{Error: &planv1.Error{
				Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: fmt.Sprintf("the scheduler cannot read the task manifest: %s", status.Convert(err).Message()),
			}})
			return
		}
		if mutant.On("executor/manifest-sent-once") {
			return
		}
		d := pause.next()
		e.about(a).Warn("task manifest not acknowledged; sending it again", "error", err, "pause", d)
		sleep(e.life, d)
	}
}

func (e *Executor) reportOnce(chunks []*planv1.ManifestChunk) (*executorv1.ReportManifestResponse, error) {
	ctx, cancel := context.WithTimeout(e.life, reportTimeout)
	defer cancel()
	stream, err := e.client.ReportManifest(e.auth(ctx))
	if err != nil {
		return nil, err
	}
	for _, c := range chunks {
		if err := stream.Send(&executorv1.ReportManifestRequest{Chunk: c}); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		} else if err != nil {
			break // the reason is in the answer
		}
	}
	answer, err := stream.CloseAndRecv()
	if err != nil {
		return nil, err
	}
	// As if the answer had been lost: the same report comes again.
	return answer, fault.Hit("executor.report.after-send")
}

// transferError is a failure to deliver a result; the query itself is right and may run again.
type transferError struct{ err error }

func (t *transferError) Error() string {
	return "the scheduler did not take the result: " + status.Convert(t.err).Message()
}

func (t *transferError) Unwrap() error { return t.err }

func outputError(err error) error { return &transferError{err} }
