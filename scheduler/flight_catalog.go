package scheduler

import (
	"context"
	"errors"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/scheduler/flightsql"
)

// columnsNamed describes columns in inlineResult's notation.
func columnsNamed(names []string) []*planv1.Column {
	out := make([]*planv1.Column, len(names))
	for i, n := range names {
		name, kind, _ := strings.Cut(n, ":")
		engine := "VARCHAR"
		switch kind {
		case "int":
			engine = "BIGINT"
		case "bool":
			engine = "BOOLEAN"
		}
		out[i] = &planv1.Column{Name: name, EngineType: engine}
	}
	return out
}

// Catalogs implements flightsql.Backend.
func (b *flightBackend) Catalogs(who string) []string { return b.s.visibleCatalogs(who) }

// Schemas implements flightsql.Backend.
func (b *flightBackend) Schemas(ctx context.Context, who, name string) ([][]string, error) {
	e, err := b.s.resolveCatalog(who, name, "")
	if err != nil {
		return nil, grpcError(err)
	}
	all, err := b.s.visibleSchemas(ctx, who, e)
	if err != nil {
		return nil, grpcError(err)
	}
	return all, nil
}

// Tables implements flightsql.Backend.
func (b *flightBackend) Tables(ctx context.Context, who, name string, schema []string) ([]string, error) {
	e, err := b.s.resolveCatalog(who, name, "")
	if err != nil {
		return nil, grpcError(err)
	}
	tables, err := b.s.visibleTables(ctx, who, e, schema)
	if err != nil {
		return nil, grpcError(err)
	}
	return tables, nil
}

// Table implements flightsql.Backend.
func (b *flightBackend) Table(ctx context.Context, who string, name []string, defaults flightsql.Statement) (*planv1.Schema, error) {
	defaults.SQL = "DESCRIBE"
	j, err := b.unborn(ctx, who, defaults)
	if err != nil {
		return nil, grpcError(err)
	}
	defer j.cancel(nil)
	t, err := b.s.resolveTable(name, j, toRead)
	if err != nil {
		return nil, grpcError(b.s.mayNot(who, err))
	}
	if t.entry.catalog != nil {
		// The catalog knows it faster than a sink, and most tables of an ingest do not exist yet.
		if _, err := t.entry.catalog.Load(ctx, t.ident); errors.Is(err, catalog.ErrNotFound) {
			return nil, grpcError(b.s.noSuchTable(ctx, t))
		}
	}
	d, err := b.s.describe(j.ctx, j, t)
	if err != nil {
		return nil, grpcError(asFailure(err))
	}
	return d.GetSchema(), nil
}
