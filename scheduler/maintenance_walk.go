package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/signet-io/signet/catalog"
)

// walkOf is a catalog's walk, which lists one schema at a time.
func (s *Server) walkOf(name string) *tableWalk {
	u := &s.maintenance
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.walks[name]
	if w == nil {
		w = &tableWalk{catalog: s.catalogs[name].catalog}
		u.walks[name] = w
	}
	return w
}

// tableWalk goes through the tables of a catalog in the order of their schemas and names. It holds the names of one schema.
type tableWalk struct {
	catalog catalog.Catalog
	schemas [][]string
	schema  []string // whose tables these are
	tables  []catalog.Ident
}

// next is the first table behind another; nil: there is none. Behind nil is the first of all.
func (w *tableWalk) next(ctx context.Context, after catalog.Ident) (catalog.Ident, error) {
	if len(after) == 0 || w.schemas == nil {
		schemas, err := w.catalog.Namespaces(ctx)
		if err != nil {
			return nil, err
		}
		w.schemas, w.schema, w.tables = slices.Clone(schemas), nil, nil
		slices.SortFunc(w.schemas, slices.Compare[[]string])
	}
	from := 0
	if len(after) > 0 {
		from, _ = slices.BinarySearchFunc(w.schemas, []string(after[:len(after)-1]), slices.Compare[[]string])
	}
	for _, ns := range w.schemas[from:] {
		if w.schema == nil || !slices.Equal(w.schema, ns) {
			tables, err := w.catalog.Tables(ctx, ns)
			if err != nil && !errors.Is(err, catalog.ErrNotFound) {
				return nil, err
			}
			w.schema, w.tables = ns, slices.Clone(tables)
			slices.SortFunc(w.tables, slices.Compare[catalog.Ident])
		}
		at := 0
		if n := len(after) - 1; n > 0 && slices.Equal(ns, []string(after[:n])) {
			var found bool
			if at, found = slices.BinarySearchFunc(w.tables, after, slices.Compare[catalog.Ident]); found {
				at++
			}
		}
		if at < len(w.tables) {
			return w.tables[at], nil
		}
	}
	*w = tableWalk{catalog: w.catalog}
	return nil, nil
}
