package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Bin is the directory with the binaries, set by Build.
var Bin string

// Root is the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Build makes the binaries in dir, in the layout of an installation, or takes those that SIGNET_BIN names.
func Build(dir string) error {
	if Bin = os.Getenv("SIGNET_BIN"); Bin != "" {
		return nil
	}
	Bin = dir
	for _, b := range []struct{ out, pkg, cgo string }{
		{"signet", "./cmd/signet", "0"},
		{"signet-executor", "./cmd/signet-executor", "1"},
		{"plugins/signet-sink-iceberg", "./cmd/signet-sink-iceberg", "0"},
		{"plugins/signet-sink-delta", "./cmd/signet-sink-delta", "0"},
		{"plugins/signet-sink-minimal", "./examples/sinks/minimal", "0"},
		{"plugins/signet-sink-ledger", "./test/sinks/ledger", "0"},
	} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, b.out), b.pkg)
		cmd.Dir, cmd.Env = Root(), append(os.Environ(), "CGO_ENABLED="+b.cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", b.pkg, err, out)
		}
	}
	if out, err := exec.Command(Path("signet"), "sink", "lock").CombinedOutput(); err != nil {
		return fmt.Errorf("sink lock: %w\n%s", err, out)
	}
	return nil
}

// Path is the path of a binary.
func Path(name string) string { return filepath.Join(Bin, name) }
