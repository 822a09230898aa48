package flightsql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/signet-io/signet/scheduler/sql"
)

// engineNames are DuckDB's names of the types that have no arguments.
var engineNames = map[arrow.Type]string{
	arrow.BOOL: "BOOLEAN", arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT", arrow.UINT8: "UTINYINT",
	arrow.UINT16: "USMALLINT", arrow.UINT32: "UINTEGER", arrow.UINT64: "UBIGINT", arrow.FLOAT16: "FLOAT", arrow.FLOAT32: "FLOAT", arrow.FLOAT64: "DOUBLE",
	arrow.STRING: "VARCHAR", arrow.LARGE_STRING: "VARCHAR", arrow.STRING_VIEW: "VARCHAR", arrow.BINARY: "BLOB", arrow.LARGE_BINARY: "BLOB",
	arrow.BINARY_VIEW: "BLOB", arrow.FIXED_SIZE_BINARY: "BLOB", arrow.DATE32: "DATE", arrow.DATE64: "DATE", arrow.TIME32: "TIME", arrow.TIME64: "TIME",
	arrow.DURATION: "INTERVAL", arrow.INTERVAL_MONTH_DAY_NANO: "INTERVAL", arrow.NULL: "INTEGER",
}

func typeError(t arrow.DataType) error {
	return fmt.Errorf("values of the Arrow type %s are not supported", t)
}

// engineName is DuckDB's name of an Arrow type.
func engineName(t arrow.DataType) (string, error) {
	if name, ok := engineNames[t.ID()]; ok {
		return name, nil
	}
	switch t := t.(type) {
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return "TIMESTAMPTZ", nil
		}
		return []string{"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS"}[t.Unit], nil
	case arrow.DecimalType:
		if t.GetPrecision() > 38 || t.GetScale() < 0 || t.GetScale() > t.GetPrecision() {
			return "", fmt.Errorf("a decimal has at most 38 digits and no negative scale, not %s", t)
		}
		return fmt.Sprintf("DECIMAL(%d,%d)", t.GetPrecision(), t.GetScale()), nil
	case *arrow.DictionaryType:
		return engineName(t.ValueType)
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" {
			return "UUID", nil
		}
		return engineName(t.StorageType())
	case *arrow.MapType:
		key, err := engineName(t.KeyType())
		if err != nil {
			return "", err
		}
		value, err := engineName(t.ItemType())
		return "MAP(" + key + ", " + value + ")", err
	case arrow.ListLikeType:
		element, err := engineName(t.Elem())
		return element + "[]", err
	case *arrow.StructType:
		return structName(t)
	}
	return "", typeError(t)
}

func structName(t *arrow.StructType) (string, error) {
	parts := make([]string, t.NumFields())
	for i, f := range t.Fields() {
		name, err := engineName(f.Type)
		if err != nil {
			return "", err
		}
		parts[i] = sql.QuoteIdent(f.Name) + " " + name
	}
	if len(parts) == 0 {
		return "", fmt.Errorf("the engine has no struct without fields")
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")", nil
}

// listLiteral writes lists, and maps as the two lists of their keys and values. The CAST gives empty ones their type.
func listLiteral(a array.ListLike, i int) (string, error) {
	name, err := engineName(a.DataType())
	if err != nil {
		return "", err
	}
	from, to := a.ValueOffsets(i)
	if m, ok := a.(*array.Map); ok {
		keys, err := elements(m.Keys(), from, to)
		if err != nil {
			return "", err
		}
		values, err := elements(m.Items(), from, to)
		return "CAST(MAP(" + keys + ", " + values + ") AS " + name + ")", err
	}
	list, err := elements(a.ListValues(), from, to)
	return "CAST(" + list + " AS " + name + ")", err
}

func elements(values arrow.Array, from, to int64) (string, error) {
	parts := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		text, err := literal(values, int(i))
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, ", ") + "]", nil
}

func structLiteral(a *array.Struct, i int) (string, error) {
	t, ok := a.DataType().(*arrow.StructType)
	if !ok {
		return "", typeError(a.DataType())
	}
	name, err := structName(t)
	if err != nil {
		return "", err
	}
	parts := make([]string, t.NumFields())
	for f := range parts {
		text, err := literal(a.Field(f), i)
		if err != nil {
			return "", err
		}
		parts[f] = sql.QuoteString(t.Field(f).Name) + ": " + text
	}
	return "CAST({" + strings.Join(parts, ", ") + "} AS " + name + ")", nil
}
