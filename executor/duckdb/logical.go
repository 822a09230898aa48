package duckdb

import (
	"fmt"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

type scalar struct {
	kind planv1.TypeKind
	name string
}

// scalars are DuckDB's plain types. Types wider than any that a table has map to one that holds most of their values exactly, and the cast refuses
// the rest; types without such a neighbour have no kind.
var scalars = map[mapping.Type]scalar{
	mapping.TypeBoolean:     {planv1.TypeKind_TYPE_KIND_BOOLEAN, "BOOLEAN"},
	mapping.TypeTinyInt:     {planv1.TypeKind_TYPE_KIND_INT8, "TINYINT"},
	mapping.TypeSmallInt:    {planv1.TypeKind_TYPE_KIND_INT16, "SMALLINT"},
	mapping.TypeInteger:     {planv1.TypeKind_TYPE_KIND_INT32, "INTEGER"},
	mapping.TypeBigInt:      {planv1.TypeKind_TYPE_KIND_INT64, "BIGINT"},
	mapping.TypeUTinyInt:    {planv1.TypeKind_TYPE_KIND_INT32, "UTINYINT"},
	mapping.TypeUSmallInt:   {planv1.TypeKind_TYPE_KIND_INT32, "USMALLINT"},
	mapping.TypeUInteger:    {planv1.TypeKind_TYPE_KIND_INT64, "UINTEGER"},
	mapping.TypeUBigInt:     {planv1.TypeKind_TYPE_KIND_DECIMAL, "UBIGINT"},
	mapping.TypeHugeInt:     {planv1.TypeKind_TYPE_KIND_DECIMAL, "HUGEINT"},
	mapping.TypeUHugeInt:    {planv1.TypeKind_TYPE_KIND_DECIMAL, "UHUGEINT"},
	mapping.TypeFloat:       {planv1.TypeKind_TYPE_KIND_FLOAT32, "FLOAT"},
	mapping.TypeDouble:      {planv1.TypeKind_TYPE_KIND_FLOAT64, "DOUBLE"},
	mapping.TypeDate:        {planv1.TypeKind_TYPE_KIND_DATE, "DATE"},
	mapping.TypeTime:        {planv1.TypeKind_TYPE_KIND_TIME_MICROS, "TIME"},
	mapping.TypeTimeTZ:      {0, "TIME WITH TIME ZONE"},
	mapping.TypeTimestamp:   {planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, "TIMESTAMP"},
	mapping.TypeTimestampS:  {planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, "TIMESTAMP_S"},
	mapping.TypeTimestampMS: {planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, "TIMESTAMP_MS"},
	mapping.TypeTimestampNS: {planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, "TIMESTAMP_NS"},
	mapping.TypeTimestampTZ: {planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, "TIMESTAMP WITH TIME ZONE"},
	mapping.TypeVarchar:     {planv1.TypeKind_TYPE_KIND_STRING, "VARCHAR"},
	mapping.TypeUUID:        {planv1.TypeKind_TYPE_KIND_UUID, "UUID"},
	mapping.TypeBlob:        {planv1.TypeKind_TYPE_KIND_BINARY, "BLOB"},
	mapping.TypeInterval:    {0, "INTERVAL"},
	mapping.TypeTimeNS:      {0, "TIME_NS"},
	mapping.TypeBit:         {0, "BIT"},
	mapping.TypeVariant:     {0, "VARIANT"},
	mapping.TypeGeometry:    {0, "GEOMETRY"},
	mapping.TypeBigNum:      {0, "BIGNUM"},
	mapping.TypeSQLNull:     {0, `"NULL"`},
}

// TypeOf translates DuckDB's type: the type a table can store (no kind: none can) and DuckDB's own spelling, which a CAST understands.
func TypeOf(lt mapping.LogicalType) (*planv1.Type, string) {
	id := mapping.GetTypeId(lt)
	if s, ok := scalars[id]; ok {
		return scalarType(id, s, lt)
	}
	switch id {
	case mapping.TypeDecimal:
		p, s := int32(mapping.DecimalWidth(lt)), int32(mapping.DecimalScale(lt))
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: p, Scale: s}, fmt.Sprintf("DECIMAL(%d,%d)", p, s)
	case mapping.TypeEnum:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}, enumName(lt)
	case mapping.TypeList:
		child := mapping.ListTypeChildType(lt)
		defer mapping.DestroyLogicalType(&child)
		return listOf(child, "[]")
	case mapping.TypeArray:
		child := mapping.ArrayTypeChildType(lt)
		defer mapping.DestroyLogicalType(&child)
		return listOf(child, fmt.Sprintf("[%d]", mapping.ArrayTypeArraySize(lt)))
	case mapping.TypeMap:
		return mapOf(lt)
	case mapping.TypeStruct:
		return structOf(lt)
	case mapping.TypeUnion:
		return &planv1.Type{}, unionName(lt)
	default:
		return &planv1.Type{}, fmt.Sprintf("type %d", id) // a type of a later DuckDB: refused like any that no table can store
	}
}

func scalarType(id mapping.Type, s scalar, lt mapping.LogicalType) (*planv1.Type, string) {
	t := &planv1.Type{Kind: s.kind}
	switch id {
	case mapping.TypeUBigInt:
		t.Precision = 20
	case mapping.TypeHugeInt, mapping.TypeUHugeInt:
		t.Precision = 38
	case mapping.TypeVarchar:
		if strings.EqualFold(mapping.LogicalTypeGetAlias(lt), "JSON") {
			return t, "JSON"
		}
	}
	return t, s.name
}

func listOf(child mapping.LogicalType, suffix string) (*planv1.Type, string) {
	t, name := TypeOf(child)
	return nested(planv1.TypeKind_TYPE_KIND_LIST, &planv1.Field{Name: "element", Type: t}), name + suffix
}

func mapOf(lt mapping.LogicalType) (*planv1.Type, string) {
	k, v := mapping.MapTypeKeyType(lt), mapping.MapTypeValueType(lt)
	defer mapping.DestroyLogicalType(&k)
	defer mapping.DestroyLogicalType(&v)
	kt, kn := TypeOf(k)
	vt, vn := TypeOf(v)
	return nested(planv1.TypeKind_TYPE_KIND_MAP, &planv1.Field{Name: "key", Type: kt, Required: true}, &planv1.Field{Name: "value", Type: vt}),
		"MAP(" + kn + ", " + vn + ")"
}

func structOf(lt mapping.LogicalType) (*planv1.Type, string) {
	n := mapping.StructTypeChildCount(lt)
	fields, names := make([]*planv1.Field, n), make([]string, n)
	for i := range n {
		child := mapping.StructTypeChildType(lt, i)
		t, name := TypeOf(child)
		mapping.DestroyLogicalType(&child)
		fields[i] = &planv1.Field{Name: mapping.StructTypeChildName(lt, i), Type: t}
		names[i] = Ident(fields[i].Name) + " " + name
	}
	return nested(planv1.TypeKind_TYPE_KIND_STRUCT, fields...), "STRUCT(" + strings.Join(names, ", ") + ")"
}

// nested has a kind only if all of its fields have one: a table that cannot store a part cannot store the whole.
func nested(kind planv1.TypeKind, fields ...*planv1.Field) *planv1.Type {
	for _, f := range fields {
		if f.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_UNSPECIFIED {
			return &planv1.Type{}
		}
	}
	return &planv1.Type{Kind: kind, Fields: fields}
}

func enumName(lt mapping.LogicalType) string {
	names := make([]string, mapping.EnumDictionarySize(lt))
	for i := range names {
		names[i] = Literal(mapping.EnumDictionaryValue(lt, mapping.IdxT(i)))
	}
	return "ENUM(" + strings.Join(names, ", ") + ")"
}

func unionName(lt mapping.LogicalType) string {
	names := make([]string, mapping.UnionTypeMemberCount(lt))
	for i := range names {
		child := mapping.UnionTypeMemberType(lt, mapping.IdxT(i))
		_, name := TypeOf(child)
		mapping.DestroyLogicalType(&child)
		names[i] = Ident(mapping.UnionTypeMemberName(lt, mapping.IdxT(i))) + " " + name
	}
	return "UNION(" + strings.Join(names, ", ") + ")"
}
