package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// Text appends value i of a as DuckDB casts it to VARCHAR. NULL is "NULL".
func Text(b []byte, a arrow.Array, i int) []byte {
	if isNull(a, i) {
		return append(b, "NULL"...)
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.AppendBool(b, a.Value(i))
	case *array.Float16:
		return appendFloat(b, float64(a.Value(i).Float32()), 32)
	case *array.Float32:
		return appendFloat(b, float64(a.Value(i)), 32)
	case *array.Float64:
		return appendFloat(b, a.Value(i), 64)
	case *array.FixedSizeBinary:
		return appendBlob(b, a.Value(i))
	case *extensions.UUIDArray:
		return append(b, a.Value(i).String()...)
	}
	if n, ok := appendInteger(b, a, i); ok {
		return n
	}
	if d, ok := appendDecimal(b, a, i); ok {
		return d
	}
	if t, ok := moment(a, i); ok {
		return t.text(b)
	}
	if s, ok := stringValue(a, i); ok {
		return append(b, s...)
	}
	if v, ok := binaryValue(a, i); ok {
		return appendBlob(b, v)
	}
	if inner, j, ok := indirect(a, i); ok {
		return Text(b, inner, j)
	}
	return nestedText(b, a, i)
}

// isNull also looks through the encodings whose own validity says nothing.
func isNull(a arrow.Array, i int) bool {
	if _, ok := a.(*array.Null); ok {
		return true
	}
	if a.IsNull(i) {
		return true
	}
	if inner, j, ok := indirect(a, i); ok {
		return isNull(inner, j)
	}
	return false
}

// indirect resolves the encodings that point at a value elsewhere: dictionaries (ENUM), runs, unions, unknown extensions.
func indirect(a arrow.Array, i int) (arrow.Array, int, bool) {
	switch a := a.(type) {
	case *array.Dictionary:
		return a.Dictionary(), a.GetValueIndex(i), true
	case *array.RunEndEncoded:
		return a.Values(), a.GetPhysicalIndex(i), true
	case *array.SparseUnion:
		return a.Field(a.ChildID(i)), i, true
	case *array.DenseUnion:
		return a.Field(a.ChildID(i)), int(a.ValueOffset(i)), true
	case *extensions.UUIDArray:
		return nil, 0, false
	case array.ExtensionArray:
		return a.Storage(), i, true
	}
	return nil, 0, false
}

func appendInteger(b []byte, a arrow.Array, i int) ([]byte, bool) {
	switch a := a.(type) {
	case *array.Int8:
		return strconv.AppendInt(b, int64(a.Value(i)), 10), true
	case *array.Int16:
		return strconv.AppendInt(b, int64(a.Value(i)), 10), true
	case *array.Int32:
		return strconv.AppendInt(b, int64(a.Value(i)), 10), true
	case *array.Int64:
		return strconv.AppendInt(b, a.Value(i), 10), true
	case *array.Uint8:
		return strconv.AppendUint(b, uint64(a.Value(i)), 10), true
	case *array.Uint16:
		return strconv.AppendUint(b, uint64(a.Value(i)), 10), true
	case *array.Uint32:
		return strconv.AppendUint(b, uint64(a.Value(i)), 10), true
	case *array.Uint64:
		return strconv.AppendUint(b, a.Value(i), 10), true
	}
	return b, false
}

func appendDecimal(b []byte, a arrow.Array, i int) ([]byte, bool) {
	dt, ok := a.DataType().(arrow.DecimalType)
	if !ok {
		return b, false
	}
	switch a := a.(type) {
	case *array.Decimal32:
		return append(b, scaled(a.Value(i), dt)...), true
	case *array.Decimal64:
		return append(b, scaled(a.Value(i), dt)...), true
	case *array.Decimal128:
		return append(b, scaled(a.Value(i), dt)...), true
	case *array.Decimal256:
		return append(b, scaled(a.Value(i), dt)...), true
	}
	return b, false
}

// scaled sets the point by hand: arrow's own ToString goes through a float for negative scales.
func scaled[T interface {
	decimal.Decimal32 | decimal.Decimal64 | decimal.Decimal128 | decimal.Decimal256
	ToString(int32) string
}](v T, dt arrow.DecimalType) string {
	digits, scale := v.ToString(0), int(dt.GetScale())
	if scale <= 0 {
		if digits != "0" {
			digits += strings.Repeat("0", -scale)
		}
		return digits
	}
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// appendFloat prints the shortest digits that read back as the same value, as DuckDB does: 1.0, 1e+20, nan.
func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case f != f:
		return append(b, "nan"...)
	case f > maxFinite:
		return append(b, "inf"...)
	case f < -maxFinite:
		return append(b, "-inf"...)
	}
	exp := strconv.FormatFloat(f, 'e', -1, bits)
	e, err := strconv.Atoi(exp[strings.IndexByte(exp, 'e')+1:])
	if err != nil || e < -4 || e > 15 {
		return append(b, exp...)
	}
	s := strconv.FormatFloat(f, 'f', -1, bits)
	if !strings.ContainsRune(s, '.') {
		s += ".0"
	}
	return append(b, s...)
}

const maxFinite = 1.7976931348623157e308

func stringValue(a arrow.Array, i int) (string, bool) {
	switch a := a.(type) {
	case *array.String:
		return a.Value(i), true
	case *array.LargeString:
		return a.Value(i), true
	case *array.StringView:
		return a.Value(i), true
	}
	return "", false
}

func binaryValue(a arrow.Array, i int) ([]byte, bool) {
	switch a := a.(type) {
	case *array.Binary:
		return a.Value(i), true
	case *array.LargeBinary:
		return a.Value(i), true
	case *array.BinaryView:
		return a.Value(i), true
	case *array.FixedSizeBinary:
		return a.Value(i), true
	}
	return nil, false
}

// appendBlob prints printable ASCII as it is and every other byte as \xNN.
func appendBlob(b, v []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range v {
		if c >= ' ' && c <= '~' && c != '\\' && c != '\'' && c != '"' {
			b = append(b, c)
			continue
		}
		b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
	}
	return b
}

func nestedText(b []byte, a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.Struct:
		st, ok := a.DataType().(*arrow.StructType)
		if !ok {
			break
		}
		b = append(b, '{')
		for n := range a.NumField() {
			if n > 0 {
				b = append(b, ", "...)
			}
			b = append(quote(b, st.Field(n).Name), ": "...)
			b = element(b, a.Field(n), i)
		}
		return append(b, '}')
	case *array.Map:
		start, end := a.ValueOffsets(i)
		b = append(b, '{')
		for n := start; n < end; n++ {
			if n > start {
				b = append(b, ", "...)
			}
			b = append(element(b, a.Keys(), int(n)), '=')
			b = element(b, a.Items(), int(n))
		}
		return append(b, '}')
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		b = append(b, '[')
		for n := start; n < end; n++ {
			if n > start {
				b = append(b, ", "...)
			}
			b = element(b, a.ListValues(), int(n))
		}
		return append(b, ']')
	}
	return fmt.Append(b, a.ValueStr(i)) // a type that Arrow may gain
}

// element is a value inside a nested one: text is quoted where it could be taken for structure.
func element(b []byte, a arrow.Array, i int) []byte {
	if !isNull(a, i) {
		if inner, j, ok := indirect(a, i); ok {
			return element(b, inner, j)
		}
		if s, ok := stringValue(a, i); ok {
			if s == "" || strings.EqualFold(s, "null") || strings.TrimSpace(s) != s || strings.ContainsAny(s, `()[]{},:="'`) {
				return quote(b, s)
			}
			return append(b, s...)
		}
	}
	return Text(b, a, i)
}

func quote(b []byte, s string) []byte {
	b = append(b, '\'')
	for i := range len(s) {
		if s[i] == '\'' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '\'')
}
