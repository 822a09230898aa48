package duckdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	ident "github.com/signet-io/signet/internal/pin"
)

// displayName is the name that the user knows a file by.
func displayName(f *planv1.PinnedFile) string {
	if f.GetName() != "" {
		return f.GetName()
	}
	return f.GetPath()
}

// missingHint is for files that a table names and that are not there, or not whole.
const missingHint = "run the statement again, in case the table has been written anew meanwhile; otherwise the table is damaged: restore the file, or read another version of it"

// checkTableFile is checkPin for a file of a table, which no writer changes.
func checkTableFile(f *planv1.PinnedFile) error {
	st, err := os.Stat(f.GetPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return userErrorf(missingHint, "data file %s of the table is not there", displayName(f))
	case err == nil && !st.IsDir() && f.GetSizeBytes() > 0 && f.GetSizeBytes() != st.Size():
		return userErrorf(missingHint, "data file %s of the table has %d bytes, and its manifest says %d", displayName(f), st.Size(), f.GetSizeBytes())
	}
	return checkPin(f)
}

// checkPin compares a file with what was planned (S73). A file pinned without size and time (both 0) only has to exist.
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
	}
	if what := changed(f, st); what != "" {
		return userErrorf("run the statement again; it will read the files as they are then", "%s has changed since the job was planned: %s", displayName(f), what)
	}
	return nil
}

// changed says what of a file is not as it was pinned; empty: nothing.
func changed(f *planv1.PinnedFile, st fs.FileInfo) string {
	inode, ctime := ident.Of(st)
	when := func(nanos int64) string { return time.Unix(0, nanos).UTC().Format("2006-01-02T15:04:05.000000Z") }
	switch {
	case st.Size() != f.GetSizeBytes():
		return fmt.Sprintf("%d bytes then, %d now", f.GetSizeBytes(), st.Size())
	case f.GetMtimeNanos() == 0:
		return ""
	case st.ModTime().UnixNano() != f.GetMtimeNanos():
		return fmt.Sprintf("last written %s then, %s now", when(f.GetMtimeNanos()), when(st.ModTime().UnixNano()))
	case inode != 0 && f.GetInode() != 0 && inode != f.GetInode():
		return "another file has its name now, of the same size and time"
	case ctime != 0 && f.GetCtimeNanos() != 0 && ctime != f.GetCtimeNanos():
		return fmt.Sprintf("it was written to, renamed or linked at %s, and its time was set back", when(ctime))
	}
	return ""
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

// CheckPin compares a file with what was planned, for those who read it without a view.
func CheckPin(f *planv1.PinnedFile) error { return checkPin(f) }

// PathLiteral is a path as an argument of read_parquet, in which it stands for itself.
func PathLiteral(path string) (string, error) {
	escaped, err := globEscape(path)
	if err != nil {
		return "", err
	}
	return Literal(escaped), nil
}

// DirectoryValues are the values that directories such as k=v in the path of a file give, by key; of those in the part of the path that the user wrote.
func DirectoryValues(f *planv1.PinnedFile) map[string]string {
	out := map[string]string{}
	for _, dir := range writtenDirs(f) {
		if k, v, ok := strings.Cut(dir, "="); ok && k != "" && !strings.Contains(v, "=") {
			out[k] = v
		}
	}
	return out
}
