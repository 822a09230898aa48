package sources

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// tree makes files, each with its own name as content, and returns the directory with links resolved.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, n := range names {
		p := filepath.Join(dir, n)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(n), 0o644))
	}
	return dir
}

func resolver(t *testing.T, r Rules) *Resolver {
	t.Helper()
	out, err := New(r)
	require.NoError(t, err)
	return out
}

func paths(files []*planv1.PinnedFile, dir string) []string {
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimPrefix(f.GetPath(), dir+"/"))
	}
	return out
}

// X5: a name that exists is that file, whatever its characters; the decoys are what each would match as a pattern.
func TestResolve_ExactNameWins(t *testing.T) {
	names := []string{
		"data[1].parquet", "data[a-z].parquet", "x{b,c}.parquet", "q?.parquet", "s*.parquet", "**", "p%.parquet", "p%20q.parquet", "a b.parquet",
		"it's.parquet", `say "hi".parquet`, "h#1.parquet", "a+b.parquet", `back\slash.parquet`, `esc\*.parquet`, "k=v/part.parquet", "[dir]/f.parquet",
		"ü.parquet", "semi;colon.parquet", "new\nline.parquet", "-dash.parquet", "~tilde.parquet", "c:colon.parquet", "[!x].parquet", "[.parquet", "].parquet",
	}
	decoys := []string{
		"data1.parquet", "dataq.parquet", "xb.parquet", "xc.parquet", "qq.parquet", "sss.parquet", "p q.parquet", "backslash.parquet", "esc*.parquet",
		"d/f.parquet", "y.parquet",
	}
	dir := tree(t, append(names, decoys...)...)
	r := resolver(t, Rules{})
	for _, n := range names {
		for _, written := range []string{n, filepath.Join(dir, n), "file://" + filepath.Join(dir, n)} {
			files, err := r.Resolve(t.Context(), dir, []string{written})
			require.NoError(t, err, "%q", written)
			require.Equal(t, []string{n}, paths(files, dir), "%q", written)
			assert.Equal(t, written, files[0].GetName(), "unaltered")
			assert.EqualValues(t, len(n), files[0].GetSizeBytes())
		}
	}
	all, err := r.Resolve(t.Context(), dir, names)
	require.NoError(t, err)
	assert.Len(t, all, len(names))
}

func TestResolve_Patterns(t *testing.T) {
	dir := tree(t, "a.parquet", "b.parquet", "c.csv", ".hidden.parquet", "x{b,c}1", "xb1", "data1.parquet", "data2.parquet", "datax.parquet",
		"sub/a.parquet", "sub/deep/er/a.parquet", "sub/deep/b.csv", "k=1/p.parquet", "k=2/p.parquet", "k[1]/p.parquet", "star*1", "starx1")
	r := resolver(t, Rules{})
	for pattern, want := range map[string][]string{
		"?.parquet":                        {"a.parquet", "b.parquet"},
		"data[12].parquet":                 {"data1.parquet", "data2.parquet"},
		"data[1-2].parquet":                {"data1.parquet", "data2.parquet"},
		"data[!12].parquet":                {"datax.parquet"},
		"*.parquet":                        {".hidden.parquet", "a.parquet", "b.parquet", "data1.parquet", "data2.parquet", "datax.parquet"},
		"sub/**/a.parquet":                 {"sub/a.parquet", "sub/deep/er/a.parquet"},
		"sub/**":                           {"sub/a.parquet", "sub/deep/b.csv", "sub/deep/er/a.parquet"},
		"sub/**/**/*.csv":                  {"sub/deep/b.csv"},
		"**/b.csv":                         {"sub/deep/b.csv"},
		"k=*/p.parquet":                    {"k=1/p.parquet", "k=2/p.parquet"},
		"k[1]/*.parquet":                   {"k[1]/p.parquet"}, // a directory that exists as it is written
		"x{b,c}*":                          {"x{b,c}1"},        // braces are no pattern in DuckDB
		`star\*?`:                          {"star*1"},
		"./sub/../?.parquet":               {"a.parquet", "b.parquet"},
		"sub//deep/*.csv":                  {"sub/deep/b.csv"},
		dir + "/?.parquet":                 {"a.parquet", "b.parquet"},
		"file://" + dir + "/sub/*.parquet": {"sub/a.parquet"},
	} {
		files, err := r.Resolve(t.Context(), dir, []string{pattern})
		require.NoError(t, err, pattern)
		assert.Equal(t, want, paths(files, dir), pattern)
		for _, f := range files {
			assert.FileExists(t, f.GetPath())
		}
	}
	files, err := r.Resolve(t.Context(), dir, []string{"b.parquet", "?.parquet", "./b.parquet", dir + "/a.parquet", "c.csv"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a.parquet", "b.parquet", "c.csv"}, paths(files, dir), "sorted, once each")
	files, err = r.Resolve(t.Context(), dir, []string{"sub/d*/*/a.parquet"})
	require.NoError(t, err)
	assert.Equal(t, "sub/deep/er/a.parquet", files[0].GetName(), "as the pattern shows it")
}

// X5, X6: each refusal names the file and what to do.
func TestResolve_Refuses(t *testing.T) {
	dir := tree(t, "data1.parquet", "dir/part.parquet", "ok.parquet")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "part.parquet"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "UP.PARQUET"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty.csv"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad\xff.parquet"), []byte("x"), 0o644))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "dangling.lnk")))
	r := resolver(t, Rules{})
	for name, want := range map[string]struct {
		err  error
		text []string
	}{
		"none.parquet":           {ErrNotFound, []string{`"none.parquet"`, "no such file", `"*.parquet"`}},
		"data[2].parquet":        {ErrNotFound, []string{`"data[2].parquet"`, "no file has this name", "pattern"}},
		"none/**/*.parquet":      {ErrNotFound, []string{"none matches"}},
		"data1.parquet/*":        {ErrNotFound, []string{"none matches"}},
		"[.parquet":              {ErrNotFound, []string{"broken"}},
		"":                       {ErrNotFound, []string{"empty"}},
		"a\x00b":                 {ErrNotFound, []string{"NUL"}},
		"dir":                    {ErrInvalid, []string{`"dir"`, "a directory", `"dir/*.parquet"`, `"dir/**/*.parquet"`}},
		"dir/":                   {ErrInvalid, []string{"a directory"}},
		"part.parquet":           {ErrInvalid, []string{`"part.parquet"`, "0 bytes"}},
		"p*.parquet":             {ErrInvalid, []string{`"part.parquet"`, "0 bytes"}},
		"UP.PARQUET":             {ErrInvalid, []string{`"UP.PARQUET"`, "0 bytes"}},
		"bad*":                   {ErrInvalid, []string{"UTF-8"}},
		"fifo":                   {ErrInvalid, []string{"not a regular file"}},
		"f*":                     {ErrInvalid, []string{"not a regular file"}},
		"*.lnk":                  {ErrNotFound, []string{"dangling.lnk", "leads to nothing"}},
		"gs://bucket/x.parquet":  {ErrUnsupported, []string{"gs://", "local files"}},
		"s3://bucket/x.parquet":  {ErrDenied, []string{"s3://", "sources.remote lists no place"}},
		"https://h/x.parquet":    {ErrDenied, []string{"https://"}},
		"HTTP://h/x.parquet":     {ErrDenied, []string{"HTTP://"}},
		"file://host/x.parquet":  {ErrUnsupported, []string{`"host"`, "file:///path"}},
		strings.Repeat("x", 300): {ErrNotFound, []string{"no such file"}},
	} {
		_, err := r.Resolve(t.Context(), dir, []string{"ok.parquet", name})
		require.ErrorIs(t, err, want.err, "%q", name)
		for _, w := range want.text {
			assert.Contains(t, err.Error(), w, "%q", name)
		}
	}
	_, err := r.Resolve(t.Context(), dir, nil)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = r.Resolve(t.Context(), "", []string{"ok.parquet"})
	require.ErrorIs(t, err, ErrNotFound)

	files, err := r.Resolve(t.Context(), dir, []string{"empty.csv"})
	require.NoError(t, err, "an empty CSV is for its reader to judge")
	require.ErrorIs(t, RefuseEmpty(files), ErrInvalid)
	files, err = r.Resolve(t.Context(), dir, []string{"ok.parquet"})
	require.NoError(t, err)
	require.NoError(t, RefuseEmpty(files))
}

// S70: what is denied stays denied by every route.
func TestResolve_Rules(t *testing.T) {
	dir := tree(t, "open/a.txt", "open10/a.txt", "open/private/p.txt", "own/journal.db", "own/warehouse/x.parquet", "signet.yaml", "open/z.txt")
	link := func(to, name string) { require.NoError(t, os.Symlink(to, filepath.Join(dir, name))) }
	link("../own", "open/ownlink")
	link("../own/journal.db", "open/journal.txt")
	link("/proc", "open/proclink")
	link("open", "alias")
	link("private/p.txt", "open/p2.txt")
	own := []string{filepath.Join(dir, "own"), filepath.Join(dir, "signet.yaml"), filepath.Join(dir, "later")}
	rooted := resolver(t, Rules{Roots: []string{filepath.Join(dir, "alias")}, Deny: []string{filepath.Join(dir, "open/private")}, Own: own})
	free := resolver(t, Rules{Own: own, Deny: []string{filepath.Join(dir, "open/private")}})

	for _, name := range []string{
		"own/journal.db", "open/../own/journal.db", "open/ownlink/journal.db", "open/journal.txt", "own/none", "signet.yaml", "later/x", "own/*", "own/warehouse/*.parquet",
		"open/ownlink/*", "open/ownlink/../own/journal.db", "alias/ownlink/journal.db", "open/private/p.txt", "open/private/*", "open/p2.txt", "open/p*.txt", "open/**/p.txt",
		"/proc/self/environ", "/proc/self/*", "/proc/none", "/dev/stdin", "/dev/fd/0", "/sys/kernel/notes", "/run/x", "open/proclink/self/environ", "open/proclink/self/status",
		"file:///proc/self/environ", "file://" + dir + "/own/journal.db",
	} {
		for _, r := range []*Resolver{rooted, free} {
			files, err := r.Resolve(t.Context(), dir, []string{name})
			require.Error(t, err, "%q gave %v", name, files)
			if !hasMeta(name) {
				require.ErrorIs(t, err, ErrDenied, "%q", name)
			}
		}
	}
	for _, name := range []string{"open10/a.txt", "/etc/hosts", "/etc/no-such-file", "open/../open10/a.txt"} {
		_, err := rooted.Resolve(t.Context(), dir, []string{name})
		require.ErrorIs(t, err, ErrDenied, name)
		assert.Contains(t, err.Error(), "sources.roots", name)
	}
	_, err := free.Resolve(t.Context(), dir, []string{"open10/a.txt"})
	require.NoError(t, err)
	for _, name := range []string{"alias/a.txt", "open/a.txt", "open/*z.txt"} {
		files, err := rooted.Resolve(t.Context(), dir, []string{name})
		require.NoError(t, err, name)
		assert.True(t, strings.HasPrefix(files[0].GetPath(), dir+"/open/"), "the resolved name is pinned")
	}
	files, err := free.Resolve(t.Context(), dir, []string{"**/*.parquet", "open/a.txt"})
	require.ErrorIs(t, err, ErrNotFound, "patterns pass Signet's own files by: %v", files)
	_, err = New(Rules{Roots: []string{"relative"}})
	require.ErrorContains(t, err, `sources.roots: "relative"`)
}

func TestResolve_LinksInCircles(t *testing.T) {
	dir := tree(t, "a/b/x.csv")
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "a/b/up")))
	r := resolver(t, Rules{})
	files, err := r.Resolve(t.Context(), dir, []string{"**/*.csv"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a/b/x.csv"}, paths(files, dir))
	files, err = r.Resolve(t.Context(), dir, []string{"a/b/*/b/*.csv"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a/b/x.csv"}, paths(files, dir), "the same file by another way")
}

func TestResolve_UnreadableDirectoryIsAnError(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := tree(t, "a/x.csv", "b/y.csv")
	require.NoError(t, os.Chmod(filepath.Join(dir, "b"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "b"), 0o755) })
	_, err := resolver(t, Rules{}).Resolve(t.Context(), dir, []string{"*/*.csv"})
	require.ErrorIs(t, err, os.ErrPermission)
	assert.Contains(t, err.Error(), `"*/*.csv"`)
}

func TestResolve_Limits(t *testing.T) {
	var names []string
	for i := range 11 {
		names = append(names, fmt.Sprintf("f%02d.csv", i))
	}
	dir := tree(t, names...)
	r := resolver(t, Rules{MaxFiles: 10})
	_, err := r.Resolve(t.Context(), dir, []string{"*.csv"})
	require.ErrorIs(t, err, ErrTooMany)
	_, err = r.Resolve(t.Context(), dir, []string{"f0*.csv", "f0*.csv"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Resolve(ctx, dir, []string{"*.csv"})
	require.ErrorIs(t, err, context.Canceled)
}

// S73: a source that changed is known by name.
func TestChanged(t *testing.T) {
	dir := tree(t, "a.csv")
	path := filepath.Join(dir, "a.csv")
	r := resolver(t, Rules{})
	pin := func() *planv1.PinnedFile {
		files, err := r.Resolve(t.Context(), dir, []string{"a.csv"})
		require.NoError(t, err)
		require.NoError(t, r.Changed(t.Context(), files[0]))
		return files[0]
	}
	for name, change := range map[string]func() error{
		"size":   func() error { return os.WriteFile(path, []byte("longer than it was"), 0o644) },
		"time":   func() error { return os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)) },
		"gone":   func() error { return os.Remove(path) },
		"linked": func() error { _ = os.Remove(path); return os.Symlink("/etc/hosts", path) },
		"a dir":  func() error { _ = os.Remove(path); return os.Mkdir(path, 0o755) },
	} {
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
		f := pin()
		require.NoError(t, change())
		err := r.Changed(t.Context(), f)
		require.ErrorIs(t, err, ErrChanged, name)
		assert.Contains(t, err.Error(), `"a.csv"`, name)
	}
}
