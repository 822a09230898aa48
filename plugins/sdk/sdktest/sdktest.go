// Package sdktest runs a sink inside a test: over a real gRPC connection, against any implementation of host.v1, without a process.
//
// Invariant: what a test sees here is what a host sees; only the process, its isolation and its life are missing.
package sdktest

import (
	"context"
	"errors"
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
	client, _, stop, err := Connect(t.Context(), sink, registerHost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return client
}

// Connect is NewTestConn outside of a test: stop ends both servers, and gives their errors.
func Connect(ctx context.Context, sink sdk.Sink, registerHost func(grpc.ServiceRegistrar)) (sinkv1.SinkClient, *sinkv1.DescribeResponse, func() error, error) {
	host, stopHost, err := dial(registerHost)
	if err != nil {
		return nil, nil, nil, err
	}
	conn, stopSink, err := dial(func(r grpc.ServiceRegistrar) {
		sinkv1.RegisterSinkServer(r, sdk.NewServer(sink, func(context.Context, uint32) (grpc.ClientConnInterface, error) { return host, nil }))
	})
	if err != nil {
		return nil, nil, nil, errors.Join(err, stopHost())
	}
	stop := func() error { return errors.Join(stopSink(), stopHost()) }
	client := sinkv1.NewSinkClient(conn)
	desc, err := client.Describe(ctx, &sinkv1.DescribeRequest{})
	if err != nil {
		return nil, nil, nil, errors.Join(err, stop())
	}
	return client, desc, stop, nil
}

func dial(register func(grpc.ServiceRegistrar)) (*grpc.ClientConn, func() error, error) {
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(rpc.ServerOptions()...)
	if register != nil {
		register(server)
	}
	opts := append(rpc.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///bufconn", opts...)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return conn, func() error {
		_ = conn.Close()
		server.Stop()
		return <-done
	}, nil
}
