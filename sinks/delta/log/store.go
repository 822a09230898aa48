package log

import (
	"context"
	"io"
	"time"
)

// Dir is the directory of the log below a table, and Hint the object in it that says where the last checkpoint is.
const (
	Dir  = "_delta_log"
	Hint = Dir + "/_last_checkpoint"
)

// Info is an object that a listing gives.
type Info struct {
	Name     string // as in Store
	Size     int64  // bytes
	Modified time.Time
}

// Object is an open object.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64 // bytes
}

// Store reaches the objects of one table. Names are relative to the table's directory, with slashes and unescaped: _delta_log/00000000000000000000.json.
// Implementations are safe for concurrent use; logtest holds each to this contract.
type Store interface {
	// Get reads a whole object. A missing one is fs.ErrNotExist.
	Get(ctx context.Context, name string) ([]byte, error)

	// Open opens an object for reads at places. A missing one is fs.ErrNotExist.
	Open(ctx context.Context, name string) (Object, error)

	// List gives the objects directly in a directory whose names are not less than from, sorted by name. A missing directory is empty. An
	// error in the middle is an error of the whole.
	List(ctx context.Context, dir, from string) ([]Info, error)

	// PutIfAbsent creates an object, whole or not at all. An existing one is fs.ErrExist: definite. Any other error leaves open whether it was created.
	PutIfAbsent(ctx context.Context, name string, body io.Reader) error

	// ReplaceHint replaces the object Hint if it is still as old was (nil: it did not exist); anything else is fs.ErrExist.
	ReplaceHint(ctx context.Context, old, body []byte) error
}
