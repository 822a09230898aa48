package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/plugins/sinktest"
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
	cmd := exec.Command("make", append(targets, "SIGNET="+harness.Path("signet"), "VENV="+pythonVenv())...)
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

// pythonVenv is where the packages of sinks in Python are, for all tests and runs: installing them takes half a minute.
func pythonVenv() string {
	if dir := os.Getenv("SIGNET_PYTHON_VENV"); dir != "" {
		return dir
	}
	return filepath.Join(harness.Root(), ".cache", "python-sink-venv")
}

// needsPython skips where there is no Python, or no packages for it can be had; CI has both, and says so in SIGNET_REQUIRE_PYTHON.
func needsPython(t *testing.T) (reads []string) {
	t.Helper()
	cmd := exec.Command("make", "--silent", "-C", filepath.Join(harness.Root(), "examples/sinks/python"), "packages", "VENV="+pythonVenv())
	out, err := cmd.CombinedOutput()
	if err != nil && os.Getenv("SIGNET_REQUIRE_PYTHON") == "" {
		t.Skipf("no Python 3.10 with venv and pip, or no way to the packages of examples/sinks/python/requirements.txt: %v\n%s", err, out)
	}
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(filepath.Join(pythonVenv(), "bin/python"), "-c", "import sys; print(sys.base_prefix, sys.prefix)").Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// A sink in Python from zero commits a real job as isolated as any, and passes the conformance suite as a process.
func TestSinkNew_Python(t *testing.T) {
	t.Parallel()
	reads := needsPython(t)
	dir := newSink(t, "snake", "--lang", "python")
	require.Contains(t, inProject(t, dir, "run"), "│ 1000 │ 1000 │")
	plugin := filepath.Join(dir, "bin/plugins/signet-sink-snake")
	sinktest.Run(t, sinktest.Command(plugin), sinktest.Options{AllowRead: reads})
	require.Empty(t, harness.About(dir), "processes are left")

	described, err := exec.Command(plugin, "describe").Output()
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"name": "snake", "version": "0.1.0", "protocol": 1, "summary": "Parquet files in a directory, committed by numbered manifests",
		"commit_point": "storage", "capabilities": ["create_table", "plan_scan", "describe_table"], "creates": ["_schema.json", "_manifest/*.json"],
		"commit_points": ["_manifest/*.json"], "hints": [], "platform": "%s_%s"}`, runtime.GOOS, runtime.GOARCH), string(described))
	byHand := exec.Command(plugin)
	said, err := byHand.CombinedOutput()
	require.Equal(t, 2, byHand.ProcessState.ExitCode(), "%v", err)
	require.Contains(t, string(said), `signet-sink-snake is the Signet sink "snake" (protocol 1). It is a plugin: the scheduler starts it`)
}
