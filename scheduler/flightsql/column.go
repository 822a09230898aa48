package flightsql

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// column is one column of an ingest: how it is stored until it is read, and what the query selects.
type column struct {
	name    string
	stored  arrow.DataType // nil: nothing but NULL
	convert func(arrow.Array) (arrow.Array, error)
	cast    string // DuckDB type to cast to; empty: none
}

func (c column) selected() string {
	name := sql.QuoteIdent(c.name)
	switch {
	case c.stored == nil:
		return "NULL AS " + name
	case c.cast != "":
		return "CAST(" + name + " AS " + c.cast + ") AS " + name
	}
	return name
}

// columnsOf plans the columns of a stream for a table; nil if it is to be created.
func columnsOf(schema *arrow.Schema, table *planv1.Schema) ([]column, error) {
	fields := table.GetFields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.GetName()
	}
	out := make([]column, schema.NumFields())
	seen := map[string]bool{}
	for i, f := range schema.Fields() {
		if f.Name == "" {
			return nil, invalid("column %d of the stream has no name", i+1)
		}
		if seen[f.Name] {
			return nil, invalid("the stream has two columns %s", sql.DisplayIdent(f.Name))
		}
		seen[f.Name] = true
		var target *planv1.Type
		if at, _ := sql.Find(f.Name, names); at >= 0 {
			target = fields[at].GetType()
		}
		c, err := columnOf(f.Type, target)
		if err != nil {
			return nil, invalid("column %s: %v", sql.DisplayIdent(f.Name), err)
		}
		c.name = f.Name
		out[i] = c
	}
	return out, nil
}

func same(a arrow.Array) (arrow.Array, error) {
	a.Retain()
	return a, nil
}

// columnOf chooses a form that Parquet and the engine both have and that keeps every value.
func columnOf(t arrow.DataType, target *planv1.Type) (column, error) {
	switch t := t.(type) {
	case *arrow.NullType:
		return column{}, nil
	case *arrow.TimestampType:
		return timestampColumn(t, target), nil
	case *arrow.Time32Type:
		return column{stored: arrow.FixedWidthTypes.Time64us, convert: timeMicros(t.Unit)}, nil
	case *arrow.Time64Type:
		return column{stored: arrow.FixedWidthTypes.Time64us, convert: timeMicros(t.Unit)}, nil
	case *arrow.StringViewType:
		return column{stored: arrow.BinaryTypes.LargeString, convert: viewText}, nil
	case *arrow.BinaryViewType:
		return column{stored: arrow.BinaryTypes.LargeBinary, convert: viewBytes}, nil
	case *arrow.Float16Type:
		return column{stored: arrow.PrimitiveTypes.Float32, convert: halfFloats}, nil
	case *arrow.DictionaryType:
		return dictionaryColumn(t, target)
	case arrow.ExtensionType:
		return extensionColumn(t, target)
	case arrow.DecimalType:
		return decimalColumn(t)
	}
	if err := storable(t); err != nil {
		return column{}, err
	}
	return column{stored: t, convert: same}, nil
}

// maxWidth of types whose values all have one length, which a schema may lie about.
const maxWidth = 1 << 16

// storable refuses what Parquet has no form for, also inside of other types.
func storable(t arrow.DataType) error {
	switch t.ID() {
	case arrow.DURATION, arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTHS, arrow.INTERVAL_MONTH_DAY_NANO, arrow.DENSE_UNION, arrow.SPARSE_UNION, arrow.RUN_END_ENCODED,
		arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		return typeError(t)
	}
	if w, ok := t.(*arrow.FixedSizeBinaryType); ok && (w.ByteWidth < 1 || w.ByteWidth > maxWidth) {
		return fmt.Errorf("values of %d bytes are not supported; bytes of any length are", w.ByteWidth)
	}
	if l, ok := t.(*arrow.FixedSizeListType); ok && (l.Len() < 0 || l.Len() > maxWidth) {
		return fmt.Errorf("lists of %d elements are not supported; lists of any length are", l.Len())
	}
	nested, ok := t.(arrow.NestedType)
	if !ok {
		return nil
	}
	for _, f := range nested.Fields() {
		switch f.Type.ID() {
		case arrow.STRING_VIEW, arrow.BINARY_VIEW, arrow.DICTIONARY, arrow.EXTENSION, arrow.NULL, arrow.FLOAT16, arrow.DECIMAL32, arrow.DECIMAL64:
			return fmt.Errorf("values of the Arrow type %s inside of %s are not supported", f.Type, t.ID())
		}
		if err := storable(f.Type); err != nil {
			return err
		}
	}
	return nil
}

// timestampColumn keeps nanoseconds where the table does. Elsewhere they have to be whole microseconds, which is all that tables store by default.
func timestampColumn(t *arrow.TimestampType, target *planv1.Type) column {
	keeps := target.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS && t.TimeZone == ""
	if t.Unit != arrow.Nanosecond || keeps {
		return column{stored: t, convert: same}
	}
	to := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: t.TimeZone}
	return column{stored: to, convert: func(a arrow.Array) (arrow.Array, error) {
		b := array.NewTimestampBuilder(memory.DefaultAllocator, to)
		defer b.Release()
		in, ok := a.(*array.Timestamp)
		if !ok {
			return nil, typeError(a.DataType())
		}
		for i := range in.Len() {
			switch v := in.Value(i); {
			case in.IsNull(i):
				b.AppendNull()
			case v%1000 != 0:
				return nil, fmt.Errorf("the table stores microseconds, and %s has nanoseconds; nothing is rounded. A column of type TIMESTAMP_NS takes it", in.ValueStr(i))
			default:
				b.Append(v / 1000)
			}
		}
		return b.NewArray(), nil
	}}
}

// timeMicros makes microseconds of every unit, if that loses nothing.
func timeMicros(u arrow.TimeUnit) func(arrow.Array) (arrow.Array, error) {
	return func(a arrow.Array) (arrow.Array, error) {
		b := array.NewTime64Builder(memory.DefaultAllocator, &arrow.Time64Type{Unit: arrow.Microsecond})
		defer b.Release()
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
				continue
			}
			var v int64
			switch a := a.(type) {
			case *array.Time32:
				v = int64(a.Value(i))
			case *array.Time64:
				v = int64(a.Value(i))
			}
			per := perSecond(u)
			if v < 0 || v > secondsOfDay*per {
				return nil, fmt.Errorf("a time of day outside of 00:00 to 24:00")
			}
			if u == arrow.Nanosecond && v%1000 != 0 {
				return nil, errNanos
			}
			if u == arrow.Nanosecond {
				v /= 1000
			} else {
				v *= 1_000_000 / per
			}
			b.Append(arrow.Time64(v))
		}
		return b.NewArray(), nil
	}
}

func viewText(a arrow.Array) (arrow.Array, error) {
	in, ok := a.(*array.StringView)
	if !ok {
		return nil, typeError(a.DataType())
	}
	b := array.NewLargeStringBuilder(memory.DefaultAllocator)
	return rebuilt(in, b, func(i int) { b.Append(in.Value(i)) }), nil
}

func viewBytes(a arrow.Array) (arrow.Array, error) {
	in, ok := a.(*array.BinaryView)
	if !ok {
		return nil, typeError(a.DataType())
	}
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.LargeBinary)
	return rebuilt(in, b, func(i int) { b.Append(in.Value(i)) }), nil
}

func halfFloats(a arrow.Array) (arrow.Array, error) {
	in, ok := a.(*array.Float16)
	if !ok {
		return nil, typeError(a.DataType())
	}
	b := array.NewFloat32Builder(memory.DefaultAllocator)
	return rebuilt(in, b, func(i int) { b.Append(in.Value(i).Float32()) }), nil
}

// rebuilt is what a builder makes of an array, which appends one value at a time; NULLs stay.
func rebuilt(in arrow.Array, b array.Builder, value func(i int)) arrow.Array {
	defer b.Release()
	for i := range in.Len() {
		if in.IsNull(i) {
			b.AppendNull()
		} else {
			value(i)
		}
	}
	return b.NewArray()
}

// decimalColumn stores every width as 128 bits.
func decimalColumn(t arrow.DecimalType) (column, error) {
	if _, err := engineName(t); err != nil {
		return column{}, err
	}
	if t.ID() == arrow.DECIMAL128 {
		return column{stored: t, convert: same}, nil
	}
	to := &arrow.Decimal128Type{Precision: t.GetPrecision(), Scale: t.GetScale()}
	return column{stored: to, convert: func(a arrow.Array) (arrow.Array, error) {
		b := array.NewDecimal128Builder(memory.DefaultAllocator, to)
		defer b.Release()
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
				continue
			}
			v, err := decimal128.FromString(a.ValueStr(i), to.Precision, to.Scale)
			if err != nil {
				return nil, err
			}
			b.Append(v)
		}
		return b.NewArray(), nil
	}}, nil
}

// dictionaryColumn stores the values that the indices stand for.
func dictionaryColumn(t *arrow.DictionaryType, target *planv1.Type) (column, error) {
	inner, err := columnOf(t.ValueType, target)
	if err != nil || inner.stored == nil {
		return inner, err
	}
	convert := inner.convert
	inner.convert = func(a arrow.Array) (arrow.Array, error) {
		dict, ok := a.(*array.Dictionary)
		if !ok {
			return nil, typeError(a.DataType())
		}
		values, err := convert(dict.Dictionary())
		if err != nil {
			return nil, err
		}
		defer values.Release()
		b := array.NewBuilder(memory.DefaultAllocator, values.DataType())
		defer b.Release()
		for i := range dict.Len() {
			at := 0
			if !dict.IsNull(i) {
				at = dict.GetValueIndex(i)
			}
			if dict.IsNull(i) || values.IsNull(at) {
				b.AppendNull()
			} else if err := b.AppendValueFromString(values.ValueStr(at)); err != nil {
				return nil, err
			}
		}
		return b.NewArray(), nil
	}
	return inner, nil
}

// extensionColumn stores what an extension type is made of. UUIDs become UUIDs again.
func extensionColumn(t arrow.ExtensionType, target *planv1.Type) (column, error) {
	inner, err := columnOf(t.StorageType(), target)
	if err != nil || inner.stored == nil {
		return inner, err
	}
	if t.ExtensionName() == "arrow.uuid" {
		inner.cast = plan.EngineType{Name: "UUID"}.String()
		inner.stored = arrow.BinaryTypes.String
		inner.convert = uuidText
		return inner, nil
	}
	convert := inner.convert
	inner.convert = func(a arrow.Array) (arrow.Array, error) {
		ext, ok := a.(array.ExtensionArray)
		if !ok {
			return nil, typeError(a.DataType())
		}
		return convert(ext.Storage())
	}
	return inner, nil
}

func uuidText(a arrow.Array) (arrow.Array, error) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(a.ValueStr(i))
		}
	}
	return b.NewArray(), nil
}
