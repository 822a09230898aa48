package log_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signet-io/signet/sinks/delta/log"
)

const vectorX = `,"deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":1,"sizeInBytes":1,"cardinality":1}`

func addWith(path, more string) string {
	return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":10,"modificationTime":1,"dataChange":true%s}}`+"\n", path, more)
}

func removeWith(path, more string) string {
	return fmt.Sprintf(`{"remove":{"path":%q,"deletionTimestamp":1,"dataChange":true%s}}`+"\n", path, more)
}

// The newest action on a file holds, a file being a path with a deletion vector.
func TestReplay_FilesOfOddLogs(t *testing.T) {
	for name, c := range map[string]struct {
		commits []string
		want    []string
	}{
		"added twice":                      {[]string{addLine("a"), addLine("a")}, []string{"a"}},
		"added twice in one commit":        {[]string{addLine("a") + addLine("a")}, []string{"a"}},
		"removed and added again":          {[]string{addLine("a"), removeLine("a"), addLine("a")}, []string{"a"}},
		"removed twice":                    {[]string{addLine("a"), removeLine("a"), removeLine("a")}, []string{}},
		"removed without being there":      {[]string{removeLine("a")}, []string{}},
		"a vector comes":                   {[]string{addLine("a"), removeLine("a") + addWith("a", vectorX)}, []string{"a|ux@1"}},
		"a vector goes":                    {[]string{addWith("a", vectorX), removeWith("a", vectorX) + addLine("a")}, []string{"a"}},
		"removed with another vector":      {[]string{addWith("a", vectorX), removeLine("a")}, []string{"a|ux@1"}},
		"encoded by different rules":       {[]string{addLine("p%3D1/a"), removeLine("p=1/a")}, []string{}},
		"encoded twice is another file":    {[]string{addLine("a%2520b") + addLine("a%20b"), removeLine("a%2520b")}, []string{"a b"}},
		"local files in three ways":        {[]string{addLine("/t/a") + addLine("file:/t/b") + addLine("file:///t/c"), removeLine("file:///t/a") + removeLine("/t/b") + removeLine("file:/t/c")}, []string{}},
		"another scheme is another file":   {[]string{addLine("s3://b/a"), removeLine("s3a://b/a")}, []string{"s3://b/a"}},
		"case counts":                      {[]string{addLine("a"), removeLine("A")}, []string{"a"}},
		"order of paths, not of their log": {[]string{addLine("b/c") + addLine("b"), addLine("a") + addLine("ä")}, []string{"a", "b", "b/c", "ä"}},
	} {
		t.Run(name, func(t *testing.T) {
			tab := newTable(t, append([]string{first}, c.commits...)...)
			s := tab.load(log.LoadOptions{})
			require.Equal(t, c.want, paths(s))
			require.EqualValues(t, 10*len(c.want), s.Size())
			step := tab.load(version(0))
			step, _, err := step.Advance(t.Context(), tab)
			require.NoError(t, err)
			require.Equal(t, c.want, paths(step), "step by step it is the same")
			require.EqualValues(t, 10*len(c.want), step.Size())
			tab.checkpoint(s)
			require.Equal(t, c.want, paths(tab.load(log.LoadOptions{})), "and through a checkpoint")
		})
	}
}

func TestReplay_SumsDoNotWrapUnseen(t *testing.T) {
	huge := fmt.Sprintf(`{"add":{"path":"%%s","partitionValues":{},"size":%d,"modificationTime":1,"dataChange":true}}`+"\n", int64(math.MaxInt64))
	tab := newTable(t, first+fmt.Sprintf(huge, "a")+fmt.Sprintf(huge, "b"))
	_, err := log.Load(t.Context(), tab, log.LoadOptions{})
	require.ErrorIs(t, err, log.ErrCorrupt)
	require.ErrorContains(t, err, "larger than")
}

func TestCommitName(t *testing.T) {
	require.Equal(t, "_delta_log/00000000000000000017.json", log.CommitName(17))
	require.Equal(t, "_delta_log/09223372036854775807.json", log.CommitName(math.MaxInt64))
	_, err := log.ReadCommit(t.Context(), newTable(t), -1)
	require.ErrorIs(t, err, log.ErrNoVersion)
}

// X25: a log with more commits than a listing gives at once, and no checkpoint.
func TestLoad_X25ManyCommits(t *testing.T) {
	commits := []string{first}
	for v := 1; v < 2500; v++ {
		commits = append(commits, addLine(fmt.Sprintf("%04d", v)))
	}
	tab := newTable(t, commits...)
	s := tab.load(log.LoadOptions{})
	require.EqualValues(t, 2499, s.Version)
	require.Equal(t, 2499, s.NumFiles())
}

// However commits are grouped into loads, steps and checkpoints, the table is that of a plain map.
func TestReplay_AsAMapWould(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.SampledFrom([]string{"a", "b", "c d", "p=1/x", "z%"})
		want := map[string]bool{}
		tab := newTable(t, first)
		step := tab.load(log.LoadOptions{})
		for v := range rapid.IntRange(1, 12).Draw(rt, "commits") {
			var lines strings.Builder
			used := map[string]bool{}
			for range rapid.IntRange(0, 3).Draw(rt, "actions") {
				p := path.Draw(rt, "path")
				if used[p] {
					continue
				}
				used[p] = true
				raw := strings.NewReplacer("%", "%25", " ", "%20").Replace(p)
				if want[p] = rapid.Bool().Draw(rt, "add"); want[p] {
					lines.WriteString(addLine(raw))
				} else {
					lines.WriteString(removeLine(raw))
				}
			}
			tab.put(log.CommitName(int64(v+1)), lines.String())
			if rapid.Bool().Draw(rt, "step") {
				var err error
				step, _, err = step.Advance(t.Context(), tab)
				require.NoError(rt, err)
			}
			if rapid.IntRange(0, 3).Draw(rt, "checkpoint") == 0 {
				tab.checkpoint(tab.load(log.LoadOptions{}))
			}
		}
		n := 0
		for _, live := range want {
			if live {
				n++
			}
		}
		step, _, err := step.Advance(t.Context(), tab)
		require.NoError(rt, err)
		loaded := tab.load(log.LoadOptions{})
		require.Equal(rt, n, loaded.NumFiles())
		require.Equal(rt, paths(loaded), paths(step))
		for p, live := range want {
			_, ok := loaded.File(p, "")
			require.Equal(rt, live, ok, p)
		}
	})
}
