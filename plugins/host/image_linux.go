package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// sealedCopy returns neither image nor error where the system has no executable memory files; nothing has been read then.
func sealedCopy(from io.Reader, name string) (*image, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3 does not know MFD_EXEC
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, nil //nolint:nilerr // the caller copies into a file instead
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := io.Copy(f, from); err != nil {
		return nil, closing(f, err)
	}
	if err := seal(f); err != nil {
		return nil, closing(f, fmt.Errorf("seal the copy: %w", err))
	}
	// Nobody may hold it open for writing when it is executed. The child still has the descriptor when it execs; the kernel closes it then.
	ro, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, closing(f, err)
	}
	if err := f.Close(); err != nil {
		return nil, closing(ro, err)
	}
	return &image{path: fmt.Sprintf("/proc/self/fd/%d", ro.Fd()), sealed: ro}, nil
}

// seal tries for some seconds: F_SEAL_WRITE is refused with EBUSY as long as anything in the kernel (compaction, migration, write-back) holds a
// reference to one of the pages, and the kernel itself waits only some 150 ms for them (mm/memfd.c, memfd_wait_for_pins).
func seal(f *os.File) error {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
		if !errors.Is(err, unix.EBUSY) || wait > 2*time.Second {
			return err
		}
		time.Sleep(wait)
	}
}

func closing(f *os.File, err error) error {
	_ = f.Close()
	return err
}
