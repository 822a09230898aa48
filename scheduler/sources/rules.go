package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Rules say what statements may read.
type Rules struct {
	// Roots, if there are any, are the only directories that sources may lie below.
	Roots []string
	// Deny are files and directories that are never sources.
	Deny []string
	// Own are Signet's own files and directories. They are denied too.
	Own []string
	// Tables are directories with the files of tables that not everybody may read: they are read by the tables' names only.
	Tables []string
	// Remote are the only places in object stores and on web servers that sources may lie below.
	Remote []Remote
	// RemoteTables are places among them with the files of tables that not everybody may read.
	RemoteTables []string
	// MaxFiles bounds the files of one statement; 100,000 if 0.
	MaxFiles int
}

const defaultMaxFiles = 100_000

// kernelDirs hold no data: reading there tells secrets of processes, or never ends.
var kernelDirs = []string{"/proc", "/sys", "/dev", "/run"}

// rules are Rules with every path resolved.
type rules struct {
	roots, deny, hidden, tables []string
	max                         int
}

func compile(r Rules) (rules, error) {
	out := rules{max: r.MaxFiles}
	if out.max <= 0 {
		out.max = defaultMaxFiles
	}
	var err error
	resolveAll := func(what string, in []string) (paths []string) {
		for _, p := range in {
			if !filepath.IsAbs(p) {
				err = errors.Join(err, fmt.Errorf("sources.%s: %q: want an absolute path", what, p))
				continue
			}
			paths = append(paths, realPath(p))
		}
		return paths
	}
	out.roots = resolveAll("roots", r.Roots)
	out.deny = resolveAll("deny", r.Deny)
	out.tables = resolveAll("tables", r.Tables)
	out.hidden = append(resolveAll("own", r.Own), resolveAll("own", kernelDirs)...)
	return out, err
}

// check takes a path without symbolic links.
func (r *rules) check(path string) error {
	if dir, ok := within(r.hidden, path); ok {
		return fmt.Errorf("%w: statements never read %s", ErrDenied, dir)
	}
	if dir, ok := within(r.tables, path); ok {
		return fmt.Errorf("%w: %s holds tables that not everybody may read; name the table instead", ErrDenied, dir)
	}
	if dir, ok := within(r.deny, path); ok {
		return fmt.Errorf("%w: sources.deny has %s", ErrDenied, dir)
	}
	if _, ok := within(r.roots, path); !ok && len(r.roots) > 0 {
		return fmt.Errorf("%w: it is below none of sources.roots (%s)", ErrDenied, strings.Join(r.roots, ", "))
	}
	return nil
}

func within(dirs []string, path string) (string, bool) {
	for _, d := range dirs {
		if path == d || d == "/" || strings.HasPrefix(path, d+"/") {
			return d, true
		}
	}
	return "", false
}

// realPath resolves what there is of a path: of a file that does not exist, the directories above it and the link that leads to it. It gives the
// same for a file whether it exists or not. The path is not cleaned first: a/link/.. is the parent of what link leads to.
func realPath(path string) string { return realPathOf(path, 0) }

func realPathOf(path string, links int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "/"
	}
	dir := realPathOf(path[:i]+"/", links)
	out := filepath.Join(dir, path[i+1:])
	if to, err := os.Readlink(out); err == nil && links < maxLinks {
		if !filepath.IsAbs(to) {
			to = dir + "/" + to
		}
		return realPathOf(to, links+1)
	}
	return out
}

// maxLinks is how many links the kernel follows.
const maxLinks = 40

// isAbsent covers the ways in which a name is not there; a pattern may be longer than any name can be.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
