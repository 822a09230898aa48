package format

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// JSON appends value i of a. See the package comment for the mapping.
func JSON(b []byte, a arrow.Array, i int) []byte {
	if isNull(a, i) {
		return append(b, "null"...)
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.AppendBool(b, a.Value(i))
	case *array.Float16:
		return jsonFloat(b, float64(a.Value(i).Float32()), 32)
	case *array.Float32:
		return jsonFloat(b, float64(a.Value(i)), 32)
	case *array.Float64:
		return jsonFloat(b, a.Value(i), 64)
	case *extensions.UUIDArray:
		return jsonString(b, a.Value(i).String())
	}
	if n, ok := appendInteger(b, a, i); ok {
		return n
	}
	if dt, ok := a.DataType().(arrow.DecimalType); ok {
		text, _ := appendDecimal(nil, a, i)
		if dt.GetScale() <= 0 {
			return append(b, text...)
		}
		return jsonString(b, string(text))
	}
	if t, ok := moment(a, i); ok {
		return jsonString(b, string(t.iso(nil)))
	}
	if s, ok := stringValue(a, i); ok {
		return jsonString(b, s)
	}
	if v, ok := binaryValue(a, i); ok {
		return jsonString(b, base64.StdEncoding.EncodeToString(v))
	}
	if inner, j, ok := indirect(a, i); ok {
		return JSON(b, inner, j)
	}
	return nestedJSON(b, a, i)
}

// jsonFloat: JSON has no NaN and no infinities.
func jsonFloat(b []byte, f float64, bits int) []byte {
	switch {
	case f != f:
		return append(b, `"NaN"`...)
	case f > maxFinite:
		return append(b, `"Infinity"`...)
	case f < -maxFinite:
		return append(b, `"-Infinity"`...)
	}
	return appendFloat(b, f, bits)
}

// jsonString does without the HTML escapes of encoding/json. Bytes that are not UTF-8 become U+FFFD.
func jsonString(b []byte, s string) []byte {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // cannot happen: s is a string and the writer is memory
		return append(b, `""`...)
	}
	return append(b, strings.TrimSuffix(out.String(), "\n")...)
}

func nestedJSON(b []byte, a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.Struct:
		st, ok := a.DataType().(*arrow.StructType)
		if !ok {
			break
		}
		names := make([]string, a.NumField())
		for n := range names {
			names[n] = st.Field(n).Name
		}
		b = append(b, '{')
		for n, name := range uniqueNames(names) {
			if n > 0 {
				b = append(b, ',')
			}
			b = append(jsonString(b, name), ':')
			b = JSON(b, a.Field(n), i)
		}
		return append(b, '}')
	case *array.Map:
		return jsonMap(b, a, i)
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		b = append(b, '[')
		for n := start; n < end; n++ {
			if n > start {
				b = append(b, ',')
			}
			b = JSON(b, a.ListValues(), int(n))
		}
		return append(b, ']')
	}
	return jsonString(b, a.ValueStr(i)) // a type that Arrow may gain
}

func jsonMap(b []byte, a *array.Map, i int) []byte {
	start, end := a.ValueOffsets(i)
	text := false
	switch a.Keys().DataType().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		text = true
	}
	pair := func(n int) {
		if text {
			b = append(JSON(b, a.Keys(), n), ':')
			b = JSON(b, a.Items(), n)
			return
		}
		b = append(b, `{"key":`...)
		b = append(JSON(b, a.Keys(), n), `,"value":`...)
		b = append(JSON(b, a.Items(), n), '}')
	}
	brackets := "[]"
	if text {
		brackets = "{}"
	}
	b = append(b, brackets[0])
	for n := start; n < end; n++ {
		if n > start {
			b = append(b, ',')
		}
		pair(int(n))
	}
	return append(b, brackets[1])
}

// uniqueNames gives the second and later bearers of a name a number that no other column has.
func uniqueNames(names []string) []string {
	taken := map[string]bool{}
	for _, n := range names {
		taken[n] = true
	}
	seen := map[string]bool{}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n
		for k := 1; seen[n] && taken[out[i]]; k++ {
			out[i] = n + "_" + strconv.Itoa(k)
		}
		taken[out[i]], seen[n] = true, true
	}
	return out
}
