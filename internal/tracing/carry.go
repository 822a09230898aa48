package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Name of the instrumentation, in every span.
const Name = "github.com/signet-io/signet"

// Keys of attributes that several processes set.
const (
	KeyJob      = attribute.Key("signet.job.id")
	KeyKind     = attribute.Key("signet.job.kind")
	KeyStage    = attribute.Key("signet.stage")
	KeyTask     = attribute.Key("signet.task")
	KeyAttempt  = attribute.Key("signet.attempt.id")
	KeyExecutor = attribute.Key("signet.executor.id")
	KeySink     = attribute.Key("signet.sink")
)

var propagator = propagation.TraceContext{}

// Carrier is the span of ctx in the form that travels: traceparent and, where there is one, tracestate. It is nil where ctx has no span.
func Carrier(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	m := propagation.MapCarrier{}
	propagator.Inject(ctx, m)
	return m
}

// FromCarrier puts a span that came from elsewhere into ctx, as the parent of what is started there. Unknown or damaged values change nothing.
func FromCarrier(ctx context.Context, m map[string]string) context.Context {
	if len(m) == 0 {
		return ctx
	}
	return propagator.Extract(ctx, propagation.MapCarrier(m))
}

// Parent is the traceparent of ctx; empty where it has no span.
func Parent(ctx context.Context) string { return Carrier(ctx)["traceparent"] }

// WithParent is FromCarrier for a traceparent alone.
func WithParent(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return FromCarrier(ctx, map[string]string{"traceparent": parent})
}
