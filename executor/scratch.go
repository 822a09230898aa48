package executor

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/signet-io/signet/internal/lockdir"
)

// scratchPrefix begins the names of the directories that executors make below their scratch directory, one per process.
const scratchPrefix = "signet-"

// scratch is this process' own scratch directory.
type scratch struct{ *lockdir.Dir }

// newScratch makes the directory, after it has removed those of processes that are gone.
func newScratch(parent, id string, log *slog.Logger) (*scratch, error) {
	if err := lockdir.Sweep(parent, scratchPrefix, nil); err != nil {
		log.Warn("cannot remove old scratch", "directory", parent, "error", err)
	}
	d, err := lockdir.Make(parent, scratchPrefix+id)
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	return &scratch{d}, nil
}

// attemptDir is where an attempt may write; it exists only while the attempt runs.
func (s *scratch) attemptDir(attempt string) string { return filepath.Join(s.Path, attempt) }
