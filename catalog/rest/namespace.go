package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/signet-io/signet/catalog"
)

const (
	maxPages = 1000 // of a list
	atOnce   = 8    // lists of namespaces
)

// CreateNamespace implements catalog.Catalog.
func (c *Catalog) CreateNamespace(ctx context.Context, ns []string, ifNotExists bool) error {
	if err := catalog.ValidateNamespace(ns); err != nil {
		return err
	}
	err := c.createNamespace(ctx, ns)
	if err == nil || ifNotExists && errors.Is(err, catalog.ErrExists) {
		return nil
	}
	return fmt.Errorf("create namespace %s: %w", catalog.Ident(ns), err)
}

func (c *Catalog) createNamespace(ctx context.Context, ns []string) error {
	s, err := c.config(ctx)
	if err != nil {
		return err
	}
	if err := s.addressable(ns); err != nil {
		return err
	}
	body, err := json.Marshal(struct {
		Namespace  []string          `json:"namespace"`
		Properties map[string]string `json:"properties"`
	}{ns, map[string]string{}})
	if err != nil {
		return err
	}
	a, err := c.client.send(ctx, call{method: http.MethodPost, url: c.address(s, nil, "namespaces"), body: body})
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return taken(c.refusal(a))
	}
	var doc struct {
		Namespace []string `json:"namespace"`
	}
	if json.Unmarshal(a.body, &doc) != nil || !slices.Equal(doc.Namespace, ns) {
		return unknown(errors.New("the answer of the catalog's server is no namespace"), nil)
	}
	return nil
}

// Namespaces implements catalog.Catalog. The protocol lists one level at a time.
func (c *Catalog) Namespaces(ctx context.Context) ([][]string, error) {
	s, err := c.config(ctx)
	if err != nil {
		return nil, err
	}
	out := [][]string{}
	for level := [][]string{nil}; len(level) > 0; {
		found := make([][][]string, len(level))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for i, parent := range level {
			g.Go(func() (err error) {
				found[i], err = c.children(ctx, s, parent)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		level = slices.Concat(found...)
		out = append(out, level...)
	}
	slices.SortFunc(out, slices.Compare)
	return slices.CompactFunc(out, slices.Equal), nil
}

// children lists the namespaces right below one (nil: the top), by their whole names. One that is gone by now has none.
func (c *Catalog) children(ctx context.Context, s *settings, parent []string) ([][]string, error) {
	if len(parent) > 0 && s.addressable(parent) != nil {
		return nil, nil // and cannot be asked for
	}
	query := url.Values{}
	if len(parent) > 0 {
		query.Set("parent", s.namespaceValue(parent))
	}
	var out [][]string
	err := c.pages(ctx, func(q url.Values) string { return c.address(s, q, "namespaces") }, query, func(body []byte) error {
		var doc struct {
			Namespaces [][]string `json:"namespaces"`
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			return err
		}
		for _, ns := range doc.Namespaces {
			if len(ns) == len(parent)+1 && slices.Equal(ns[:len(parent)], parent) {
				out = append(out, ns)
			}
		}
		return nil
	})
	if len(parent) > 0 && errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	return out, err
}

// pages follows a list to its end.
func (c *Catalog) pages(ctx context.Context, address func(url.Values) string, query url.Values, page func([]byte) error) error {
	for range maxPages {
		a, err := c.client.send(ctx, call{method: http.MethodGet, url: address(query)})
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return definite(c.refusal(a))
		}
		var doc struct {
			Next *string `json:"next-page-token"`
		}
		err = json.Unmarshal(a.body, &doc)
		if err == nil {
			err = page(a.body)
		}
		if err != nil {
			return fmt.Errorf("the answer of the catalog's server is no list: %w", err)
		}
		if doc.Next == nil || *doc.Next == "" {
			return nil
		}
		if *doc.Next == query.Get("pageToken") {
			return errors.New("the catalog's server answers a page of a list with the same page")
		}
		query.Set("pageToken", *doc.Next)
	}
	return fmt.Errorf("the list has more than %d pages", maxPages)
}

// Tables implements catalog.Catalog.
func (c *Catalog) Tables(ctx context.Context, ns []string) ([]catalog.Ident, error) {
	s, err := c.config(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.addressable(ns); err != nil {
		return nil, err
	}
	out := []catalog.Ident{}
	err = c.pages(ctx, func(q url.Values) string { return c.namespaceURL(s, ns, q, "tables") }, url.Values{}, func(body []byte) error {
		var doc struct {
			Tables []identifier `json:"identifiers"`
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			return err
		}
		for _, t := range doc.Tables {
			if slices.Equal(t.Namespace, ns) {
				out = append(out, append(slices.Clone(ns), t.Name))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list tables of %s: %w", catalog.Ident(ns), err)
	}
	slices.SortFunc(out, func(a, b catalog.Ident) int { return slices.Compare(a, b) })
	return out, nil
}
