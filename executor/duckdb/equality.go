package duckdb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// equalitySet are equality delete files that compare the same columns and have the same schema.
type equalitySet struct {
	ids    []int32
	schema *parquetSchema
	paths  []string
}

// equalityJoins writes one anti-join per set of equality delete files that apply to the group: a row goes whose values are those of a deleted row, NULL
// equal to NULL. DuckDB spills what does not fit into memory.
func (v *tableView) equalityJoins(ctx context.Context, g *fileGroup) (string, error) {
	sets, err := v.equalitySets(ctx, g)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for n, s := range sets {
		deleted := &mapper{schema: s.schema, fields: v.scan.GetSchema().GetFields(), names: v.names}
		deleted.byName = !anyID(s.schema.root)
		var keys, on []string
		for k, id := range s.ids {
			key, err := deleted.equalityKey(id, deleted.topNames())
			if err != nil {
				return "", err
			}
			if key == "" {
				return "", userErrorf("the table is damaged; read an older version of it", "equality delete file %s lacks the column of field id %d, by which it deletes", s.schema.path, id)
			}
			value, err := g.mapper.equalityKey(id, g.names)
			if err != nil {
				return "", err
			}
			if value == "" {
				if value, err = v.absent(g, id); err != nil {
					return "", err
				}
			}
			name := fmt.Sprintf("signet_k%d_%d", n, k)
			keys = append(keys, key+" AS "+name)
			on = append(on, value+" IS NOT DISTINCT FROM "+name)
		}
		r := &reader{function: "read_parquet", format: formatParquet, options: map[string]string{"hive_partitioning": "false", "union_by_name": "false"}}
		call, err := r.call(s.paths)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, " ANTI JOIN (SELECT DISTINCT %s FROM %s) AS signet_e%d ON %s", strings.Join(keys, ", "), call, n, strings.Join(on, " AND "))
	}
	return out.String(), nil
}

func (v *tableView) equalitySets(ctx context.Context, g *fileGroup) ([]*equalitySet, error) {
	if len(g.equality) == 0 {
		return nil, nil
	}
	files := make([]*planv1.PinnedFile, len(g.equality))
	for n, d := range g.equality {
		files[n] = &planv1.PinnedFile{Path: d.GetPath(), SizeBytes: d.GetSizeBytes()}
	}
	schemas, err := v.inst.schemasByPath(ctx, files)
	if err != nil {
		return nil, err
	}
	var out []*equalitySet
	byKey := map[string]*equalitySet{}
	for _, d := range g.equality {
		schema := schemas[d.GetPath()]
		if schema == nil {
			return nil, userErrorf("", "%s: DuckDB answered no schema", d.GetPath())
		}
		ids := slices.Clone(d.GetEqualityIds())
		slices.Sort(ids)
		key := fmt.Sprint(ids, schema.signature)
		s := byKey[key]
		if s == nil {
			s = &equalitySet{ids: ids, schema: schema}
			byKey[key], out = s, append(out, s)
		}
		if !slices.Contains(s.paths, d.GetPath()) {
			s.paths = append(s.paths, d.GetPath())
		}
	}
	return out, nil
}

// equalityKey is the expression for a column in files of the mapper's schema, in the table's type; "" if they do not hold it. Columns that the table has no more
// are compared as they are.
func (m *mapper) equalityKey(id int32, names []string) (string, error) {
	path := m.path(id, m.fields, m.schema.root)
	field := fieldOf(id, m.fields)
	if field == nil { // dropped from the table, and deleted by before
		for n, c := range m.schema.root.children {
			if c.hasID && c.id == id {
				path = []int{n}
			}
		}
	}
	if path == nil {
		return "", nil
	}
	expr, node := Ident(names[path[0]]), m.schema.root.children[path[0]]
	for _, n := range path[1:] {
		expr, node = fmt.Sprintf("struct_extract_at(%s, %d)", expr, n+1), node.children[n]
	}
	if field == nil {
		return expr, nil
	}
	converted, err := m.convert(expr, field.GetType(), node, field.GetName())
	if err != nil {
		return "", err
	}
	t, err := SQLType(field.GetType())
	return "CAST(" + converted + " AS " + t + ")", err
}

// absent is what a column that the data files do not hold is for all their rows.
func (v *tableView) absent(g *fileGroup, id int32) (string, error) {
	field := fieldOf(id, v.scan.GetSchema().GetFields())
	if field == nil {
		return "NULL", nil
	}
	t, err := SQLType(field.GetType())
	if err != nil {
		return "", err
	}
	return g.mapper.missing(field, t, field.GetName())
}

func fieldOf(id int32, fields []*planv1.Field) *planv1.Field {
	for _, f := range fields {
		if f.GetId() == id {
			return f
		}
		if in := fieldOf(id, f.GetType().GetFields()); in != nil {
			return in
		}
	}
	return nil
}
