package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	sdkModule = "github.com/signet-io/signet"
	// goVersion is what the SDK needs.
	goVersion = "1.26.0"
)

// release is a version that others can require; what `git describe` says between two is none.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)[.0-9]*)?$`)

// goModule gives a rendered project its go.mod and go.sum.
func goModule(ctx context.Context, o Options, dir string, out io.Writer) error {
	checkout, err := o.checkout()
	if err != nil {
		return err
	}
	mod := fmt.Sprintf("module %s\n\ngo %s\n\n", o.Module, goVersion)
	if checkout == "" {
		mod += fmt.Sprintf("require %s %s\n", sdkModule, o.Version)
	} else {
		mod += fmt.Sprintf("require %s v0.0.0\n\nreplace %s => %s\n", sdkModule, sdkModule, checkout)
		fmt.Fprintf(out, "the module builds against %s, by a replace in its go.mod\n", checkout)
		sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
		if err != nil {
			return wrong("--sdk %s: %w", checkout, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	text, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return wrong("there is no go in the PATH: install Go %s or later (https://go.dev/dl), or take --lang %s", goVersion, Python)
	}
	if err != nil {
		return wrong("go mod tidy: %w\n%s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// checkout is the tree of Signet that the module builds against; "" where it requires a release.
func (o *Options) checkout() (string, error) {
	if o.SDK != "" {
		dir, err := filepath.Abs(o.SDK)
		if err == nil && !isCheckout(dir) {
			err = fmt.Errorf("its go.mod is not that of %s", sdkModule)
		}
		if err != nil {
			return "", wrong("--sdk %s: %w", o.SDK, err)
		}
		return dir, nil
	}
	near := []string{o.Dir}
	if self, err := os.Executable(); err == nil {
		near = append(near, self)
	}
	for _, path := range near {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if isCheckout(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if !release.MatchString(o.Version) {
		return "", wrong("this Signet is a build between releases (%s), which no module can require: name a checkout of its source with --sdk", o.Version)
	}
	return "", nil
}

// isCheckout tells whether a directory is the root of Signet's source.
func isCheckout(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(mod), "\n")
	return strings.TrimSpace(first) == "module "+sdkModule
}
