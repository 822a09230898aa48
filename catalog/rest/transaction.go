package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/internal/rawjson"
)

var _ catalog.Transactor = (*Catalog)(nil)

// pathTransaction is the endpoint of transactions, as servers list it.
const pathTransaction = "POST /v1/{prefix}/transactions/commit"

// part is one change of a transaction.
type part struct {
	id  catalog.Ident
	req *request.Request
}

// CommitTransaction implements catalog.Transactor.
func (c *Catalog) CommitTransaction(ctx context.Context, changes []catalog.Change) ([]*catalog.Table, error) {
	parts, err := c.parts(changes)
	if err != nil {
		return nil, err
	}
	tables, err := c.transact(ctx, parts, changes)
	if err != nil {
		return nil, fmt.Errorf("commit to %d tables: %w", len(changes), err)
	}
	return tables, nil
}

// parts refuses what need not be sent, and what could not be seen afterwards.
func (c *Catalog) parts(changes []catalog.Change) ([]part, error) {
	seen := map[string]bool{}
	parts := make([]part, 0, len(changes))
	for _, change := range changes {
		name := change.Ident.String()
		if err := change.Ident.Validate(); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("table %s: it has two changes in one transaction; make them one: %w", name, catalog.ErrPermanent)
		}
		seen[name] = true
		req, err := c.parse(change.Requirements, change.Updates)
		if err == nil && (req.Snapshots() == 0 || req.Creates()) {
			err = fmt.Errorf("%w: a change in a transaction adds a snapshot to a table that is there; nobody could tell afterwards whether another one has landed", catalog.ErrPermanent)
		}
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		parts = append(parts, part{change.Ident, req})
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: a transaction without changes", catalog.ErrPermanent)
	}
	return parts, nil
}

func (c *Catalog) transact(ctx context.Context, parts []part, changes []catalog.Change) ([]*catalog.Table, error) {
	s, err := c.config(ctx)
	if err != nil {
		return nil, notSent(err)
	}
	if !s.offers(pathTransaction) {
		return nil, fmt.Errorf("%w: the catalog's server offers no commit to several tables (%s)", catalog.ErrPermanent, pathTransaction)
	}
	for _, p := range parts {
		if err := s.usable(p.id); err != nil {
			return nil, err
		}
	}
	body, err := transactionBody(changes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	if s.loose {
		unlock, err := c.lookAtFirsts(ctx, parts)
		defer unlock()
		if err != nil {
			return nil, err
		}
	}
	h := http.Header{}
	if s.keys {
		h.Set("Idempotency-Key", idempotencyKey(parts[0].id, parts[0].req, body))
	}
	a, err := c.client.send(ctx, call{method: http.MethodPost, url: c.address(s, nil, "transactions", "commit"), header: h, body: body})
	switch {
	case unsent(err):
		return nil, notSent(err)
	case err != nil:
		return nil, unknown(err, nil)
	}
	e := c.refusal(a)
	switch a.status {
	case http.StatusNoContent, http.StatusOK, http.StatusConflict, http.StatusNotFound:
		return c.settleAll(ctx, parts, e, unknowable)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return c.settleAll(ctx, parts, e, refused)
	}
	if err := definite(e); errors.Is(err, catalog.ErrPermanent) {
		return nil, err
	}
	return nil, unknown(e, nil)
}

// lookAtFirsts is lookFirst for the changes that need it. A change that has landed already is no reason not to send: all are looked at afterwards.
func (c *Catalog) lookAtFirsts(ctx context.Context, parts []part) (unlock func(), _ error) {
	var locked []func()
	unlock = func() {
		for _, f := range locked {
			f()
		}
	}
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, func(a, b part) int { return slices.Compare(a.id, b.id) }) // so that two transactions never wait for one another
	for _, p := range sorted {
		if p.req.Anchored() {
			continue
		}
		locked = append(locked, c.firsts.lock(p.id.String()))
		if _, err := c.lookFirst(ctx, p.id, p.req); err != nil {
			return unlock, err
		}
	}
	return unlock, nil
}

func transactionBody(changes []catalog.Change) ([]byte, error) {
	list := []byte{'['}
	for i, change := range changes {
		one, err := commitBody(change.Ident, change.Requirements, change.Updates)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, one...)
	}
	return rawjson.AppendObject(nil, []rawjson.Member{{Key: "table-changes", Value: append(list, ']')}}), nil
}

// settleAll looks at every table, whatever the answer was (I9).
func (c *Catalog) settleAll(ctx context.Context, parts []part, cause error, otherwise meaning) ([]*catalog.Table, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	tables := make([]*catalog.Table, len(parts))
	var landed, lost []catalog.Ident
	var why error
	for i, p := range parts {
		now, err := c.load(ctx, p.id)
		switch {
		case errors.Is(err, catalog.ErrNotFound):
			lost, why = append(lost, p.id), fmt.Errorf("%w: table %s: %w", catalog.ErrConflict, p.id, err)
			continue
		case err != nil:
			return nil, unknown(cause, err)
		}
		ok, err := p.req.Landed(now.Metadata)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", p.id, err)
		}
		if ok {
			tables[i], landed = now, append(landed, p.id)
			continue
		}
		if err := errors.Join(p.req.Holds(now.Metadata), p.req.Fresh(now.Metadata)); err != nil {
			lost, why = append(lost, p.id), fmt.Errorf("table %s: %w", p.id, err)
		}
	}
	switch {
	case len(landed) == len(parts):
		return tables, nil
	case len(landed) > 0 && len(landed)+len(lost) == len(parts):
		return nil, &catalog.TornError{Landed: landed, Lost: lost, Cause: why}
	case len(landed) > 0:
		return nil, unknown(fmt.Errorf("%w (of %d tables %d show it)", cause, len(parts), len(landed)), nil)
	case len(lost) > 0:
		return nil, fmt.Errorf("%w (%w)", why, cause)
	case otherwise == refused:
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, cause)
	}
	return nil, unknown(cause, nil)
}
