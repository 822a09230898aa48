package sources

import (
	"errors"
	"fmt"
	"strings"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/uri"
)

// ErrNotWritable: the data files of a table may not go there.
var ErrNotWritable = errors.New("not a place for data files")

// CheckWritable decides whether data files may go below place, which anybody may have written into a table. They go below the warehouse and below other
// directories that are the table's or the operator's, and never below what is denied to statements, unless the operator has put the warehouse
// there. Local ones are paths or file:// URIs, and links are followed; in object stores names are what they are.
func (r *Resolver) CheckWritable(place, warehouse string, others ...string) error {
	l, err := uri.Parse(place)
	switch {
	case err != nil: // which does not say what is no place: it may hold a password
		return fmt.Errorf("%w: %w", ErrNotWritable, err)
	case l.Remote():
		return checkRemote(l, append([]string{warehouse}, others...))
	}
	path, err := storage.LocalPath(place)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotWritable, err)
	}
	path = realPath(path)
	home := resolved(warehouse)
	if dir, ok := forbidden(r.rules.hidden, path, home); ok {
		return fmt.Errorf("%s: %w: nobody writes to %s", place, ErrNotWritable, dir)
	}
	if dir, ok := forbidden(r.rules.deny, path, home); ok {
		return fmt.Errorf("%s: %w: sources.deny has %s", place, ErrNotWritable, dir)
	}
	allowed := append([]string{warehouse}, others...)
	for _, a := range allowed {
		if dir := resolved(a); dir != "" {
			if _, ok := within([]string{dir}, path); ok {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: %w: it is below none of %s", place, ErrNotWritable, strings.Join(allowed, ", "))
}

// checkRemote decides about a place in an object store, which is never a whole bucket.
func checkRemote(place uri.Location, allowed []string) error {
	for _, a := range allowed {
		home, err := uri.Parse(a)
		if err != nil || !home.Remote() || len(place.Segments) == 0 {
			continue
		}
		if _, err := home.Below(place.String()); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: %w: it is below none of %s", place, ErrNotWritable, strings.Join(allowed, ", "))
}

// forbidden finds the directory that path is below; one that holds the warehouse forbids nothing in it.
func forbidden(dirs []string, path, warehouse string) (string, bool) {
	for _, d := range dirs {
		if _, ok := within([]string{d}, path); !ok {
			continue
		}
		_, around := within([]string{d}, warehouse)
		if _, home := within([]string{warehouse}, path); !around || !home {
			return d, true
		}
	}
	return "", false
}

// resolved is "" for what is no local directory; the root of the file system is none that confines anything.
func resolved(location string) string {
	path, err := storage.LocalPath(location)
	if err != nil || path == "/" {
		return ""
	}
	return realPath(path)
}

// Below reports whether a resolved path, or an object, is below one of some places: directories, which are local paths or file:// URIs, whose links are followed, or
// prefixes of buckets.
func (r *Resolver) Below(path string, places ...string) bool {
	for _, p := range places {
		if isRemote(path) {
			if below, err := uri.Below(p, path); err == nil && len(below) > 0 && isRemote(p) {
				return true
			}
			continue
		}
		if dir := resolved(p); dir != "" {
			if _, ok := within([]string{dir}, path); ok && path != dir {
				return true
			}
		}
	}
	return false
}
