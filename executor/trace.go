package executor

import (
	"context"

	"go.opentelemetry.io/otel"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/tracing"
)

// traced begins the span of a task's work, below the attempt's that the scheduler sent with it. The returned function ends it. Without a trace
// nothing is made up.
func traced(t *planv1.Task, executor string) func(*planv1.Error) {
	ctx := tracing.FromCarrier(context.Background(), t.GetTrace())
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return func(*planv1.Error) {}
	}
	_, span := otel.Tracer(tracing.Name).Start(ctx, "run task", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		tracing.KeyJob.String(t.GetJobId()), tracing.KeyStage.Int(int(t.GetStage())), tracing.KeyTask.Int(int(t.GetTask())), tracing.KeyAttempt.String(t.GetAttemptId()),
		tracing.KeyExecutor.String(executor)))
	return func(err *planv1.Error) {
		if err != nil { // its message may quote the statement
			span.SetStatus(otelcodes.Error, err.GetClass().String())
		}
		span.End()
	}
}
