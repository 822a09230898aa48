package e2e_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// newSink runs `signet sink new` and gives the project's directory.
func newSink(t *testing.T, name string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	cmd := exec.Command(harness.Path("signet"), append([]string{"sink", "new", name, "--dir", dir, "--sdk", harness.Root()}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "made "+dir)
	return dir
}

// inProject runs make in a project.
func inProject(t *testing.T, dir string, targets ...string) string {
	t.Helper()
	cmd := exec.Command("make", append(targets, "SIGNET="+harness.Path("signet"))...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, harness.About(dir), "processes are left")
	return string(out)
}

// A sink from zero: one command makes it, and it passes the conformance suite and commits a real job.
func TestSinkNew_Go(t *testing.T) {
	t.Parallel()
	dir := newSink(t, "fresh")
	require.Contains(t, inProject(t, dir, "test"), "ok ")
	said := inProject(t, dir, "run")
	require.Contains(t, said, "│ 1000 │ 1000 │")
	commits, err := filepath.Glob(filepath.Join(dir, ".signet/tables/demo/numbers/_manifest/*.json"))
	require.NoError(t, err)
	require.Len(t, commits, 1)
	require.Contains(t, inProject(t, dir, "run"), "│ 2000 │ 1000 │", "a second run appends")
	inProject(t, dir, "clean")
	require.NoDirExists(t, filepath.Join(dir, "bin"))
	require.NoDirExists(t, filepath.Join(dir, ".signet"))
}
