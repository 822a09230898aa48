package upload

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free is the number of bytes that an unprivileged process may still write to the file system of dir.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the types differ between systems
}

// CheckSpace refuses a directory with less than need bytes free.
func CheckSpace(dir string, need int64) error {
	free, err := Free(dir)
	if err != nil {
		return resource(dir, err)
	}
	if free < need {
		return &ResourceError{
			Dir: dir, Err: fmt.Errorf("no space: %d bytes free, at least %d needed", free, need),
			Hint: "free space there, or give the executor another scratch directory",
		}
	}
	return nil
}
