// Package localstore keeps a table in a directory of this machine.
//
// Invariants:
//   - An object appears whole or not at all, under a name that did not exist: it is written to a temporary file, synced, and given its name by link(2), which fails where the name
//     exists. rename(2) would replace it, so two processes could both believe to have committed a version.
//   - A name that PutIfAbsent has reported is on disk: the directories that lead to it are synced.
package localstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/signet-io/signet/sinks/delta/log"
)

// Store is the store of one table. Its methods are safe for concurrent use, by other processes too.
type Store struct{ root string }

// New makes the store of the table in a directory, which need not exist.
func New(root string) *Store { return &Store{root: root} }

var _ log.Store = (*Store)(nil)

// temporary begins the names of files in the making, which listings leave out. What a crash leaves behind may be deleted when nobody writes.
const temporary = ".tmp-"

func (s *Store) path(name string) (string, error) {
	if !fs.ValidPath(name) || name == "." {
		return "", fmt.Errorf("%q is no name of an object", name)
	}
	return filepath.Join(s.root, filepath.FromSlash(name)), nil
}

// Get implements log.Store.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	p, err := s.path(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return os.ReadFile(p)
}

type object struct {
	*os.File
	size int64
}

// Size implements log.Object.
func (o *object) Size() int64 { return o.size }

// Open implements log.Store.
func (s *Store) Open(ctx context.Context, name string) (log.Object, error) {
	p, err := s.path(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", p)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &object{File: f, size: info.Size()}, nil
}

// List implements log.Store.
func (s *Store) List(ctx context.Context, dir, from string) ([]log.Info, error) {
	p, err := s.path(dir)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []log.Info
	for _, e := range entries { // in the order of their names
		name := path.Join(dir, e.Name())
		if e.IsDir() || name < from || strings.HasPrefix(e.Name(), temporary) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, err := os.Stat(filepath.Join(p, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			out = append(out, log.Info{Name: name, Size: info.Size(), Modified: info.ModTime()})
		}
	}
	return out, nil
}

// PutIfAbsent implements log.Store.
func (s *Store) PutIfAbsent(ctx context.Context, name string, body io.Reader) error {
	p, err := s.path(name)
	if err != nil {
		return err
	}
	tmp, err := s.write(ctx, p, body)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := os.Link(tmp, p); err != nil {
		return err // EEXIST is fs.ErrExist
	}
	return syncDir(filepath.Dir(p))
}

// ReplaceHint implements log.Store. A lock makes compare and replace one step among the processes that use this package; others replace the object by rename as well,
// and one of them may come in between, which loses a hint and nothing else.
func (s *Store) ReplaceHint(ctx context.Context, old, body []byte) error {
	p, err := s.path(log.Hint)
	if err != nil {
		return err
	}
	tmp, err := s.write(ctx, p, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	dir, err := os.Open(filepath.Dir(p))
	if err != nil {
		return err
	}
	defer dir.Close() // and with it the lock
	if err := lock(ctx, dir); err != nil {
		return err
	}
	was, err := os.ReadFile(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if old != nil {
			return fmt.Errorf("%s: %w: it has been deleted", p, fs.ErrExist)
		}
	case err != nil:
		return err
	case old == nil || !bytes.Equal(was, old):
		return fmt.Errorf("%s: %w: it has been replaced", p, fs.ErrExist)
	}
	if err := os.Rename(tmp, p); err != nil {
		return err
	}
	return dir.Sync()
}

func lock(ctx context.Context, f *os.File) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// write makes a synced temporary file beside p.
func (s *Store) write(ctx context.Context, p string, body io.Reader) (tmp string, err error) {
	if err := mkdirs(filepath.Dir(p)); err != nil {
		return "", err
	}
	tmp = filepath.Join(filepath.Dir(p), temporary+rand.Text())
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, body)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close(), ctx.Err())
	if err != nil {
		os.Remove(tmp)
	}
	return tmp, err
}

// mkdirs makes a directory with its parents, and syncs those that it made.
func mkdirs(dir string) error {
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range slices.Backward(made) {
		if err := syncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
