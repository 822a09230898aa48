package client

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/signet-io/signet/internal/tracing"
)

// startSpan begins the span of a statement, with the process's own provider: a program that has set up OpenTelemetry sees its statements,
// and the job below each, in its own traces. The statement's text is not in it.
func startSpan(ctx context.Context) (context.Context, func(error)) {
	ctx, span := otel.Tracer(tracing.Name).Start(ctx, "signet statement", trace.WithSpanKind(trace.SpanKindClient))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(otelcodes.Error, errorCode(err))
		}
		span.End()
	}
}

func spanJob(ctx context.Context, id string) {
	trace.SpanFromContext(ctx).SetAttributes(tracing.KeyJob.String(id))
}

// errorCode says what went wrong without the words of it, which may quote the statement.
func errorCode(err error) string {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, ErrPending):
		return "pending"
	case errors.Is(err, ErrUnreachable):
		return "unreachable"
	}
	return "error"
}
