package scheduler

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/tracing"
	"github.com/signet-io/signet/scheduler/journal"
)

// A job's trace: the client's span, below it "job", below that the steps, the attempts, and the calls of plugins with what they ask of the
// host. The id of the job's span is in its record, so that a job that goes on after a restart stays in its trace.

// arrival is a submission on its way in.
type arrival struct {
	span   trace.Span
	parent string
}

// arriving starts the span of the job that a call may make.
func (s *Server) arriving(ctx context.Context) (context.Context, *arrival) {
	ctx, span := s.views.tracer.Start(ctx, "job", trace.WithSpanKind(trace.SpanKindServer))
	return ctx, &arrival{span, tracing.Parent(ctx)}
}

// mark puts the trace into the record of a new job.
func (a *arrival) mark(rec *journal.Job) { rec.Trace = a.parent }

// submitted hands the span to the job that was made, if one was.
func (a *arrival) submitted(j *job, existing bool, err error) {
	if err != nil || existing {
		if j != nil {
			a.span.SetAttributes(tracing.KeyJob.String(j.id), attribute.Bool("signet.job.existing", existing))
		}
		if err != nil {
			a.span.SetStatus(otelcodes.Error, asFailure(err).Code)
		}
		a.span.End()
		return
	}
	a.span.SetAttributes(tracing.KeyJob.String(j.id))
	v := &j.view
	j.mu.Lock()
	rec := j.rec
	j.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.span = a.span
	if !v.ended.IsZero() { // it was quicker than its answer
		v.endJobSpan(rec)
	}
}

// endJobSpan is called with mu held.
func (v *jobView) endJobSpan(rec journal.Job) {
	if v.span == nil {
		return
	}
	v.span.SetName(strings.TrimSpace("job " + rec.Kind))
	v.span.SetAttributes(tracing.KeyKind.String(rec.Kind), attribute.String("signet.job.state", string(rec.State)))
	if rec.Error != nil {
		v.span.SetStatus(otelcodes.Error, rec.Error.Code) // the message may quote the statement
	}
	v.span.End(trace.WithTimestamp(rec.Finished))
	v.span = nil
}

// traced puts a job's span into the context of its life.
func traced(ctx context.Context, rec journal.Job) context.Context {
	return tracing.WithParent(ctx, rec.Trace)
}

// traceID is the trace of a traceparent: its second part.
func traceID(parent string) string {
	if parts := strings.Split(parent, "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

// step is a part of the job's work that has just ended. Called with the job's lock held.
func (v *jobView) step(name string, since time.Time) {
	if v.v == nil {
		return
	}
	if name == "commit" {
		v.v.metrics.CommitTook(time.Since(since))
	}
	if !trace.SpanContextFromContext(v.j.ctx).IsValid() {
		return
	}
	_, span := v.v.tracer.Start(v.j.ctx, name, trace.WithTimestamp(since), trace.WithAttributes(tracing.KeyJob.String(v.j.id)))
	span.End()
}

// startAttempt is the span of an attempt, nil without a trace; its task carries it to the executor.
func (v *jobView) startAttempt(a *attemptView, t *planv1.Task) trace.Span {
	if !trace.SpanContextFromContext(v.j.ctx).IsValid() {
		return nil
	}
	ctx, span := v.v.tracer.Start(v.j.ctx, "task", trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(a.launched), trace.WithAttributes(
		tracing.KeyJob.String(v.j.id), tracing.KeyStage.Int(int(t.Stage)), tracing.KeyTask.Int(int(t.Task)), tracing.KeyAttempt.String(t.AttemptId)))
	t.Trace = tracing.Carrier(ctx)
	return span
}

func endSpan(span trace.Span, executor, failed string, rows, bytes int64) {
	if span == nil {
		return
	}
	span.SetAttributes(tracing.KeyExecutor.String(executor), attribute.Int64("signet.rows", rows), attribute.Int64("signet.bytes", bytes))
	if failed != "" {
		span.SetStatus(otelcodes.Error, failed)
	}
	span.End()
}
