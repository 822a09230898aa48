// Package lockdir makes directories that belong to one process and are known to be left over once it is gone, however it ended.
//
// Beside the directory NAME lies NAME.lock, which the process keeps locked: the kernel ends a lock with its process. The lock file is there
// before the directory and goes after it, so that nothing is ever left which Sweep does not find.
package lockdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const suffix = ".lock"

// Dir is a directory of this process.
type Dir struct {
	Path string
	lock *os.File
}

// Make makes the directory parent/name, which must not exist, with mode 0700. The error wraps fs.ErrExist if another process has the name.
func Make(parent, name string) (*Dir, error) {
	path := filepath.Join(parent, name)
	for {
		lock, err := lockFile(path+suffix, os.O_CREATE|os.O_EXCL)
		if errors.Is(err, fs.ErrNotExist) && exists(parent) {
			continue // a sweep took the file between its creation and its lock
		}
		if err != nil {
			return nil, err
		}
		d := &Dir{path, lock}
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, errors.Join(err, os.Remove(lock.Name()), lock.Close()) // what is there is not ours
		}
		return d, nil
	}
}

// Remove removes the directory with all that is in it.
func (d *Dir) Remove() error {
	if err := os.RemoveAll(d.Path); err != nil {
		return errors.Join(err, d.lock.Close()) // a later sweep tries again
	}
	return errors.Join(os.Remove(d.lock.Name()), d.lock.Close())
}

// Abandon leaves everything as it is when a process dies.
func (d *Dir) Abandon() error { return d.lock.Close() }

// Sweep removes the directories below parent whose names begin with prefix and whose process is gone. Before a directory goes, first is
// called with its path, where first is not nil; its error keeps the directory for the next sweep. A parent that does not exist holds nothing.
func Sweep(parent, prefix string, first func(path string) error) error {
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		name := filepath.Join(parent, e.Name())
		lock, err := lockFile(name, 0)
		if err != nil {
			continue // its process lives, or another sweep is here
		}
		if err := remove(strings.TrimSuffix(name, suffix), name, first); err != nil {
			errs = append(errs, fmt.Errorf("sweep: %w", err))
		}
		_ = lock.Close()
	}
	return errors.Join(errs...)
}

func remove(path, lock string, first func(string) error) error {
	if first != nil {
		if err := first(path); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Remove(lock)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// lockFile opens and locks a file, and makes sure that the name still leads to it: between the two a sweep may have removed it, which is
// fs.ErrNotExist then.
func lockFile(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if flags == 0 {
		how |= syscall.LOCK_NB // one that we have made can only be held by a sweep, which ends soon
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	mine, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	if err1 != nil || err2 != nil || !os.SameFile(mine, named) {
		return nil, errors.Join(fs.ErrNotExist, f.Close())
	}
	return f, nil
}
