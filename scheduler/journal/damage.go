package journal

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
)

// wayOut is what to do about damage.
const wayOut = "stop the scheduler, see what is left with `signet journal check FILE`, and save it with `signet journal salvage FILE NEW` (docs/operations.md, The journal); " +
	"or move the file away to start without it: tables keep their rows and markers, jobs are forgotten"

// ofStorage tells a panic that bad pages cause from a defect of whoever uses a transaction: the panic was raised below bbolt, or it is a fault
// of the memory map.
func ofStorage(r any) bool {
	if e, ok := r.(interface{ Addr() uintptr }); ok && e.Addr() != 0 {
		return true
	}
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicked = panicked || strings.Contains(f.Function, "panic")
		case panicked: // whoever panicked
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}

// writeError says what a failed write means: nothing of the transaction has happened.
func writeError(path string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("journal %s: %w: nothing was changed; make room on its file system, the scheduler need not be restarted: %w", path, ErrFull, err)
	}
	return fmt.Errorf("journal %s: nothing was changed: %w", path, err)
}

// ErrFull is a write for which the file system has no room.
var ErrFull = errors.New("no room for the journal")
