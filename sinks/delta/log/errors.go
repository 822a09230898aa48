package log

import "errors"

var (
	// ErrNoTable: there is no log, or one without a commit.
	ErrNoTable = errors.New("no Delta table")
	// ErrCorrupt: the log cannot be understood. The message names version and file.
	ErrCorrupt = errors.New("corrupt Delta log")
	// ErrUnsupported: the table uses features that this package does not support. The message names each.
	ErrUnsupported = errors.New("unsupported Delta table")
	// ErrNoVersion: the log has no such version, or can no longer give it. The message says which it has.
	ErrNoVersion = errors.New("no such version of the Delta table")
)
