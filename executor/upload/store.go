package upload

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
)

// Store holds data files by URI. Implementations are safe for concurrent use.
type Store interface {
	// Writer is for one attempt's files. Nothing is created before the first Place.
	Writer(ctx context.Context, prefix string) (Writer, error)
	// RemovePrefix deletes everything below the prefix, and the prefix. A prefix that is not there is no error. It answers how many files
	// went.
	RemovePrefix(ctx context.Context, prefix string) (int, error)
}

// Writer places files below one prefix. It is safe for concurrent use.
type Writer interface {
	// Place makes the local file durable and gives it its final name below the prefix, and answers the URI and the size that the store has.
	// The local file may be moved or linked; the caller must not write to it again.
	Place(ctx context.Context, local, name string) (uri string, size int64, err error)
	// Finish makes the names durable. Only then may the files be reported.
	Finish(ctx context.Context) error
}

// ErrPrefix is for prefixes and names that this executor must not write to.
var ErrPrefix = errors.New("not a place to write data files")

// ResourceError says that this machine cannot hold the file; another may.
type ResourceError struct {
	Dir  string
	Err  error
	Hint string
}

func (e *ResourceError) Error() string { return fmt.Sprintf("cannot write to %s: %v", e.Dir, e.Err) }

func (e *ResourceError) Unwrap() error { return e.Err }

// resource wraps errors about the place rather than the file.
func resource(dir string, err error) error {
	var hint string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = "free space there, or give the executor another directory"
		if free, ferr := Free(dir); ferr == nil {
			err = fmt.Errorf("%w (%d bytes free)", err, free)
		}
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EROFS):
		hint = "give the executor's user the right to write there"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		hint = "raise the limit of open files (ulimit -n)"
	default:
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	return &ResourceError{Dir: dir, Err: err, Hint: hint}
}

// LocalPath is the path that a file URI names, or an absolute path itself: some engines give their tables locations without a scheme, and files are named
// as their table is. URIs are raw: nothing is percent-decoded. Only clean absolute paths of this machine pass.
func LocalPath(uri string) (string, error) {
	p, ok := strings.CutPrefix(uri, "file://")
	if !ok {
		p = strings.TrimPrefix(uri, "file:")
	}
	if !ok && !strings.HasPrefix(p, "/") {
		return "", fmt.Errorf("%q: %w: want a file:/// URI or an absolute path", uri, ErrPrefix)
	}
	if !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("%q: %w: want an absolute path without . or .. and without a slash at the end", uri, ErrPrefix)
	}
	return p, nil
}

// CheckName accepts one path segment.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > 255 {
		return fmt.Errorf("file name %q: %w", name, ErrPrefix)
	}
	return nil
}
