package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// A Ctrl-C cancels from the start: the handler is there before packages are initialised that take long.
func TestEarly_InterruptsAreCaughtBeforeSlowInitialisation(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(harness.Path("signet"), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	require.NoError(t, cmd.Run())
	before, _, found := strings.Cut(trace.String(), "init github.com/signet-io/signet/internal/interrupts ")
	require.True(t, found, trace.String())
	require.NotContains(t, before, "google.golang.org/protobuf")
	require.NotContains(t, before, "iceberg-go")
}
