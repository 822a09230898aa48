package pointer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// DefaultLocation implements catalog.Catalog. It is where the catalog puts tables, with a suffix where that directory holds something already: files of
// a dropped table stay, and may still be read.
func (c *Engine) DefaultLocation(ctx context.Context, id catalog.Ident) (string, error) {
	if err := id.Validate(); err != nil {
		return "", err
	}
	plain, err := c.rows.Place(ctx, id)
	if err != nil {
		return "", err
	}
	loc := plain
	for {
		empty, err := c.isEmpty(ctx, loc)
		if err != nil || empty {
			return loc, err
		}
		loc = plain + "-" + randomHex(4)
	}
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (c *Engine) isEmpty(ctx context.Context, location string) (bool, error) {
	store, err := c.stores.Open(ctx, location)
	if err != nil {
		return false, err
	}
	return storage.IsEmpty(ctx, store, location)
}

// checkLocation refuses locations for new tables that lie outside the warehouse, or so that one table would hold another.
func (c *Engine) checkLocation(ctx context.Context, id catalog.Ident, location string) error {
	rest, err := storage.Below(c.warehouse, location)
	if err != nil || len(rest) == 0 {
		return fmt.Errorf("table %s: location %q: must be below the catalog's warehouse %s: %w", id, location, c.warehouse, catalog.ErrPermanent)
	}
	return c.rows.CheckLocation(ctx, id, location)
}
