package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/signet-io/signet/internal/objects"
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
