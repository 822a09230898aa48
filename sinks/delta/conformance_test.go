package delta_test

import (
	"testing"

	"google.golang.org/grpc"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk/sdktest"
	"github.com/signet-io/signet/plugins/sinktest"
	"github.com/signet-io/signet/sinks/delta"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, func(t *testing.T, register func(grpc.ServiceRegistrar)) sinkv1.SinkClient {
		return sdktest.NewTestConn(t, delta.New(), register)
	})
}
