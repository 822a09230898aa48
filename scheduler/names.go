package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/scheduler/sql"
)

// Names are taken as they are written first. Only where nothing has that name are others looked at, without regard to case, so that
// the usual statement pays nothing for it.

// respelt is the one table that a name means if case does not count, for an err that says that there is none of exactly that name. It is
// nil where there is no such table, or more than one.
func (s *Server) respelt(ctx context.Context, t *target, err error) *target {
	var f *jobFailure
	if !errors.As(err, &f) || f.Code != codeNotFound || t.isPlace() {
		return nil
	}
	n := len(t.ident) - 1
	ns, err := s.findSchema(ctx, t.entry, t.ident[:n])
	if err != nil || ns == nil {
		return nil
	}
	tables, err := s.listTables(ctx, t.entry, ns)
	if err != nil {
		return nil
	}
	i, _ := sql.Find(t.ident[n], tables)
	if i < 0 {
		return nil
	}
	found := append(slices.Clone(ns), tables[i])
	if slices.Equal(found, t.ident) {
		return nil
	}
	if !s.allowed(t.who, t.entry, ns, t.does) {
		return nil
	}
	return &target{entry: t.entry, ident: found, who: t.who, does: t.does}
}

// findSchema is the schema of that name: exactly, or but for case if there is only one; nil if there is none.
func (s *Server) findSchema(ctx context.Context, e *catalogEntry, name []string) ([]string, error) {
	all, err := s.listSchemas(ctx, e)
	if err != nil {
		return nil, err
	}
	return schemaNamed(all, name), nil
}

func schemaNamed(all [][]string, name []string) []string {
	names := make([]string, len(all))
	for i, ns := range all {
		if slices.Equal(ns, name) {
			return ns
		}
		names[i] = schemaText(ns)
	}
	if i, _ := sql.Find(schemaText(name), names); i >= 0 {
		return all[i]
	}
	return nil
}

// warnOfTwin tells who makes a table that another differs from in case only.
func (s *Server) warnOfTwin(j *job, t *target) {
	if t.isPlace() {
		return
	}
	n := len(t.ident) - 1
	tables, err := s.listTables(j.ctx, t.entry, t.ident[:n])
	if err != nil || slices.Contains(tables, t.ident[n]) {
		return
	}
	for _, name := range tables {
		if strings.EqualFold(name, t.ident[n]) {
			twin := &target{entry: t.entry, ident: append(slices.Clone(t.ident[:n]), name)}
			j.warn(twinWarning("table", t.String(), twin.String()))
		}
	}
}

// warnOfTwinSchema is warnOfTwin for schemas.
func (s *Server) warnOfTwinSchema(j *job, e *catalogEntry, ns []string) {
	all, err := s.visibleSchemas(j.ctx, j.owner, e)
	if err != nil {
		return
	}
	name := sql.JoinName(append([]string{e.name}, ns...))
	for _, have := range all {
		if other := sql.JoinName(append([]string{e.name}, have...)); other != name && strings.EqualFold(other, name) {
			j.warn(twinWarning("schema", name, other))
		}
	}
}

func twinWarning(kind, name, twin string) string {
	return fmt.Sprintf("%s %s differs in case only from %s; most engines cannot tell them apart", kind, name, twin)
}

// schemaToShow is findSchema for a schema that has to be there, and that who may read. In a catalog without schemas of its own, one that is not there is empty.
func (s *Server) schemaToShow(ctx context.Context, who string, e *catalogEntry, name []string) ([]string, error) {
	all, err := s.visibleSchemas(ctx, who, e)
	if err != nil {
		return nil, err
	}
	found := schemaNamed(all, name)
	switch {
	case found != nil:
		return found, nil
	case e.catalog == nil && s.allowed(who, e, name, toRead):
		return name, nil
	}
	hint := "SHOW SCHEMAS FROM " + sql.DisplayIdent(e.name) + " lists them"
	if i, _ := sql.Find(name[0], s.visibleCatalogs(who)); i >= 0 && len(name) == 1 {
		c := sql.DisplayIdent(s.visibleCatalogs(who)[i])
		hint = c + " is a catalog: SHOW SCHEMAS FROM " + c + " lists its schemas, and SHOW TABLES FROM " + c + ".schema the tables of one"
	}
	return nil, fail(codeNotFound, hint, "schema %s does not exist", sql.JoinName(append([]string{e.name}, name...)))
}

// tableName reads the name of a table that came without a statement around it.
func tableName(text string) ([]string, error) {
	n, err := sql.ParseTableName(text)
	if err != nil {
		return nil, fail(codeUser, "[[catalog.]schema.]table, quoted as in SQL", "%q is not the name of a table", text)
	}
	return n.Strings(), nil
}
