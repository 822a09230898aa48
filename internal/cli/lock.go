package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errLocked: another process uses the data directory.
var errLocked = errors.New("data directory in use")

// dirLock is an advisory lock on a data directory. The kernel drops it with the process, however that ends; children do not inherit it.
type dirLock struct{ file *os.File }

// lockDir takes the lock or says who has it.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := readHolder(f)
		_ = f.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is used by %s", errLocked, dir, holder)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return &dirLock{f}, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

func readHolder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return "process " + pid
	}
	return "another process"
}

// waitLock takes the lock, however long that takes; busy is called once if it is not free.
func waitLock(ctx context.Context, dir string, busy func(error)) (*dirLock, error) {
	for first := true; ; first = false {
		l, err := lockDir(dir)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		if first {
			busy(err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond): // flock can wait, but not be called off
		}
	}
}

func (l *dirLock) release() error { return l.file.Close() }
