package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

func document(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(harness.Root(), "docs/semantics.md"))
	require.NoError(t, err)
	return string(b)
}

func problems(t *testing.T, src *sources, text string) string {
	t.Helper()
	all, err := parse(text)
	if err != nil {
		return err.Error()
	}
	return strings.Join(check(all, src), "\n")
}

func TestCheck_TheDocumentIsWhatThereIs(t *testing.T) {
	src, err := newSources(harness.Root())
	require.NoError(t, err)
	require.Empty(t, problems(t, src, document(t)))
}

// Whatever is taken out of the document, or written into it that does not exist, is noticed.
func TestCheck_NoticesWhatIsMissing(t *testing.T) {
	src, err := newSources(harness.Root())
	require.NoError(t, err)
	good := document(t)
	section := func(number string) string {
		return regexp.MustCompile(`(?ms)^### ` + number + `\n.*?(^#)`).FindString(good)
	}
	replace := func(old, with string) string {
		require.Equal(t, 1, strings.Count(good, old), old)
		return strings.Replace(good, old, with, 1)
	}
	s3, s27, j12 := section("S3"), section("S27"), section("J12")
	for want, text := range map[string]string{
		"S3 is missing":                                          replace(s3, "#"),
		"J12 is missing":                                         replace(j12, "#"),
		"S3: it is there twice":                                  replace("### S4\n", "### S3\n"),
		"is no number of a statement":                            replace("### S4\n", "### Something\n"),
		"S27: it has no statement":                               replace("A client that subscribes decodes the inline result.", ""),
		"S27: no test with a mutant or a fault":                  replace("TestExec_InlineResultByWatch` fails with mutant `client/watch-drops-the-result`.", "TestExec_InlineResultByWatch`."),
		"no statement names the mutant client/watch-drops":       replace("TestExec_InlineResultByWatch` fails with mutant `client/watch-drops-the-result`.", "TestExec_InlineResultByWatch`."),
		"there is no mutant client/nonsense":                     replace("client/watch-drops-the-result", "client/nonsense"),
		"package client has no test TestExec_InlineResultByPost": replace("TestExec_InlineResultByPolling", "TestExec_InlineResultByPost"),
		"package nowhere has no tests":                           replace("- `client: TestExec_InlineResultByPolling`", "- `nowhere: TestExec_InlineResultByPolling`"),
		"S28: client: TestExec_NobodyThere does not carry":       replace("TestExec_InlineResultByPolling", "TestExec_NobodyThere"),
		"has no subtest S3_of_something":                         replace("TestSplitRoot/S3_a_match_below_is_not_split", "TestSplitRoot/S3_of_something"),
		"has no point broker.nonsense":                           replace("fails with mutant `client/poll-drops-the-result`", "fails with fault `broker.nonsense=kill`"),
		"S27: write -":                                           replace("- `client: TestExec_InlineResultByWatch` fails with mutant `client/watch-drops-the-result`.", "- some test"),
		"S27: text behind the tests":                             strings.Replace(good, s27, strings.TrimSuffix(s27, "#")+"More to say.\n\n#", 1),
	} {
		require.Contains(t, problems(t, src, text), want)
	}
	_, err = newSources(t.TempDir())
	require.ErrorContains(t, err, "fault-points.md")
}

func TestCarries_NumbersAndRanges(t *testing.T) {
	f := testFunc{text: "// S3 and T5 to T7.\nfunc TestThing_S12_S13(t *testing.T) {\n\tx := S40 // J2\n\ts := `S41`\n}", scripts: map[string]string{"root": "//# S50: so\n"}}
	for number, want := range map[string]bool{
		"S3": true, "S12": true, "S13": true, "T5": true, "T6": true, "T7": true, "T8": false, "J2": true, "S1": false, "S40": false, "S41": false, "S50": false, "S121": false,
	} {
		require.Equal(t, want, f.carries(number, ""), number)
	}
	require.True(t, f.carries("S50", "root"))
	require.False(t, f.carries("S50", "other"))
}

// A pair whose test passes with the mutant, or never ran, is an error.
func TestRunner_OnlyAFailureCounts(t *testing.T) {
	r := &runner{root: t.TempDir(), dir: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(r.root, "pkg"), 0o700))
	script := func(text string) { // stands for a test binary
		require.NoError(t, os.WriteFile(r.binary("pkg"), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	}
	p := pair{pkg: "pkg", test: "TestA/b", mutant: "pkg/m"}
	script(`echo "=== RUN   TestA"; [ -z "$SIGNET_MUTANT" ] && { echo "--- PASS: TestA/b (0.00s)"; exit 0; }; exit 1`)
	require.NoError(t, r.passes("pkg", []string{"TestA/b"}))
	require.NoError(t, r.fails(p))
	require.ErrorContains(t, r.passes("pkg", []string{"TestA/c"}), "TestA/c does not pass")
	script(`echo "=== RUN   TestA"; exit 0`)
	require.ErrorContains(t, r.fails(p), "did not fail")
	script(`echo "testing: warning: no tests to run"; exit 1`)
	require.ErrorContains(t, r.fails(p), "did not fail")
	require.Equal(t, "^TestA$/^b$", pattern([]string{"TestA/b"}))
	require.Equal(t, "^(A|B)$", pattern([]string{"A", "B"}))
}
