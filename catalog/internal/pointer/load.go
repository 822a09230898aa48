package pointer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/fault"
)

// Load implements catalog.Catalog.
func (c *Engine) Load(ctx context.Context, id catalog.Ident) (*catalog.Table, error) {
	v, err := c.load(ctx, id)
	if err != nil {
		return nil, err
	}
	return asTable(id, v), nil
}

func asTable(id catalog.Ident, v *version) *catalog.Table {
	return &catalog.Table{
		Ident: id, UUID: v.meta.TableUUID().String(), Location: v.meta.Location(), MetadataLocation: v.location, Metadata: v.meta,
	}
}

func (c *Engine) load(ctx context.Context, id catalog.Ident) (*version, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	if err := fault.Hit("catalog.load.before-query"); err != nil {
		return nil, err
	}
	gone := ""
	for {
		row, err := c.rows.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		location := row.Location
		v, err := c.readVersion(ctx, location)
		switch {
		case err == nil:
			known := *v
			known.row = row
			return &known, nil
		case !errors.Is(err, storage.ErrNotFound):
			return nil, fmt.Errorf("table %s: %w", id, err)
		case location == gone:
			if err := c.unreachable(ctx, location); err != nil {
				return nil, fmt.Errorf("table %s: %w", id, err)
			}
			return nil, fmt.Errorf("table %s is in the catalog, and its metadata file %s is not there; if its storage is not mounted, mount it: %w", id, location, catalog.ErrUnreadable)
		}
		gone = location // which another writer may have removed since it was looked up
	}
}

// unreachable says why a file is not there, where that is not its own doing: its bucket is missing, for instance.
func (c *Engine) unreachable(ctx context.Context, location string) error {
	store, err := c.stores.Open(ctx, parent(location))
	if err != nil {
		return err
	}
	o, err := store.Open(ctx, location)
	switch {
	case err == nil:
		o.Close()
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	return nil
}

// RawMetadata implements catalog.Catalog.
func (c *Engine) RawMetadata(ctx context.Context, t *catalog.Table) ([]byte, error) {
	v, err := c.readVersion(ctx, t.MetadataLocation)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Ident, err)
	}
	return bytes.Clone(v.raw), nil
}
