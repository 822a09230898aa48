package host_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/host"
	"github.com/signet-io/signet/plugins/sinktest"
)

// A foreign sink, built, locked and run as a deployment does, passes the same suite as inside a test.
func TestMinimalSink_ConformsAsAProcess(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "signet-sink-minimal"), "github.com/signet-io/signet/examples/sinks/minimal")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, host.WriteLock(dir))
	sinktest.Run(t, func(t *testing.T, register func(grpc.ServiceRegistrar)) sinkv1.SinkClient {
		cfg, err := host.Find(dir, "minimal", false)
		require.NoError(t, err)
		cfg.Register, cfg.Dir = register, t.TempDir()
		p, err := host.Start(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
		return p.Client()
	})
}
