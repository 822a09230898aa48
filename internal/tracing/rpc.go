package tracing

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// keys are the metadata that carry a span.
var keys = propagator.Fields()

// DialOptions make every call of a connection carry the span of its context.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return next(Outgoing(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return next(Outgoing(ctx), desc, cc, method, opts...)
		}),
	}
}

// Outgoing puts the span of ctx into the metadata of the calls made with it. Without a span nothing is sent.
func Outgoing(ctx context.Context) context.Context {
	for k, v := range Carrier(ctx) {
		ctx = metadata.AppendToOutgoingContext(ctx, k, v)
	}
	return ctx
}

// Incoming is the span that a call brought, as the parent of what its handler starts.
func Incoming(ctx context.Context) context.Context {
	md, ok := metadata.FromIncomingContext(ctx)
	if !ok {
		return ctx
	}
	m := map[string]string{}
	for _, k := range keys {
		if v := md.Get(k); len(v) == 1 {
			m[k] = v[0]
		}
	}
	return FromCarrier(ctx, m)
}

// ServerOptions make handlers see the span that their caller sent.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(Incoming(ctx), req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, &incoming{ss, Incoming(ss.Context())})
		}),
	}
}

type incoming struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // that is how gRPC hands it on
}

func (s *incoming) Context() context.Context { return s.ctx }
