package scheduler

import (
	"context"
	"errors"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// statsAtATime bounds the files that are looked at side by side for one task manifest.
const statsAtATime = 16

// errUnseen: a file could not be looked at, which says nothing about it.
var errUnseen = errors.New("a file cannot be looked at now")

// checkFile looks whether a file is there with the size that the manifest says.
func (w *writeState) checkFile(ctx context.Context, f *planv1.DataFile) error {
	info, err := w.store.Stat(ctx, f.Path)
	switch {
	case err != nil && isRemote(f.Path) && mayPass(err):
		return fmt.Errorf("%w: %w", errUnseen, err)
	case err != nil:
		return fmt.Errorf("task manifest refused: file %q: %w", f.Path, err)
	case info.Size != f.SizeBytes:
		return fmt.Errorf("task manifest refused: file %q has %d bytes, the manifest says %d", f.Path, info.Size, f.SizeBytes)
	}
	return nil
}

// mayPass tells whether a store may say something else another time.
func mayPass(err error) bool {
	for _, certain := range []error{storage.ErrNotFound, storage.ErrOutside, storage.ErrUnsupported, objects.ErrNotFound, objects.ErrDenied, objects.ErrNoBucket, objects.ErrRegion} {
		if errors.Is(err, certain) {
			return false
		}
	}
	return true
}

// isRemote tells whether a place or a file is in an object store.
func isRemote(location string) bool {
	l, err := uri.Parse(location)
	return err == nil && l.Remote()
}
