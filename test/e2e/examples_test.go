package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// notHere is how a script ends that lacks what it needs besides Signet, and has said so.
const notHere = 77

// The examples' scripts check their own results; here they run, print what their READMEs show, and leave nothing.
func TestExamples(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(harness.Root(), "examples", "*", "run.sh"))
	require.NoError(t, err)
	sinks, err := filepath.Glob(filepath.Join(harness.Root(), "examples", "sinks", "*", "run.sh"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(scripts)+len(sinks), 8)
	for _, script := range append(scripts, sinks...) {
		t.Run(filepath.Base(filepath.Dir(script)), func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			cmd := exec.Command(script)
			cmd.Env = append(os.Environ(), "SIGNET_BIN="+harness.Bin, "TMPDIR="+tmp)
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notHere && os.Getenv("CI") == "" {
				t.Skipf("%s", out)
			}
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
			requireShown(t, filepath.Join(filepath.Dir(script), "README.md"), string(out))
			require.Empty(t, harness.About(tmp))
			left, err := os.ReadDir(tmp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// requireShown checks that what a README shows as output was printed: its blocks ```output, in which … stands for any text in a line, and for any lines
// where it stands alone.
func requireShown(t *testing.T, readme, printed string) {
	t.Helper()
	b, err := os.ReadFile(readme)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```output\n(.*?)^```$").FindAllStringSubmatch(string(b), -1)
	require.NotEmpty(t, blocks, "%s shows no output", readme)
	for _, block := range blocks {
		pattern := regexp.QuoteMeta(block[1])
		pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, `(?:.*\n)*?`)
		pattern = strings.ReplaceAll(pattern, "…", ".*")
		require.Regexp(t, `(?m)^`+pattern, printed, "%s shows\n%s", readme, block[1])
	}
}
