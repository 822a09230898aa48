package duckdb

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

var sqlNames = map[planv1.TypeKind]string{
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

// SQLType writes a type as DuckDB spells it in a CAST. It fails for types that DuckDB lacks (TIMESTAMPTZ_NANOS) and for malformed ones.
func SQLType(t *planv1.Type) (string, error) {
	if name, ok := sqlNames[t.GetKind()]; ok {
		return name, nil
	}
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		if p, s := t.GetPrecision(), t.GetScale(); p < 1 || p > 38 || s < 0 || s > p {
			return "", fmt.Errorf("DECIMAL(%d,%d): want a precision of 1 to 38 and a scale of at most the precision", p, s)
		}
		return fmt.Sprintf("DECIMAL(%d,%d)", t.GetPrecision(), t.GetScale()), nil
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		return sqlStruct(t)
	case planv1.TypeKind_TYPE_KIND_LIST:
		elem, err := sqlField(t, 0, 1)
		if err != nil {
			return "", err
		}
		return elem + "[]", nil
	case planv1.TypeKind_TYPE_KIND_MAP:
		key, err := sqlField(t, 0, 2)
		if err != nil {
			return "", err
		}
		value, err := sqlField(t, 1, 2)
		if err != nil {
			return "", err
		}
		return "MAP(" + key + ", " + value + ")", nil
	default:
		return "", fmt.Errorf("DuckDB has no type for %s", kindName(t))
	}
}

func sqlStruct(t *planv1.Type) (string, error) {
	if len(t.GetFields()) == 0 {
		return "", fmt.Errorf("STRUCT without fields")
	}
	parts := make([]string, len(t.GetFields()))
	for n, f := range t.GetFields() {
		inner, err := sqlField(t, n, len(parts))
		if err != nil {
			return "", err
		}
		parts[n] = Ident(f.GetName()) + " " + inner
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")", nil
}

func sqlField(t *planv1.Type, n, want int) (string, error) {
	if len(t.GetFields()) != want {
		return "", fmt.Errorf("%s with %d fields: want %d", kindName(t), len(t.GetFields()), want)
	}
	s, err := SQLType(t.GetFields()[n].GetType())
	if err != nil {
		return "", fmt.Errorf("field %q: %w", t.GetFields()[n].GetName(), err)
	}
	return s, nil
}

// noType refuses a table with a column that no query here can hold.
func noType(column string, err error) error {
	return userErrorf("no query here reads the table while it has the column; ALTER TABLE … DROP COLUMN drops it", "column %q: %v", column, err)
}

// TypeName names a type in messages.
func TypeName(t *planv1.Type) string {
	if s, err := SQLType(t); err == nil {
		return s
	}
	return kindName(t)
}

// kindName names a type that may have no name in DuckDB, or none at all.
func kindName(t *planv1.Type) string {
	if t.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS {
		return "TIMESTAMPTZ_NS"
	}
	return strings.TrimPrefix(t.GetKind().String(), "TYPE_KIND_")
}
