package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog"
)

// Load implements catalog.Catalog.
func (c *Catalog) Load(ctx context.Context, id catalog.Ident) (*catalog.Table, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	t, err := c.load(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", id, err)
	}
	return t, nil
}

// load asks for the table with all of its snapshots: a commit may have been followed by others.
func (c *Catalog) load(ctx context.Context, id catalog.Ident) (*catalog.Table, error) {
	s, err := c.config(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.usable(id); err != nil {
		return nil, err
	}
	known := c.cache.get(id.String())
	h := http.Header{}
	if known != nil && known.etag != "" {
		h.Set("If-None-Match", known.etag)
	}
	a, err := c.client.send(ctx, call{method: http.MethodGet, url: c.table(s, id, url.Values{"snapshots": {"all"}}), header: h})
	if err != nil {
		return nil, err
	}
	switch {
	case a.status == http.StatusNotModified && known != nil:
		return known.table, nil
	case a.status != http.StatusOK:
		return nil, definite(c.refusal(a))
	}
	return c.keep(id, a)
}

// keep reads an answer that holds a table, and remembers it.
func (c *Catalog) keep(id catalog.Ident, a *answer) (*catalog.Table, error) {
	location, raw, err := tableOf(a.body)
	if err != nil {
		return nil, err
	}
	key := id.String()
	t := c.cache.same(key, location, raw)
	if t == nil {
		meta, err := table.ParseMetadataBytes(raw)
		if err != nil {
			return nil, fmt.Errorf("metadata %s: %w: %w", location, catalog.ErrUnreadable, err)
		}
		t = &catalog.Table{
			Ident: id, UUID: meta.TableUUID().String(), Location: meta.Location(), MetadataLocation: location, Metadata: meta, Raw: raw,
		}
	}
	c.cache.put(&entry{key: key, etag: a.header.Get("ETag"), table: t})
	return t, nil
}

// tableOf takes the metadata out of an answer, as it is.
func tableOf(body []byte) (location string, raw []byte, err error) {
	var doc struct {
		Location string          `json:"metadata-location"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return "", nil, fmt.Errorf("the answer of the catalog's server is no table: %w", err)
	}
	if doc.Location == "" || len(doc.Metadata) == 0 || doc.Metadata[0] != '{' {
		return "", nil, errors.New("the answer of the catalog's server is no table: it has no metadata-location or no metadata")
	}
	return doc.Location, doc.Metadata, nil
}

// RawMetadata implements catalog.Catalog. It never reads the file that the catalog names: others may have written there since.
func (c *Catalog) RawMetadata(ctx context.Context, t *catalog.Table) ([]byte, error) {
	if t.Raw != nil {
		return bytes.Clone(t.Raw), nil
	}
	now, err := c.Load(ctx, t.Ident)
	if err != nil {
		return nil, err
	}
	if now.UUID != t.UUID || now.MetadataLocation != t.MetadataLocation {
		return nil, fmt.Errorf("table %s: its metadata is %s by now, and %s can no longer be had", t.Ident, now.MetadataLocation, t.MetadataLocation)
	}
	return bytes.Clone(now.Raw), nil
}

// Drop implements catalog.Catalog.
func (c *Catalog) Drop(ctx context.Context, id catalog.Ident) error {
	if err := id.Validate(); err != nil {
		return err
	}
	s, err := c.config(ctx)
	if err == nil {
		err = s.usable(id)
	}
	if err != nil {
		return fmt.Errorf("drop table %s: %w", id, err)
	}
	a, err := c.client.send(ctx, call{method: http.MethodDelete, url: c.table(s, id, url.Values{"purgeRequested": {"false"}})})
	switch {
	case err != nil:
	case a.status == http.StatusNoContent:
		return nil
	case a.status/100 == 2: // something else may have answered
		if _, err = c.load(ctx, id); errors.Is(err, catalog.ErrNotFound) {
			return nil
		}
		err = unknown(c.refusal(a), err)
	default:
		err = definite(c.refusal(a))
	}
	return fmt.Errorf("drop table %s: %w", id, err)
}
