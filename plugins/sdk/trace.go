package sdk

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// passTrace lets what a sink asks of the host appear below the host's call of the sink: the W3C trace headers of the call go on with it.
func passTrace(ctx context.Context) context.Context {
	in, ok := metadata.FromIncomingContext(ctx)
	if !ok {
		return ctx
	}
	for _, key := range []string{"traceparent", "tracestate"} {
		if v := in.Get(key); len(v) == 1 {
			ctx = metadata.AppendToOutgoingContext(ctx, key, v[0])
		}
	}
	return ctx
}
