package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/pointer"
	"github.com/signet-io/signet/catalog/storage"
)

// rows implements pointer.Rows over the table iceberg_tables.
type rows struct{ c *Catalog }

// Get looks up where a table's metadata is.
func (r rows) Get(ctx context.Context, id catalog.Ident) (pointer.Row, error) {
	c, key := r.c, namespaceKey(id.Namespace())
	var location stdsql.NullString
	err := c.db.row(ctx, `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3`+c.db.isTable(),
		[]any{c.catalogName, key, id.Table()}, &location)
	switch {
	case errors.Is(err, errNoRows):
		return pointer.Row{}, c.missing(ctx, id, key)
	case err != nil:
		return pointer.Row{}, fmt.Errorf("look up table %s: %w", id, err)
	case !location.Valid:
		return pointer.Row{}, fmt.Errorf("table %s: its row has no metadata location: %w", id, catalog.ErrPermanent)
	}
	return pointer.Row{Location: location.String}, nil
}

// missing says what is missing. If that cannot be found out, the table still is.
func (c *Catalog) missing(ctx context.Context, id catalog.Ident, key string) error {
	if exists, err := c.namespaceExists(ctx, key); err == nil && !exists {
		return fmt.Errorf("table %s: namespace %s: %w", id, namespaceLabel(id.Namespace()), catalog.ErrNotFound)
	}
	return fmt.Errorf("table %s: %w", id, catalog.ErrNotFound)
}

// Swap is the commit point.
func (r rows) Swap(ctx context.Context, id catalog.Ident, base pointer.Row, next pointer.Next) (bool, error) {
	c := r.c
	set := `metadata_location = $1, previous_metadata_location = $2`
	if !c.db.v0 {
		set += `, iceberg_type = 'TABLE'` // heals rows of engines that leave it null, as iceberg-go does
	}
	n, err := c.db.exec(ctx, `UPDATE iceberg_tables SET `+set+
		` WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5 AND metadata_location = $6`+c.db.isTable(),
		next.Location, base.Location, c.catalogName, namespaceKey(id.Namespace()), id.Table(), base.Location)
	return n > 0, err
}

// CheckNew implements pointer.Rows.
func (r rows) CheckNew(ctx context.Context, id catalog.Ident) error {
	c, key := r.c, namespaceKey(id.Namespace())
	if len(key) > maxName {
		return fmt.Errorf("namespace %s: %d bytes as stored, at most %d: %w", namespaceLabel(id.Namespace()), len(key), maxName, catalog.ErrPermanent)
	}
	exists, err := c.namespaceExists(ctx, key)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("namespace %s: %w: %w; create it first", namespaceLabel(id.Namespace()), catalog.ErrPermanent, catalog.ErrNotFound)
	}
	var n int
	err = c.db.row(ctx, `SELECT count(*) FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3`,
		[]any{c.catalogName, key, id.Table()}, &n)
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: the name is taken", catalog.ErrConflict) // by a table or a view
	}
	return err
}

// Insert implements pointer.Rows.
func (r rows) Insert(ctx context.Context, id catalog.Ident, next pointer.Next) (bool, error) {
	c := r.c
	columns, values := `catalog_name, table_namespace, table_name, metadata_location`, `$1, $2, $3, $4`
	if !c.db.v0 {
		columns, values = columns+`, iceberg_type`, values+`, 'TABLE'`
	}
	n, err := c.db.exec(ctx, `INSERT INTO iceberg_tables (`+columns+`) VALUES (`+values+`) ON CONFLICT DO NOTHING`,
		c.catalogName, namespaceKey(id.Namespace()), id.Table(), next.Location)
	return n > 0, err
}

// Place is <warehouse>/<namespace>/<table>, the namespace's parts joined by dots.
func (r rows) Place(_ context.Context, id catalog.Ident) (string, error) {
	return storage.Join(r.c.Warehouse(), storage.TableDir(id)), nil
}

// CheckLocation compares a location with those of all tables.
func (r rows) CheckLocation(ctx context.Context, id catalog.Ident, location string) error {
	others, err := r.c.db.strings(ctx, `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = $1 AND metadata_location IS NOT NULL`, r.c.catalogName)
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
