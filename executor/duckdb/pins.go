package duckdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// displayName is the name that the user knows a file by.
func displayName(f *planv1.PinnedFile) string {
	if f.GetName() != "" {
		return f.GetName()
	}
	return f.GetPath()
}

// checkPin compares a file with what was planned (S73). A file pinned without size and time (both 0) only has to exist; one
// without a time is a table's data file, which never changes but for its size.
func checkPin(f *planv1.PinnedFile) error {
	st, err := os.Stat(f.GetPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return userErrorf("run the statement again; it will read the files as they are then", "%s was there when the job was planned and is gone",
			displayName(f))
	case err != nil:
		return fmt.Errorf("source %s: %w", displayName(f), err)
	case st.IsDir():
		return userErrorf("name its files, for example with *", "%s is a directory", displayName(f))
	case f.GetSizeBytes() == 0 && f.GetMtimeNanos() == 0:
		return nil
	case st.Size() != f.GetSizeBytes(), f.GetMtimeNanos() != 0 && st.ModTime().UnixNano() != f.GetMtimeNanos():
		return userErrorf("run the statement again; it will read the files as they are then",
			"%s has changed since the job was planned (size %d, then %d)", displayName(f), st.Size(), f.GetSizeBytes())
	}
	return nil
}

// CheckPins compares every bound source file with its pin again. Callers do so after the last row was read and before they report success, so
// that a file that changed under the read is never part of a result.
func (i *Instance) CheckPins() error {
	for _, s := range i.sources {
		if err := s.checkPins(); err != nil {
			return err
		}
	}
	return nil
}
