package host_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/plugins/sinktest"
)

// A foreign sink, built and run as a deployment does, passes the same suite as inside a test.
func TestMinimalSink_ConformsAsAProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "signet-sink-minimal")
	out, err := exec.Command("go", "build", "-o", file, "github.com/signet-io/signet/examples/sinks/minimal").CombinedOutput()
	require.NoError(t, err, string(out))
	sinktest.Run(t, sinktest.Command(file))
}
