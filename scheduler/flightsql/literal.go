package flightsql

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"

	"github.com/signet-io/signet/scheduler/sql"
)

// literal writes one value as an expression of DuckDB's that has its type and its value exactly. Text is a plain string literal, since that is
// what DuckDB converts to the type that a place wants, as it does with its own parameters; everything else has a CAST.
func literal(a arrow.Array, i int) (string, error) {
	switch a := a.(type) {
	case *array.Null: // which says of none of its values that they are
		return "NULL", nil
	case array.ExtensionArray:
		return extensionLiteral(a, i)
	case *array.Dictionary:
		if a.IsNull(i) {
			return nullLiteral(a.Dictionary().DataType())
		}
		return literal(a.Dictionary(), a.GetValueIndex(i))
	case array.Union:
		return unionLiteral(a, i)
	case *array.RunEndEncoded:
		return literal(a.Values(), a.GetPhysicalIndex(i))
	}
	if a.IsNull(i) {
		return nullLiteral(a.DataType())
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i)), nil
	case array.StringLike:
		return textLiteral(a.Value(i))
	case *array.FixedSizeBinary:
		return blobLiteral(a.Value(i)), nil
	case *array.Binary:
		return blobLiteral(a.Value(i)), nil
	case *array.LargeBinary:
		return blobLiteral(a.Value(i)), nil
	case *array.BinaryView:
		return blobLiteral(a.Value(i)), nil
	case array.ListLike:
		return listLiteral(a, i)
	case *array.Struct:
		return structLiteral(a, i)
	}
	name, err := engineName(a.DataType())
	if err != nil {
		return "", err
	}
	text, err := valueText(a, i)
	if err != nil {
		return "", err
	}
	return castText(text, name), nil
}

func castText(text, engineType string) string {
	return "CAST(" + sql.QuoteString(text) + " AS " + engineType + ")"
}

// nullLiteral has a type, except where the type says little: NULL of text goes anywhere, as text does.
func nullLiteral(t arrow.DataType) (string, error) {
	switch t.ID() {
	case arrow.NULL, arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.DENSE_UNION, arrow.SPARSE_UNION:
		return "NULL", nil
	}
	name, err := engineName(t)
	if err != nil {
		return "", err
	}
	return "CAST(NULL AS " + name + ")", nil
}

func textLiteral(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("a text that is not UTF-8; bind bytes as binary")
	}
	// No statement has a NUL character in it.
	parts := strings.Split(s, "\x00")
	for i, p := range parts {
		parts[i] = sql.QuoteString(p)
	}
	return strings.Join(parts, " || chr(0) || "), nil
}

func blobLiteral(b []byte) string {
	if len(b) == 0 {
		return "CAST('' AS BLOB)"
	}
	out := make([]byte, 0, 4*len(b))
	for _, c := range b {
		out = append(out, '\\', 'x')
		out = hex.AppendEncode(out, []byte{c})
	}
	return castText(string(out), "BLOB")
}

func unionLiteral(a array.Union, i int) (string, error) {
	child := a.Field(a.ChildID(i))
	if d, ok := a.(*array.DenseUnion); ok {
		return literal(child, int(d.ValueOffset(i)))
	}
	return literal(child, i)
}

func extensionLiteral(a array.ExtensionArray, i int) (string, error) {
	if a.ExtensionType().ExtensionName() == "arrow.uuid" {
		if a.IsNull(i) {
			return "CAST(NULL AS UUID)", nil
		}
		if b, ok := a.Storage().(*array.FixedSizeBinary); ok {
			id, err := uuid.FromBytes(b.Value(i))
			return castText(id.String(), "UUID"), err
		}
	}
	return literal(a.Storage(), i)
}

// valueText is the text of a value that DuckDB reads back exactly.
func valueText(a arrow.Array, i int) (string, error) {
	switch a := a.(type) {
	case *array.Float16:
		return floatText(float64(a.Value(i).Float32()), 32), nil
	case *array.Float32:
		return floatText(float64(a.Value(i)), 32), nil
	case *array.Float64:
		return floatText(a.Value(i), 64), nil
	case *array.Date32:
		return dateText(time.Unix(int64(a.Value(i))*secondsOfDay, 0))
	case *array.Date64:
		ms := int64(a.Value(i))
		if ms%(secondsOfDay*1000) != 0 {
			return "", fmt.Errorf("a date64 that is not a whole day")
		}
		return dateText(time.UnixMilli(ms))
	case *array.Time32:
		return timeText(int64(a.Value(i)), a.DataType())
	case *array.Time64:
		return timeText(int64(a.Value(i)), a.DataType())
	case *array.Timestamp:
		return timestampText(int64(a.Value(i)), a.DataType())
	case *array.Duration:
		return durationText(int64(a.Value(i)), a.DataType())
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		if v.Nanoseconds%1000 != 0 {
			return "", errNanos
		}
		return fmt.Sprintf("%d months %d days %d microseconds", v.Months, v.Days, v.Nanoseconds/1000), nil
	}
	return a.ValueStr(i), nil // integers and decimals
}

func floatText(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}
