package scaffold_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/plugins/scaffold"
)

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// The whole of a project, tests and README included, stays below 200 lines that say something: neither blank nor, in Go, a comment.
func TestNew_GoIsSmallAndCompiles(t *testing.T) {
	parent := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	var said bytes.Buffer
	dir, err := scaffold.New(t.Context(), scaffold.Options{
		Name: "parquet-dir", Dir: filepath.Join(parent, "my sink"), Module: "example.org/sinks/parquet-dir", SDK: root, Version: "dev",
	}, &said)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(parent, "my sink"), dir)
	require.Equal(t, []string{"my sink"}, names(t, parent), "nothing is left beside it")
	require.Equal(t, []string{".gitignore", "Makefile", "README.md", "go.mod", "go.sum", "main.go", "main_test.go"}, names(t, dir))
	require.Contains(t, said.String(), root)

	lines := 0
	for _, name := range []string{"main.go", "main_test.go", "Makefile", "README.md"} {
		body, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotContains(t, string(body), "{{", name)
		for line := range strings.Lines(string(body)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	require.Less(t, lines, 200)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(mod), "module example.org/sinks/parquet-dir\n"), "%s", mod)

	formatted := exec.Command("gofmt", "-l", ".")
	formatted.Dir = dir
	out, err := formatted.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out), "these files are not formatted")
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = dir
	out, err = vet.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// What Go the template asks for is what the SDK asks for.
func TestNew_GoVersion(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	source, err := os.ReadFile("module.go")
	require.NoError(t, err)
	want := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(mod)[1]
	require.Contains(t, string(source), `goVersion = "`+string(want)+`"`)
}

func TestNew_Refuses(t *testing.T) {
	parent := t.TempDir()
	taken := filepath.Join(parent, "taken")
	require.NoError(t, os.Mkdir(taken, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(taken, "precious"), []byte("x"), 0o600))
	for name, c := range map[string]struct {
		options scaffold.Options
		says    string
	}{
		"no name":           {scaffold.Options{}, `the name "": want 1 to 63 of a-z, 0-9 and -`},
		"capitals":          {scaffold.Options{Name: "MySink"}, `the name "MySink"`},
		"a path":            {scaffold.Options{Name: "../x"}, `the name "../x"`},
		"an option":         {scaffold.Options{Name: "-x"}, `the name "-x"`},
		"a quote":           {scaffold.Options{Name: `x"`}, `the name`},
		"too long":          {scaffold.Options{Name: strings.Repeat("x", 64)}, "want 1 to 63"},
		"the file's prefix": {scaffold.Options{Name: "signet-sink-foo"}, "leave out signet-sink-, which the file's name gets by itself: foo"},
		"a built-in sink":   {scaffold.Options{Name: "delta"}, "comes with Signet"},
		"a language":        {scaffold.Options{Name: "x", Language: "cobol"}, `--lang "cobol": want go or python`},
		"a module":          {scaffold.Options{Name: "x", Module: "a b"}, `--module "a b"`},
		"a module's escape": {scaffold.Options{Name: "x", Module: "a/../b"}, `--module "a/../b"`},
		"an existing place": {scaffold.Options{Name: "x", Dir: taken}, taken + " exists already"},
		"no parent":         {scaffold.Options{Name: "x", Dir: filepath.Join(parent, "no", "x")}, "there is no directory " + filepath.Join(parent, "no")},
		"no checkout":       {scaffold.Options{Name: "x", SDK: parent}, "--sdk " + parent + ": its go.mod is not that of github.com/signet-io/signet"},
		"no release":        {scaffold.Options{Name: "x", Version: "v0.3.0-5-gabcdef1"}, "v0.3.0-5-gabcdef1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.options
			if o.Dir == "" {
				o.Dir = filepath.Join(parent, "new")
			}
			_, err := scaffold.New(t.Context(), o, &bytes.Buffer{})
			require.ErrorIs(t, err, scaffold.ErrUsage)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, []string{"taken"}, names(t, parent), "nothing is half-written")
			require.Equal(t, []string{"precious"}, names(t, taken))
		})
	}
}

// A module that a released Signet makes requires that release; where the tool chain fails, nothing is left.
func TestNew_RequiresTheRelease(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("GOPROXY", "off")
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOMODCACHE", t.TempDir())
	_, err := scaffold.New(t.Context(), scaffold.Options{Name: "x", Dir: filepath.Join(parent, "x"), Version: "v0.999.0-rc.1"}, &bytes.Buffer{})
	require.ErrorIs(t, err, scaffold.ErrUsage)
	require.ErrorContains(t, err, "go mod tidy")
	require.ErrorContains(t, err, "v0.999.0-rc.1")
	require.Empty(t, names(t, parent))
}

var update = flag.Bool("update", false, "write examples/sinks/python anew")

// examples/sinks/python is what the scaffold makes, with the protocols' messages as they are now.
func TestNew_PythonIsTheExample(t *testing.T) {
	made := filepath.Join(t.TempDir(), "python")
	_, err := scaffold.New(t.Context(), scaffold.Options{Name: "python", Language: scaffold.Python, Dir: made}, &bytes.Buffer{})
	require.NoError(t, err)
	const example = "../../examples/sinks/python"
	if *update {
		require.NoError(t, os.RemoveAll(example))
		require.NoError(t, os.CopyFS(example, os.DirFS(made)))
	}
	want := files(t, made)
	require.Contains(t, want, "signet_sink/sink_pb2.py")
	for _, name := range want {
		body, err := os.ReadFile(filepath.Join(made, name))
		require.NoError(t, err)
		is, err := os.ReadFile(filepath.Join(example, name))
		require.NoError(t, err, "`make generate` writes it")
		require.Equal(t, string(body), string(is), "%s is not what the scaffold makes: `make generate` writes it", name)
	}
	tracked, err := exec.Command("git", "-C", example, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("not a clone: what else is there cannot be told from what was built")
	}
	require.ElementsMatch(t, want, strings.Fields(string(tracked)))
}

// files lists what lies below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	}))
	return out
}
