package scheduler

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/sql"
)

// A table of a storage sink may be named by its place, as Spark's delta.`/path` does: delta."s3://bucket/dir/table". Such a place lies below the catalog's root or its
// data_paths. One that names a schema and a table below the root is that table; any other has an ident of one part, the place itself.

// isPlace tells a place from the name of a table.
func isPlace(name string) bool {
	return strings.HasPrefix(name, "/") || strings.Contains(name, "://") || strings.HasPrefix(name, uri.File+":/")
}

// isPlace says that the table is named by its place.
func (t *target) isPlace() bool { return len(t.ident) == 1 }

// placeOf is the catalog and the place that a name of two parts means; nil: it means a schema and a table.
func (s *Server) placeOf(who string, parts []string) *catalogEntry {
	if len(parts) != 2 || !isPlace(parts[1]) {
		return nil
	}
	names := s.visibleCatalogs(who)
	i, _ := sql.Find(parts[0], names)
	if i < 0 || s.catalogs[names[i]].catalog != nil {
		return nil
	}
	return s.catalogs[names[i]]
}

// placed is the ident of the table at a place.
func (s *Server) placed(e *catalogEntry, place string) (catalog.Ident, error) {
	at, err := uri.Parse(place)
	if err != nil {
		return nil, fail(codeUser, "write "+sql.DisplayIdent(e.name)+".\"s3://bucket/dir/table\" or "+sql.DisplayIdent(e.name)+".\"/dir/table\"", "catalog %s: no place of a table: %w", e.name, err)
	}
	dataPaths := s.cfg.Catalogs[e.name].DataPaths
	segments, err := uri.Below(e.root, place)
	switch {
	case hiddenBelow(place, append([]string{e.root}, dataPaths...)):
		return nil, fail(codeUser, "name the table's directory", "%s: a directory whose name begins with _ or . holds no table", place)
	case err == nil && len(segments) == 2:
		ident := append(schemaOfDirectory(segments[0]), storage.UnescapeSegment(segments[1]))
		if uri.Key(e.location(ident)) == uri.Key(place) {
			return ident, nil
		}
	case !slices.ContainsFunc(dataPaths, func(p string) bool { _, err := uri.Below(p, place); return err == nil }):
		hint := "tables below the catalog's root are at <root>/schema/table; to allow another place, have the operator list it in catalogs." + e.name + ".data_paths"
		return nil, fail(codeUser, hint, "%s is no place of a table of catalog %s: its root is %s", at, e.name, e.root)
	}
	if err := s.sources.CheckWritable(place, e.root, dataPaths...); err != nil { // follows links
		return nil, fail(codeUser, "have the operator list the place in catalogs."+e.name+".data_paths", "catalog %s: %w", e.name, err)
	}
	return catalog.Ident{at.String()}, nil
}

// hiddenBelow says that one of the segments of a place below the first of bases that it lies below is hidden.
func hiddenBelow(place string, bases []string) bool {
	for _, base := range bases {
		if segments, err := uri.Below(base, place); err == nil {
			return slices.ContainsFunc(segments, hidden)
		}
	}
	return false
}

// schemaOfDirectory is the schema whose directory below the root has that name.
func schemaOfDirectory(dir string) catalog.Ident {
	var ns catalog.Ident
	for part := range strings.SplitSeq(dir, ".") {
		ns = append(ns, storage.UnescapeSegment(part))
	}
	return ns
}

// schemaOf is the schema that permissions for a table are about. A table outside of the root is in none: only who may do something in all schemas may do it there.
func (e *catalogEntry) schemaOf(id catalog.Ident) []string {
	if n := len(id) - 1; n > 0 {
		return id[:n]
	}
	if segments, err := uri.Below(e.root, id[0]); err == nil && len(segments) == 2 {
		return schemaOfDirectory(segments[0])
	}
	return nil
}
