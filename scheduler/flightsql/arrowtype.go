package flightsql

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// arrowTypes are the Arrow types that DuckDB gives its types without arguments. Types that are not here come as text.
var arrowTypes = map[string]arrow.DataType{
	"BOOLEAN": arrow.FixedWidthTypes.Boolean, "TINYINT": arrow.PrimitiveTypes.Int8, "SMALLINT": arrow.PrimitiveTypes.Int16, "INTEGER": arrow.PrimitiveTypes.Int32,
	"BIGINT": arrow.PrimitiveTypes.Int64, "UTINYINT": arrow.PrimitiveTypes.Uint8, "USMALLINT": arrow.PrimitiveTypes.Uint16, "UINTEGER": arrow.PrimitiveTypes.Uint32,
	"UBIGINT": arrow.PrimitiveTypes.Uint64, "HUGEINT": &arrow.Decimal128Type{Precision: 38}, "FLOAT": arrow.PrimitiveTypes.Float32, "DOUBLE": arrow.PrimitiveTypes.Float64,
	"DATE": arrow.PrimitiveTypes.Date32, "TIME": arrow.FixedWidthTypes.Time64us, "TIMESTAMP": &arrow.TimestampType{Unit: arrow.Microsecond},
	"TIMESTAMP_S": &arrow.TimestampType{Unit: arrow.Second}, "TIMESTAMP_MS": &arrow.TimestampType{Unit: arrow.Millisecond},
	"TIMESTAMP_NS": &arrow.TimestampType{Unit: arrow.Nanosecond}, "TIMESTAMP WITH TIME ZONE": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	"BLOB": arrow.BinaryTypes.Binary, "INTERVAL": arrow.FixedWidthTypes.MonthDayNanoInterval, "NULL": arrow.PrimitiveTypes.Int32,
}

// arrowType is the Arrow type in which values of an engine type reach the client.
func arrowType(t plan.EngineType) arrow.DataType {
	if out, ok := arrowTypes[t.Name]; ok {
		return out
	}
	switch t.Name {
	case "DECIMAL":
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}
	case "ENUM":
		return &arrow.DictionaryType{IndexType: enumIndex(len(t.Values)), ValueType: arrow.BinaryTypes.String}
	case "LIST":
		return arrow.ListOfField(arrow.Field{Name: "l", Type: arrowType(t.Fields[0].Type), Nullable: true})
	case "ARRAY":
		return arrow.FixedSizeListOfField(int32(t.Size), arrow.Field{Name: "", Type: arrowType(t.Fields[0].Type), Nullable: true}) //nolint:gosec // DuckDB's arrays are short
	case "MAP":
		return arrow.MapOfFields(arrow.Field{Name: "key", Type: arrowType(t.Fields[0].Type)}, arrow.Field{Name: "value", Type: arrowType(t.Fields[1].Type), Nullable: true})
	case "STRUCT":
		fields := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = arrow.Field{Name: f.Name, Type: arrowType(f.Type), Nullable: true}
		}
		return arrow.StructOf(fields...)
	}
	return arrow.BinaryTypes.String
}

func enumIndex(values int) arrow.DataType {
	switch {
	case values <= 1<<8:
		return arrow.PrimitiveTypes.Uint8
	case values <= 1<<16:
		return arrow.PrimitiveTypes.Uint16
	}
	return arrow.PrimitiveTypes.Uint32
}

// textTypes are those for which the executor sends the whole column as text, wherever in it they are.
var textTypes = []string{"TIME WITH TIME ZONE", "BIT", "UNION", "BIGNUM", "UHUGEINT", "VARIANT", "GEOMETRY", "TIME_NS"}

func holdsText(t plan.EngineType) bool {
	return slices.Contains(textTypes, t.Name) || slices.ContainsFunc(t.Fields, func(f plan.EngineField) bool { return holdsText(f.Type) })
}

// columnType is the Arrow type of a column by the engine's name of its type.
func columnType(engineType string) (arrow.DataType, error) {
	t, err := plan.ParseEngineType(engineType)
	if err != nil {
		return nil, err
	}
	if holdsText(t) {
		return arrow.BinaryTypes.String, nil
	}
	return arrowType(t), nil
}

// resultSchema is the schema of a result with these columns.
func resultSchema(cols []*planv1.Column) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		t, err := columnType(c.GetEngineType())
		if err != nil {
			return nil, status.Errorf(codes.Internal, "column %s: %v", c.GetName(), err)
		}
		fields[i] = arrow.Field{Name: c.GetName(), Type: t, Nullable: true}
	}
	return arrow.NewSchema(fields, nil), nil
}

// tableSchema is the schema of a table's rows, with what Flight SQL says about columns.
func tableSchema(catalog, schema, table string, s *planv1.Schema) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(s.GetFields()))
	for i, f := range s.GetFields() {
		text, err := plan.CastType(f.GetType())
		if err != nil {
			text = "VARCHAR" // a type that the engine lacks
		}
		t, err := columnType(text)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.GetName(), err)
		}
		meta := fsql.NewColumnMetadataBuilder().CatalogName(catalog).SchemaName(schema).TableName(table).TypeName(plan.TypeText(f.GetType())).
			IsAutoIncrement(false).IsCaseSensitive(false).IsReadOnly(false).IsSearchable(true)
		if f.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_DECIMAL {
			meta.Precision(f.GetType().GetPrecision()).Scale(f.GetType().GetScale())
		}
		if f.GetDoc() != "" {
			meta.Remarks(f.GetDoc())
		}
		fields[i] = arrow.Field{Name: f.GetName(), Type: t, Nullable: !f.GetRequired(), Metadata: meta.Metadata()}
	}
	return arrow.NewSchema(fields, nil), nil
}
