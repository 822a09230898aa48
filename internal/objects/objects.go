// Package objects is the one client of object stores: the catalog's storage and the executors' uploads and inputs are built on it.
//
// A Client is bound to one bucket (container, for Azure; origin, for HTTP). Keys are the raw bytes of names; what a protocol has to escape, the
// client escapes once. Nothing here knows of catalogs, tables or jobs, and nothing here logs a credential: a presigned URL is one, so no error holds a
// query string.
//
// Invariants:
//
//   - A conditional write that answers nil or ErrExists (ErrChanged, with IfMatch) is certain. A reply that was lost is settled by the nonce that the write left in the object's
//     metadata, never by a guess; what could not be settled is ErrUnknown.
//   - Only writes whose outcome is known to be "nothing happened" are sent again, but for conditional ones, which may be sent again at will.
//   - A body that is cut is resumed by range and If-Match, or is an error: never a short read that looks whole.
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// What callers tell apart with errors.Is.
var (
	ErrNotFound = errors.New("no such object")
	ErrExists   = errors.New("object exists")
	ErrChanged  = errors.New("object changed")
	ErrDenied   = errors.New("access denied")
	ErrExpired  = errors.New("credentials expired")
	ErrSkew     = errors.New("clocks differ")
	ErrBusy     = errors.New("store is busy")
	ErrNoBucket = errors.New("no such bucket")
	ErrRegion   = errors.New("wrong region")
	// ErrUnknown: the request may or may not have taken effect, and it could not be found out which.
	ErrUnknown = errors.New("outcome unknown")
)

// Error is what every method returns for a request that failed. It wraps one of the sentinels where one fits.
type Error struct {
	Op        string // what was asked for: "get", "put", "list", …
	URI       string // scheme://bucket/key
	Status    int    // of HTTP; 0: no answer
	Code      string // the store's own code, as "NoSuchKey"
	RequestID string
	Hint      string // what to do; may be empty
	Err       error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: %v", e.Op, e.URI, e.Err)
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Props configure a client. Names are those of PyIceberg and of Iceberg's Java properties, "s3.endpoint" and so on (docs/configuration.md).
type Props map[string]string

// Credentials are keys of S3. No method prints them.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	Expires                                    time.Time // zero: never
}

// String hides the keys, whatever the verb.
func (Credentials) String() string { return "[redacted]" }

// GoString hides the keys from %#v.
func (Credentials) GoString() string { return "[redacted]" }

// Source gives the credentials of the moment. It is asked for each request, so it caches by expiry. A nil one, and empty credentials, sign nothing: the store sees
// an anonymous request. A store that calls credentials expired makes the client ask once more, with Renew true for the context.
type Source func(context.Context) (Credentials, error)

type renewKey struct{}

// Renew reports whether a Source must not answer from its cache: the store has refused what it gave.
func Renew(ctx context.Context) bool {
	renew, _ := ctx.Value(renewKey{}).(bool)
	return renew
}

// NonceHeader is the metadata by which a conditional write knows its own object again after a lost reply. Who sends presigned writes sets it, signed, to a value
// that is used once.
const NonceHeader = "x-amz-meta-" + nonceKey

const nonceKey = NonceKey

// NonceKey is its name in the metadata.
const NonceKey = "signet-put"

// Info describes one object.
type Info struct {
	Key     string
	Size    int64
	ETag    string // as the store writes it, quotes included
	ModTime time.Time
	Nonce   string // of the conditional write that made it, where the store was asked for one object
}

// Body is what is written: it can be read again from the start when a request has to be repeated.
type Body interface {
	io.ReaderAt
	Size() int64
}

// Bytes is a Body that is held in memory.
func Bytes(b []byte) Body { return bytes.NewReader(b) }

// Section is a Body that is a part of a file.
func Section(r io.ReaderAt, off, size int64) Body { return io.NewSectionReader(r, off, size) }

// PutOptions are conditions of a write; at most one of them.
type PutOptions struct {
	IfAbsent bool
	IfMatch  string // an ETag
}

// Client reads and writes the objects of one bucket. Implementations are safe for concurrent use.
type Client interface {
	// URI names a key for people and for tables.
	URI(key string) string

	// Head describes an object. A missing one is ErrNotFound.
	Head(ctx context.Context, key string) (Info, error)

	// Get reads n bytes from off on; n < 0: to the end. With ifMatch another version than that is ErrChanged. A body that breaks off is resumed.
	Get(ctx context.Context, key string, off, n int64, ifMatch string) (io.ReadCloser, Info, error)

	// Put writes one object. With IfAbsent a name that is taken is ErrExists, with IfMatch another version is ErrChanged.
	Put(ctx context.Context, key string, body Body, o PutOptions) (Info, error)

	// Begin starts an upload in parts.
	Begin(ctx context.Context, key string) (Upload, error)

	// List calls f for each object whose key begins with prefix, in order of keys. With a delimiter what follows the prefix up to and including the delimiter is
	// folded into one Info that has only a Key. Every page is followed, also after an empty one.
	List(ctx context.Context, prefix, delimiter string, f func(Info) error) error

	// Remove removes one object. A missing one is no error: stores do not say.
	Remove(ctx context.Context, key string) error

	// RemoveAll removes every object whose key begins with prefix, and aborts every upload in parts below it that has begun before the given time (zero: all). It counts the objects.
	RemoveAll(ctx context.Context, prefix string, before time.Time) (int, error)

	// Sign presigns one request, so that who has no credentials can send it as it is, once or more, until it expires.
	Sign(ctx context.Context, s Signing) (Signed, error)
}

// UploadAborter is what clients offer whose store keeps the parts of unfinished uploads.
type UploadAborter interface {
	// AbortUploads aborts the uploads in parts of keys that begin with prefix, if they began before the given time (zero: all). It counts them.
	AbortUploads(ctx context.Context, prefix string, before time.Time) (int, error)
}

// Upload is an object that is being written in parts. Exactly one of Complete and Abort ends it.
type Upload interface {
	// ID is the store's name of it.
	ID() string
	// Part writes part n, from 1 on. Any order, any number at a time; the same part twice: the last one counts.
	Part(ctx context.Context, n int, body Body) error
	// Complete makes the object appear, whole. With IfAbsent a name that is taken is ErrExists, where the store takes the condition.
	Complete(ctx context.Context, o PutOptions) (Info, error)
	// Abort removes what was written. One that is gone already is no error.
	Abort(ctx context.Context) error
}

// Signing says which request to presign.
type Signing struct {
	Method   string // http.MethodGet, MethodHead, MethodPut, MethodPost (to begin or complete an upload), MethodDelete (to abort one)
	Key      string
	Size     int64       // PUT: content-length, which is signed
	Header   http.Header // further headers that are signed, and that the sender has to send as they are: If-None-Match, x-amz-checksum-crc32c, x-amz-meta-…
	UploadID string      // with Part: an upload's part; without: its completion or abortion
	Part     int
	Begin    bool        // POST: begin an upload
	From     *CopySource // with Part: what the store makes the part of; there is no body
	For      time.Duration
}

// Signed is a request for whoever has no credentials. It is a credential itself.
type Signed struct {
	Method string
	URL    string
	Header http.Header // to be sent as they are; Host and Content-Length, which are signed too, are not among them
	Until  time.Time
	// UploadID: there is nothing to send, URL is empty. The upload has this id, if it was to begin; it vanishes by itself, if it was to be aborted.
	UploadID string
}

// String hides the signature.
func (s Signed) String() string { return s.Method + " [redacted]" }

// GoString hides the signature from %#v.
func (s Signed) GoString() string { return s.String() }
