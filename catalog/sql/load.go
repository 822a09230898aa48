package sql

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/fault"
)

// Load implements catalog.Catalog.
func (c *Catalog) Load(ctx context.Context, id catalog.Ident) (*catalog.Table, error) {
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

func (c *Catalog) load(ctx context.Context, id catalog.Ident) (*version, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	if err := fault.Hit("catalog.load.before-query"); err != nil {
		return nil, err
	}
	key := namespaceKey(id.Namespace())
	gone := ""
	for {
		location, err := c.pointer(ctx, id, key)
		if err != nil {
			return nil, err
		}
		v, err := c.readVersion(ctx, location)
		switch {
		case err == nil:
			return v, nil
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
func (c *Catalog) unreachable(ctx context.Context, location string) error {
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

// pointer looks up where a table's metadata is.
func (c *Catalog) pointer(ctx context.Context, id catalog.Ident, key string) (string, error) {
	var location stdsql.NullString
	err := c.db.row(ctx, `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3`+c.db.isTable(),
		[]any{c.catalogName, key, id.Table()}, &location)
	switch {
	case errors.Is(err, errNoRows):
		return "", c.missing(ctx, id, key)
	case err != nil:
		return "", fmt.Errorf("look up table %s: %w", id, err)
	case !location.Valid:
		return "", fmt.Errorf("table %s: its row has no metadata location: %w", id, catalog.ErrPermanent)
	}
	return location.String, nil
}

// missing says what is missing. If that cannot be found out, the table still is.
func (c *Catalog) missing(ctx context.Context, id catalog.Ident, key string) error {
	if exists, err := c.namespaceExists(ctx, key); err == nil && !exists {
		return fmt.Errorf("table %s: namespace %s: %w", id, namespaceLabel(id.Namespace()), catalog.ErrNotFound)
	}
	return fmt.Errorf("table %s: %w", id, catalog.ErrNotFound)
}

// RawMetadata implements catalog.Catalog.
func (c *Catalog) RawMetadata(ctx context.Context, t *catalog.Table) ([]byte, error) {
	v, err := c.readVersion(ctx, t.MetadataLocation)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Ident, err)
	}
	return bytes.Clone(v.raw), nil
}

// Drop implements catalog.Catalog.
func (c *Catalog) Drop(ctx context.Context, id catalog.Ident) error {
	if err := id.Validate(); err != nil {
		return err
	}
	key := namespaceKey(id.Namespace())
	n, err := c.db.exec(ctx, `DELETE FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3`+c.db.isTable(),
		c.catalogName, key, id.Table())
	if err != nil {
		return fmt.Errorf("drop table %s: %w", id, err)
	}
	if n == 0 {
		return c.missing(ctx, id, key)
	}
	return nil
}
