package scaffold

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/signet-io/signet/plugins/protocol"
)

// Languages of a project.
const (
	Go     = "go"
	Python = "python"
)

//go:embed all:templates
var templates embed.FS

// Options say what is made. ErrUsage is wrapped by every error that one of them causes.
type Options struct {
	Name     string // of the sink, as a catalog names it
	Language string // Go or Python; "": Go
	Dir      string // of the project, which must not exist; "": the sink's name
	Module   string // path of the Go module; "": signet-sink-<name>
	SDK      string // a checkout of Signet that a Go module builds against; "": see Version
	// Version is that of this Signet. A Go module requires it if it is a release; otherwise it builds against the checkout around the project or around
	// the running program.
	Version string
}

// ErrUsage marks errors that other options avoid.
var ErrUsage = errors.New("sink new")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUsage}, args...)...)
}

var (
	nameRule   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	moduleRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)
)

// builtIn are the names of sinks that come with Signet.
var builtIn = map[string]bool{"iceberg": true, "delta": true}

func (o *Options) complete() error {
	if o.Language == "" {
		o.Language = Go
	}
	if o.Dir == "" {
		o.Dir = o.Name
	}
	if o.Module == "" {
		o.Module = protocol.FilePrefix + o.Name
	}
	switch bare, prefixed := strings.CutPrefix(o.Name, protocol.FilePrefix); {
	case prefixed:
		return wrong("the name %q: leave out %s, which the file's name gets by itself: %s", o.Name, protocol.FilePrefix, bare)
	case !nameRule.MatchString(o.Name):
		return wrong("the name %q: want 1 to 63 of a-z, 0-9 and -, and no - at the beginning", o.Name)
	case builtIn[o.Name]:
		return wrong("the name %q is that of a sink that comes with Signet: take another", o.Name)
	case o.Language != Go && o.Language != Python:
		return wrong("--lang %q: want %s or %s", o.Language, Go, Python)
	case !moduleRule.MatchString(o.Module):
		return wrong("--module %q is no path of a Go module, such as example.org/sinks/%s", o.Module, o.Name)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return wrong("--dir %s: %w", o.Dir, err)
	}
	o.Dir = dir
	if _, err := os.Lstat(dir); err == nil {
		return wrong("%s exists already: name another directory with --dir, or remove it", dir)
	}
	if st, err := os.Stat(filepath.Dir(dir)); err != nil || !st.IsDir() {
		return wrong("there is no directory %s to make %s in", filepath.Dir(dir), filepath.Base(dir))
	}
	return nil
}

// New makes the project and returns its directory. What it says on the way goes to out.
func New(ctx context.Context, o Options, out io.Writer) (dir string, err error) {
	if err := o.complete(); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(o.Dir), ".signet-sink-new-")
	if err != nil {
		return "", wrong("%w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	work := filepath.Join(tmp, filepath.Base(o.Dir))
	if err := render(o, work); err != nil {
		return "", err
	}
	if o.Language == Python {
		err = pythonProtos(work)
	} else {
		err = goModule(ctx, o, work, out)
	}
	if err != nil {
		return "", err
	}
	// A directory that somebody made meanwhile is replaced by rename only if it is empty.
	if err := os.Rename(work, o.Dir); err != nil {
		return "", wrong("%w", err)
	}
	return o.Dir, nil
}

const suffix = ".tmpl"

// render writes the project's files. Those without the suffix are copied as they are.
func render(o Options, dir string) error {
	from, err := fs.Sub(templates, "templates/"+o.Language)
	if err != nil {
		return err
	}
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, strings.TrimSuffix(name, suffix))
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o755))
		}
		body, err := fs.ReadFile(from, name)
		if err == nil && strings.HasSuffix(name, suffix) {
			body, err = expand(name, body, o)
		}
		if err != nil {
			return err
		}
		return os.WriteFile(to, body, 0o644)
	})
}

func expand(name string, text []byte, o Options) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, o)
	return out.Bytes(), err
}
