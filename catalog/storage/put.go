package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/signet-io/signet/internal/fault"
)

// TempPrefix starts the name of every file that is not whole yet.
const TempPrefix = ".signet-tmp-"

func (l *local) PutIfAbsent(ctx context.Context, uri string, body io.Reader) (Info, error) {
	rel, err := l.Rel(uri)
	if err != nil {
		return Info{}, err
	}
	if rel == "" || strings.HasPrefix(path.Base(rel), TempPrefix) {
		return Info{}, fmt.Errorf("%s: no name for a file: %w", uri, ErrOutside)
	}
	if err := makeLocation(l.dir); err != nil {
		return Info{}, explain(uri, err)
	}
	var out Info
	err = l.within(ctx, uri, func(root *os.Root, name string) error {
		// Looked at first, so that a late writer does not move the whole body only to lose; the link below decides.
		if _, err := root.Lstat(name); err == nil {
			return fmt.Errorf("%s: %w", uri, ErrExists)
		}
		if err := makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		err := create(ctx, root, name, body)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", uri, ErrExists)
		}
		if err != nil {
			return err
		}
		out, err = finish(root, name, uri)
		return err
	})
	return out, err
}

// create makes the whole file appear under its name, which must not exist. Its content is durable before, its name is not yet.
func create(ctx context.Context, root *os.Root, name string, body io.Reader) error {
	u, err := newUnnamed(root, path.Dir(name))
	if err != nil {
		return err
	}
	if u == nil {
		return createByTemp(ctx, root, name, body)
	}
	err = fill(ctx, u.File, body)
	if err == nil {
		err = fault.Hit("storage.put.before-link")
	}
	if err == nil {
		err = u.link(name)
	}
	return errors.Join(err, u.close())
}

func createByTemp(ctx context.Context, root *os.Root, name string, body io.Reader) error {
	temp, err := writeTemp(ctx, root, path.Dir(name), body)
	if err != nil {
		return err
	}
	err = fault.Hit("storage.put.before-link")
	if err == nil {
		err = root.Link(temp, name)
	}
	_ = root.Remove(temp) // what stays behind is invisible, and swept
	return err
}

// writeTemp writes a whole, durable temporary file into dir.
func writeTemp(ctx context.Context, root *os.Root, dir string, body io.Reader) (string, error) {
	temp := path.Join(dir, TempPrefix+rand.Text())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	err = errors.Join(fill(ctx, f, body), f.Close())
	if err != nil {
		_ = root.Remove(temp)
		return "", err
	}
	return temp, nil
}

// fill writes the body and makes it durable.
func fill(ctx context.Context, f *os.File, body io.Reader) error {
	_, err := io.Copy(f, contextReader{ctx, body})
	if err == nil {
		err = fault.Hit("storage.put.before-sync")
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// finish makes the name durable and describes the file.
func finish(root *os.Root, name, uri string) (Info, error) {
	if err := fault.Hit("storage.put.after-link"); err != nil {
		return Info{}, err
	}
	if err := syncDir(root, path.Dir(name)); err != nil {
		return Info{}, err
	}
	fi, err := root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return info(uri, fi), nil
}

// makeDirs is MkdirAll whose directories are durable: each new one is synced into its parent.
func makeDirs(root *os.Root, dir string) error {
	err := root.Mkdir(dir, 0o755)
	switch {
	case err == nil:
		return syncDir(root, path.Dir(dir))
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && dir != ".":
		if err := makeDirs(root, path.Dir(dir)); err != nil {
			return err
		}
		return makeDirs(root, dir)
	default:
		return err
	}
}

// makeLocation makes the location itself, which lies outside of every root.
func makeLocation(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := makeLocation(path.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	parent, err := os.Open(path.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Sync()
}

func syncDir(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// contextReader ends a copy when its context ends, for bodies that come over a network.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
