package root

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// arrowType is how an exchange's Parquet files give a column back. What Parquet would change travels as text, and stays text here.
func arrowType(c *planv1.Column) (arrow.DataType, error) {
	t, err := plan.ParseEngineType(c.GetEngineType())
	if err != nil {
		return nil, err
	}
	return engineType(t)
}

var simple = map[string]arrow.DataType{
	"BOOLEAN": arrow.FixedWidthTypes.Boolean, "TINYINT": arrow.PrimitiveTypes.Int8, "SMALLINT": arrow.PrimitiveTypes.Int16,
	"INTEGER": arrow.PrimitiveTypes.Int32, "BIGINT": arrow.PrimitiveTypes.Int64, "UTINYINT": arrow.PrimitiveTypes.Uint8,
	"USMALLINT": arrow.PrimitiveTypes.Uint16, "UINTEGER": arrow.PrimitiveTypes.Uint32, "UBIGINT": arrow.PrimitiveTypes.Uint64,
	"FLOAT": arrow.PrimitiveTypes.Float32, "DOUBLE": arrow.PrimitiveTypes.Float64, "DATE": arrow.FixedWidthTypes.Date32,
	"TIME": arrow.FixedWidthTypes.Time64us, "TIME_NS": arrow.FixedWidthTypes.Time64ns, "TIMESTAMP": &arrow.TimestampType{Unit: arrow.Microsecond},
	"TIMESTAMP_NS": &arrow.TimestampType{Unit: arrow.Nanosecond}, "TIMESTAMP WITH TIME ZONE": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	"BLOB": arrow.BinaryTypes.Binary, "UUID": extensions.NewUUIDType(), "NULL": arrow.PrimitiveTypes.Int32,
}

// Exact tells whether the rows of a column come to a root as what they are, and not as text that stands for them.
func Exact(c *planv1.Column) bool {
	t, err := plan.ParseEngineType(c.GetEngineType())
	return err == nil && exact(t)
}

func exact(t plan.EngineType) bool {
	switch t.Name {
	case "DECIMAL", "VARCHAR":
		return true
	case "NULL", "UNION", "ARRAY":
		return false
	}
	for _, f := range t.Fields {
		if !exact(f.Type) {
			return false
		}
	}
	return len(t.Fields) > 0 || simple[t.Name] != nil
}

func engineType(t plan.EngineType) (arrow.DataType, error) {
	inner := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		typ, err := engineType(f.Type)
		if err != nil {
			return nil, err
		}
		inner[i] = arrow.Field{Name: f.Name, Type: typ, Nullable: true}
	}
	switch t.Name {
	case "DECIMAL":
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}, nil
	case "STRUCT":
		return arrow.StructOf(inner...), nil
	case "UNION": // a struct with the number of the member
		return arrow.StructOf(append([]arrow.Field{{Name: "", Type: arrow.PrimitiveTypes.Uint8, Nullable: true}}, inner...)...), nil
	case "LIST", "ARRAY":
		return arrow.ListOfField(arrow.Field{Name: "element", Type: inner[0].Type, Nullable: true}), nil
	case "MAP":
		return arrow.MapOf(inner[0].Type, inner[1].Type), nil
	}
	if s, ok := simple[t.Name]; ok {
		return s, nil
	}
	return arrow.BinaryTypes.String, nil
}

// retype shows an array as a type of the same layout. Names, nullability and extensions inside a type may differ; storage may not.
func retype(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(a.DataType(), want) {
		a.Retain()
		return a, nil
	}
	if e, ok := a.(array.ExtensionArray); ok {
		a = e.Storage()
	}
	if !sameLayout(a.DataType(), storageOf(want)) {
		return nil, fmt.Errorf("its rows are %s, and the query's column is %s", a.DataType(), want)
	}
	d := retypeData(a.Data(), want)
	defer d.Release()
	return array.MakeFromData(d), nil
}

func storageOf(t arrow.DataType) arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return t
}

func retypeData(d arrow.ArrayData, want arrow.DataType) arrow.ArrayData {
	children := d.Children()
	out := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		if n, ok := want.(arrow.NestedType); ok && i < len(n.Fields()) {
			out[i] = retypeData(c, n.Fields()[i].Type)
			continue
		}
		c.Retain()
		out[i] = c
	}
	res := array.NewData(want, d.Len(), d.Buffers(), out, d.NullN(), d.Offset())
	for _, c := range out {
		c.Release()
	}
	return res
}

func sameLayout(a, b arrow.DataType) bool {
	a, b = storageOf(a), storageOf(b)
	if a.ID() != b.ID() {
		return false
	}
	na, nested := a.(arrow.NestedType)
	if !nested {
		return sameParameters(a, b)
	}
	nb, ok := b.(arrow.NestedType)
	if !ok || len(na.Fields()) != len(nb.Fields()) {
		return false
	}
	for i := range na.Fields() {
		if !sameLayout(na.Fields()[i].Type, nb.Fields()[i].Type) {
			return false
		}
	}
	return true
}

func sameParameters(a, b arrow.DataType) bool {
	if ta, ok := a.(*arrow.TimestampType); ok { // UTC has several names
		tb, ok := b.(*arrow.TimestampType)
		return ok && ta.Unit == tb.Unit && (ta.TimeZone == "") == (tb.TimeZone == "")
	}
	return arrow.TypeEqual(a, b)
}
