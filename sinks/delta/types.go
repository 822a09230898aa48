package delta

import (
	"errors"
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log/schema"
)

var primitives = map[schema.Kind]planv1.TypeKind{
	schema.String: planv1.TypeKind_TYPE_KIND_STRING, schema.Long: planv1.TypeKind_TYPE_KIND_INT64, schema.Integer: planv1.TypeKind_TYPE_KIND_INT32,
	schema.Short: planv1.TypeKind_TYPE_KIND_INT16, schema.Byte: planv1.TypeKind_TYPE_KIND_INT8, schema.Float: planv1.TypeKind_TYPE_KIND_FLOAT32,
	schema.Double: planv1.TypeKind_TYPE_KIND_FLOAT64, schema.Decimal: planv1.TypeKind_TYPE_KIND_DECIMAL, schema.Boolean: planv1.TypeKind_TYPE_KIND_BOOLEAN,
	schema.Binary: planv1.TypeKind_TYPE_KIND_BINARY, schema.Date: planv1.TypeKind_TYPE_KIND_DATE, schema.Timestamp: planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS,
	schema.TimestampNTZ: planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS,
}

var deltaKinds = func() map[planv1.TypeKind]schema.Kind {
	out := map[planv1.TypeKind]schema.Kind{}
	for k, v := range primitives {
		out[v] = k
	}
	return out
}()

// absent are the types that Delta does not have, with what to do about a column of one.
var absent = map[planv1.TypeKind]string{
	planv1.TypeKind_TYPE_KIND_TIME_MICROS:       "Delta has no type for times of day; cast it to VARCHAR",
	planv1.TypeKind_TYPE_KIND_UUID:              "Delta has no type for UUIDs; cast it to VARCHAR",
	planv1.TypeKind_TYPE_KIND_FIXED:             "Delta has no type for bytes of a fixed length; cast it to BLOB",
	planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:   "Delta's timestamps have microseconds; cast it to TIMESTAMP",
	planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS: "Delta's timestamps have microseconds; cast it to TIMESTAMPTZ",
	planv1.TypeKind_TYPE_KIND_UNSPECIFIED:       "its type cannot be stored in a Delta table; cast it to one that can",
}

// schemaOf is a schema as the other protocols have it: fields are numbered depth first from 1.
func schemaOf(s *schema.Schema) *planv1.Schema {
	n := &numbering{}
	return &planv1.Schema{Fields: n.fields(s.Fields)}
}

type numbering struct{ last int32 }

func (n *numbering) fields(in []schema.Field) []*planv1.Field {
	out := make([]*planv1.Field, len(in))
	for i := range in {
		out[i] = n.field(in[i].Name, &in[i].Type, !in[i].Nullable)
		out[i].Doc = in[i].Comment()
	}
	return out
}

func (n *numbering) field(name string, t *schema.Type, required bool) *planv1.Field {
	n.last++
	f := &planv1.Field{Id: n.last, Name: name, Required: required}
	f.Type = n.typ(t)
	return f
}

func (n *numbering) typ(t *schema.Type) *planv1.Type {
	switch t.Kind {
	case schema.Struct:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: n.fields(t.Fields)}
	case schema.Array:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{n.field("element", t.Element, !t.Nulls)}}
	case schema.Map:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{n.field("key", t.Key, true), n.field("value", t.Element, !t.Nulls)}}
	}
	return &planv1.Type{Kind: primitives[t.Kind], Precision: int32(t.Precision), Scale: int32(t.Scale)}
}

// defineSchema makes a Delta schema of columns that a statement asks for. Whatever Delta cannot have is refused, all of it at once.
func defineSchema(fields []*planv1.Field) (*schema.Schema, error) {
	d := &defining{}
	s := &schema.Schema{Fields: d.fields(fields, nil)}
	if err := errors.Join(d.errs...); err != nil {
		return nil, oneLine(err)
	}
	if err := s.CheckNames(); err != nil {
		return nil, oneLine(err)
	}
	return s, nil
}

// oneLine writes joined errors behind one another.
func oneLine(err error) error {
	return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

type defining struct{ errs []error }

func (d *defining) refuse(path []string, format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("column %s: %s", schema.PathString(path), fmt.Sprintf(format, args...)))
}

func (d *defining) fields(in []*planv1.Field, path []string) []schema.Field {
	out := make([]schema.Field, len(in))
	for i, f := range in {
		at := append(path[:len(path):len(path)], f.GetName())
		out[i] = schema.Field{Name: f.GetName(), Type: d.typ(f.GetType(), at), Nullable: !f.GetRequired()}
		if f.GetWriteDefault().GetKind() != nil || f.GetInitialDefault().GetKind() != nil {
			d.refuse(at, "a default needs the table feature allowColumnDefaults, which is not supported; leave it out")
		}
		if f.GetDoc() != "" {
			if err := out[i].SetComment(f.GetDoc()); err != nil {
				d.refuse(at, "%v", err)
			}
		}
	}
	return out
}

func (d *defining) typ(t *planv1.Type, path []string) schema.Type {
	below := func(i int, name string) *schema.Type {
		var inner *planv1.Type
		if i < len(t.GetFields()) {
			inner = t.GetFields()[i].GetType()
		}
		out := d.typ(inner, append(path[:len(path):len(path)], name))
		return &out
	}
	nulls := func(i int) bool { return i < len(t.GetFields()) && !t.GetFields()[i].GetRequired() }
	switch kind := t.GetKind(); kind {
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		return schema.Type{Kind: schema.Struct, Fields: d.fields(t.GetFields(), path)}
	case planv1.TypeKind_TYPE_KIND_LIST:
		return schema.Type{Kind: schema.Array, Element: below(0, "element"), Nulls: nulls(0)}
	case planv1.TypeKind_TYPE_KIND_MAP:
		return schema.Type{Kind: schema.Map, Key: below(0, "key"), Element: below(1, "value"), Nulls: nulls(1)}
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		if p, s := t.GetPrecision(), t.GetScale(); p < 1 || p > 38 || s < 0 || s > p {
			d.refuse(path, "decimal(%d,%d): the precision must be 1 to 38, and the scale at most the precision", p, s)
		}
		return schema.Type{Kind: schema.Decimal, Precision: int(t.GetPrecision()), Scale: int(t.GetScale())}
	default:
		k, ok := deltaKinds[kind]
		if !ok {
			why, known := absent[kind]
			if !known {
				why = absent[planv1.TypeKind_TYPE_KIND_UNSPECIFIED]
			}
			d.refuse(path, "%s", why)
			k = schema.String
		}
		return schema.Type{Kind: k}
	}
}
