package storage

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/signet-io/signet/internal/uri"
)

// What callers tell apart with errors.Is.
var (
	// ErrOutside: the URI does not lie below the store's location.
	ErrOutside = uri.ErrOutside
	// ErrNotFound: no such file.
	ErrNotFound = errors.New("file not found")
	// ErrExists: PutIfAbsent found the name taken. Nothing was written.
	ErrExists = errors.New("file exists")
	// ErrChanged: ReplaceIf found another version than the caller knew. Nothing was written.
	ErrChanged = errors.New("file changed")
	// ErrUnsupported: no store serves this kind of location.
	ErrUnsupported = uri.ErrUnsupported
)

// Info describes one file.
type Info struct {
	URI     string
	Size    int64
	ModTime time.Time
	ETag    string // changes whenever the content may have changed
}

// Object is one open file. It must be closed.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64
	ModTime() time.Time
	ETag() string
}

// Store is the storage below one location. Implementations are safe for concurrent use; storagetest holds each to this
// contract. Every method that takes a URI answers ErrOutside for one that does not lie below the location.
type Store interface {
	// Location is the URI the store is bound to.
	Location() string

	// Rel is the URI's path below the location, with / between segments; "" for the location itself.
	Rel(uri string) (string, error)

	// Open opens a file for reading. A missing file is ErrNotFound.
	Open(ctx context.Context, uri string) (Object, error)

	// Stat describes a file. A missing file, and a directory, is ErrNotFound.
	Stat(ctx context.Context, uri string) (Info, error)

	// List calls f for every file below the prefix, in order of names. The prefix is a directory: "a/b" covers a/b/c, not
	// a/bc. A prefix with nothing below is no error. Symbolic links are not followed. An error of f ends the walk.
	List(ctx context.Context, prefixURI string, f func(Info) error) error

	// PutIfAbsent makes a new file from body, with its directories. ErrExists if the name is taken. The file is durable
	// when this returns nil and was never visible in part. A failure leaves nothing visible; after one that is neither nil
	// nor ErrExists the file may yet be there whole (the last sync failed).
	PutIfAbsent(ctx context.Context, uri string, body io.Reader) (Info, error)

	// ReplaceIf replaces a file whose ETag is etag, or makes one where etag is "". ErrChanged if it is another by now.
	// Only writers of this process are kept apart: use it for hints, never as a commit point.
	ReplaceIf(ctx context.Context, uri, etag string, body []byte) (Info, error)

	// Remove removes one file. A missing file is ErrNotFound.
	Remove(ctx context.Context, uri string) error

	// RemoveAll removes every file below the prefix, temporary ones included, and the directories that are empty then. It
	// counts the files. The store's own location cannot be removed.
	RemoveAll(ctx context.Context, prefixURI string) (int, error)
}
