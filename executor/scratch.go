package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// scratchPrefix begins the names of the directories that executors make below their scratch directory, one per process.
const scratchPrefix = "signet-"

// scratch is this process' own scratch directory. A lock on a file in it says that the process lives.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch makes the directory, after it has removed those of processes that are gone.
func newScratch(parent, id string, log *slog.Logger) (*scratch, error) {
	sweepScratch(parent, log)
	dir := filepath.Join(parent, scratchPrefix+id)
	lock, err := os.OpenFile(lockFile(dir), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	s := &scratch{dir, lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", lock.Name(), err), s.close())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("scratch directory: %w", err), s.close())
	}
	return s, nil
}

// lockFile lies beside the directory, and is there first, so that no directory exists without it.
func lockFile(dir string) string { return dir + ".lock" }

func sweepScratch(parent string, log *slog.Logger) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		log.Warn("cannot look for old scratch", "directory", parent, "error", err)
		return
	}
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), scratchPrefix) {
			continue
		}
		if err := removeDead(dir); err != nil {
			log.Warn("cannot remove old scratch", "directory", dir, "error", err)
		}
	}
}

// removeDead removes a directory whose process is gone: the system drops the lock with the process.
func removeDead(dir string) error {
	lock, err := os.OpenFile(lockFile(dir), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its process is just ending
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // it lives
	}
	return errors.Join(os.RemoveAll(dir), os.Remove(lock.Name()))
}

// attemptDir is where an attempt may write; it exists only while the attempt runs.
func (s *scratch) attemptDir(attempt string) string { return filepath.Join(s.dir, attempt) }

func (s *scratch) close() error {
	return errors.Join(os.RemoveAll(s.dir), os.Remove(s.lock.Name()), s.lock.Close())
}
