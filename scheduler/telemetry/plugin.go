package telemetry

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/internal/tracing"
)

const (
	sinkService = "/signet.sink.v1.Sink/"
	hostService = "/signet.host.v1."
)

// PluginCalls measures the calls of one sink plugin: a count and a time each, and a span below the one of the call's context, which
// travels to the plugin as traceparent. Calls of go-plugin's own services pass untouched.
func PluginCalls(m *Metrics, t trace.Tracer, sink string) []grpc.DialOption {
	p := &pluginCalls{m, t, sink}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(p.unary), grpc.WithChainStreamInterceptor(p.stream)}
}

type pluginCalls struct {
	m      *Metrics
	tracer trace.Tracer
	sink   string
}

// begin starts a call. end is called with its error, more than once if need be.
func (p *pluginCalls) begin(ctx context.Context, name string) (_ context.Context, end func(error)) {
	start := time.Now()
	// A call outside of any trace is not worth one of its own: probes, descriptions.
	span := trace.SpanFromContext(context.Background())
	if trace.SpanContextFromContext(ctx).IsValid() {
		ctx, span = p.tracer.Start(ctx, "sink "+name, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(append(rpcMethod("signet.sink.v1.Sink", name), tracing.KeySink.String(p.sink))...))
		ctx = tracing.Outgoing(ctx)
	}
	var once sync.Once
	return ctx, func(err error) {
		once.Do(func() {
			code := status.Code(err)
			p.m.calls.WithLabelValues(p.sink, name, code.String()).Inc()
			p.m.callTime.WithLabelValues(p.sink, name).Observe(time.Since(start).Seconds())
			endSpan(span, err)
		})
	}
}

func rpcMethod(service, name string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", name)}
}

// endSpan says how a call ended by its code alone: messages may quote what users wrote.
func endSpan(span trace.Span, err error) {
	if code := status.Code(err); code != codes.OK {
		span.SetStatus(otelcodes.Error, code.String())
	}
	span.End()
}

func (p *pluginCalls) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name, ok := strings.CutPrefix(method, sinkService)
	if !ok {
		return next(ctx, method, req, reply, cc, opts...)
	}
	ctx, end := p.begin(ctx, name)
	err := next(ctx, method, req, reply, cc, opts...)
	end(err)
	return err
}

func (p *pluginCalls) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	name, ok := strings.CutPrefix(method, sinkService)
	if !ok {
		return next(ctx, desc, cc, method, opts...)
	}
	caller := ctx
	ctx, end := p.begin(ctx, name)
	s, err := next(ctx, desc, cc, method, opts...)
	if err != nil {
		end(err)
		return nil, err
	}
	// Whoever gives up a stream cancels its context.
	unhook := context.AfterFunc(caller, func() { end(status.FromContextError(caller.Err()).Err()) })
	return &measured{s, !desc.ServerStreams, func(err error) { unhook(); end(err) }}, nil
}

// measured is a stream that ends with its last message.
type measured struct {
	grpc.ClientStream
	one bool // exactly one message comes back
	end func(error)
}

func (s *measured) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case errors.Is(err, io.EOF):
		s.end(nil)
	case err != nil, s.one:
		s.end(err)
	}
	return err
}

// HostCalls gives what a plugin asks of the host a span, below the one that the plugin passes on.
func HostCalls(t trace.Tracer, sink string) []grpc.ServerOption {
	begin := func(ctx context.Context, method string) (context.Context, func(error)) {
		name, ok := strings.CutPrefix(method, hostService)
		if ctx = tracing.Incoming(ctx); !ok || !trace.SpanContextFromContext(ctx).IsValid() || strings.HasPrefix(name, "Log/") || strings.HasPrefix(name, "Progress/") {
			return ctx, func(error) {}
		}
		service, call, _ := strings.Cut(name, "/")
		ctx, span := t.Start(ctx, "host "+service+"."+call, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(append(rpcMethod("signet.host.v1."+service, call), tracing.KeySink.String(sink))...))
		return ctx, func(err error) { endSpan(span, err) }
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			ctx, end := begin(ctx, info.FullMethod)
			res, err := next(ctx, req)
			end(err)
			return res, err
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			ctx, end := begin(ss.Context(), info.FullMethod)
			err := next(srv, &within{ss, ctx})
			end(err)
			return err
		}),
	}
}

type within struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // that is how gRPC hands it on
}

func (s *within) Context() context.Context { return s.ctx }
