package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// Every test that docs/cases.md names is there, and every row names one.
func TestCases_HaveTheirTests(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(harness.Root(), "docs/cases.md"))
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (.*) \| (.*) \| (.*) \|$`).FindAllStringSubmatch(string(b), -1)
	named := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9_]+)`")
	sources := map[string][]byte{}
	of := func(dir string) []byte {
		if sources[dir] == nil {
			files, err := filepath.Glob(filepath.Join(harness.Root(), dir, "*_test.go"))
			require.NoError(t, err)
			for _, f := range files {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				sources[dir] = append(sources[dir], text...)
			}
		}
		return sources[dir]
	}
	cases := 0
	for _, r := range rows {
		if r[1] == "situation" {
			continue
		}
		cases++
		tests := named.FindAllStringSubmatch(r[3], -1)
		require.NotEmpty(t, tests, r[1])
		for _, m := range tests {
			require.Regexp(t, `(?m)^func `+m[2]+`\(t \*testing\.T\)`, string(of(m[1])), "%s names %s of %s", r[1], m[2], m[1])
		}
	}
	require.Greater(t, cases, 45)
}
