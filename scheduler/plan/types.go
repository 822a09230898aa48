package plan

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// plainTypes pairs the types that have no arguments with DuckDB's names for them.
var plainTypes = map[planv1.TypeKind]string{
	planv1.TypeKind_TYPE_KIND_BOOLEAN:            "BOOLEAN",
	planv1.TypeKind_TYPE_KIND_INT8:               "TINYINT",
	planv1.TypeKind_TYPE_KIND_INT16:              "SMALLINT",
	planv1.TypeKind_TYPE_KIND_INT32:              "INTEGER",
	planv1.TypeKind_TYPE_KIND_INT64:              "BIGINT",
	planv1.TypeKind_TYPE_KIND_FLOAT32:            "FLOAT",
	planv1.TypeKind_TYPE_KIND_FLOAT64:            "DOUBLE",
	planv1.TypeKind_TYPE_KIND_DATE:               "DATE",
	planv1.TypeKind_TYPE_KIND_TIME_MICROS:        "TIME",
	planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:   "TIMESTAMP",
	planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS: "TIMESTAMP WITH TIME ZONE",
	planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:    "TIMESTAMP_NS",
	planv1.TypeKind_TYPE_KIND_STRING:             "VARCHAR",
	planv1.TypeKind_TYPE_KIND_UUID:               "UUID",
	planv1.TypeKind_TYPE_KIND_FIXED:              "BLOB",
	planv1.TypeKind_TYPE_KIND_BINARY:             "BLOB",
}

// CastType writes a table's type as the target of a DuckDB CAST. TIMESTAMPTZ_NANOS has none: DuckDB's instants are microseconds.
func CastType(t *planv1.Type) (string, error) {
	if name, ok := plainTypes[t.GetKind()]; ok {
		return name, nil
	}
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.GetPrecision(), t.GetScale()), nil
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		return castStruct(t.GetFields())
	case planv1.TypeKind_TYPE_KIND_LIST:
		if len(t.GetFields()) == 1 {
			element, err := CastType(t.GetFields()[0].GetType())
			return element + "[]", err
		}
	case planv1.TypeKind_TYPE_KIND_MAP:
		if len(t.GetFields()) == 2 {
			return castMap(t.GetFields())
		}
	}
	return "", fmt.Errorf("the engine has no type for %s", TypeText(t))
}

func castMap(fields []*planv1.Field) (string, error) {
	key, err := CastType(fields[0].GetType())
	if err != nil {
		return "", err
	}
	value, err := CastType(fields[1].GetType())
	if err != nil {
		return "", err
	}
	return "MAP(" + key + ", " + value + ")", nil
}

func castStruct(fields []*planv1.Field) (string, error) {
	if len(fields) == 0 {
		return "", fmt.Errorf("the engine has no struct without fields")
	}
	parts := make([]string, len(fields))
	seen := make(map[string]string, len(fields))
	for i, f := range fields {
		text, err := CastType(f.GetType())
		if err != nil {
			return "", err
		}
		fold := strings.ToLower(f.GetName())
		if other, ok := seen[fold]; ok {
			return "", fmt.Errorf("the engine cannot tell the struct's fields %s and %s apart", sql.QuoteIdent(other), sql.QuoteIdent(f.GetName()))
		}
		seen[fold] = f.GetName()
		parts[i] = sql.QuoteIdent(f.GetName()) + " " + text
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")", nil
}

// TypeText writes a table's type for people, in words that CREATE TABLE reads.
func TypeText(t *planv1.Type) string {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_UNSPECIFIED:
		return "no type"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return "TIMESTAMPTZ"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return "TIMESTAMPTZ_NS"
	case planv1.TypeKind_TYPE_KIND_FIXED:
		return fmt.Sprintf("FIXED(%d)", t.GetLength())
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.GetPrecision(), t.GetScale())
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		parts := make([]string, len(t.GetFields()))
		for i, f := range t.GetFields() {
			parts[i] = sql.DisplayIdent(f.GetName()) + " " + TypeText(f.GetType()) + notNull(f)
		}
		return "STRUCT(" + strings.Join(parts, ", ") + ")"
	case planv1.TypeKind_TYPE_KIND_LIST:
		if len(t.GetFields()) == 1 {
			if f := t.GetFields()[0]; f.GetRequired() {
				return "LIST(" + TypeText(f.GetType()) + " NOT NULL)"
			}
			return TypeText(t.GetFields()[0].GetType()) + "[]"
		}
	case planv1.TypeKind_TYPE_KIND_MAP:
		if len(t.GetFields()) == 2 {
			v := t.GetFields()[1]
			return "MAP(" + TypeText(t.GetFields()[0].GetType()) + ", " + TypeText(v.GetType()) + notNull(v) + ")"
		}
	}
	if name, ok := plainTypes[t.GetKind()]; ok {
		return name
	}
	return t.GetKind().String()
}

func notNull(f *planv1.Field) string {
	if f.GetRequired() {
		return " NOT NULL"
	}
	return ""
}

// storable maps DuckDB's names to the type that CREATE TABLE AS gives the column. Every value of the left side fits the right one,
// but for HUGEINT and UHUGEINT, whose values above 38 digits fail on the row.
var storable = withPlainTypes(map[string]*planv1.Type{
	"UTINYINT":     {Kind: planv1.TypeKind_TYPE_KIND_INT16},
	"USMALLINT":    {Kind: planv1.TypeKind_TYPE_KIND_INT32},
	"UINTEGER":     {Kind: planv1.TypeKind_TYPE_KIND_INT64},
	"UBIGINT":      {Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 20},
	"HUGEINT":      {Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 38},
	"UHUGEINT":     {Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 38},
	"TIMESTAMP_S":  {Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS},
	"TIMESTAMP_MS": {Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS},
	"JSON":         {Kind: planv1.TypeKind_TYPE_KIND_STRING},
	"ENUM":         {Kind: planv1.TypeKind_TYPE_KIND_STRING},
})

func withPlainTypes(m map[string]*planv1.Type) map[string]*planv1.Type {
	for kind, name := range plainTypes {
		if kind != planv1.TypeKind_TYPE_KIND_FIXED { // BLOB has two; CREATE TABLE AS makes it BINARY
			m[name] = &planv1.Type{Kind: kind}
		}
	}
	return m
}

// instead says what to do about a DuckDB type that no table stores; %[1]s is the column.
var instead = map[string]string{
	"NULL":                "it is NULL in every row and has no type: write CAST(%[1]s AS VARCHAR), or whatever it is meant to be",
	"INTERVAL":            "write CAST(%[1]s AS VARCHAR), or its length as a number: epoch(%[1]s)",
	"TIME WITH TIME ZONE": "write CAST(%[1]s AS TIME)",
	"TIME_NS":             "write CAST(%[1]s AS TIME)",
	"BIT":                 "write CAST(%[1]s AS VARCHAR)",
	"BIGNUM":              "write CAST(%[1]s AS DECIMAL(38, 0)), or as VARCHAR",
	"UNION":               "write its members as columns of their own: union_extract(%[1]s, 'member')",
	"VARIANT":             "write CAST(%[1]s AS VARCHAR), or extract its fields",
	"GEOMETRY":            "write ST_AsWKB(%[1]s)",
}

// unstorableError is a DuckDB type inside a column that no table stores.
type unstorableError struct {
	engine EngineType
	path   string // inside the column; empty: the column itself
}

func (e *unstorableError) Error() string {
	where := ""
	if e.path != "" {
		where = " (at " + e.path + ")"
	}
	return "no table stores the type " + e.engine.String() + where
}

// StorableType gives the table type for a DuckDB type.
func StorableType(t EngineType) (*planv1.Type, error) { return storableAt(t, "") }

func storableAt(t EngineType, path string) (*planv1.Type, error) {
	if out, ok := storable[t.Name]; ok {
		return &planv1.Type{Kind: out.GetKind(), Precision: out.GetPrecision(), Scale: out.GetScale()}, nil
	}
	switch t.Name {
	case "DECIMAL":
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: t.Precision, Scale: t.Scale}, nil
	case "LIST", "ARRAY":
		return storableNested(planv1.TypeKind_TYPE_KIND_LIST, t.Fields, path)
	case "MAP":
		return storableNested(planv1.TypeKind_TYPE_KIND_MAP, t.Fields, path)
	case "STRUCT":
		if len(t.Fields) > 0 && t.Fields[0].Name != "" {
			return storableNested(planv1.TypeKind_TYPE_KIND_STRUCT, t.Fields, path)
		}
	}
	return nil, &unstorableError{engine: t, path: path}
}

func storableNested(kind planv1.TypeKind, fields []EngineField, path string) (*planv1.Type, error) {
	out := &planv1.Type{Kind: kind}
	for i, f := range fields {
		inner, err := storableAt(f.Type, joinPath(path, f.Name))
		if err != nil {
			return nil, err
		}
		isKey := kind == planv1.TypeKind_TYPE_KIND_MAP && i == 0
		out.Fields = append(out.Fields, &planv1.Field{Name: f.Name, Type: inner, Required: isKey})
	}
	return out, nil
}

func joinPath(path, name string) string {
	if path == "" {
		return sql.DisplayIdent(name)
	}
	return path + "." + sql.DisplayIdent(name)
}
