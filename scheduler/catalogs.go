package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/open"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/sql"
)

// catalogEntry is one configured catalog: tables of a catalog service, or directories of a storage sink.
type catalogEntry struct {
	name    string
	sink    string
	catalog catalog.Catalog // nil for a storage sink
	root    string          // storage sinks: URI without trailing slash
	log     string          // storage sinks: the directory that tells a table from any other directory; empty: every directory is one
	stores  storage.Opener  // storage sinks; nil: storage.Local

	sessions *sessions // of attempts; nil: single requests are signed for them
	implied  bool      // nothing configures it: it is left out where its sink is not installed
}

// deltaLog is the directory of a Delta table's log.
const deltaLog = "_delta_log"

// target is a table that a statement names.
type target struct {
	entry *catalogEntry
	ident catalog.Ident // namespace parts and table
	who   string        // for whom it was resolved
	does  action        // what who may do to it, and is about to
}

func (t *target) ref() *sinkv1.TableRef {
	n := len(t.ident) - 1
	return &sinkv1.TableRef{Catalog: t.entry.name, Namespace: t.ident[:n], Name: t.ident[n]}
}

func (t *target) String() string {
	n := len(t.ident) - 1
	if t.isPlace() {
		return sql.JoinName([]string{t.entry.name, t.ident[n]})
	}
	return sql.JoinName([]string{t.entry.name, schemaText(t.ident[:n]), t.ident[n]})
}

func (s *Server) openCatalogs(ctx context.Context) error {
	s.catalogs = map[string]*catalogEntry{}
	for name, c := range s.cfg.Catalogs {
		e := &catalogEntry{name: name, implied: c.Implied && c.Type == config.CatalogDelta}
		switch c.Type {
		case config.CatalogSink:
			e.sink, e.root = c.Sink, strings.TrimSuffix(c.Root, "/")
		case config.CatalogDelta:
			var err error
			if e.stores, e.sessions, err = openStores(c); err != nil {
				return fmt.Errorf("catalogs.%s: %w", name, err)
			}
			e.sink, e.root, e.log = c.Sink, strings.TrimSuffix(c.Root, "/"), deltaLog
		default:
			cat, sessions, err := s.openCatalog(ctx, name, c)
			if err != nil {
				return fmt.Errorf("catalogs.%s: %w", name, err)
			}
			e.sink, e.catalog, e.sessions = "iceberg", cat, sessions
		}
		s.catalogs[name] = e
	}
	return nil
}

// store opens the storage below a table's location; without a table, with the operator's own credentials.
func (e *catalogEntry) store(ctx context.Context, id catalog.Ident, location string) (storage.Store, error) {
	switch {
	case e.catalog != nil:
		return e.catalog.Store(ctx, id, location)
	case e.stores != nil:
		return e.stores.Open(ctx, location)
	}
	return storage.Local.Open(ctx, location)
}

// opener opens places of one table.
func (e *catalogEntry) opener(id catalog.Ident) storage.Opener {
	return storage.OpenerFunc(func(ctx context.Context, location string) (storage.Store, error) { return e.store(ctx, id, location) })
}

// location is where a storage sink's table lies.
func (e *catalogEntry) location(ident catalog.Ident) string {
	if len(ident) == 1 { // it is the place itself
		return ident[0]
	}
	return e.root + "/" + storage.TableDir(ident)
}

// openCatalog opens a catalog of tables, and what its attempts get.
func (s *Server) openCatalog(ctx context.Context, name string, c config.Catalog) (catalog.Catalog, *sessions, error) {
	stores, sessions, err := openStores(c)
	if err != nil {
		return nil, nil, err
	}
	cat, err := open.Open(ctx, name, c, open.Deps{Stores: stores, Logger: s.log})
	return cat, sessions, err
}

// resolveCatalog finds a catalog by the name a user typed; "" is the default one. What who has nothing to do with, is not there.
func (s *Server) resolveCatalog(who, name, preferred string) (*catalogEntry, error) {
	names := s.visibleCatalogs(who)
	if name == "" {
		name = preferred
	}
	if name == "" {
		if len(names) == 1 {
			return s.catalogs[names[0]], nil
		}
		if e := s.catalogs["lake"]; e != nil && slices.Contains(names, "lake") {
			return e, nil
		}
		return nil, fail(codeNotFound, "write catalog.schema.table", "which catalog is meant? There are %s", cmp.Or(strings.Join(names, ", "), "none"))
	}
	if i, _ := sql.Find(name, names); i >= 0 {
		return s.catalogs[names[i]], nil
	}
	return nil, fail(codeNotFound, "SHOW CATALOGS lists them; catalogs are configured under catalogs:", "no catalog %s; there are %s", sql.DisplayIdent(name), cmp.Or(strings.Join(names, ", "), "none"))
}

// resolveTable finds the table that a statement names with one to three (or more) parts, to do something to it that the job's owner may do.
func (s *Server) resolveTable(parts []string, j *job, does action) (*target, error) {
	t, err := s.namedTable(parts, j)
	if err != nil {
		return nil, err
	}
	refused := s.permitTable(j, t, does)
	if refused == nil || t.isPlace() {
		return t, refused
	}
	n := len(t.ident) - 1
	ns, err := s.findSchema(j.ctx, t.entry, t.ident[:n]) // a permission may be for the schema that the name means but for case
	if err != nil || ns == nil || slices.Equal(ns, t.ident[:n]) {
		return nil, refused
	}
	other := &target{entry: t.entry, ident: append(append(catalog.Ident{}, ns...), t.ident[n])}
	if s.permitTable(j, other, does) != nil {
		return nil, refused
	}
	return other, nil
}

func (s *Server) namedTable(parts []string, j *job) (*target, error) {
	preferred, schema := j.rec.DefaultCatalog, j.rec.DefaultSchema
	if e := s.placeOf(j.owner, parts); e != nil {
		ident, err := s.placed(e, parts[1])
		return &target{entry: e, ident: ident}, err
	}
	var name string
	rest := parts
	switch {
	case len(parts) == 1:
		if schema == "" {
			return nil, fail(codeNotFound, "write schema."+sql.DisplayIdent(parts[0])+" or pass --schema", "table %s has no schema and there is no default one", sql.DisplayIdent(parts[0]))
		}
		rest = append(strings.Split(schema, "."), parts[0])
	case len(parts) >= 3:
		name, rest = parts[0], parts[1:]
	}
	e, err := s.resolveCatalog(j.owner, name, preferred)
	if err != nil {
		return nil, err
	}
	n := len(rest) - 1
	ns, err := e.namespace(j.ctx, rest[:n])
	if err != nil {
		return nil, err
	}
	return &target{entry: e, ident: append(append(catalog.Ident{}, ns...), rest[n])}, nil
}

// noSuchTable is the error for a table that is not there, with the nearest names.
func (s *Server) noSuchTable(ctx context.Context, t *target) error {
	n := len(t.ident) - 1
	near := "SHOW TABLES lists what is there"
	if t.isPlace() || !s.allowed(t.who, t.entry, t.ident[:n], toRead) {
		return fail(codeNotFound, "", "table %s does not exist", t)
	}
	names, err := s.listTables(ctx, t.entry, t.ident[:n])
	if err != nil {
		return fail(codeNotFound, "SHOW SCHEMAS FROM "+sql.DisplayIdent(t.entry.name)+" lists them; CREATE SCHEMA makes one", "table %s does not exist: no schema %s in catalog %s", t, sql.DisplayIdent(schemaText(t.ident[:n])), sql.DisplayIdent(t.entry.name))
	}
	switch i, several := sql.Find(t.ident[n], names); {
	case i >= 0: // DROP TABLE looks no further
		near = "there is " + sql.DisplayIdent(names[i]) + "; this statement wants the name exactly as it is"
	case len(several) > 0:
		near = "several tables differ from it in case only: write the name exactly, as SHOW TABLES shows it"
	}
	return fail(codeNotFound, near, "table %s does not exist", t)
}

// listTables lists the tables of a schema.
func (s *Server) listTables(ctx context.Context, e *catalogEntry, ns []string) ([]string, error) {
	var out []string
	if e.catalog == nil {
		return e.tables(ctx, ns)
	}
	ns, err := e.namespace(ctx, ns)
	if err != nil {
		return nil, err
	}
	tables, err := e.catalog.Tables(ctx, ns)
	if err != nil {
		return nil, catalogError(err, "schema "+sql.JoinName([]string{e.name, schemaText(ns)}))
	}
	for _, id := range tables {
		out = append(out, id[len(id)-1])
	}
	return out, nil
}

// listSchemas lists a catalog's schemas, each by its parts.
func (s *Server) listSchemas(ctx context.Context, e *catalogEntry) ([][]string, error) {
	if e.catalog != nil {
		all, err := e.catalog.Namespaces(ctx)
		return all, catalogError(err, "catalog "+e.name)
	}
	return e.directories(ctx)
}
