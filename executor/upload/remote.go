package upload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/signed"
)

const (
	wholeBytes  = 32 << 20 // files from this size on are uploaded in parts
	partBytes   = 16 << 20 // at least; S3 takes no less than 5 MiB
	partsMost   = 9_000    // S3 takes 10,000
	partsAtTime = 4
)

// Signer gets requests about files of one attempt signed. They are credentials.
type Signer interface {
	Puts(ctx context.Context, puts []*executorv1.PutRequest) ([]*executorv1.SignedRequest, error)
}

// Remote is a Store of one attempt in an object store, which is reached with requests that the scheduler signs.
type Remote struct {
	Signer Signer
	Client *signed.Client
	Retry  signed.Retry

	// Whole and Part are wholeBytes and partBytes if they are 0. For tests.
	Whole, Part int64
}

// IsRemote tells whether a prefix is in an object store.
func IsRemote(prefix string) bool {
	scheme, rest, ok := strings.Cut(prefix, "://")
	return ok && scheme != "file" && !strings.Contains(scheme, "/") && rest != ""
}

// CheckRemote accepts the URI of a place in an object store. Only segments pass that stand for themselves, whoever reads them.
func CheckRemote(prefix string) error {
	_, rest, _ := strings.Cut(prefix, "://")
	segments := strings.Split(rest, "/")
	for _, s := range segments {
		if s == "" || s == "." || s == ".." || strings.ContainsFunc(s, unicode.IsControl) || !IsRemote(prefix) || len(segments) < 2 {
			return fmt.Errorf("%q: %w: want the URI of a place in an object store, scheme://bucket/path, without a slash at the end", prefix, ErrPrefix)
		}
	}
	return nil
}

// Writer implements Store.
func (r *Remote) Writer(_ context.Context, prefix string) (Writer, error) {
	if err := CheckRemote(prefix); err != nil {
		return nil, err
	}
	w := &remoteWriter{Remote: *r, prefix: prefix, names: map[string]bool{}}
	if w.Whole <= 0 {
		w.Whole = wholeBytes
	}
	if w.Part <= 0 {
		w.Part = partBytes
	}
	return w, nil
}

// RemovePrefix implements Store: an executor cannot remove objects. The scheduler sweeps the prefixes of attempts whose files nobody wants.
func (r *Remote) RemovePrefix(context.Context, string) (int, error) { return 0, nil }

type remoteWriter struct {
	Remote
	prefix string

	mu    sync.Mutex
	names map[string]bool
}

// Place uploads the file. It appears whole, or not at all; a name that is taken stays what it is.
func (w *remoteWriter) Place(ctx context.Context, local, name string) (string, int64, error) {
	if err := w.take(name); err != nil {
		return "", 0, err
	}
	f, err := os.Open(local)
	if err != nil {
		return "", 0, resource(filepath.Dir(local), err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", 0, resource(filepath.Dir(local), err)
	}
	u := &uploading{w: w, file: f, name: name, size: st.Size()}
	if u.size < w.Whole {
		err = u.whole(ctx)
	} else {
		err = u.inParts(ctx)
	}
	if err != nil {
		return "", 0, fmt.Errorf("upload %s/%s: %w", w.prefix, name, err)
	}
	return w.prefix + "/" + name, u.size, nil
}

// take makes sure that a name is used once.
func (w *remoteWriter) take(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names[name] {
		return fmt.Errorf("%s/%s was placed already: %w", w.prefix, name, fs.ErrExist)
	}
	w.names[name] = true
	return nil
}

// Finish has nothing to do: what a store has taken is durable, and has its name.
func (w *remoteWriter) Finish(context.Context) error { return nil }

// uploading is one file on its way.
type uploading struct {
	w    *remoteWriter
	file io.ReaderAt
	name string
	size int64
	// unsettled: a request that makes the object was sent, and nobody knows what it did.
	unsettled bool
}

// refused tells a signer that has credentials of its own that they are not taken any more.
func (u *uploading) refused(yes bool) {
	if s, ok := u.w.Signer.(interface{ Refused() }); ok && yes {
		s.Refused()
	}
}

// sign gets requests about the file.
func (u *uploading) sign(ctx context.Context, puts ...*executorv1.PutRequest) ([]*executorv1.SignedRequest, error) {
	for _, p := range puts {
		p.Name = u.name
	}
	out, err := u.w.Signer.Puts(ctx, puts)
	if err == nil && len(out) != len(puts) {
		err = fmt.Errorf("%d requests were signed instead of %d", len(out), len(puts))
	}
	return out, err
}

// whole writes the file with one request, which never replaces anything. A lost answer is no trouble: the same request is sent again, and what it meets is looked at.
func (u *uploading) whole(ctx context.Context) error {
	sum, err := checksum(io.NewSectionReader(u.file, 0, u.size))
	if err != nil {
		return err
	}
	var reqs []*executorv1.SignedRequest
	return u.w.Retry.Do(ctx, func(renew bool) error {
		u.refused(renew)
		if reqs == nil || renew {
			if reqs, err = u.sign(ctx, &executorv1.PutRequest{SizeBytes: u.size, Crc32C: sum}, &executorv1.PutRequest{Head: true}); err != nil {
				return err
			}
		}
		more, err := u.compared(reqs[0], 0, u.size)
		if err != nil {
			return err
		}
		resp, err := u.w.Client.Do(ctx, reqs[0], more, io.NewSectionReader(u.file, 0, u.size), u.size)
		if err == nil {
			return resp.Body.Close()
		}
		denied := errors.Is(err, signed.ErrDenied) && u.unsettled // who may only create may be told so of what exists
		if !errors.Is(err, signed.ErrExists) && !denied {
			u.unsettled = u.unsettled || signed.Unknown(err)
			return err
		}
		ours, herr := u.ours(ctx, reqs[1], nonceOf(reqs[0]))
		switch {
		case denied && !ours:
			return err
		case herr != nil:
			return herr
		case !ours:
			return fmt.Errorf("it exists already, and is not of this attempt: %w", fs.ErrExist)
		}
		return nil
	})
}

// nonceHeaders mark an object with the attempt that wrote it, in the words of each store. The scheduler signs them.
var nonceHeaders = []string{"X-Amz-Meta-Signet-Put", "X-Goog-Meta-Signet-Put", "X-Ms-Meta-Signet_put"}

func nonceOf(r *executorv1.SignedRequest) string {
	for name, value := range r.GetHeaders() {
		if slices.Contains(nonceHeaders, http.CanonicalHeaderKey(name)) {
			return value
		}
	}
	return ""
}

// ours looks whether the object is there and is what this attempt wrote.
func (u *uploading) ours(ctx context.Context, head *executorv1.SignedRequest, nonce string) (bool, error) {
	resp, err := u.w.Client.Do(ctx, head, nil, nil, 0)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	marked := func(name string) bool { return resp.Header.Get(name) == nonce }
	return nonce != "" && slices.ContainsFunc(nonceHeaders, marked) && resp.ContentLength == u.size, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC-32C, big endian.
func checksum(r io.Reader) ([]byte, error) {
	h := crc32.New(castagnoli)
	if _, err := io.Copy(h, r); err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint32(nil, h.Sum32()), nil
}

// abortPatience is how long an upload that has failed may take to be taken back. The scheduler's sweep does it otherwise.
const abortPatience = 10 * time.Second
