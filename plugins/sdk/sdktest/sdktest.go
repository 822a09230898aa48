// Package sdktest runs a sink inside a test: over a real gRPC connection, against any implementation of host.v1, without a process.
//
// Invariant: what a test sees here is what a host sees; only the process, its isolation and its life are missing.
package sdktest

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/sdk"
)

// NewTestConn serves a sink and the host's services over in-memory connections and returns the sink's client, already described. Everything
// ends with the test.
func NewTestConn(t testing.TB, sink sdk.Sink, registerHost func(grpc.ServiceRegistrar)) sinkv1.SinkClient {
	t.Helper()
	host := dial(t, registerHost)
	conn := dial(t, func(r grpc.ServiceRegistrar) {
		sinkv1.RegisterSinkServer(r, sdk.NewServer(sink, func(context.Context, uint32) (grpc.ClientConnInterface, error) { return host, nil }))
	})
	client := sinkv1.NewSinkClient(conn)
	if _, err := client.Describe(t.Context(), &sinkv1.DescribeRequest{}); err != nil {
		t.Fatalf("Describe: %v", err)
	}
	return client
}

func dial(t testing.TB, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(rpc.ServerOptions()...)
	if register != nil {
		register(server)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	opts := append(rpc.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///bufconn", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return conn
}
