package azure_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/azurite"
)

// The suite of stores that wants a real server gets one. It is run by `make test-azure` alone.
func TestRealServer(t *testing.T) {
	if os.Getenv("SIGNET_REQUIRE_SERVERS") == "" {
		t.Skip("make test-azure runs it")
	}
	cmd := exec.Command("go", "test", "-count=1", "-timeout", "10m", "-v", "-run", "^TestReal$", "./internal/objects/azure")
	cmd.Dir = harness.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "SIGNET_TEST_AZURE="+azurite.Start(t))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out[max(0, len(out)-8000):])
	require.Contains(t, string(out), "--- PASS: TestReal/Sign")
	require.NotContains(t, string(out), "--- SKIP")
	t.Logf("%s", out)
}
