package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Sweeper is what stores with temporary files offer beside Store.
type Sweeper interface {
	// SweepTemp removes temporary files below the prefix that were last written before the given time, and counts them.
	SweepTemp(ctx context.Context, prefixURI string, before time.Time) (int, error)
}

func (l *local) List(ctx context.Context, prefixURI string, f func(Info) error) error {
	err := l.within(ctx, prefixURI, func(root *os.Root, name string) error {
		return walk(ctx, root, name, func(file string, fi fs.FileInfo) error {
			if !fi.Mode().IsRegular() || isTemp(file) {
				return nil
			}
			return f(info(l.uri(file), fi))
		}, nil)
	})
	return absentIsEmpty(err)
}

func (l *local) RemoveAll(ctx context.Context, prefixURI string) (int, error) {
	if rel, err := l.Rel(prefixURI); err == nil && rel == "" {
		return 0, explain(prefixURI, errors.Join(errors.New("a table's whole location is never removed"), ErrOutside))
	}
	removed := 0
	err := l.within(ctx, prefixURI, func(root *os.Root, name string) error {
		if fi, err := root.Lstat(name); err == nil && !fi.IsDir() {
			return nil // a prefix is a directory: the file of that name is not below it
		}
		return walk(ctx, root, name, func(file string, _ fs.FileInfo) error {
			if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed++
			return nil
		}, func(dir string) error {
			// Somebody may write into it right now; then it is not empty, and stays.
			_ = root.Remove(dir)
			return nil
		})
	})
	return removed, absentIsEmpty(err)
}

func (l *local) SweepTemp(ctx context.Context, prefixURI string, before time.Time) (int, error) {
	removed := 0
	err := l.within(ctx, prefixURI, func(root *os.Root, name string) error {
		return walk(ctx, root, name, func(file string, fi fs.FileInfo) error {
			if !isTemp(file) || !fi.ModTime().Before(before) {
				return nil
			}
			if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed++
			return nil
		}, nil)
	})
	return removed, absentIsEmpty(err)
}

// walk visits everything below dir that is not a directory, sorted within each directory, and calls leave, if there is one,
// for each directory after its content. Symbolic links are visited as what they are, never followed: not the first one either.
func walk(ctx context.Context, root *os.Root, dir string, visit func(string, fs.FileInfo) error, leave func(string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fi, err := root.Lstat(dir)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return nil
	}
	entries, err := readDir(root, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			err = walk(ctx, root, name, visit, leave)
		} else {
			fi, err = root.Lstat(name)
			if err == nil {
				err = visit(name, fi)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // gone since it was listed
			return err
		}
	}
	if leave != nil {
		return leave(dir)
	}
	return nil
}

func readDir(root *os.Root, dir string) ([]os.DirEntry, error) {
	d, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (l *local) uri(name string) string { return Join(l.location, name) }

func isTemp(name string) bool { return strings.HasPrefix(path.Base(name), TempPrefix) }

func absentIsEmpty(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
