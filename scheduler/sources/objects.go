package sources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/objects"
)

// resolveObjects pins an object, or those that match a pattern where no object has the name as it is written.
func (r *Resolver) resolveObjects(ctx context.Context, root *remote, name string, at spot, out map[string]*planv1.PinnedFile) error {
	if fixed := at.fixed(); hasMeta(at.key()) && len(fixed.segments) < len(root.segments) { // it would have to look around above the prefix
		return fmt.Errorf("%q: %w: a pattern begins below a prefix of sources.remote, like %s/", name, ErrDenied, root.Prefix)
	}
	c, err := r.remotes.client(root, at.authority)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	w := &walker{ctx: ctx, client: c, name: name}
	info, err := c.Head(ctx, at.key())
	switch {
	case err == nil && strings.HasSuffix(at.key(), "/") && info.Size == 0:
		return directory(name)
	case err == nil:
		return r.pin(name, c.URI(at.key()), info.Size, quoted(info.ETag), out)
	case !errors.Is(err, objects.ErrNotFound) || !hasMeta(at.key()):
		return w.missing(at.key(), err)
	}
	if err := checkPattern(at.key()); err != nil {
		return fmt.Errorf("%q: no object has this name, and as a pattern it is broken: %w", name, ErrNotFound)
	}
	found := 0
	w.emit = func(i objects.Info) error {
		file := spot{scheme: at.scheme, authority: at.authority, segments: strings.Split(i.Key, "/")}
		if _, err := r.remotes.rootOf(file); err != nil { // in silence, as for local files
			return nil //nolint:nilerr // a pattern passes by what is denied
		}
		if _, err := parseFile(c.URI(i.Key)); err != nil {
			return fmt.Errorf("%q: it matches an object that cannot be read: %w: %w", name, err, ErrInvalid)
		}
		found++
		return r.pin(c.URI(i.Key), c.URI(i.Key), i.Size, quoted(i.ETag), out)
	}
	if err := w.expand("", patternSegments(at.segments)); err != nil {
		return err
	}
	if found == 0 {
		return fmt.Errorf("%q: no object has this name, and none matches it as a pattern (* ? [ ] and ** stand for other characters): %w", name, ErrNotFound)
	}
	return nil
}

// fixed is the place in front of the first segment that is a pattern. The last segment is no place.
func (p spot) fixed() spot {
	n := slices.IndexFunc(p.segments, hasMeta)
	if n < 0 || n == len(p.segments)-1 {
		n = len(p.segments) - 1
	}
	p.segments = p.segments[:n]
	return p
}

// patternSegments: a/**/**/b is a/**/b, and would find everything twice; a/** is a/**/*.
func patternSegments(segments []string) []string {
	out := slices.CompactFunc(slices.Clone(segments), func(a, b string) bool { return a == "**" && b == "**" })
	if out[len(out)-1] == "**" {
		out = append(out, "*")
	}
	return out
}

// quoted is an ETag as it is in headers.
func quoted(etag string) string {
	if etag == "" || strings.HasPrefix(etag, `"`) || strings.HasPrefix(etag, "W/") {
		return etag
	}
	return `"` + etag + `"`
}

// walker finds the objects that a pattern means, with a list for each place that it matches.
type walker struct {
	ctx    context.Context //nolint:containedctx // one walk
	client objects.Client
	name   string // the whole pattern, for messages
	emit   func(objects.Info) error
}

// expand goes on behind a prefix of keys, which is empty or ends in a slash.
func (w *walker) expand(prefix string, segments []string) error {
	seg, last := segments[0], len(segments) == 1
	switch {
	case seg == "**":
		return w.list(prefix, "", func(i objects.Info) error {
			if !marker(i) && matches(segments, strings.Split(i.Key[len(prefix):], "/")) {
				return w.emit(i)
			}
			return nil
		})
	case !hasMeta(seg) && !last:
		return w.expand(prefix+seg+"/", segments[1:])
	case !hasMeta(seg):
		i, err := w.first(prefix + seg)
		if err != nil || i == nil || i.Key != prefix+seg || marker(*i) {
			return err
		}
		return w.emit(*i)
	}
	if !last { // a place whose name exists as it is written is that place
		if i, err := w.first(prefix + seg + "/"); err != nil || i != nil {
			if err != nil {
				return err
			}
			return w.expand(prefix+seg+"/", segments[1:])
		}
	}
	literal := seg[:strings.IndexAny(seg, `*?[\`)]
	return w.list(prefix+literal, "/", func(i objects.Info) error {
		folded := i.ETag == "" && strings.HasSuffix(i.Key, "/")
		name := i.Key[len(prefix):]
		if folded {
			name = strings.TrimSuffix(name, "/")
		}
		if ok, err := doublestar.Match(literalBraces(seg), name); err != nil || !ok {
			return err
		}
		switch {
		case folded && !last:
			return w.expand(i.Key, segments[1:])
		case !folded && last && !marker(i):
			return w.emit(i)
		}
		return nil
	})
}

// marker: what other tools leave for directories.
func marker(i objects.Info) bool { return i.Size == 0 && strings.HasSuffix(i.Key, "/") }

// matches compares segment by segment; ** stands for any number of them.
func matches(pattern, segments []string) bool {
	if len(pattern) == 0 {
		return len(segments) == 0
	}
	if pattern[0] == "**" {
		for n := range len(segments) + 1 {
			if matches(pattern[1:], segments[n:]) {
				return true
			}
		}
		return false
	}
	if len(segments) == 0 {
		return false
	}
	ok, err := doublestar.Match(literalBraces(pattern[0]), segments[0])
	return err == nil && ok && matches(pattern[1:], segments[1:])
}

func (w *walker) list(prefix, delimiter string, f func(objects.Info) error) error {
	var stopped error // by f, and not by the store
	err := w.client.List(w.ctx, prefix, delimiter, func(i objects.Info) error {
		if stopped = w.ctx.Err(); stopped == nil {
			stopped = f(i)
		}
		return stopped
	})
	if err != nil && stopped == nil {
		return fmt.Errorf("%q: the objects below %s cannot be listed: %w", w.name, w.client.URI(prefix), err)
	}
	return err
}

var errEnough = errors.New("enough")

// first is the first object whose key begins with a prefix; nil: there is none.
func (w *walker) first(prefix string) (*objects.Info, error) {
	var out *objects.Info
	err := w.list(prefix, "", func(i objects.Info) error {
		out = &i
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// missing says why an object cannot be read by its name. The answer to a HEAD has no body: a list says what it is about.
func (w *walker) missing(key string, err error) error {
	e := new(objects.Error)
	if !errors.As(err, &e) || e.Status == 0 {
		return fmt.Errorf("%q: cannot look at it: %w", w.name, err)
	}
	below, why := w.first(strings.TrimSuffix(key, "/") + "/")
	told := new(objects.Error)
	known := errors.As(why, &told) && told.Status != 0 && told.Code != "AccessDenied"
	switch {
	case e.Status == http.StatusNotFound && below != nil:
		return directory(w.name)
	case e.Status == http.StatusNotFound && known && !errors.Is(told, objects.ErrNotFound):
		return fmt.Errorf("%q: cannot look at it: %w", w.name, told)
	case e.Status == http.StatusNotFound:
		pattern := path.Dir(w.name[strings.Index(w.name, "://")+3:])
		return fmt.Errorf("%q: no such object: %w; for several files write a pattern, like %q", w.name, ErrNotFound, "s3://"+pattern+"/*"+path.Ext(w.name))
	case known:
		return fmt.Errorf("%q: cannot look at it: %w", w.name, told)
	case errors.Is(err, objects.ErrDenied) && why != nil:
		return fmt.Errorf("%q: cannot look at it: %w (s3:GetObject is needed for it, and s3:ListBucket for patterns; without s3:ListBucket a missing object is denied, too)", w.name, err)
	case errors.Is(err, objects.ErrDenied):
		return fmt.Errorf("%q: cannot look at it: %w (s3:GetObject is needed for it)", w.name, err)
	}
	return fmt.Errorf("%q: cannot look at it: %w", w.name, err)
}

func directory(name string) error {
	below := strings.TrimRight(name, "/")
	return fmt.Errorf("%q: a directory: %w; write %q for its files, or %q for those below it too", name, ErrInvalid, below+"/*.parquet", below+"/**/*.parquet")
}
