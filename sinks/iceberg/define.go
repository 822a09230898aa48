package iceberg

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/evolve"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

const defaultFormatVersion = 2

// definition is a table to be created.
type definition struct {
	layout
	warnings []string
}

// define turns what CREATE TABLE asked for into an Iceberg table. Ids are those that Iceberg's reference implementation would give; a catalog may
// give others.
func define(d *sinkv1.TableDefinition) (*definition, error) {
	out := &definition{layout: layout{location: strings.TrimRight(d.GetLocation(), "/"), properties: maps.Clone(d.GetProperties())}}
	if err := out.takeProperties(); err != nil {
		return nil, err
	}
	fields := proto.CloneOf(d.GetSchema()).GetFields()
	if len(fields) == 0 {
		return nil, fmt.Errorf("a table needs at least one column")
	}
	if err := out.fields(fields, ""); err != nil {
		return nil, err
	}
	meta.AssignIDs(fields)
	var err error
	if out.schema, err = meta.NewSchema(0, fields); err != nil {
		return nil, err
	}
	if path := out.schema.Ambiguous(); path != "" {
		return nil, fmt.Errorf("two columns have the path %s", path)
	}
	if err := writableTypes(out.schema, out.version); err != nil {
		return nil, fmt.Errorf("%w; set 'format-version' to 3, or cast the column", err)
	}
	return out, out.clauses(d)
}

func (d *definition) clauses(def *sinkv1.TableDefinition) error {
	var parts []meta.Clause
	for _, c := range def.GetPartition() {
		parts = append(parts, meta.Clause{Column: c.GetColumn(), Transform: meta.Transform{Kind: c.GetTransform(), Param: c.GetParam()}})
	}
	var sorts []meta.SortClause
	for _, c := range def.GetSort() {
		t := meta.Transform{Kind: c.GetTransform(), Param: c.GetParam()}
		if t.Kind == planv1.TransformKind_TRANSFORM_KIND_UNSPECIFIED {
			t.Kind = planv1.TransformKind_TRANSFORM_KIND_IDENTITY
		}
		sorts = append(sorts, meta.SortClause{Clause: meta.Clause{Column: c.GetColumn(), Transform: t}, Descending: c.GetDescending(), NullsFirst: c.GetNullsFirst()})
	}
	var err error
	if d.spec, err = meta.NewSpec(d.schema, parts); err != nil {
		return err
	}
	d.order, err = meta.NewSortOrder(d.schema, sorts)
	return err
}

// fields makes columns ones that Iceberg has, or refuses them.
func (d *definition) fields(fields []*planv1.Field, prefix string) error {
	seen := map[string]bool{}
	for _, f := range fields {
		path := prefix + f.GetName()
		switch {
		case f.GetName() == "":
			return fmt.Errorf("column %q: a column needs a name", path)
		case seen[f.GetName()]:
			return fmt.Errorf("column %s is defined twice", path)
		}
		seen[f.GetName()] = true
		if f.GetWriteDefault().GetKind() != nil && d.version < 3 {
			return fmt.Errorf("column %s: a default needs table format version 3; set 'format-version' to 3, or leave the default out", path)
		}
		if err := d.column(f.GetType(), path); err != nil {
			return err
		}
		if f.GetWriteDefault().GetKind() != nil {
			v, err := evolve.Literal(f.GetType(), f.GetWriteDefault())
			if err != nil {
				return fmt.Errorf("column %s: its default: %w", path, err)
			}
			f.WriteDefault = v
		}
	}
	return nil
}

func (d *definition) column(t *planv1.Type, path string) error {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16:
		d.warnings = append(d.warnings, fmt.Sprintf("column %s: Iceberg has no type for small integers; it is stored as int", path))
		t.Kind = planv1.TypeKind_TYPE_KIND_INT32
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		if t.GetPrecision() < 1 || t.GetPrecision() > 38 || t.GetScale() < 0 || t.GetScale() > t.GetPrecision() {
			return fmt.Errorf("column %s: decimal(%d, %d): the precision must be 1 to 38, and the scale at most the precision", path, t.GetPrecision(), t.GetScale())
		}
	case planv1.TypeKind_TYPE_KIND_FIXED:
		if t.GetLength() < 1 {
			return fmt.Errorf("column %s: fixed[%d]: the length must be positive", path, t.GetLength())
		}
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		if len(t.GetFields()) == 0 {
			return fmt.Errorf("column %s: a struct needs at least one field", path)
		}
		return d.fields(t.GetFields(), path+".")
	case planv1.TypeKind_TYPE_KIND_LIST:
		return d.inner(t, path, "element")
	case planv1.TypeKind_TYPE_KIND_MAP:
		return d.inner(t, path, "key", "value")
	case planv1.TypeKind_TYPE_KIND_UNSPECIFIED:
		return fmt.Errorf("column %s: its type cannot be stored in an Iceberg table; cast it to one that can", path)
	}
	return nil
}

// inner names the fields of a list or a map as Iceberg does. A map's key is always required.
func (d *definition) inner(t *planv1.Type, path string, names ...string) error {
	if len(t.GetFields()) != len(names) {
		return fmt.Errorf("column %s: a %s has %d inner types, not %d", path, meta.TypeName(t), len(names), len(t.GetFields()))
	}
	for i, f := range t.GetFields() {
		f.Name = names[i]
		f.Required = f.Required || names[i] == "key"
		if err := d.column(f.GetType(), path+"."+names[i]); err != nil {
			return err
		}
	}
	return nil
}

// reservedProperties are names that the reference implementation keeps for itself.
var reservedProperties = []string{
	"uuid", "snapshot-count", "current-snapshot-summary", "current-snapshot-id", "current-snapshot-timestamp-ms", "current-schema",
	"default-partition-spec", "default-sort-order",
}

// takeProperties checks the table's properties, and takes those out that are none.
func (d *definition) takeProperties() error {
	d.version = defaultFormatVersion
	if text, ok := d.properties[propFormatVersion]; ok {
		v, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || v < 1 || v > 3 {
			return fmt.Errorf("property format-version=%s: Signet creates tables of version 2 or 3", text)
		}
		d.version = v
		delete(d.properties, propFormatVersion)
	}
	if text, ok := d.properties["location"]; ok {
		if d.location == "" {
			d.location = strings.TrimRight(text, "/")
		}
		delete(d.properties, "location")
	}
	for _, key := range slices.Sorted(maps.Keys(d.properties)) {
		if err := checkProperty(key, d.properties[key]); err != nil {
			return fmt.Errorf("property %s=%s: %w", key, d.properties[key], err)
		}
	}
	return nil
}

func checkProperty(key, text string) error {
	switch {
	case key == "":
		return fmt.Errorf("a property needs a name")
	case key == propAcceptAny, key == propSplice, key == propNoExpiry:
		if text != "true" && text != "false" {
			return fmt.Errorf("want true or false")
		}
	case strings.HasPrefix(key, "signet."):
		return fmt.Errorf("names that begin with signet. are reserved")
	case slices.Contains(reservedProperties, key):
		return fmt.Errorf("the name is reserved by Iceberg")
	case key == propEncryptionKey:
		return fmt.Errorf("encrypted tables are not supported")
	case key == propFormat && !strings.EqualFold(text, "parquet"):
		return fmt.Errorf("data files are written as parquet only")
	}
	if err := checkValue(key, text); err != nil {
		return err
	}
	p := &properties{all: map[string]string{key: text}}
	switch {
	case key == propMetricsDefault || strings.HasPrefix(key, propMetricsColumn):
		p.mode(key)
	case key == propCodec || key == propPageVersion:
		p.fileRules()
	}
	if len(p.warnings) > 0 {
		_, why, _ := strings.Cut(p.warnings[0], "is not honoured: ")
		return fmt.Errorf("%s", why)
	}
	return nil
}
