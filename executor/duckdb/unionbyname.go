package duckdb

import (
	"context"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// unionByName writes the view of Parquet files that were bound with union_by_name: each group of files with the same schema is read with casts of its
// own to the bound types. DuckDB's union_by_name over a share would unify the types of that share only, and a column that no file of the share
// has would be missing.
func (i *Instance) unionByName(ctx context.Context, r *reader, fs *planv1.FileSource) (string, error) {
	groups, err := i.groupFiles(ctx, fs.GetFiles())
	if err != nil {
		return "", err
	}
	r = r.without("union_by_name")
	var parts []string
	for _, g := range groups {
		extra := r.addedColumns(g.files[0])
		projection := unionColumns(fs.GetColumns(), g.schema.root, extra)
		for _, s := range sharesOf(g.files) {
			part, err := r.read(projection, s)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return emptyQuery(fs.GetColumns())
	}
	return strings.Join(parts, " UNION ALL "), nil
}

func (r *reader) without(name string) *reader {
	c := *r
	c.options = map[string]string{}
	for k, v := range r.options {
		if k != name {
			c.options[k] = v
		}
	}
	return &c
}

// addedColumns are the columns that options add to those in the file.
func (r *reader) addedColumns(f *planv1.PinnedFile) []string {
	var out []string
	if r.on("filename") {
		name := "filename"
		if v := strings.Trim(r.options["filename"], "'"); !strings.EqualFold(v, "true") && v != "1" && v != "t" && strings.HasPrefix(r.options["filename"], "'") {
			name = v
		}
		out = append(out, name)
	}
	if r.on("file_row_number") {
		out = append(out, "file_row_number")
	}
	if r.on("hive_partitioning") {
		out = append(out, hiveKeys(f)...)
	}
	return out
}
