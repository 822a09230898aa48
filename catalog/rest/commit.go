package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/rawjson"
)

// lookTimeout bounds the look at the table after an answer that is not believed by itself; it happens even if the caller gave up.
const lookTimeout = 20 * time.Second

// Commit implements catalog.Catalog.
func (c *Catalog) Commit(ctx context.Context, id catalog.Ident, requirements, updates []byte) (*catalog.Table, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	req, err := c.parse(requirements, updates)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", id, err)
	}
	t, err := c.commit(ctx, id, req, requirements, updates)
	if err != nil {
		return nil, fmt.Errorf("commit to table %s: %w", id, err)
	}
	return t, nil
}

// parse refuses what need not be sent.
func (c *Catalog) parse(requirements, updates []byte) (*request.Request, error) {
	req, err := request.Parse(requirements, updates)
	if err != nil {
		return nil, err
	}
	if req.FollowsOne() {
		return nil, fmt.Errorf("%w: a catalog behind Iceberg's REST protocol cannot hold a request to one metadata file, as %s wants: tables of format version 1 cannot be written "+
			"there, and snapshots cannot be picked; upgrade the table to version 2, or use a catalog of type sql", catalog.ErrPermanent, catalog.AssertMetadataLocation)
	}
	if to := req.MovesTo(); to == "" && req.Creates() {
		return nil, fmt.Errorf("%w: the request creates a table and says no location: servers of this protocol choose none", catalog.ErrPermanent)
	} else if to != "" {
		if err := c.checkLocation(to); err != nil {
			return nil, err
		}
	}
	for _, f := range req.Facts {
		if to := f.Set["write.metadata.path"]; to != "" {
			if err := c.checkLocation(to); err != nil {
				return nil, fmt.Errorf("write.metadata.path: %w", err)
			}
		}
	}
	return req, nil
}

func (c *Catalog) commit(ctx context.Context, id catalog.Ident, req *request.Request, requirements, updates []byte) (*catalog.Table, error) {
	s, err := c.config(ctx)
	if err != nil {
		return nil, notSent(err)
	}
	if err := s.usable(id); err != nil {
		return nil, err
	}
	body, err := commitBody(id, requirements, updates)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	if s.loose && !req.Anchored() {
		unlock := c.firsts.lock(id.String())
		defer unlock()
		if t, err := c.lookFirst(ctx, id, req); t != nil || err != nil {
			return t, err
		}
	}
	h := http.Header{}
	if s.keys {
		h.Set("Idempotency-Key", idempotencyKey(id, req, body))
	}
	a, err := c.client.send(ctx, call{method: http.MethodPost, url: c.table(s, id, nil), header: h, body: body})
	switch {
	case unsent(err):
		return nil, notSent(err)
	case err != nil:
		return nil, unknown(err, nil)
	case a.status == http.StatusOK:
		t, err := c.keep(id, a)
		if err != nil { // an answer of something else, or one that is not whole
			return c.settle(ctx, id, req, err, unknowable)
		}
		return t, nil
	}
	return c.judge(ctx, id, req, c.refusal(a))
}

// lookFirst holds a request to what the server does not: nil, nil says that it may be sent. Who commits past this process in the moment between is not seen.
func (c *Catalog) lookFirst(ctx context.Context, id catalog.Ident, req *request.Request) (*catalog.Table, error) {
	now, err := c.load(ctx, id)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil, fmt.Errorf("%w: %w", catalog.ErrConflict, err)
	case err != nil:
		return nil, notSent(err)
	}
	if ok, err := req.Landed(now.Metadata); ok || err != nil {
		return now, err
	}
	return nil, errors.Join(req.Holds(now.Metadata), req.Fresh(now.Metadata))
}

// commitBody puts the parts together as they are: what was journalled is what goes out.
func commitBody(id catalog.Ident, requirements, updates []byte) ([]byte, error) {
	name, err := json.Marshal(identifier{Namespace: id.Namespace(), Name: id.Table()})
	if err != nil {
		return nil, err
	}
	if len(requirements) == 0 {
		requirements = []byte("[]")
	}
	return rawjson.AppendObject(make([]byte, 0, len(name)+len(requirements)+len(updates)+64), []rawjson.Member{
		{Key: "identifier", Value: name}, {Key: "requirements", Value: requirements}, {Key: "updates", Value: updates},
	}), nil
}

type identifier struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
}

// What an answer means once the table was looked at and still fulfils the requirements.
type meaning int

const (
	unknowable meaning = iota // it may have been applied, or may still be
	refused                   // it was refused for another reason than a requirement
)

// judge is the table of outcomes. No text decides.
func (c *Catalog) judge(ctx context.Context, id catalog.Ident, req *request.Request, e *Error) (*catalog.Table, error) {
	switch e.Status {
	case http.StatusConflict:
		return c.settle(ctx, id, req, e, unknowable)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return c.settle(ctx, id, req, e, refused)
	case http.StatusNotFound:
		if !e.spoken() {
			break
		}
		if req.Creates() {
			return nil, fmt.Errorf("%w: %w: %w", catalog.ErrPermanent, catalog.ErrNotFound, e)
		}
		return c.settle(ctx, id, req, e, unknowable)
	case http.StatusUnauthorized, statusTokenExpired, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusRequestEntityTooLarge, http.StatusNotImplemented, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, e)
	}
	return nil, unknown(e, nil)
}

// settle looks at the table before an answer is believed: it may be the answer to a repetition by something in between.
func (c *Catalog) settle(ctx context.Context, id catalog.Ident, req *request.Request, cause error, otherwise meaning) (*catalog.Table, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	now, err := c.load(ctx, id)
	switch {
	case errors.Is(err, catalog.ErrNotFound) && !req.Creates():
		return nil, fmt.Errorf("%w: %w: %w", catalog.ErrConflict, err, cause)
	case errors.Is(err, catalog.ErrNotFound) && otherwise == refused:
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, cause)
	case err != nil:
		return nil, unknown(cause, err)
	}
	if ok, err := req.Landed(now.Metadata); ok || err != nil {
		return now, err
	}
	if err := errors.Join(req.Holds(now.Metadata), req.Fresh(now.Metadata)); err != nil {
		if shown, reason := req.Shown(now.Metadata); shown {
			return nil, unknown(fmt.Errorf("%w (%w)", cause, reason), nil)
		}
		return nil, fmt.Errorf("%w (%w)", err, cause)
	}
	if otherwise == refused {
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, cause)
	}
	if mutant.On("rest/believe-409") {
		return nil, fmt.Errorf("%w: %w", catalog.ErrConflict, cause)
	}
	return nil, unknown(cause, nil)
}

// unknown keeps the cause, and makes sure that nothing below it looks like a definite answer.
func unknown(cause, reload error) error {
	if reload != nil {
		return fmt.Errorf("outcome unknown: %w (and the table could not be read again: %v)", cause, reload) //nolint:errorlint // its sentinels say nothing about the commit
	}
	return fmt.Errorf("outcome unknown: %w", cause)
}

func notSent(err error) error { return fmt.Errorf("%w: %w", catalog.ErrNotSent, err) }
