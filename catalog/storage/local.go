package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/signet-io/signet/internal/uri"
)

// openLocal returns the store for a location, an absolute local path or a file:// URI. It does not have to exist yet. The root of
// the file system is refused: a store confines, and that would confine nothing.
func openLocal(_ context.Context, location string) (Store, error) {
	segments, err := ParseLocal(location)
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("%q: the root of the file system is no table's location: %w", location, ErrUnsupported)
	}
	return &local{location: location, at: uri.Location{Scheme: uri.File, Segments: segments}, dir: "/" + strings.Join(segments, "/")}, nil
}

// local opens its os.Root for each call: that costs microseconds, holds no descriptor while idle, and follows a location that
// is made, removed and made again.
type local struct {
	location string
	at       uri.Location
	dir      string
}

func (l *local) Location() string { return l.location }

func (l *local) Rel(file string) (string, error) {
	segments, err := l.at.Below(file)
	return strings.Join(segments, "/"), err
}

// within runs f in the root with uri's name; "." stands for the location itself.
func (l *local) within(ctx context.Context, uri string, f func(root *os.Root, name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rel, err := l.Rel(uri)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return explain(uri, err)
	}
	defer root.Close()
	return explain(uri, f(root, path.Clean("./"+rel)))
}

// explain turns the file system's errors into this package's. os.Root has no exported error for an escape: what it returns
// is a PathError that wraps no errno, which no failing system call can produce.
func explain(uri string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var errno syscall.Errno
	switch {
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrExists), errors.Is(err, ErrOutside), errors.Is(err, ErrChanged):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: %w", uri, ErrNotFound)
	case (errors.As(err, &pe) || errors.As(err, &le)) && !errors.As(err, &errno) && !errors.Is(err, fs.ErrClosed):
		return fmt.Errorf("%s: %w: a symbolic link leads out (%w)", uri, ErrOutside, err)
	default:
		return fmt.Errorf("%s: %w", uri, err)
	}
}

func (l *local) Open(ctx context.Context, uri string) (Object, error) {
	var out *object
	err := l.within(ctx, uri, func(root *os.Root, name string) error {
		// O_NONBLOCK: a FIFO planted below the location must not hang the reader. It means nothing for regular files.
		f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		fi, err := f.Stat()
		if err == nil && !fi.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file: %w", uri, ErrNotFound)
		}
		if err != nil {
			f.Close()
			return err
		}
		out = &object{File: f, info: info(uri, fi)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (l *local) Stat(ctx context.Context, uri string) (Info, error) {
	var out Info
	err := l.within(ctx, uri, func(root *os.Root, name string) error {
		fi, err := root.Stat(name)
		if err == nil && !fi.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file: %w", uri, ErrNotFound)
		}
		if err != nil {
			return err
		}
		out = info(uri, fi)
		return nil
	})
	return out, err
}

// replacing keeps writers of this process apart. One lock for all stores: ReplaceIf writes small hints, rarely.
var replacing sync.Mutex

func (l *local) ReplaceIf(ctx context.Context, uri, etag string, body []byte) (Info, error) {
	if etag == "" {
		out, err := l.PutIfAbsent(ctx, uri, strings.NewReader(string(body)))
		if errors.Is(err, ErrExists) {
			err = fmt.Errorf("%s: %w: it exists by now", uri, ErrChanged)
		}
		return out, err
	}
	replacing.Lock()
	defer replacing.Unlock()
	var out Info
	err := l.within(ctx, uri, func(root *os.Root, name string) error {
		fi, err := root.Lstat(name)
		if err != nil {
			return err
		}
		if now := etagOf(fi); now != etag || !fi.Mode().IsRegular() {
			return fmt.Errorf("%s: %w: version %s, not %s", uri, ErrChanged, now, etag)
		}
		temp, err := writeTemp(ctx, root, path.Dir(name), strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		if err := root.Rename(temp, name); err != nil {
			_ = root.Remove(temp)
			return err
		}
		out, err = finish(root, name, uri)
		return err
	})
	return out, err
}

func (l *local) Remove(ctx context.Context, uri string) error {
	return l.within(ctx, uri, func(root *os.Root, name string) error {
		fi, err := root.Lstat(name)
		if err != nil {
			return err
		}
		if fi.IsDir() {
			return fmt.Errorf("%s is a directory: %w", uri, ErrNotFound)
		}
		return root.Remove(name)
	})
}

type object struct {
	*os.File
	info Info
}

var _ Object = (*object)(nil)

func info(uri string, fi fs.FileInfo) Info {
	return Info{URI: uri, Size: fi.Size(), ModTime: fi.ModTime(), ETag: etagOf(fi)}
}

// etagOf includes the inode: a file replaced within the clock's grain, by one of the same size, is another file.
func etagOf(fi fs.FileInfo) string {
	var inode uint64
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return strconv.FormatInt(fi.Size(), 36) + "-" + strconv.FormatInt(fi.ModTime().UnixNano(), 36) + "-" + strconv.FormatUint(inode, 36)
}
