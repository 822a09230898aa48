package sources

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// globber walks a pattern segment by segment. It does so itself, because a directory that cannot be read must be an error (or
// rows would be missing silently), ** must not follow links in circles, and a directory whose name exists as it is written is
// that directory. What the rules deny is passed by in silence, before it is read: a pattern tells nothing of it, not even that it is there.
type globber struct {
	ctx   context.Context //nolint:containedctx // one walk
	name  string          // the whole pattern, for messages
	rules *rules
	emit  func(shown, path string) error
}

// place is a path in three forms: as the pattern shows it, absolute, and without symbolic links, which is what rules are about.
type place struct{ shown, path, real string }

func (p place) child(name string) place {
	shown := name
	if p.shown != "" {
		shown = strings.TrimRight(p.shown, "/") + "/" + name
	}
	return place{shown: shown, path: strings.TrimRight(p.path, "/") + "/" + name}
}

// named is the child that the pattern names; it may be a link, or "..".
func (p place) named(name string) place {
	c := p.child(name)
	c.real = realPath(c.path)
	return c
}

// entry is the child that was found in the directory.
func (p place) entry(e fs.DirEntry) place {
	if e.Type()&fs.ModeSymlink != 0 {
		return p.named(e.Name())
	}
	c := p.child(e.Name())
	c.real = strings.TrimRight(p.real, "/") + "/" + e.Name()
	return c
}

func (g *globber) run(baseDir, pattern string) error {
	start := place{path: baseDir, real: realPath(baseDir)}
	if strings.HasPrefix(pattern, "/") {
		start = place{shown: "/", path: "/", real: "/"}
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
	if exact := at.named(seg); !hasMeta(seg) || !last && isDir(exact.path) {
		if !last {
			return g.expand(exact, segments[1:])
		}
		if g.denied(exact) {
			return nil
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
		next := at.entry(e)
		if g.denied(next) {
			return nil
		}
		dir := e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDir(next.path)
		switch {
		case dir && !last:
			return g.expand(next, segments[1:])
		case !dir && last:
			return g.emit(next.shown, next.path)
		}
		return nil
	})
}

// descend takes ** : this directory and all below, links not followed.
func (g *globber) descend(at place, rest []string) error {
	if g.denied(at) {
		return nil
	}
	if err := g.expand(at, rest); err != nil {
		return err
	}
	return g.each(at, func(e fs.DirEntry) error {
		if !e.IsDir() {
			return nil
		}
		return g.descend(at.entry(e), rest)
	})
}

// each calls f for the entries of a directory, in order. One that is not there, or is denied, has none.
func (g *globber) each(at place, f func(fs.DirEntry) error) error {
	if g.denied(at) {
		return nil
	}
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

func (g *globber) denied(at place) bool { return g.rules.check(at.real) != nil }

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// hasMeta: braces are no pattern in DuckDB, so not here either.
func hasMeta(s string) bool { return strings.ContainsAny(s, `*?[`) }

// fixedPrefix are the directories before the first component that is a pattern, of an absolute path. The last component is no directory.
func fixedPrefix(path string) string {
	prefix := "/"
	segments := strings.Split(path, "/")
	for _, seg := range segments[:len(segments)-1] {
		next := strings.TrimRight(prefix, "/") + "/" + seg
		if hasMeta(seg) && !isDir(next) {
			break
		}
		prefix = next
	}
	return prefix
}

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
