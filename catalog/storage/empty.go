package storage

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/signet-io/signet/internal/uri"
)

// RemoveEmpty removes a directory and those above it as long as they are empty, below base, which stays. Directories that are not there are passed
// over. Links stay, and what they lead to. Object stores have no directories, and nothing to remove. Writers make directories when they need them, so that nobody is disturbed for long.
func RemoveEmpty(base, dir string) error {
	segments, err := Below(base, dir)
	if err != nil {
		return err
	}
	if at, err := uri.Parse(base); err == nil && at.Remote() {
		return nil
	}
	at, err := LocalPath(base)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for n := len(segments); n > 0; n-- {
		name := strings.Join(segments[:n], "/")
		fi, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !fi.IsDir() || root.Remove(name) != nil {
			return nil // it holds something, or cannot be removed: it stays
		}
	}
	return nil
}
