package duckdb

import (
	"context"
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// tableQuery writes the SELECT of a table scan: files with the same schema are read together, and each such group gets a projection that maps its own
// columns to the table's by field id. DuckDB's own option for this (read_parquet's schema) is not used: in 1.5.6 it reads NULL for columns that
// are there when the files differ, does not map nested fields, and fails inside together with file_row_number.
func (i *Instance) tableQuery(ctx context.Context, ts *planv1.TableScan) (string, error) {
	if err := distinctNames(ts.GetTable(), ts.GetSchema().GetFields()); err != nil {
		return "", err
	}
	if len(ts.GetFiles()) == 0 {
		return emptyTable(ts)
	}
	groups, err := i.groupFiles(ctx, ts.GetFiles())
	if err != nil {
		return "", err
	}
	r := &reader{function: "read_parquet", format: formatParquet, options: map[string]string{"hive_partitioning": "false", "union_by_name": "false"}}
	var parts []string
	for _, g := range groups {
		m := &mapper{schema: g.schema, constants: map[int32]*planv1.Value{}}
		if err := m.setConstants(ts, g.files[0]); err != nil {
			return "", err
		}
		projection, err := m.project(ts)
		if err != nil {
			return "", err
		}
		for _, s := range sharesOf(g.files) {
			part, err := r.read(projection, s)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return emptyTable(ts)
	}
	return strings.Join(parts, " UNION ALL "), nil
}

// distinctNames refuses columns that DuckDB, which ignores case, cannot tell apart (X3).
func distinctNames(where string, fields []*planv1.Field) error {
	seen := map[string]string{}
	for _, f := range fields {
		lower := strings.ToLower(f.GetName())
		if other, dup := seen[lower]; dup {
			return userErrorf("rename one of them; SQL here ignores case", "%s: columns %q and %q differ only in case", where, other, f.GetName())
		}
		seen[lower] = f.GetName()
	}
	return nil
}

func emptyTable(ts *planv1.TableScan) (string, error) {
	var cols []*planv1.Column
	for _, f := range ts.GetSchema().GetFields() {
		t, err := SQLType(f.GetType())
		if err != nil {
			return "", fmt.Errorf("column %q: %w", f.GetName(), err)
		}
		cols = append(cols, &planv1.Column{Name: f.GetName(), EngineType: t})
	}
	return emptyQuery(cols)
}

// fileGroup is a run of files that one projection fits.
type fileGroup struct {
	schema *parquetSchema
	files  []*planv1.PinnedFile
}

// groupFiles keeps the order in which groups first appear.
func (i *Instance) groupFiles(ctx context.Context, files []*planv1.PinnedFile) ([]*fileGroup, error) {
	schemas, err := i.schemasByPath(ctx, files)
	if err != nil {
		return nil, err
	}
	var out []*fileGroup
	byKey := map[string]*fileGroup{}
	for _, f := range files {
		s, ok := schemas[f.GetPath()]
		if !ok {
			return nil, userErrorf("", "%s: DuckDB answered no schema", displayName(f))
		}
		var key strings.Builder
		key.WriteString(s.signature)
		for _, v := range f.GetConstants() {
			fmt.Fprintf(&key, "%q;", v.String())
		}
		g, ok := byKey[key.String()]
		if !ok {
			g = &fileGroup{schema: s}
			byKey[key.String()] = g
			out = append(out, g)
		}
		g.files = append(g.files, f)
	}
	return out, nil
}

// schemasByPath reads the schema of every file. Files with equal schemas share one.
func (i *Instance) schemasByPath(ctx context.Context, files []*planv1.PinnedFile) (map[string]*parquetSchema, error) {
	var paths []string
	seen := map[string]bool{}
	for _, f := range files {
		if p := f.GetPath(); !seen[p] {
			seen[p] = true
			paths = append(paths, p)
		}
	}
	digests, err := i.schemaDigests(ctx, paths)
	if err != nil {
		return nil, err
	}
	var first []string // one file per digest
	byDigest := map[string]*parquetSchema{}
	for _, p := range paths {
		if _, known := byDigest[digests[p]]; !known {
			byDigest[digests[p]] = nil
			first = append(first, p)
		}
	}
	schemas, err := i.parquetSchemas(ctx, first)
	if err != nil {
		return nil, err
	}
	for _, s := range schemas {
		byDigest[digests[s.path]] = s
	}
	out := make(map[string]*parquetSchema, len(paths))
	for _, p := range paths {
		if s := byDigest[digests[p]]; s != nil {
			out[p] = s
		}
	}
	return out, nil
}
