package sql

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// DefaultLocation implements catalog.Catalog. It is <warehouse>/<namespace>/<table>, the namespace's parts joined by dots, and with a
// suffix where that directory holds something already: files of a dropped table stay, and may still be read.
func (c *Catalog) DefaultLocation(ctx context.Context, id catalog.Ident) (string, error) {
	if err := id.Validate(); err != nil {
		return "", err
	}
	loc := c.plainLocation(id)
	for {
		empty, err := c.isEmpty(ctx, loc)
		if err != nil || empty {
			return loc, err
		}
		loc = c.plainLocation(id) + "-" + randomHex(4)
	}
}

func (c *Catalog) plainLocation(id catalog.Ident) string {
	return storage.Join(c.warehouse, storage.TableDir(id))
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (c *Catalog) isEmpty(ctx context.Context, location string) (bool, error) {
	store, err := c.stores.Open(ctx, location)
	if err != nil {
		return false, err
	}
	return storage.IsEmpty(ctx, store, location)
}

// checkLocation refuses locations for new tables that lie outside the warehouse, or so that one table would hold another.
func (c *Catalog) checkLocation(ctx context.Context, id catalog.Ident, location string) error {
	rest, err := storage.Below(c.warehouse, location)
	if err != nil || len(rest) == 0 {
		return fmt.Errorf("table %s: location %q: must be below the catalog's warehouse %s: %w", id, location, c.warehouse, catalog.ErrPermanent)
	}
	others, err := c.db.strings(ctx, `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = $1 AND metadata_location IS NOT NULL`, c.catalogName)
	if err != nil {
		return fmt.Errorf("compare table locations: %w", err)
	}
	for _, o := range others {
		dir := o
		if i := strings.LastIndex(o, "/metadata/"); i > 0 {
			dir = o[:i]
		}
		_, inside := storage.Below(dir, location)
		_, around := storage.Below(location, o)
		if inside == nil || around == nil {
			return fmt.Errorf("table %s: location %q: another table's files are there (%s): %w", id, location, dir, catalog.ErrPermanent)
		}
	}
	return nil
}
