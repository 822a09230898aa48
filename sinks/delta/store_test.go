package delta

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/plugins/sinktest"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/logtest"
)

// The host's storage is held to the log's contract as any store is.
func TestStore(t *testing.T) {
	logtest.Run(t, func(t *testing.T) func() log.Store {
		h := sinktest.NewHost("file:///warehouse/t %41")
		listener := bufconn.Listen(1 << 20)
		server := grpc.NewServer()
		h.Register(server)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		conn, err := grpc.NewClient("passthrough:///host", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = conn.Close()
			server.Stop()
			require.NoError(t, <-done)
		})
		host := sdk.HostFrom(sdk.WithHost(t.Context(), conn, h.Lease))
		return func() log.Store { return &store{host: host, location: h.Location} }
	})
}
