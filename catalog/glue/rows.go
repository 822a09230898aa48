package glue

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/pointer"
	"github.com/signet-io/signet/catalog/storage"
)

// rows implements pointer.Rows over the parameters of Glue's tables.
type rows struct{ c *Catalog }

// Get implements pointer.Rows. A table of Glue that is none of Iceberg is not there.
func (r rows) Get(ctx context.Context, id catalog.Ident) (pointer.Row, error) {
	if err := usable(id); err != nil {
		return pointer.Row{}, err
	}
	t, err := r.c.table(ctx, id)
	switch {
	case err != nil:
		return pointer.Row{}, err
	case !isIceberg(t):
		return pointer.Row{}, fmt.Errorf("table %s is in AWS Glue, and is no Iceberg table: %w", id, catalog.ErrNotFound)
	case t.Parameters[paramLocation] == "":
		return pointer.Row{}, fmt.Errorf("table %s: it has no parameter %s in AWS Glue: %w", id, paramLocation, catalog.ErrPermanent)
	}
	return pointer.Row{Location: t.Parameters[paramLocation], Version: aws.ToString(t.VersionId), State: t}, nil
}

func (c *Catalog) table(ctx context.Context, id catalog.Ident) (*types.Table, error) {
	out, err := c.api.getTable(ctx, &glue.GetTableInput{CatalogId: c.id, DatabaseName: aws.String(id[0]), Name: aws.String(id.Table())})
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", id, err)
	}
	if out.Table == nil || aws.ToString(out.Table.Name) != id.Table() {
		return nil, fmt.Errorf("table %s: %w", id, errNoAnswer)
	}
	return out.Table, nil
}

// Swap is the commit point.
func (r rows) Swap(ctx context.Context, id catalog.Ident, base pointer.Row, next pointer.Next) (bool, error) {
	was, ok := base.State.(*types.Table)
	if !ok || base.Version == "" {
		return false, fmt.Errorf("the catalog's service gave no VersionId of the table, so nothing would keep another writer's commit: %w", catalog.ErrPermanent)
	}
	err := r.c.api.updateTable(ctx, &glue.UpdateTableInput{
		CatalogId: r.c.id, DatabaseName: aws.String(id[0]), TableInput: changed(was, next), VersionId: was.VersionId, SkipArchive: aws.Bool(r.c.skipArchive),
	})
	if is[*types.ConcurrentModificationException](err) || is[*types.VersionMismatchException](err) {
		err = fmt.Errorf("%w: %w", pointer.ErrStale, err)
	}
	return err == nil, err
}

// Insert implements pointer.Rows. That the name is taken is settled by a look at the table: it may be taken by this very request.
func (r rows) Insert(ctx context.Context, id catalog.Ident, next pointer.Next) (bool, error) {
	err := r.c.api.createTable(ctx, &glue.CreateTableInput{CatalogId: r.c.id, DatabaseName: aws.String(id[0]), TableInput: made(id.Table(), next)})
	return err == nil, err
}

// CheckNew implements pointer.Rows.
func (r rows) CheckNew(ctx context.Context, id catalog.Ident) error {
	if err := usable(id); err != nil {
		return err
	}
	if _, err := r.c.namespace(ctx, id); err != nil {
		return err
	}
	_, err := r.c.table(ctx, id)
	switch {
	case err == nil:
		return fmt.Errorf("%w: the name is taken", catalog.ErrConflict) // by a table of any kind, or a view
	case errors.Is(err, catalog.ErrNotFound):
		return nil
	}
	return err
}

// namespace is the database that a new table goes to.
func (c *Catalog) namespace(ctx context.Context, id catalog.Ident) (*types.Database, error) {
	d, err := c.database(ctx, id[0])
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, fmt.Errorf("namespace %s: %w: %w; create it first", id.Namespace(), catalog.ErrPermanent, err)
	}
	return d, err
}

// Place is the database's own location and the table's name, where the database has one directly below the warehouse, else <warehouse>/<database>/<table>: always two levels
// below the warehouse, so that no table lies within another.
func (r rows) Place(ctx context.Context, id catalog.Ident) (string, error) {
	if err := usable(id); err != nil {
		return "", err
	}
	d, err := r.c.namespace(ctx, id)
	if err != nil {
		return "", err
	}
	own := strings.TrimRight(aws.ToString(d.LocationUri), "/")
	dir := storage.TableDir(id)
	if own == "" {
		return storage.Join(r.c.Warehouse(), dir), nil
	}
	steps, err := storage.Below(r.c.Warehouse(), own)
	if err != nil || len(steps) != 1 {
		return "", fmt.Errorf("database %s has the location %s in AWS Glue: new tables go there only if it is a directory directly below the warehouse %s; name a location below the warehouse in CREATE TABLE: %w",
			id[0], own, r.c.Warehouse(), catalog.ErrPermanent)
	}
	return storage.Join(r.c.Warehouse(), steps[0], dir[strings.LastIndexByte(dir, '/')+1:]), nil
}

var suffixed = regexp.MustCompile(`-[0-9a-f]{8}$`) // as DefaultLocation makes them

// CheckLocation compares a location with those of all tables, of Iceberg or not, in all databases. That takes one request for each hundred tables, and is left out for the place
// where Signet itself would put the table, unless one lies around it.
func (r rows) CheckLocation(ctx context.Context, id catalog.Ident, location string) error {
	if plain, err := r.Place(ctx, id); err == nil && (location == plain || suffixed.ReplaceAllString(location, "") == plain) {
		store, err := r.c.Store(ctx, nil, r.c.Warehouse())
		if err != nil {
			return err
		}
		if free, err := storage.IsEmpty(ctx, store, storage.Join(plain[:strings.LastIndexByte(plain, '/')], "metadata")); err != nil || free {
			return err
		}
	}
	all, err := r.c.Namespaces(ctx)
	if err != nil {
		return fmt.Errorf("compare table locations: %w", err)
	}
	for _, ns := range all {
		var other string
		err := r.c.eachTable(ctx, ns[0], func(t *types.Table) {
			for _, dir := range locations(t) {
				_, inside := storage.Below(dir, location)
				_, around := storage.Below(location, dir)
				if inside == nil || around == nil {
					other = dir
				}
			}
		})
		switch {
		case other != "":
			return fmt.Errorf("table %s: location %q: another table's files are there (%s): %w", id, location, other, catalog.ErrPermanent)
		case err != nil && !errors.Is(err, catalog.ErrNotFound): // dropped meanwhile
			return fmt.Errorf("compare table locations: %w", err)
		}
	}
	return nil
}

// Drop implements catalog.Catalog.
func (c *Catalog) Drop(ctx context.Context, id catalog.Ident) error {
	if _, err := (rows{c}).Get(ctx, id); err != nil {
		return err
	}
	err := c.api.deleteTable(ctx, &glue.DeleteTableInput{CatalogId: c.id, DatabaseName: aws.String(id[0]), Name: aws.String(id.Table())})
	if err == nil {
		return nil
	}
	gone := is[*types.EntityNotFoundException](err)
	if !errors.Is(err, catalog.ErrPermanent) && !errors.Is(err, catalog.ErrNotSent) {
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		if _, now := c.table(look, id); errors.Is(now, catalog.ErrNotFound) {
			if gone { // by another
				return fmt.Errorf("table %s: %w", id, catalog.ErrNotFound)
			}
			return nil
		}
	}
	return fmt.Errorf("drop table %s: %w", id, err)
}
