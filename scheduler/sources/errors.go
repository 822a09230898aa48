package sources

import "errors"

// What callers tell apart with errors.Is. Every error names the source as the user wrote it, and says what to do.
var (
	// ErrNotFound: no file of that name, or none that matches.
	ErrNotFound = errors.New("no such source")
	// ErrDenied: the rules keep statements away from it.
	ErrDenied = errors.New("source not allowed")
	// ErrInvalid: it is there, and is no source: a directory, a device, an empty Parquet file.
	ErrInvalid = errors.New("not a source")
	// ErrUnsupported: a kind of location that is not served.
	ErrUnsupported = errors.New("unsupported location")
	// ErrTooMany: more files than one statement may read.
	ErrTooMany = errors.New("too many source files")
	// ErrChanged: a pinned file is not what it was.
	ErrChanged = errors.New("source changed")
)
