package pointer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/internal/fault"
)

// defaultFormat is what new tables get: version 3 cannot be written by all engines yet.
const defaultFormat = 2

// Create implements catalog.Catalog. Field ids are kept if they are the ones that a fresh schema gets, 1 to n; others are
// assigned anew, so read them from the table that is returned.
func (c *Engine) Create(ctx context.Context, id catalog.Ident, spec catalog.CreateSpec) (*catalog.Table, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	location, err := c.locationFor(ctx, id, spec.Location)
	if err != nil {
		return nil, err
	}
	meta, err := request.NewMetadata(spec, location)
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", id, err)
	}
	unlock, err := c.locks.lock(ctx, id.String())
	if err != nil {
		return nil, err
	}
	defer unlock()
	v, err := c.insert(ctx, id, meta, &request.Request{})
	if errors.Is(err, catalog.ErrConflict) {
		err = fmt.Errorf("%w", catalog.ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", id, err)
	}
	return asTable(id, v), nil
}

func (c *Engine) locationFor(ctx context.Context, id catalog.Ident, given string) (string, error) {
	if given == "" {
		return c.DefaultLocation(ctx, id)
	}
	given = strings.TrimRight(given, "/")
	return given, c.checkLocation(ctx, id, given)
}

// createStaged builds a table from nothing but the updates, as CREATE TABLE AS SELECT sends them, and makes it.
func (c *Engine) createStaged(ctx context.Context, id catalog.Ident, req *request.Request) (*version, error) {
	if err := req.Holds(nil); err != nil {
		return nil, err
	}
	location, err := c.locationFor(ctx, id, req.MovesTo())
	if err != nil {
		return nil, notSent(err)
	}
	meta, err := stagedMetadata(req, location)
	if err != nil {
		return nil, fmt.Errorf("updates: %w: %w", catalog.ErrPermanent, err)
	}
	return c.insert(ctx, id, meta, req)
}

// stagedMetadata starts from an empty builder, not from the metadata of an empty table as iceberg-go does: that would leave an
// empty schema 0 behind, and ids that differ from those the data files were written with.
func stagedMetadata(req *request.Request, location string) (table.Metadata, error) {
	format, named := defaultFormat, false
	for _, f := range req.Facts {
		if f.Action == table.UpdateUpgradeFormatVersion {
			format = f.Version
		}
		named = named || f.Action == table.UpdateAssignUUID
	}
	b, err := table.NewMetadataBuilder(format)
	if err != nil {
		return nil, err
	}
	if !named {
		if err := b.SetUUID(uuid.New()); err != nil {
			return nil, err
		}
	}
	if err := b.SetLoc(location); err != nil {
		return nil, err
	}
	updates, err := req.Updates()
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		if u.Action() == table.UpdateSetLocation {
			continue // checked and set above
		}
		if err := u.Apply(b); err != nil {
			return nil, fmt.Errorf("%s: %w", u.Action(), err)
		}
	}
	return b.Build()
}

// insert writes a new table's metadata and its row. ErrConflict if the name is taken.
func (c *Engine) insert(ctx context.Context, id catalog.Ident, meta table.Metadata, req *request.Request) (*version, error) {
	if err := c.rows.CheckNew(ctx, id); err != nil {
		return nil, notSent(err)
	}
	raw, err := encode(meta)
	if err != nil {
		return nil, notSent(err)
	}
	next, err := c.writeVersion(ctx, meta, raw, nil)
	if err != nil {
		c.discardIf(ctx, next)
		return nil, notSent(err)
	}
	if err := c.readable(ctx, next.location); err != nil { // or the table would be there, and nobody could use it
		c.discard(ctx, next.location)
		return nil, notSent(err)
	}
	made, err := c.insertRow(ctx, id, next)
	switch {
	case refused(err):
		c.discard(ctx, next.location)
		return nil, err
	case err != nil:
		return c.settle(ctx, id, req, nil, next, err)
	case !made:
		c.discard(ctx, next.location)
		return nil, fmt.Errorf("%w: the name is taken", catalog.ErrConflict)
	}
	c.cache.put(next)
	return next, nil
}

// readable says whether a file that was written can be read by this account.
func (c *Engine) readable(ctx context.Context, location string) error {
	store, err := c.stores.Open(ctx, parent(location))
	if err != nil {
		return err
	}
	if _, err := store.Stat(ctx, location); err != nil {
		return fmt.Errorf("read metadata that was just written: %w", err)
	}
	return nil
}

func (c *Engine) insertRow(ctx context.Context, id catalog.Ident, next *version) (bool, error) {
	if err := fault.Hit("catalog.create.before-insert"); err != nil {
		return false, err
	}
	made, err := c.rows.Insert(ctx, id, next.next())
	if err != nil {
		return false, err
	}
	return made, fault.Hit("catalog.create.after-insert")
}
