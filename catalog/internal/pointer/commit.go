package pointer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/internal/fault"
)

const (
	// settleTimeout bounds the look at the table after a failed statement, which happens even if the caller gave up.
	settleTimeout = 10 * time.Second
	// maxRebase bounds how often a commit whose requirements still hold is put on top of somebody else's.
	maxRebase = 100
)

// errMoved: the row pointed elsewhere than expected, so the statement changed nothing. Definite.
var errMoved = errors.New("the table moved on")

// Commit implements catalog.Catalog.
func (c *Engine) Commit(ctx context.Context, id catalog.Ident, requirements, updates []byte) (*catalog.Table, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	req, err := request.Parse(requirements, updates)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", id, err)
	}
	unlock, err := c.locks.lock(ctx, id.String())
	if err != nil {
		return nil, notSent(err)
	}
	defer unlock()
	for range maxRebase {
		v, err := c.attempt(ctx, id, req)
		switch {
		case errors.Is(err, errMoved):
			continue
		case err != nil:
			return nil, fmt.Errorf("commit to table %s: %w", id, err)
		}
		return asTable(id, v), nil
	}
	return nil, fmt.Errorf("commit to table %s: %w: others were faster %d times", id, catalog.ErrConflict, maxRebase)
}

// attempt is load, check, build, write, swap.
func (c *Engine) attempt(ctx context.Context, id catalog.Ident, req *request.Request) (*version, error) {
	base, err := c.load(ctx, id)
	switch {
	case errors.Is(err, catalog.ErrNotFound) && req.Creates():
		return c.createStaged(ctx, id, req)
	case errors.Is(err, catalog.ErrNotFound):
		return nil, fmt.Errorf("%w: %w", catalog.ErrConflict, err)
	case err != nil:
		return nil, notSent(err)
	}
	if ok, err := req.Landed(base.meta); ok || err != nil {
		return base, err
	}
	if err := errors.Join(req.Follows(base.location), req.Holds(base.meta), req.Fresh(base.meta)); err != nil {
		return nil, err
	}
	if err := c.checkMove(ctx, id, base.meta, req); err != nil {
		return nil, notSent(err)
	}
	meta, err := applyTo(base, req)
	if err != nil {
		return nil, err
	}
	raw, spliced := splice(base, meta, req)
	if !spliced {
		if meta.Equals(base.meta) {
			return base, nil
		}
		if raw, err = encode(meta); err != nil {
			return nil, notSent(err)
		}
	}
	next, err := c.writeVersion(ctx, meta, raw, base)
	if err != nil {
		c.discardIf(ctx, next)
		return nil, notSent(err)
	}
	moved, err := c.swap(ctx, id, base, next)
	switch {
	case refused(err):
		c.discard(ctx, next.location)
		return nil, err
	case err != nil:
		return c.settle(ctx, id, req, base, next, err)
	case !moved:
		c.discard(ctx, next.location)
		return nil, errMoved
	}
	c.cache.put(next)
	c.discardOld(ctx, base, next)
	return next, nil
}

func applyTo(base *version, req *request.Request) (table.Metadata, error) {
	updates, err := req.Updates()
	if err != nil {
		return nil, err
	}
	meta, err := table.UpdateTableMetadata(base.meta, updates, base.location)
	if err != nil {
		return nil, fmt.Errorf("updates: %w: %w", catalog.ErrPermanent, err)
	}
	return meta, nil
}

// checkMove refuses to move a table to where its next files would not belong.
func (c *Engine) checkMove(ctx context.Context, id catalog.Ident, meta table.Metadata, req *request.Request) error {
	to := req.MovesTo()
	if to == "" || to == meta.Location() {
		return nil
	}
	return c.checkLocation(ctx, id, to)
}

// swap is the commit point.
func (c *Engine) swap(ctx context.Context, id catalog.Ident, base, next *version) (bool, error) {
	if err := fault.Hit("catalog.commit.before-swap"); err != nil {
		return false, err
	}
	moved, err := c.rows.Swap(ctx, id, base.row, next.next())
	if err != nil {
		return false, err
	}
	return moved, fault.Hit("catalog.commit.after-swap")
}

// refused says whether a row's change was refused, or never asked for: what was written for it is of no use.
func refused(err error) bool {
	return errors.Is(err, catalog.ErrPermanent) || errors.Is(err, catalog.ErrNotSent)
}

// settle finds out how a statement that failed ended. base is nil for a create. Its answers: the version that landed, errMoved
// or ErrConflict when the statement can never take effect, or the cause itself: unknown.
func (c *Engine) settle(ctx context.Context, id catalog.Ident, req *request.Request, base, next *version, cause error) (*version, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := fault.Hit("catalog.commit.before-reload"); err != nil {
		return nil, errors.Join(cause, err)
	}
	now, err := c.load(ctx, id)
	if err != nil {
		// Not found included: a create may still come into effect, and a table that was dropped may have had the commit.
		return nil, unknown(cause, err)
	}
	if mine(now, next, req) {
		return now, nil
	}
	switch {
	case base == nil:
		// The name is taken by another table, so the insert never takes effect.
		c.discard(ctx, next.location)
		return nil, fmt.Errorf("%w: the table exists by now", catalog.ErrConflict)
	case now.location == base.location && errors.Is(cause, ErrStale) && now.row.Version != base.row.Version:
		// Somebody changed something else of the row, which is what the statement was refused for.
		c.discard(ctx, next.location)
		return nil, errMoved
	case now.location == base.location:
		return nil, unknown(cause, nil)
	}
	// The row left the expected location, so the statement finds nothing to change any more. Whether it did so before is certain
	// where the log still reaches back to the base: the successor would be there.
	if err := req.Holds(now.meta); err != nil {
		c.discard(ctx, next.location)
		return nil, err
	}
	if inLog(now.meta, base.location) {
		c.discard(ctx, next.location)
		return nil, errMoved
	}
	return nil, unknown(cause, nil)
}

func mine(now, next *version, req *request.Request) bool {
	if now.location == next.location || inLog(now.meta, next.location) {
		return true
	}
	ok, err := req.Landed(now.meta)
	return ok && err == nil
}

func inLog(meta table.Metadata, location string) bool {
	for e := range meta.PreviousFiles() {
		if e.MetadataFile == location {
			return true
		}
	}
	return false
}

// unknown keeps the cause, and makes sure that nothing below it looks like a definite answer.
func unknown(cause, reload error) error {
	if reload != nil {
		return fmt.Errorf("outcome unknown: %w (and the table could not be read again: %v)", cause, reload) //nolint:errorlint // its sentinels say nothing about the commit
	}
	return fmt.Errorf("outcome unknown: %w", cause)
}

// notSent marks what failed before the commit point, unless it is a definite answer anyway.
func notSent(err error) error {
	if errors.Is(err, catalog.ErrConflict) || errors.Is(err, catalog.ErrPermanent) {
		return err
	}
	return fmt.Errorf("%w: %w", catalog.ErrNotSent, err)
}

// discardIf removes a file that was written before something failed and nothing was sent.
func (c *Engine) discardIf(ctx context.Context, v *version) {
	if v != nil {
		c.discard(ctx, v.location)
	}
}
