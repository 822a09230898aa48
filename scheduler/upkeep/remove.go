package upkeep

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/uri"
)

// removals is how many files of object stores are removed at a time: each costs round trips. Local ones are removed one after the other, in order.
const removals = 16

// remove removes files, which lie in the places, and reports those that were there. before is called before each.
func (p places) remove(ctx context.Context, files []string, before func() error) (gone []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1)
	if l, err := uri.Parse(files[0]); err == nil && l.Remote() {
		g.SetLimit(removals)
	}
	var mu sync.Mutex
	for _, file := range files {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := before(); err != nil {
				return err
			}
			switch err := p.store(file).Remove(ctx, file); {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				gone = append(gone, file)
			case !errors.Is(err, storage.ErrNotFound):
				return fmt.Errorf("remove %s: %w", file, err)
			}
			return nil
		})
	}
	err = g.Wait()
	return gone, err
}
