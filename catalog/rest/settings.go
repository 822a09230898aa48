package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// settings are what the server says about itself.
type settings struct {
	prefix    string          // of paths, "" for none
	separator string          // between the parts of a namespace in paths, as it is written there
	endpoints map[string]bool // "POST /v1/…" as the protocol writes them; nil: the server does not say
	keys      bool            // it takes Idempotency-Key
	loose     bool            // it does not hold a request to there being no snapshot yet
}

// nessie is the setting by which Nessie says what it is. Up to 0.99 at least it takes an append to a table that has to be empty, and is not any more: the snapshots that are there are lost.
const nessie = "nessie.is-nessie-catalog"

// defaultSeparator is the unit separator.
const defaultSeparator = "%1F"

// Paths of endpoints, as servers list them.
const (
	pathTables = "POST /v1/{prefix}/namespaces/{namespace}/tables"
)

// config returns the server's settings, and asks for them once it is reached.
func (c *Catalog) config(ctx context.Context) (*settings, error) {
	c.mu.Lock()
	known := c.settings
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	u := c.base.JoinPath("v1", "config")
	if c.warehouse != "" {
		u.RawQuery = url.Values{"warehouse": {c.warehouse}}.Encode()
	}
	a, err := c.client.send(ctx, call{method: http.MethodGet, url: u.String()})
	if err != nil {
		return nil, fmt.Errorf("catalog %s: ask for its configuration: %w", c.name, err)
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("catalog %s: ask for its configuration: %w; see catalogs.%s.uri and warehouse", c.name, c.refusal(a), c.name)
	}
	s, err := c.read(a.body)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: the answer of %s is no configuration of a catalog: %w; see catalogs.%s.uri", c.name, u.Redacted(), err, c.name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settings == nil {
		c.settings = s
	}
	return c.settings, nil
}

// read takes what is for a client to take. Where to send credentials, and which headers, is for the operator to say, not for the server.
func (c *Catalog) read(body []byte) (*settings, error) {
	var doc struct {
		Defaults  map[string]*string `json:"defaults"`
		Overrides map[string]*string `json:"overrides"`
		Endpoints []string           `json:"endpoints"`
		KeyLife   string             `json:"idempotency-key-lifetime"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, err
	}
	if doc.Defaults == nil && doc.Overrides == nil {
		return nil, fmt.Errorf("neither defaults nor overrides")
	}
	said := func(name, own, otherwise string) string {
		for _, v := range []*string{doc.Overrides[name], &own, doc.Defaults[name]} {
			if v != nil && *v != "" {
				return *v
			}
		}
		return otherwise
	}
	s := &settings{prefix: strings.Trim(said("prefix", c.prefix, ""), "/"), separator: said("namespace-separator", "", defaultSeparator), keys: doc.KeyLife != "", loose: said(nessie, "", "") == "true"}
	prefix, err := pathPrefix(s.prefix)
	if err != nil {
		return nil, err
	}
	s.prefix = prefix
	if _, err := url.PathUnescape(s.separator); err != nil {
		return nil, fmt.Errorf("namespace-separator %.20q: %w", s.separator, err)
	}
	if len(doc.Endpoints) > 0 {
		s.endpoints = map[string]bool{}
		for _, e := range doc.Endpoints {
			s.endpoints[e] = true
		}
	}
	var ignored []string
	for _, from := range []map[string]*string{doc.Defaults, doc.Overrides} {
		for name := range maps.Keys(from) {
			if forbidden(name) {
				ignored = append(ignored, name)
			}
		}
	}
	if slices.Sort(ignored); len(ignored) > 0 {
		c.log.Warn("the catalog's server wants settings that only the configuration of Signet can make; they are ignored", "names", slices.Compact(ignored))
	}
	return s, nil
}

func forbidden(name string) bool {
	switch name {
	case "uri", propTokenURI, secretToken, secretCredential, propScope, "authorization-url":
		return true
	}
	return strings.HasPrefix(name, "rest.") || strings.HasPrefix(name, headerPrefix)
}

// offers says whether the server has an endpoint; unlisted ones it may have.
func (s *settings) offers(endpoint string) bool { return s.endpoints == nil || s.endpoints[endpoint] }
