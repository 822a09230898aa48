package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// documentedPoints are the rows of docs/fault-points.md.
func documentedPoints(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(harness.Root(), "docs/fault-points.md"))
	require.NoError(t, err)
	var out []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.[a-z.-]+)` \\|").FindAllStringSubmatch(string(b), -1) {
		out = append(out, m[1])
	}
	require.Greater(t, len(out), 15)
	return out
}

// The documentation names the points that exist, and no others. Points whose name is put together at run time are listed by example.
func TestFaultPoints_AreDocumented(t *testing.T) {
	inCode := map[string]bool{}
	call := regexp.MustCompile(`\b(?:fault\.Hit|hit)\("([a-z0-9.-]+)"\)`)
	err := filepath.WalkDir(harness.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != harness.Root() {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range call.FindAllStringSubmatch(string(b), -1) {
			inCode[m[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	dynamic := regexp.MustCompile(`^plugins\.[a-z]+\.(before|after)$`)
	for _, p := range documentedPoints(t) {
		if dynamic.MatchString(p) {
			continue
		}
		require.True(t, inCode[p], "%s is documented and does not exist", p)
		delete(inCode, p)
	}
	require.Empty(t, inCode, "points that docs/fault-points.md does not list")
}
