package storage

import (
	"errors"
	"os"
	"path"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// unnamed is a file that has no name until it is whole, so that a process that dies leaves nothing behind.
type unnamed struct {
	*os.File
	dir *os.File
}

// linkable says whether this system can give such a file its name: that goes through /proc.
var linkable = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
})

// newUnnamed makes one in a directory; nil without an error where the system or the file system has none.
func newUnnamed(root *os.Root, dir string) (*unnamed, error) {
	if !linkable() {
		return nil, nil
	}
	d, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(d.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err == nil {
		return &unnamed{os.NewFile(uintptr(fd), dir), d}, nil
	}
	_ = d.Close()
	// The three ways in which kernels and file systems say that they do not know the flag.
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	return nil, &os.PathError{Op: "create a file in", Path: dir, Err: err}
}

// link gives the file its name, which must not exist.
func (u *unnamed) link(name string) error {
	err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(u.Fd())), int(u.dir.Fd()), path.Base(name), unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}

func (u *unnamed) close() error { return errors.Join(u.File.Close(), u.dir.Close()) }
