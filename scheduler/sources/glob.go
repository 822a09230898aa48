package sources

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// globber walks a pattern segment by segment. It does so itself, because a directory that cannot be read must be an error (or
// rows would be missing silently), ** must not follow links in circles, and a directory whose name exists as it is written is
// that directory.
type globber struct {
	ctx   context.Context //nolint:containedctx // one walk
	name  string          // the whole pattern, for messages
	rules *rules
	emit  func(shown, path string) error
}

// place is a path in two forms: as the pattern shows it, and absolute.
type place struct{ shown, path string }

func (p place) child(name string) place {
	shown := name
	if p.shown != "" {
		shown = strings.TrimRight(p.shown, "/") + "/" + name
	}
	return place{shown: shown, path: strings.TrimRight(p.path, "/") + "/" + name}
}

func (g *globber) run(baseDir, pattern string) error {
	start := place{path: baseDir}
	if strings.HasPrefix(pattern, "/") {
		start = place{shown: "/", path: "/"}
	}
	segments := strings.Split(pattern, "/")
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "" })
	// a/**/**/b is a/**/b, and would find everything twice.
	segments = slices.CompactFunc(segments, func(a, b string) bool { return a == "**" && b == "**" })
	if len(segments) > 1 && segments[len(segments)-1] == "**" {
		segments = append(segments, "*")
	} else if len(segments) == 1 && segments[0] == "**" {
		segments = []string{"**", "*"}
	}
	return g.expand(start, segments)
}

func (g *globber) expand(at place, segments []string) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	seg, last := segments[0], len(segments) == 1
	if seg == "**" {
		return g.descend(at, segments[1:])
	}
	if exact := at.child(seg); !hasMeta(seg) || !last && isDir(exact.path) {
		if !last {
			return g.expand(exact, segments[1:])
		}
		fi, err := os.Stat(exact.path)
		switch {
		case err != nil && isAbsent(err), err == nil && fi.IsDir():
			return nil
		case err != nil:
			return fmt.Errorf("%q: %q: %w", g.name, exact.path, plainError(err))
		}
		return g.emit(exact.shown, exact.path)
	}
	return g.each(at, func(e fs.DirEntry) error {
		ok, err := doublestar.Match(literalBraces(seg), e.Name())
		if err != nil || !ok {
			return err
		}
		next := at.child(e.Name())
		dir := e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDir(next.path)
		switch {
		case dir && !last && !g.hidden(next.path):
			return g.expand(next, segments[1:])
		case !dir && last:
			return g.emit(next.shown, next.path)
		}
		return nil
	})
}

// descend takes ** : this directory and all below, links not followed.
func (g *globber) descend(at place, rest []string) error {
	if err := g.expand(at, rest); err != nil {
		return err
	}
	return g.each(at, func(e fs.DirEntry) error {
		next := at.child(e.Name())
		if !e.IsDir() || g.hidden(next.path) {
			return nil
		}
		return g.descend(next, rest)
	})
}

// each calls f for the entries of a directory, in order. One that is not there has none.
func (g *globber) each(at place, f func(fs.DirEntry) error) error {
	entries, err := os.ReadDir(at.path)
	if err != nil {
		if isAbsent(err) {
			return nil
		}
		return fmt.Errorf("%q: the directory %q cannot be read: %w", g.name, at.path, plainError(err))
	}
	for _, e := range entries {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

func (g *globber) hidden(path string) bool {
	if g.rules.isHidden(path) {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && g.rules.isHidden(real)
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// hasMeta: braces are no pattern in DuckDB, so not here either.
func hasMeta(s string) bool { return strings.ContainsAny(s, `*?[`) }

func checkPattern(pattern string) error {
	for seg := range strings.SplitSeq(pattern, "/") {
		if !doublestar.ValidatePattern(literalBraces(seg)) {
			return doublestar.ErrBadPattern
		}
	}
	return nil
}

// literalBraces escapes what doublestar would expand.
func literalBraces(seg string) string {
	var b strings.Builder
	escaped := false
	for _, r := range seg {
		if (r == '{' || r == '}') && !escaped {
			b.WriteByte('\\')
		}
		escaped = r == '\\' && !escaped
		b.WriteRune(r)
	}
	return b.String()
}
