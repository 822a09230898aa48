package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	runPrefix  = "run-"
	sockPrefix = "signet-sock-"
	sockLink   = "sockets"
	// maxSock leaves room below it for the names that go-plugin adds: a socket's path may have 107 bytes.
	maxSock = 60
)

// runDir is one plugin's private directory. It is owned as long as its lock file is locked, which the kernel ends with the host, so that
// the next host can tell what is left over.
type runDir struct {
	path string
	sock string // where sockets live: below path, or in the temporary directory where path is too long for a socket
	lock *os.File
}

// newRunDir sweeps what dead hosts left in dir and makes a new directory there.
func newRunDir(dir string) (*runDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	sweep(dir)
	path, err := os.MkdirTemp(dir, "new-*") // mode 0700; the sweep does not touch it before it has its lock
	if err != nil {
		return nil, err
	}
	final := filepath.Join(dir, runPrefix+strings.TrimPrefix(filepath.Base(path), "new-"))
	lock, err := lockFile(final+".lock", os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	r := &runDir{path: final, sock: filepath.Join(final, "s"), lock: lock}
	if err := os.Rename(path, final); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path), r.remove())
	}
	if err := r.makeSockets(); err != nil {
		return nil, errors.Join(err, r.remove())
	}
	return r, os.Mkdir(r.tmp(), 0o700)
}

func (r *runDir) tmp() string { return filepath.Join(r.path, "tmp") }

func (r *runDir) makeSockets() error {
	if len(r.sock) <= maxSock {
		return os.Mkdir(r.sock, 0o700)
	}
	base := os.TempDir()
	if len(base)+len(sockPrefix)+12 > maxSock {
		base = "/tmp" // TMPDIR is too long as well
	}
	short, err := os.MkdirTemp(base, sockPrefix+"*")
	if err != nil {
		return fmt.Errorf("%w; sockets need a short path: set TMPDIR to a short directory", err)
	}
	r.sock = short
	return os.Symlink(short, filepath.Join(r.path, sockLink)) // so that a sweep finds it
}

func (r *runDir) remove() error {
	err := errors.Join(removeSockets(r.path), os.RemoveAll(r.path), os.Remove(r.lock.Name()))
	return errors.Join(err, r.lock.Close())
}

func removeSockets(run string) error {
	target, err := os.Readlink(filepath.Join(run, sockLink))
	if err != nil {
		return nil //nolint:nilerr // no link: they are below
	}
	if !strings.HasPrefix(filepath.Base(target), sockPrefix) {
		return fmt.Errorf("%s points at %s, which is not ours", filepath.Join(run, sockLink), target)
	}
	return os.RemoveAll(target)
}

// sweep removes the directories of hosts that are dead. What cannot be removed stays for the next sweep.
func sweep(dir string) {
	locks, err := filepath.Glob(filepath.Join(dir, runPrefix+"*.lock"))
	if err != nil {
		return
	}
	for _, name := range locks {
		lock, err := lockFile(name, 0)
		if err != nil {
			continue // its host lives, or another one sweeps
		}
		run := strings.TrimSuffix(name, ".lock")
		if errors.Join(removeSockets(run), os.RemoveAll(run)) == nil {
			_ = os.Remove(name)
		}
		_ = lock.Close()
	}
}

// lockFile opens and locks a file, and makes sure that the name still leads to it: between the two a sweep may have removed it.
func lockFile(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	mine, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	if err1 != nil || err2 != nil || !os.SameFile(mine, named) {
		return nil, errors.Join(fs.ErrNotExist, f.Close())
	}
	return f, nil
}
