package lineage

import (
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// maxDatasets bounds the inputs of one run.
const maxDatasets = 1000

// Table is what is known of a table.
type Table struct {
	Name      string // in the catalog, schema.table
	Catalog   string // namespace of the catalog; empty: none
	Location  string // empty: not known
	Namespace string // in place of the location's
	Layer     string // of the storage: iceberg
	Schema    *planv1.Schema
	Version   string // snapshot; empty: not known
	Lifecycle string // CREATE, OVERWRITE, TRUNCATE; empty: no such change
}

// Table makes the dataset of a table.
func (b *Builder) Table(t Table) Dataset {
	d := Dataset{Namespace: t.Namespace, Name: t.Name}
	if t.Location != "" {
		d.Namespace, d.Name = FromLocation(t.Location)
		if t.Catalog != "" {
			d.Facets = b.set(d.Facets, "symlinks", map[string]any{"identifiers": []any{map[string]any{"namespace": t.Catalog, "name": t.Name, "type": "TABLE"}}})
		}
	}
	if t.Schema != nil {
		d.Facets = b.set(d.Facets, "schema", map[string]any{"fields": b.fields(t.Schema.Fields)})
	}
	if t.Layer != "" {
		d.Facets = b.set(d.Facets, "storage", map[string]any{"storageLayer": t.Layer, "fileFormat": "parquet"})
	}
	if t.Lifecycle != "" {
		d.Facets = b.set(d.Facets, "lifecycleStateChange", map[string]any{"lifecycleStateChange": t.Lifecycle})
	}
	b.SetVersion(&d, t.Version)
	return d
}

// SetVersion says which version of a dataset it is.
func (b *Builder) SetVersion(d *Dataset, version string) {
	if version != "" {
		d.Facets = b.set(d.Facets, "version", map[string]any{"datasetVersion": version})
	}
}

// SetOutput says what a run has written.
func (b *Builder) SetOutput(d *Dataset, rows, bytes, files int64) {
	d.OutputFacets = b.set(d.OutputFacets, "outputStatistics", map[string]any{"rowCount": rows, "size": bytes, "fileCount": files})
}

// SetInput says what a run reads; negative numbers are not known.
func (b *Builder) SetInput(d *Dataset, rows, bytes, files int64) {
	m := map[string]any{}
	for name, n := range map[string]int64{"rowCount": rows, "size": bytes, "fileCount": files} {
		if n >= 0 {
			m[name] = n
		}
	}
	d.InputFacets = b.set(d.InputFacets, "inputStatistics", m)
}

// InputColumn is a column that an output column is made of.
type InputColumn struct {
	Dataset Dataset
	Column  string
	Direct  bool // its values are among the output's, perhaps changed; otherwise it decides only which rows there are
}

// SetColumns says what the output's columns are made of; columns without an entry are left out.
func (b *Builder) SetColumns(d *Dataset, columns map[string][]InputColumn) {
	if len(columns) == 0 {
		return
	}
	out := map[string]any{}
	for name, list := range columns {
		in := []any{}
		for _, c := range list {
			kind := "INDIRECT"
			if c.Direct {
				kind = "DIRECT"
			}
			in = append(in, map[string]any{
				"namespace": c.Dataset.Namespace, "name": c.Dataset.Name, "field": c.Column,
				"transformations": []any{map[string]any{"type": kind, "subtype": "TRANSFORMATION", "description": "", "masking": false}},
			})
		}
		out[name] = map[string]any{"inputFields": in}
	}
	d.Facets = b.set(d.Facets, "columnLineage", map[string]any{"fields": out})
}

func (b *Builder) fields(list []*planv1.Field) []any {
	out := make([]any, 0, len(list))
	for _, f := range list {
		m := map[string]any{"name": f.Name, "type": b.TypeText(f.Type)}
		if f.Doc != "" {
			m["description"] = f.Doc
		}
		if f.Type.GetKind() == planv1.TypeKind_TYPE_KIND_STRUCT {
			m["fields"] = b.fields(f.Type.Fields)
		}
		out = append(out, m)
	}
	return out
}

// Files makes the datasets of files: one for each directory of which several are read, and one for each file that is alone in its directory.
func (b *Builder) Files(files []*planv1.PinnedFile, columns []*planv1.Column) []Dataset {
	type group struct {
		name         string
		files, bytes int64
	}
	var groups []*group
	byDir := map[string]*group{}
	for _, f := range files {
		name := f.Path
		if f.Uri != "" { // in an object store, or on a web server
			name = f.Uri
		}
		dir := name[:max(strings.LastIndexByte(name, '/'), 0)]
		g := byDir[dir]
		if g == nil {
			if len(groups) == maxDatasets {
				break
			}
			g = &group{name: name}
			byDir[dir] = g
			groups = append(groups, g)
		} else if name != g.name {
			g.name = dir
		}
		g.files, g.bytes = g.files+1, g.bytes+f.SizeBytes
	}
	var cols []any
	for _, c := range columns {
		cols = append(cols, map[string]any{"name": c.Name, "type": c.EngineType})
	}
	out := make([]Dataset, 0, len(groups))
	for _, g := range groups {
		d := Dataset{}
		d.Namespace, d.Name = FromLocation(locationOf(g.name))
		if cols != nil {
			d.Facets = b.set(nil, "schema", map[string]any{"fields": cols})
		}
		b.SetInput(&d, -1, g.bytes, g.files)
		out = append(out, d)
	}
	return out
}

// locationOf is a path as a URI.
func locationOf(name string) string {
	if strings.Contains(name, "://") && !strings.HasPrefix(name, "/") {
		return name
	}
	return "file://" + name
}

// Merge leaves one of several datasets of the same name, and no more than a run may have.
func Merge(list []Dataset) []Dataset {
	out := slices.Clone(list)
	seen := map[string]bool{}
	out = slices.DeleteFunc(out, func(d Dataset) bool {
		key := strings.Join([]string{d.Namespace, d.Name}, "\x00")
		was := seen[key]
		seen[key] = true
		return was
	})
	return out[:min(len(out), maxDatasets)]
}
