package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/internal/uri"
)

const propVersion = "format-version"

type creation struct {
	Name       string            `json:"name"`
	Location   string            `json:"location,omitempty"`
	Schema     json.RawMessage   `json:"schema"`
	Spec       json.RawMessage   `json:"partition-spec,omitempty"`
	Order      json.RawMessage   `json:"write-order,omitempty"`
	Stage      bool              `json:"stage-create"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Create implements catalog.Catalog. Servers may assign other field ids than were asked for, so read them from the table that is returned.
func (c *Catalog) Create(ctx context.Context, id catalog.Ident, spec catalog.CreateSpec) (*catalog.Table, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	t, err := c.create(ctx, id, spec)
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", id, err)
	}
	return t, nil
}

func (c *Catalog) create(ctx context.Context, id catalog.Ident, spec catalog.CreateSpec) (*catalog.Table, error) {
	s, err := c.config(ctx)
	if err != nil {
		return nil, notSent(err)
	}
	if err := s.usable(id); err != nil {
		return nil, err
	}
	location := strings.TrimRight(spec.Location, "/")
	if spec.Location == "" {
		if location, err = c.DefaultLocation(ctx, id); err != nil {
			return nil, notSent(err)
		}
	} else if err := c.checkLocation(location); err != nil {
		return nil, err
	}
	meta, err := request.NewMetadata(spec, location)
	if err != nil {
		return nil, err
	}
	props := maps.Clone(spec.Properties)
	if props == nil {
		props = map[string]string{}
	}
	props[propVersion] = strconv.Itoa(meta.Version())
	body, err := json.Marshal(creation{
		Name: id.Table(), Location: location, Schema: spec.Schema, Spec: spec.PartitionSpec, Order: spec.SortOrder, Properties: props,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	a, err := c.client.send(ctx, call{method: http.MethodPost, url: c.namespaceURL(s, id.Namespace(), nil, "tables"), body: body})
	switch {
	case unsent(err):
		return nil, notSent(err)
	case err != nil:
		return nil, unknown(err, nil)
	case a.status != http.StatusOK:
		return nil, c.notCreated(ctx, id, c.refusal(a))
	}
	t, err := c.keep(id, a)
	if err != nil {
		return nil, unknown(err, nil)
	}
	if spec.Location == "" || c.offered.has(location) {
		location = "" // the server's own idea, of which it may have another by now
	}
	return t, c.asAsked(ctx, t, meta.Version(), location)
}

// notCreated says why there is no table, or that it is not known whether there is one.
func (c *Catalog) notCreated(ctx context.Context, id catalog.Ident, e *Error) error {
	switch {
	case e.Status == http.StatusNotFound && e.spoken():
		return fmt.Errorf("%w: %w: %w; create the namespace first", catalog.ErrPermanent, catalog.ErrNotFound, e)
	case e.Status == http.StatusConflict && e.spoken():
		if _, err := c.load(ctx, id); err != nil {
			return unknown(e, err)
		}
		return fmt.Errorf("%w: %w", catalog.ErrExists, e)
	}
	if err := definite(e); errors.Is(err, catalog.ErrPermanent) {
		return err
	}
	return unknown(e, nil)
}

// asAsked refuses a table of another format version, or at another place, than was asked for, and takes it back: some servers make another one without a word. An empty location
// was not asked for.
func (c *Catalog) asAsked(ctx context.Context, t *catalog.Table, version int, location string) error {
	var wrong error
	switch {
	case t.Metadata.Version() != version:
		wrong = fmt.Errorf("%w: the catalog's server made it with format version %d, asked for %d", catalog.ErrPermanent, t.Metadata.Version(), version)
	case location != "" && uri.Key(t.Location) != uri.Key(location):
		wrong = fmt.Errorf("%w: the catalog's server put it at %s, asked for %s: leave the location to the catalog", catalog.ErrPermanent, t.Location, location)
	default:
		return nil
	}
	now, err := c.load(ctx, t.Ident)
	if err == nil && now.UUID == t.UUID && now.Metadata.CurrentSnapshot() == nil {
		err = c.Drop(ctx, t.Ident)
	}
	if err != nil {
		return fmt.Errorf("%w; and the empty table could not be dropped: %v", wrong, err) //nolint:errorlint // what it is says nothing about the create
	}
	return wrong
}
