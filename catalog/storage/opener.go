package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// Opener opens the storage below a location. It does not look whether the location exists.
type Opener interface {
	Open(ctx context.Context, location string) (Store, error)
}

// OpenerFunc is an Opener.
type OpenerFunc func(ctx context.Context, location string) (Store, error)

// Open implements Opener.
func (f OpenerFunc) Open(ctx context.Context, location string) (Store, error) {
	return f(ctx, location)
}

// Local opens local paths and file:// URIs, and nothing else.
var Local Opener = OpenerFunc(openLocal)

// Signer is what stores offer that can presign requests for those who hold no credentials.
type Signer interface {
	// Sign presigns a request for a file below the store's location; the signing's Key is left out.
	Sign(ctx context.Context, uri string, s objects.Signing) (objects.Signed, error)
}

// Located is what stores offer whose files are objects of a client's.
type Located interface {
	// Object is a file below the store's location as its client knows it.
	Object(uri string) (client objects.Client, key string, err error)
}

// IsEmpty reports whether nothing is below a prefix of a store: locally not even an empty directory or a file that is not whole.
func IsEmpty(ctx context.Context, s Store, prefixURI string) (bool, error) {
	if l, ok := s.(*local); ok {
		return l.isEmpty(ctx, prefixURI)
	}
	found := errors.New("found")
	err := s.List(ctx, prefixURI, func(Info) error { return found })
	switch {
	case errors.Is(err, found):
		return false, nil
	case errors.Is(err, ErrNotFound):
		return true, nil
	}
	return err == nil, err
}

func (l *local) isEmpty(ctx context.Context, prefixURI string) (bool, error) {
	if fi, err := os.Stat(l.dir); err == nil && !fi.IsDir() {
		return false, nil
	}
	empty := false
	err := l.within(ctx, prefixURI, func(root *os.Root, name string) error {
		fi, err := root.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			empty = true
			return nil
		}
		if err != nil || !fi.IsDir() {
			return err
		}
		d, err := root.Open(name)
		if err != nil {
			return err
		}
		defer d.Close()
		_, err = d.Readdirnames(1)
		if errors.Is(err, io.EOF) {
			empty, err = true, nil
		}
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return empty, err
}

// Root says how the places below a prefix are reached.
type Root struct {
	Prefix string // s3://bucket/prefix; empty: every place of Scheme
	Scheme string // of every place, where there is no prefix: one of package uri's; empty: S3
	Props  objects.Props
	Source objects.Source // of the operator's credentials; nil: none, requests are anonymous
	// Client makes the client for a bucket, of another store than S3; nil: of S3, by Props and Source.
	Client func(bucket string) (objects.Client, error)
}

// new makes the client for a bucket.
func (r *Root) new(bucket string) (objects.Client, error) {
	if r.Client != nil {
		return r.Client(bucket)
	}
	return objects.NewS3(r.Props, bucket, r.Source)
}

// NewOpener opens local places and those below the roots, each with the root that has the longest prefix. One client serves all the places of a bucket.
func NewOpener(roots ...Root) (Opener, error) {
	o := &opener{clients: map[client]objects.Client{}}
	for _, r := range roots {
		at := uri.Location{Scheme: cmp.Or(r.Scheme, uri.S3)}
		if r.Prefix != "" {
			var err error
			if at, err = uri.Parse(r.Prefix); err != nil {
				return nil, err
			}
			if at.Scheme != uri.S3 && r.Client == nil {
				return nil, fmt.Errorf("%s: a %s:// place needs a client of its own: %w", r.Prefix, at.Scheme, ErrUnsupported)
			}
		}
		if r.Client == nil {
			if _, err := objects.NewS3(r.Props, "a-bucket", r.Source); err != nil { // told now, not by the first statement
				return nil, fmt.Errorf("%s: %w", cmp.Or(r.Prefix, "s3"), err)
			}
		}
		o.roots = append(o.roots, root{Root: r, at: at})
	}
	return o, nil
}

type opener struct {
	roots []root

	mu      sync.Mutex
	clients map[client]objects.Client
}

type root struct {
	Root
	at uri.Location
}

// client names one: the root's place in the list, and the bucket.
type client struct {
	root   int
	bucket string
}

func (o *opener) Open(ctx context.Context, location string) (Store, error) {
	at, err := uri.Parse(location)
	if err != nil {
		return nil, err
	}
	if !at.Remote() {
		return Local.Open(ctx, location)
	}
	best, n := -1, -1
	for i, r := range o.roots {
		if len(r.at.Segments) <= n || at.Scheme != r.at.Scheme {
			continue
		}
		if r.at.Authority == "" {
			best = max(best, i) // any bucket; every other prefix is longer
			continue
		}
		if _, err := r.at.Below(location); err == nil {
			best, n = i, len(r.at.Segments)
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("%s: no properties are configured for it: %w", location, ErrUnsupported)
	}
	c, err := o.client(best, at.Authority)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	return &remote{client: c, at: at, location: location}, nil
}

func (o *opener) client(root int, bucket string) (objects.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := client{root, bucket}
	if c := o.clients[name]; c != nil {
		return c, nil
	}
	c, err := o.roots[root].new(bucket)
	if err == nil {
		o.clients[name] = c
	}
	return c, err
}

// Prober is what object stores offer to who wants to know what an account may do there.
type Prober interface {
	// Forget removes a file without a look whether there is one.
	Forget(ctx context.Context, uri string) error
	// Ahead is how far the store's clock is ahead of this machine's, by its last answer; 0: less than 5 s, or unknown.
	Ahead() time.Duration
}
