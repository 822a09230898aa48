package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// S70: a pattern that begins outside the roots is refused by its name alone.
func TestResolve_PatternsOutsideTheRootsTellNothing(t *testing.T) {
	dir := tree(t, "secret/.bashrc", "secret/sub/x.csv", "data/a.csv", "data/sub/b.csv", "[r]/c.csv")
	require.NoError(t, os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "data/out")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "secret/.bashrc"), filepath.Join(dir, "data/rc.csv")))
	require.NoError(t, os.Symlink("data", filepath.Join(dir, "alias")))
	require.NoError(t, os.Symlink("alias/sub", filepath.Join(dir, "short")))
	r := resolver(t, Rules{Roots: []string{filepath.Join(dir, "alias") + "/", filepath.Join(dir, "[r]")}})
	for _, pattern := range []string{
		"/*", "/**", "/**/nope*zz", dir + "/*", dir + "/**", dir + "/secret/*", dir + "/secret/none*", dir + "/nowhere/*", dir + "/data/../*", dir + "/data/out/*", dir + "/data/out/none*",
		dir + "/data/out/../*/*", dir + "/*/../data/a.csv", dir + "/[!x]ata/a.csv", "secret/*", "../*/*", "file://" + dir + "/*", dir + "/data/*/../../secret/*", "**", "*",
	} {
		_, err := r.Resolve(t.Context(), dir, []string{pattern})
		require.ErrorIs(t, err, ErrDenied, pattern)
		assert.NotRegexp(t, `bashrc|x\.csv`, err.Error())
		assert.True(t, strings.HasPrefix(err.Error(), `"`+pattern+`": `), err.Error())
	}
	for pattern, want := range map[string][]string{
		"alias/*.csv": {"data/a.csv"}, "data/**/*.csv": {"data/a.csv", "data/sub/b.csv"}, "short/*": {"data/sub/b.csv"}, "data/*/*": {"data/sub/b.csv"}, "data/sub/../*": {"data/a.csv"},
		"[r]/*": {"[r]/c.csv"}, dir + "/alias//**": {"data/a.csv", "data/sub/b.csv"},
	} {
		files, err := r.Resolve(t.Context(), dir, []string{pattern})
		require.NoError(t, err, pattern)
		assert.Equal(t, want, paths(files, dir), "links that lead out are passed by: %s", pattern)
	}
}

// S70: what matches only denied files matches nothing.
func TestResolve_DeniedMatchesAreNoMatches(t *testing.T) {
	dir := tree(t, "data/a.csv", "data/private/p.csv", "data/own/events/j1.jsonl", "data/file.key", "out/x.csv")
	link := func(to, name string) {
		require.NoError(t, os.Symlink(filepath.Join(dir, to), filepath.Join(dir, "data", name)))
	}
	link("data/private", "plink")
	link("data/own/events", "elink")
	link("data/private/p.csv", "p2.csv")
	link("out/x.csv", "x2.csv")
	link("out/none.csv", "x3.csv") // dangling
	rules := Rules{Deny: []string{dir + "/data/private/", dir + "/data/file.key"}, Own: []string{dir + "/data/own"}}
	free := resolver(t, rules)
	rules.Roots = []string{dir + "/data"}
	rooted := resolver(t, rules)
	answer := func(r *Resolver, pattern string) string {
		files, err := r.Resolve(t.Context(), dir, []string{pattern})
		require.ErrorIs(t, err, ErrNotFound, "%s gave %v", pattern, files)
		return strings.ReplaceAll(err.Error(), pattern, "PATTERN")
	}
	for _, r := range []*Resolver{free, rooted} {
		nothing := answer(r, "data/none*")
		for _, pattern := range []string{
			"data/p*", "data/*/p.csv", "data/**/p.csv", "data/**/p*.csv", "data/p*/*", "data/[p]link/*", "data/*/events/*", "data/**/*.jsonl", "data/e*/*", "data/*.key", "data/p2*",
		} {
			assert.Equal(t, nothing, answer(r, pattern), pattern)
		}
	}
	for _, pattern := range []string{"data/x*", "data/x2*", "data/x3*"} {
		assert.Equal(t, answer(rooted, "data/none*"), answer(rooted, pattern), pattern)
	}
	for _, r := range []*Resolver{free, rooted} {
		for _, pattern := range []string{"data/private/*", "data/own/events/*", "data/own/none*", "data/plink/*", "data/elink/**", "data/*/../private/*", "data/*/../own/events/*"} {
			_, err := r.Resolve(t.Context(), dir, []string{pattern})
			require.ErrorIs(t, err, ErrDenied, pattern)
			assert.NotContains(t, err.Error(), "p.csv")
			assert.NotContains(t, err.Error(), "j1")
		}
	}
}

// S70: a name outside the roots is answered alike, whether the file exists or not.
func TestResolve_DeniedNamesDoNotTellWhetherTheyExist(t *testing.T) {
	dir := tree(t, "data/a.csv", "out/x.csv", "out/x[1].csv", "out/d/y.csv", "own/j.db")
	link := func(to, name string) { require.NoError(t, os.Symlink(to, filepath.Join(dir, "data", name))) }
	link("../out/x.csv", "there")
	link("../out/z.csv", "gone")
	link("../out/d", "d")
	link("loop", "loop")
	r := resolver(t, Rules{Roots: []string{dir + "/data"}, Own: []string{dir + "/own"}})
	for there, gone := range map[string]string{
		"out/x.csv": "out/z.csv", "out/x[1].csv": "out/z[1].csv", "out": "aus", "out/d/": "out/z/", "data/there": "data/gone", "data/d/../x.csv": "data/d/../z.csv", "own/j.db": "own/k.db",
		"out/x.csv/y": "out/z.csv/y", "data/d/y.csv": "data/d/z.csv",
	} {
		_, err := r.Resolve(t.Context(), dir, []string{there})
		require.ErrorIs(t, err, ErrDenied, there)
		_, err2 := r.Resolve(t.Context(), dir, []string{gone})
		require.ErrorIs(t, err2, ErrDenied, gone)
		assert.Equal(t, strings.ReplaceAll(err.Error(), there, "NAME"), strings.ReplaceAll(err2.Error(), gone, "NAME"))
	}
	_, err := r.Resolve(t.Context(), dir, []string{"data/loop"})
	require.Error(t, err)
}
