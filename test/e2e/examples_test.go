package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// The examples' scripts check their own results; here they run, and leave nothing.
func TestExamples(t *testing.T) {
	for _, name := range []string{"insert", "idempotent-retry"} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			cmd := exec.Command(filepath.Join(harness.Root(), "examples", name, "run.sh"))
			cmd.Env = append(os.Environ(), "SIGNET_BIN="+harness.Bin, "TMPDIR="+tmp)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
			require.Empty(t, harness.About(tmp))
			left, err := os.ReadDir(tmp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
