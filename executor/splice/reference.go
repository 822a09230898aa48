package splice

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
)

// Reference says how the columns of a file are those of a table that is to have it as a data file, as it is.
type Reference struct {
	Layout *Layout // of the columns that the file has
	Found  Found
}

// Found is which of a table's columns a file has.
type Found struct {
	ByName bool            // it has no field ids: its columns are found by their names
	Have   []*planv1.Field // in the file's order
	Absent []*planv1.Field // in the table's
	nodes  []*node         // of Have
}

// Names are those that fields have in files without field ids, by field id; nil: the table's own.
type Names map[int32][]string

// NamesOf takes the names of a table's name mapping.
func NamesOf(list []*planv1.FieldNames) Names {
	if len(list) == 0 {
		return nil
	}
	out := Names{}
	for _, n := range list {
		out[n.GetFieldId()] = append(out[n.GetFieldId()], n.GetNames()...)
	}
	return out
}

// Find looks for a table's columns in a file: by field ids where the file has any and ids says that they mean something, by names otherwise. Columns that the table lacks, and ids that say another
// thing than names do, are a reason why the file is none of the table's.
func Find(f *footer.File, fields []*planv1.Field, names Names, ids bool) (found Found, reason string) {
	root := treeOf(f)
	found.ByName = !ids || !hasIDs(root)
	seen := map[int32]string{}
	for _, n := range root.children {
		field, reason := columnOf(n, fields, names, found.ByName)
		if reason != "" {
			return found, reason
		}
		if other, twice := seen[field.GetId()]; twice {
			return found, fmt.Sprintf("column %q is in the file twice: as %q too", n.Name, other)
		}
		seen[field.GetId()] = n.Name
		found.Have, found.nodes = append(found.Have, field), append(found.nodes, n)
	}
	for _, field := range fields {
		if _, ok := seen[field.GetId()]; !ok {
			found.Absent = append(found.Absent, field)
		}
	}
	return found, ""
}

func hasIDs(n *node) bool { return n.HasID || slices.ContainsFunc(n.children, hasIDs) }

func columnOf(n *node, fields []*planv1.Field, names Names, byName bool) (*planv1.Field, string) {
	byID, same := fieldWithID(n, fields, byName), fieldNamed(n.Name, fields, names, byName)
	switch {
	case byName && same == nil:
		for _, f := range fields {
			if strings.EqualFold(f.GetName(), n.Name) {
				return nil, fmt.Sprintf("column %q is not one of the table's, which has %q; files without field ids are read by names as they are spelt", n.Name, f.GetName())
			}
		}
		return nil, fmt.Sprintf("column %q is not one of the table's", n.Name)
	case byName:
		return same, ""
	case !n.HasID:
		return nil, fmt.Sprintf("column %q has no field id, and other columns of the file have", n.Name)
	case byID == nil && same == nil:
		return nil, fmt.Sprintf("column %q, with field id %d, is not one of the table's", n.Name, n.FieldID)
	case byID == nil:
		return nil, fmt.Sprintf("column %q has field id %d in the file, and %d in the table", n.Name, n.FieldID, same.GetId())
	case byID != same:
		return nil, fmt.Sprintf("column %q has field id %d in the file, which is column %q of the table", n.Name, n.FieldID, byID.GetName())
	}
	return byID, ""
}

func fieldWithID(n *node, fields []*planv1.Field, byName bool) *planv1.Field {
	for _, f := range fields {
		if !byName && n.HasID && f.GetId() == n.FieldID {
			return f
		}
	}
	return nil
}

func fieldNamed(name string, fields []*planv1.Field, names Names, byName bool) *planv1.Field {
	for _, f := range fields {
		if names != nil && byName {
			if slices.Contains(names[f.GetId()], name) {
				return f
			}
		} else if f.GetName() == name {
			return f
		}
	}
	return nil
}

// Refer matches a file with a table's columns so that its values are read as the table's without a change. reason says why they are not.
func Refer(f *footer.File, fields []*planv1.Field, names Names, ids bool) (*Reference, string) {
	found, reason := Find(f, fields, names, ids)
	if reason != "" {
		return nil, reason
	}
	m := &matcher{loose: true, layout: &Layout{schema: []footer.Element{{
		Physical: footer.Group, Repetition: footer.Unrepeated, Name: "table", Children: int32(len(found.Have)), Converted: footer.NoConverted, //nolint:gosec // few
	}}}}
	for i, field := range found.Have {
		n, src := found.nodes[i], field
		if found.ByName {
			src = nil
			if reason := mapped(field, n.Name, names, field.GetName()); reason != "" {
				return nil, reason
			}
		}
		if n.Repetition == footer.Repeated {
			return nil, fmt.Sprintf("column %q is a repeated element without a list around it", n.Name)
		}
		if reason := m.add(n, field, src, n.Name, field.GetName()); reason != "" {
			return nil, reason
		}
	}
	return &Reference{Layout: m.layout, Found: found}, ""
}

// mapped says why a name mapping does not lead readers to a field, or to one below it.
func mapped(f *planv1.Field, name string, names Names, path string) string {
	if names == nil {
		return ""
	}
	if !slices.Contains(names[f.GetId()], name) {
		return fmt.Sprintf("column %q is not in the table's name mapping (property schema.name-mapping.default) as %q", path, name)
	}
	kind := f.GetType().GetKind()
	for k, child := range f.GetType().GetFields() {
		sub := child.GetName()
		switch kind {
		case planv1.TypeKind_TYPE_KIND_LIST:
			sub = "element"
		case planv1.TypeKind_TYPE_KIND_MAP:
			sub = []string{"key", "value"}[min(k, 1)]
		}
		if reason := mapped(child, sub, names, path+"."+sub); reason != "" {
			return reason
		}
	}
	return ""
}

// promoted tells types of files that readers take for a wider type of the table: those that the format lets a column change from, and decimals in any of
// their layouts.
func promoted(e *footer.Element, t *planv1.Type) bool {
	bare := e.Converted == footer.NoConverted && e.Logical.Kind == footer.NoLogical
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT64:
		return e.Physical == footer.Int32 && (bare || signed(e, 32, footer.Int32Converted))
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		return e.Physical == footer.Float && bare
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		p, s := e.Precision, e.Scale
		if e.Logical.Kind == footer.DecimalLogical {
			p, s = e.Logical.Precision, e.Logical.Scale
		} else if e.Logical.Kind != footer.NoLogical || e.Converted != footer.DecimalOld {
			return false
		}
		if p > t.GetPrecision() || s != t.GetScale() || p < 1 || s < 0 {
			return false
		}
		switch e.Physical {
		case footer.Int32:
			return p <= 9
		case footer.Int64:
			return p <= 18
		case footer.FixedLenByteArray:
			return e.TypeLength >= decimalBytes(p) && e.TypeLength <= 16
		}
	}
	return false
}

// CheckPlaces says why a file's columns cannot be where its footer says; empty: they can. Values are not looked at.
func (in *Input) CheckPlaces(l *Layout, rules Rules) string {
	if in.meta.Encrypted {
		return "it is encrypted"
	}
	for g := range in.meta.Groups {
		rows := in.meta.Groups[g].Rows
		if rows == 0 {
			continue
		}
		for n := range l.Leaves {
			leaf := &l.Leaves[n]
			c := &in.meta.Groups[g].Chunks[leaf.source]
			reason := in.checkPlace(c, leaf, rows)
			if r := in.rangeOf(c, leaf); reason == "" && r != nil && r.Low != nil && !leaf.Repeated {
				reason = checkRange(leaf, r, c.Values, rules.Years)
			}
			if reason != "" {
				return fmt.Sprintf("column %q: %s", leaf.Path, reason)
			}
		}
	}
	return ""
}

// Unproved are the required columns of the table of which the file's statistics do not say that they have no NULL.
func (in *Input) Unproved(l *Layout) []string {
	var out []string
	for _, need := range l.needs {
		for g := range in.meta.Groups {
			chunks := in.meta.Groups[g].Chunks
			if in.meta.Groups[g].Rows > 0 && !slices.ContainsFunc(need.leaves, func(n int) bool {
				r := in.rangeOf(&chunks[l.Leaves[n].source], &l.Leaves[n])
				return r != nil && r.Nulls == 0
			}) {
				out = append(out, need.path)
				break
			}
		}
	}
	return out
}

// Metrics are those of all of the file's rows, by leaf of the layout.
func (in *Input) Metrics(l *Layout) []Metrics {
	out := make([]Metrics, len(l.Leaves))
	for n := range l.Leaves {
		out[n].Bounded = true
		for g := range in.meta.Groups {
			c := &in.meta.Groups[g].Chunks[l.Leaves[n].source]
			out[n].add(in.rangeOf(c, &l.Leaves[n]), c)
		}
	}
	return out
}

// Offsets are those of the row groups; nil where they are not in the order of the file.
func (in *Input) Offsets() []int64 {
	var out []int64
	for g := range in.meta.Groups {
		first := int64(-1)
		for n := range in.meta.Groups[g].Chunks {
			if start := in.meta.Groups[g].Chunks[n].Start(); first < 0 || start < first {
				first = start
			}
		}
		if first < 0 || len(out) > 0 && first <= out[len(out)-1] || first >= in.body {
			return nil
		}
		out = append(out, first)
	}
	return out
}

// Name is what the file calls column n of Have.
func (f *Found) Name(n int) string { return f.nodes[n].Name }
