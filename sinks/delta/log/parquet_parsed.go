package log

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// structColumns is a struct of typed columns in a checkpoint, in the order of kind's fields.
type structColumns struct {
	kind   *arrow.StructType
	fields []parsedField
}

type parsedField struct {
	name  string
	kind  schema.Type    // of a value
	inner *structColumns // of a struct; nil: a value
}

func (c *structColumns) add(name string, kind schema.Type, column arrow.DataType, inner *structColumns) {
	fields := append(c.kind.Fields(), arrow.Field{Name: name, Type: column, Nullable: true})
	c.kind, c.fields = arrow.StructOf(fields...), append(c.fields, parsedField{name, kind, inner})
}

// parsedColumns are the columns of a table whose delta.checkpoint.writeStatsAsStruct is set. Either is nil where there would be nothing in it.
func parsedColumns(m Metadata) (partitions, statistics *structColumns, err error) {
	s, err := schema.Parse(m.SchemaString)
	if err != nil {
		return nil, nil, err
	}
	types, err := s.Partition(m.PartitionColumns)
	if err != nil {
		return nil, nil, err
	}
	parts := &structColumns{kind: arrow.StructOf()}
	for i, name := range m.PartitionColumns {
		parts.add(name, types[i], arrowType(types[i]), nil)
	}
	data := slices.DeleteFunc(slices.Clone(s.Fields), func(f schema.Field) bool { return slices.Contains(m.PartitionColumns, f.Name) })
	long := schema.Type{Kind: schema.Long}
	stats := &structColumns{kind: arrow.StructOf()}
	stats.add("numRecords", long, numberType, nil)
	bounds, nulls := statColumns(data, func(t schema.Type) schema.Type {
		switch t.Kind {
		case schema.Boolean, schema.Binary, schema.Array, schema.Map:
			return schema.Type{}
		}
		return t
	}), statColumns(data, func(schema.Type) schema.Type { return long })
	for _, c := range []struct {
		name  string
		inner *structColumns
	}{{"minValues", bounds}, {"maxValues", bounds}, {"nullCount", nulls}} {
		if len(c.inner.fields) > 0 {
			stats.add(c.name, schema.Type{}, c.inner.kind, c.inner)
		}
	}
	stats.add("tightBounds", schema.Type{Kind: schema.Boolean}, boolType, nil)
	if len(parts.fields) == 0 {
		parts = nil
	}
	return parts, stats, nil
}

// statColumns mirrors columns with the types that of gives to their leaves; those to which it gives none are left out.
func statColumns(columns []schema.Field, of func(schema.Type) schema.Type) *structColumns {
	out := &structColumns{kind: arrow.StructOf()}
	for _, f := range columns {
		if f.Type.Kind == schema.Struct {
			if inner := statColumns(f.Type.Fields, of); len(inner.fields) > 0 {
				out.add(f.Name, schema.Type{}, inner.kind, inner)
			}
		} else if t := of(f.Type); t.Kind != schema.Invalid {
			out.add(f.Name, t, arrowType(t), nil)
		}
	}
	return out
}

func arrowType(t schema.Type) arrow.DataType {
	switch t.Kind {
	case schema.Byte:
		return arrow.PrimitiveTypes.Int8
	case schema.Short:
		return arrow.PrimitiveTypes.Int16
	case schema.Integer:
		return integerType
	case schema.Long:
		return numberType
	case schema.Float:
		return arrow.PrimitiveTypes.Float32
	case schema.Double:
		return arrow.PrimitiveTypes.Float64
	case schema.Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case schema.Boolean:
		return boolType
	case schema.Binary:
		return arrow.BinaryTypes.Binary
	case schema.Date:
		return arrow.FixedWidthTypes.Date32
	case schema.Timestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case schema.TimestampNTZ:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	}
	return textType
}

// partitions writes the partition values of a file. One that cannot be read fails the checkpoint: a null would be taken for a value.
func (w *rowWriter) partitions(c *structColumns, f *Add) {
	w.inner(func(in *rowWriter) {
		for _, column := range c.fields {
			if err := appendText(in.field(), column.kind, f.PartitionValues[column.name]); err != nil && w.err == nil {
				w.err = fmt.Errorf("file %q, partition column %q: %w", f.Path, column.name, err)
			}
		}
	})
}

// statistics writes the statistics of a file. What cannot be read is null, which means that it is not known.
func (w *rowWriter) statistics(c *structColumns, f *Add) {
	if f.Stats == nil {
		w.field().AppendNull()
		return
	}
	r := &jsonReader{data: []byte(*f.Stats)}
	node, err := r.tree(0)
	if err != nil || node.members == nil || r.end() != nil {
		w.field().AppendNull()
		return
	}
	w.inner(func(in *rowWriter) { in.members(c, node) })
}

func (w *rowWriter) members(c *structColumns, node *jsonNode) {
	for _, column := range c.fields {
		b, value := w.field(), node.members[column.name]
		switch {
		case value == nil || column.inner != nil && value.members == nil:
			b.AppendNull()
		case column.inner != nil:
			inner := &rowWriter{b: b.(*array.StructBuilder)}
			inner.row().members(column.inner, value)
		case column.kind.Kind == schema.String && value.text != nil:
			b.(*array.StringBuilder).Append(*value.text) // an empty bound is one, while an empty partition value is NULL
		default:
			_ = appendText(b, column.kind, value.text) // null, then
		}
	}
}

// jsonNode is an object, or the text of a value; nil: null.
type jsonNode struct {
	members map[string]*jsonNode
	text    *string
}

func (r *jsonReader) tree(depth int) (*jsonNode, error) {
	if depth > maxSchemaDepth {
		return nil, r.wrong("fewer levels")
	}
	n := &jsonNode{}
	switch r.peek() {
	case '{':
		n.members = map[string]*jsonNode{}
		return n, r.object(func(name string) (err error) {
			n.members[name], err = r.tree(depth + 1)
			return err
		})
	case '[':
		return n, r.skip(0)
	}
	var err error
	n.text, err = optional(r, r.scalar)
	return n, err
}

// appendText appends a value in the form in which partition values are written, which that of statistics is as well; nil and errors append a null.
func appendText(b array.Builder, t schema.Type, text *string) error {
	v, err := partition.Parse(t, text)
	if err == nil && !v.IsNull() {
		err = appendValue(b, v)
		if err == nil {
			return nil
		}
	}
	b.AppendNull()
	return err
}

func appendValue(b array.Builder, v value.Value) error {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(v.Int()))
	case *array.Int16Builder:
		b.Append(int16(v.Int()))
	case *array.Int32Builder:
		b.Append(int32(v.Int()))
	case *array.Int64Builder:
		b.Append(v.Int())
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.Int()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.Int()))
	case *array.Float32Builder:
		b.Append(float32(v.Float()))
	case *array.Float64Builder:
		b.Append(v.Float())
	case *array.BooleanBuilder:
		b.Append(v.Bool())
	case *array.StringBuilder:
		b.Append(v.Text())
	case *array.BinaryBuilder:
		b.Append([]byte(v.Text()))
	case *array.Decimal128Builder:
		unscaled, scale := v.Decimal()
		if want := int(b.Type().(*arrow.Decimal128Type).Scale); scale != want {
			var exact bool
			if unscaled, exact = value.Rescale(unscaled, scale, want, false); !exact {
				return fmt.Errorf("%v does not have scale %d", v, want)
			}
		}
		if unscaled.CmpAbs(new(big.Int).Lsh(big.NewInt(1), 126)) >= 0 {
			return fmt.Errorf("%v has more digits than a decimal", v)
		}
		b.Append(decimal128.FromBigInt(unscaled))
	default:
		return fmt.Errorf("no column for %v", v)
	}
	return nil
}
