package sdk

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/signet-io/signet/plugins/protocol"
)

func TestBind_PassesTheTraceAndNothingElse(t *testing.T) {
	outgoing := func(ctx context.Context) metadata.MD {
		md, _ := metadata.FromOutgoingContext(newHost(noConn{}, "lease-1").bind(ctx))
		return md
	}
	require.Equal(t, metadata.Pairs(protocol.LeaseKey, "lease-1"), outgoing(t.Context()))
	in := metadata.NewIncomingContext(t.Context(), metadata.Pairs("traceparent", "00-a-b-01", "tracestate", "x=y", "authorization", "canary", "baggage", "canary"))
	require.Equal(t, metadata.Pairs("traceparent", "00-a-b-01", "tracestate", "x=y", protocol.LeaseKey, "lease-1"), outgoing(in))
	twice := metadata.NewIncomingContext(t.Context(), metadata.Pairs("traceparent", "a", "traceparent", "b"))
	require.Equal(t, metadata.Pairs(protocol.LeaseKey, "lease-1"), outgoing(twice))
}
