package scheduler

import (
	"context"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog"
)

// dataPathHint is how an operator allows a place.
const dataPathHint = "take the table property write.data.path away, point it below the table's location, or have the operator list the place in catalogs.%s.data_paths"

// checkData decides whether the data files of a table at home may go to a place. Whoever may change a table may write any place into it, and executors
// write there with their own rights.
func (s *Server) checkData(e *catalogEntry, home, place string) error {
	c := s.cfg.Catalogs[e.name]
	if e.catalog == nil {
		return s.sources.CheckWritable(place, e.root, append([]string{home}, c.DataPaths...)...)
	}
	return s.sources.CheckWritable(place, c.Warehouse, append([]string{home}, c.DataPaths...)...)
}

// checkDataLocation refuses a write whose files would go where they may not.
func (s *Server) checkDataLocation(ctx context.Context, p *planned, spec *planv1.WriteSpec) error {
	t, home := p.target, p.location
	switch {
	case t.entry.catalog == nil:
		home = t.entry.location(t.ident)
	case home == "":
		tbl, err := t.entry.catalog.Load(ctx, t.ident)
		if err != nil {
			return catalogError(err, "table "+t.String())
		}
		home = tbl.Location
	}
	if err := s.checkData(t.entry, home, spec.DataLocation); err != nil {
		return fail(codeUser, fmt.Sprintf(dataPathHint, t.entry.name), "table %s: data location %w", t, err)
	}
	return nil
}

// dataPathRule is checkData for the broker, which sees the properties of tables that are created.
func (s *Server) dataPathRule(e *catalogEntry) func(home, place string) error {
	return func(home, place string) error {
		if err := s.checkData(e, home, place); err != nil {
			return fmt.Errorf("%w; to allow it, list the place in catalogs.%s.data_paths: %w", err, e.name, catalog.ErrPermanent)
		}
		return nil
	}
}
