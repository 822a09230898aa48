package tracing_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/tracing"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestCarrier_SurvivesTheJourney(t *testing.T) {
	require.Nil(t, tracing.Carrier(t.Context()))
	require.Empty(t, tracing.Parent(t.Context()))
	ctx := tracing.WithParent(t.Context(), parent)
	require.Equal(t, parent, tracing.Parent(ctx))
	require.Equal(t, map[string]string{"traceparent": parent}, tracing.Carrier(ctx))
	m := map[string]string{"traceparent": parent, "tracestate": "vendor=x", "baggage": "secret=canary"}
	require.Equal(t, map[string]string{"traceparent": parent, "tracestate": "vendor=x"}, tracing.Carrier(tracing.FromCarrier(t.Context(), m)))
	for _, bad := range []string{"", "x", "00-0-0-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", parent + "\r\nx: y"} {
		require.Empty(t, tracing.Parent(tracing.WithParent(t.Context(), bad)), bad)
	}
}

type echo struct {
	schedulerv1.UnimplementedSchedulerServer
	seen chan string
}

func (e *echo) GetInfo(ctx context.Context, _ *schedulerv1.GetInfoRequest) (*schedulerv1.GetInfoResponse, error) {
	e.seen <- tracing.Parent(ctx)
	return &schedulerv1.GetInfoResponse{}, nil
}

func (e *echo) Watch(_ *schedulerv1.WatchRequest, st grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
	e.seen <- tracing.Parent(st.Context())
	return nil
}

func TestCalls_CarryTheSpanOfTheirContext(t *testing.T) {
	l, e := bufconn.Listen(1<<20), &echo{seen: make(chan string, 1)}
	g := grpc.NewServer(tracing.ServerOptions()...)
	schedulerv1.RegisterSchedulerServer(g, e)
	go func() { _ = g.Serve(l) }()
	defer g.Stop()
	conn, err := grpc.NewClient("passthrough:///mem", append(tracing.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	require.NoError(t, err)
	defer conn.Close()
	c := schedulerv1.NewSchedulerClient(conn)
	call := func(ctx context.Context) (string, string) {
		_, err := c.GetInfo(ctx, &schedulerv1.GetInfoRequest{})
		require.NoError(t, err)
		unary := <-e.seen
		st, err := c.Watch(ctx, &schedulerv1.WatchRequest{})
		require.NoError(t, err)
		_, _ = st.Recv()
		return unary, <-e.seen
	}
	unary, stream := call(t.Context())
	require.Empty(t, unary+stream)

	ctx, span := sdktrace.NewTracerProvider().Tracer("t").Start(t.Context(), "s")
	unary, stream = call(ctx)
	require.Contains(t, unary, span.SpanContext().TraceID().String())
	require.Equal(t, unary, stream)

	twice := metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent, "traceparent", parent)
	unary, _ = call(twice)
	require.Empty(t, unary, "which of two is meant is not guessed")
	require.False(t, trace.SpanContextFromContext(t.Context()).IsValid())
}
