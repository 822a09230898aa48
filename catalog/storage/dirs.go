package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/signet-io/signet/internal/objects"
)

// Dirs lists the names of the directories directly below a prefix, in order of names; in an object store those are the ones that an object lies below. A prefix
// that does not exist has none. Symbolic links are none.
func Dirs(ctx context.Context, s Store, prefixURI string) ([]string, error) {
	var out []string
	if l, ok := s.(*local); ok {
		err := l.within(ctx, prefixURI, func(root *os.Root, name string) error {
			entries, err := readDir(root, name)
			for _, e := range entries {
				if e.IsDir() {
					out = append(out, e.Name())
				}
			}
			return err
		})
		return out, absentIsEmpty(err)
	}
	r, ok := s.(*remote)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	key, err := r.prefix(prefixURI) // which may be the store's own location
	if err != nil {
		return nil, err
	}
	err = r.client.List(ctx, key, "/", func(i objects.Info) error {
		if name, isDir := strings.CutSuffix(strings.TrimPrefix(i.Key, key), "/"); isDir && name != "" {
			out = append(out, name)
		}
		return nil
	})
	return out, err
}

// MakeDir makes a directory, and what is missing above it. Object stores have none: there it does nothing, and says so.
func MakeDir(ctx context.Context, s Store, prefixURI string) (made bool, err error) {
	l, ok := s.(*local)
	if !ok {
		return false, nil
	}
	rel, err := l.Rel(prefixURI)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(l.dir, 0o777); err != nil {
		return false, explain(prefixURI, err)
	}
	return true, l.within(ctx, prefixURI, func(root *os.Root, _ string) error { return root.MkdirAll(path.Clean("./"+rel), 0o777) })
}

// SetAside renames a directory to a name beside it, in one step, so that whoever looks finds all of it or nothing. A directory that does not exist is ErrNotFound, a
// store that cannot rename errors.ErrUnsupported.
func SetAside(ctx context.Context, s Store, fromURI, toURI string) error {
	l, ok := s.(*local)
	if !ok {
		return errors.ErrUnsupported
	}
	to, err := l.Rel(toURI)
	if err != nil {
		return err
	}
	return l.within(ctx, fromURI, func(root *os.Root, from string) error {
		if fi, err := root.Lstat(from); err != nil || !fi.IsDir() { // a link is somebody else's directory
			return errors.Join(err, fs.ErrNotExist)
		}
		return root.Rename(from, path.Clean("./"+to))
	})
}
