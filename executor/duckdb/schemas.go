package duckdb

import (
	"context"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// schemaGroup is a run of files with one schema.
type schemaGroup struct {
	schema *parquetSchema
	files  []*planv1.PinnedFile
}

// groupFiles keeps the order in which groups first appear.
func (i *Instance) groupFiles(ctx context.Context, files []*planv1.PinnedFile) ([]*schemaGroup, error) {
	schemas, err := i.schemasByPath(ctx, files)
	if err != nil {
		return nil, err
	}
	var out []*schemaGroup
	byKey := map[string]*schemaGroup{}
	for _, f := range files {
		s, ok := schemas[f.GetPath()]
		if !ok {
			return nil, userErrorf("", "%s: DuckDB answered no schema", displayName(f))
		}
		g, ok := byKey[s.signature]
		if !ok {
			g = &schemaGroup{schema: s}
			byKey[s.signature] = g
			out = append(out, g)
		}
		g.files = append(g.files, f)
	}
	return out, nil
}

// schemasByPath reads the schema of every file. Files with equal schemas share one. Without files, as an emptied table has, there is nothing to ask:
// DuckDB refuses an empty list.
func (i *Instance) schemasByPath(ctx context.Context, files []*planv1.PinnedFile) (map[string]*parquetSchema, error) {
	if len(files) == 0 {
		return nil, nil
	}
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
