package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// remote is the Store below one location of a bucket. A name is a key, literally; there are no directories, so that a file and a prefix may have the same name.
type remote struct {
	client   objects.Client
	at       uri.Location
	location string
}

var (
	_ Store   = (*remote)(nil)
	_ Signer  = (*remote)(nil)
	_ Sweeper = (*remote)(nil)
	_ Prober  = (*remote)(nil)
	_ Located = (*remote)(nil)
)

// NewRemote is the store below a location of an object store, whose bucket the client is for. It sends nothing.
func NewRemote(client objects.Client, location string) (Store, error) {
	at, err := uri.Parse(location)
	if err != nil {
		return nil, err
	}
	if !at.Remote() {
		return nil, fmt.Errorf("%s: a local place: %w", location, ErrUnsupported)
	}
	return &remote{client: client, at: at, location: location}, nil
}

func (r *remote) Location() string { return r.location }

func (r *remote) Rel(file string) (string, error) {
	segments, err := r.at.Below(file)
	return strings.Join(segments, "/"), err
}

// key is the key of a file. The location itself is none.
func (r *remote) key(file string) (string, error) {
	rel, err := r.Rel(file)
	switch {
	case err != nil:
		return "", err
	case rel == "":
		return "", fmt.Errorf("%s: %w", file, ErrNotFound)
	}
	return r.join(rel), nil
}

// prefix is what the keys of the files below a directory begin with.
func (r *remote) prefix(dir string) (string, error) {
	rel, err := r.Rel(dir)
	if err != nil {
		return "", err
	}
	key := r.join(rel)
	if key == "" {
		return "", nil // a whole bucket
	}
	return key + "/", nil
}

func (r *remote) join(rel string) string {
	base := r.at.Path()
	if base == "" || rel == "" {
		return base + rel
	}
	return base + "/" + rel
}

// uri names a key as the location is spelt.
func (r *remote) uri(key string) string {
	rel := key
	if base := r.at.Path(); base != "" {
		rel = strings.TrimPrefix(key, base+"/")
	}
	return strings.TrimRight(r.location, "/") + "/" + rel
}

// translate turns the client's errors into this package's, and keeps what else they say.
func translate(file string, err error) error {
	for from, to := range map[error]error{objects.ErrNotFound: ErrNotFound, objects.ErrExists: ErrExists, objects.ErrChanged: ErrChanged} {
		if errors.Is(err, from) && !errors.Is(err, objects.ErrUnknown) {
			return fmt.Errorf("%s: %w", file, to)
		}
	}
	return err
}

func (r *remote) info(i objects.Info) Info {
	return Info{URI: r.uri(i.Key), Size: i.Size, ModTime: i.ModTime, ETag: i.ETag}
}

func (r *remote) Stat(ctx context.Context, file string) (Info, error) {
	key, err := r.key(file)
	if err != nil {
		return Info{}, err
	}
	i, err := r.client.Head(ctx, key)
	if err != nil {
		return Info{}, translate(file, err)
	}
	return r.info(i), nil
}

func (r *remote) List(ctx context.Context, prefixURI string, f func(Info) error) error {
	prefix, err := r.prefix(prefixURI)
	if err != nil {
		return err
	}
	return r.client.List(ctx, prefix, "", func(i objects.Info) error {
		rel := strings.TrimPrefix(i.Key, prefix)
		if rel == "" || strings.HasSuffix(rel, "/") { // what other tools leave for directories
			return nil
		}
		if _, err := r.Rel(r.uri(i.Key)); err != nil {
			return nil //nolint:nilerr // a key that names no file of a table, as a//b or a/../b: nobody can ask for it
		}
		return f(r.info(i))
	})
}

func (r *remote) Remove(ctx context.Context, file string) error {
	key, err := r.key(file)
	if err != nil {
		return err
	}
	if _, err := r.client.Head(ctx, key); err != nil { // a store does not say whether there was anything to remove
		return translate(file, err)
	}
	return translate(file, r.client.Remove(ctx, key))
}

// Forget implements Prober.
func (r *remote) Forget(ctx context.Context, file string) error {
	key, err := r.key(file)
	if err != nil {
		return err
	}
	return translate(file, r.client.Remove(ctx, key))
}

// Ahead implements Prober.
func (r *remote) Ahead() time.Duration {
	if c, ok := r.client.(interface{ Ahead() time.Duration }); ok {
		return c.Ahead()
	}
	return 0
}

func (r *remote) RemoveAll(ctx context.Context, prefixURI string) (int, error) {
	rel, err := r.Rel(prefixURI)
	if err == nil && rel == "" {
		err = fmt.Errorf("%s: a table's whole location is never removed: %w", prefixURI, ErrOutside)
	}
	if err != nil {
		return 0, err
	}
	return r.client.RemoveAll(ctx, r.join(rel)+"/", time.Time{})
}

// SweepTemp aborts uploads that began before the given time. A file that is not whole is not visible otherwise.
func (r *remote) SweepTemp(ctx context.Context, prefixURI string, before time.Time) (int, error) {
	prefix, err := r.prefix(prefixURI)
	if err != nil {
		return 0, err
	}
	a, ok := r.client.(objects.UploadAborter)
	if !ok {
		return 0, nil
	}
	return a.AbortUploads(ctx, prefix, before)
}

// Sign presigns a request for one file.
func (r *remote) Sign(ctx context.Context, file string, s objects.Signing) (objects.Signed, error) {
	key, err := r.key(file)
	if err != nil {
		return objects.Signed{}, err
	}
	s.Key = key
	return r.client.Sign(ctx, s)
}

func (r *remote) Object(file string) (objects.Client, string, error) {
	key, err := r.key(file)
	return r.client, key, err
}

func (r *remote) ReplaceIf(ctx context.Context, file, etag string, body []byte) (Info, error) {
	key, err := r.newKey(file)
	if err != nil {
		return Info{}, err
	}
	i, err := r.client.Put(ctx, key, objects.Bytes(body), objects.PutOptions{IfAbsent: etag == "", IfMatch: etag})
	if errors.Is(err, objects.ErrExists) {
		return Info{}, fmt.Errorf("%s: %w: it exists by now", file, ErrChanged)
	}
	if err != nil {
		return Info{}, translate(file, err)
	}
	return r.info(i), nil
}

// newKey is the key of a file that is to be written.
func (r *remote) newKey(file string) (string, error) {
	key, err := r.key(file)
	if errors.Is(err, ErrNotFound) || err == nil && strings.HasPrefix(path.Base(key), TempPrefix) {
		return "", fmt.Errorf("%s: no name for a file: %w", file, ErrOutside)
	}
	return key, err
}

// partSize is what one request writes, at most. A file that is larger is uploaded in parts.
const partSize = 16 << 20

// maxParts is what an upload can have.
const maxParts = 10_000

func (r *remote) PutIfAbsent(ctx context.Context, file string, body io.Reader) (Info, error) {
	key, err := r.newKey(file)
	if err != nil {
		return Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	buf, whole, err := fillPart(ctx, body, nil)
	if err != nil {
		return Info{}, fmt.Errorf("%s: %w", file, err)
	}
	var i objects.Info
	if whole {
		i, err = r.client.Put(ctx, key, objects.Bytes(buf), objects.PutOptions{IfAbsent: true})
	} else {
		i, err = r.upload(ctx, key, buf, body)
	}
	if err != nil {
		return Info{}, translate(file, err)
	}
	return r.info(i), nil
}

// fillPart reads up to one part; whole says that the body ends with it.
func fillPart(ctx context.Context, body io.Reader, buf []byte) (part []byte, whole bool, err error) {
	buf = buf[:0]
	in := contextReader{ctx, body}
	for {
		if len(buf) == cap(buf) {
			if len(buf) == partSize {
				return buf, false, nil
			}
			grown := make([]byte, len(buf), min(max(2*len(buf), 64<<10), partSize))
			copy(grown, buf)
			buf = grown
		}
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// upload writes a file of several parts, the first of which has been read.
func (r *remote) upload(ctx context.Context, key string, buf []byte, body io.Reader) (objects.Info, error) {
	// Looked at first, so that a late writer does not move the whole body only to lose; the condition decides.
	switch _, err := r.client.Head(ctx, key); {
	case err == nil:
		return objects.Info{}, objects.ErrExists
	case !errors.Is(err, objects.ErrNotFound):
		return objects.Info{}, err
	}
	u, err := r.client.Begin(ctx, key)
	if err != nil {
		return objects.Info{}, err
	}
	for n, whole := 1, false; len(buf) > 0 || n == 1; n++ {
		if n > maxParts {
			err = fmt.Errorf("%s: more than %d bytes", r.uri(key), int64(maxParts)*partSize)
			break
		}
		if err = u.Part(ctx, n, objects.Bytes(buf)); err != nil || whole {
			break
		}
		if buf, whole, err = fillPart(ctx, body, buf); err != nil {
			break
		}
	}
	var i objects.Info
	if err == nil {
		i, err = u.Complete(ctx, objects.PutOptions{IfAbsent: true})
	}
	if err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = u.Abort(after) // what stays is invisible, and swept
	}
	return i, err
}
