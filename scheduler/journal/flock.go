package journal

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// flock takes the lock that bbolt takes: shared to read, exclusive to write. Exactly one scheduler has it exclusively.
func flock(f *os.File, exclusive bool) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// flockWait waits for another process to let go; there is nothing that would tell.
func flockWait(f *os.File, wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		err := flock(f, true)
		if !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return err
		}
	}
}
