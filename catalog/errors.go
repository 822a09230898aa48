package catalog

import "errors"

// What callers tell apart with errors.Is. Any other error of Commit means that its outcome is unknown.
var (
	// ErrNotFound: no such table or namespace.
	ErrNotFound = errors.New("not found")
	// ErrExists: the table or namespace is there already.
	ErrExists = errors.New("already exists")
	// ErrConflict: the commit definitely did not land because its requirements do not hold any more. Reload and ask again.
	ErrConflict = errors.New("commit conflict")
	// ErrPermanent: definitely refused; the same request will be refused again.
	ErrPermanent = errors.New("refused")
	// ErrNotSent: this call of Commit failed before anything was sent, so this call did not land. It says nothing about earlier
	// calls with the same request: to whoever resolves an unknown outcome it is one more unknown.
	ErrNotSent = errors.New("nothing was sent")
	// ErrUnreadable: Load found the table's metadata, and cannot make sense of it: a later version of the format, a type that came with it, or damage. Of a
	// Commit it says as little as any other error.
	ErrUnreadable = errors.New("unreadable metadata")
)
