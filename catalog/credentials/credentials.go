package credentials

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/objects"
)

// ErrRefused: what was asked for is not in the scope, or is no request that anybody may make. Asking again is useless.
var ErrRefused = errors.New("no access")

// Scope is what one attempt, or one analysis, may touch.
type Scope struct {
	Reads  map[string]struct{} // URIs of its input files
	Prefix string              // URI below which it writes, no trailing slash; empty: nowhere
	Nonce  string              // what each object that it writes is marked with; unique to the attempt
	// Copies are those of its input files that the store may copy parts of its own files from, by URI.
	Copies map[string]objects.CopySource
}

// Put is one request about a file below the scope's prefix.
type Put = objects.FilePut

// Issuer makes access. Implementations are safe for concurrent use.
type Issuer interface {
	// Read signs a GET of each URI.
	Read(ctx context.Context, s Scope, uris []string) ([]objects.Signed, error)
	// Put signs requests about files below the scope's prefix.
	Put(ctx context.Context, s Scope, puts []Put) ([]objects.Signed, error)
}

// Sign presigns a request for the object that a URI names, which the signing's Key leaves out.
type Sign func(ctx context.Context, uri string, s objects.Signing) (objects.Signed, error)

// Limits of S3's API, which the stores that speak it share.
const (
	maxObject   = 5 << 30 // bytes of one PUT
	maxParts    = 10_000
	maxCopy     = 5 << 30 // bytes of one part that is copied
	maxName     = 255     // bytes
	maxUploadID = 2048    // bytes
)

// Lifetime is how long presigned requests are good for. A request that runs when it ends goes on; one that is sent later has to be asked for again.
const Lifetime = 15 * time.Minute

// CheckName accepts one segment of a key that stands for itself in every store, whatever is put behind it.
func CheckName(name string) error {
	var reason string
	switch {
	case name == "" || name == "." || name == "..":
		reason = "it is no name"
	case len(name) > maxName:
		reason = fmt.Sprintf("it has %d bytes, and may have %d", len(name), maxName)
	case !utf8.ValidString(name):
		reason = "it is not UTF-8"
	case strings.ContainsAny(name, "/\\"):
		reason = "it has a slash"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 }):
		reason = "it has a control character"
	default:
		return nil
	}
	return fmt.Errorf("%w: file name %q: %s", ErrRefused, name, reason)
}

// checkPut refuses what no task asks for.
func checkPut(p *Put) error {
	if err := CheckName(p.Name); err != nil && !mutant.On("credentials/any-name") {
		return err
	}
	kinds := 0
	for _, is := range []bool{p.Begin, p.Abort, p.Head, p.Part != 0, p.UploadID != "" && p.Part == 0 && !p.Abort} {
		if is {
			kinds++
		}
	}
	var reason string
	switch {
	case kinds > 1:
		reason = "it asks for several things at a time"
	case (p.Part != 0 || p.Abort) && p.UploadID == "":
		reason = "it names no upload"
	case (p.Begin || p.Head) && p.UploadID != "":
		reason = "it names an upload that it is not about"
	case len(p.UploadID) > maxUploadID || strings.ContainsFunc(p.UploadID, func(r rune) bool { return r <= ' ' || r > '~' }):
		reason = "its upload is none"
	case p.Part < 0 || p.Part > maxParts:
		reason = fmt.Sprintf("part %d is none of 1 to %d", p.Part, maxParts)
	case p.Writes() && (p.Size < 0 || p.Size > maxObject):
		reason = fmt.Sprintf("%d bytes are not what one request can write", p.Size)
	case p.Writes() && len(p.CRC32C) != 4:
		reason = "its checksum is no CRC-32C"
	case p.Copy != nil && (p.Part == 0 || p.Size != 0 || len(p.CRC32C) > 0):
		reason = "what is copied is a part of an upload, and has no body"
	case p.Copy != nil && (p.Copy.Off < 0 || p.Copy.Size <= 0 || p.Copy.Size > maxCopy || p.Copy.Off > math.MaxInt64-p.Copy.Size):
		reason = fmt.Sprintf("%d bytes from %d on are not what one request can copy", p.Copy.Size, p.Copy.Off)
	default:
		return nil
	}
	return fmt.Errorf("%w: request about file %q: %s", ErrRefused, p.Name, reason)
}
