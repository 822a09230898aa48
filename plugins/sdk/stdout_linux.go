package sdk

import (
	"os"

	"golang.org/x/sys/unix"
)

// divert gives file descriptor 1 to standard error and returns what it was.
func divert() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(2, 1, 0); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}
