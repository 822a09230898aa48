package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what a type is, without its parameters.
type Kind int

// The kinds. Struct, Array and Map have parts; the others are primitive.
const (
	Invalid Kind = iota
	String
	Long    // 8 bytes
	Integer // 4 bytes
	Short   // 2 bytes
	Byte    // 1 byte
	Float
	Double
	Decimal
	Boolean
	Binary
	Date
	Timestamp    // microseconds, an instant
	TimestampNTZ // microseconds, without a time zone
	Struct
	Array
	Map
)

var kindNames = [...]string{
	Invalid: "invalid", String: "string", Long: "long", Integer: "integer", Short: "short", Byte: "byte", Float: "float", Double: "double", Decimal: "decimal",
	Boolean: "boolean", Binary: "binary", Date: "date", Timestamp: "timestamp", TimestampNTZ: "timestamp_ntz", Struct: "struct", Array: "array", Map: "map",
}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "kind " + strconv.Itoa(int(k))
	}
	return kindNames[k]
}

// Type is the type of a column, of an array's elements, or of a map's keys or values.
type Type struct {
	Kind      Kind
	Precision int     // of a Decimal: 1 to 38
	Scale     int     // of a Decimal: 0 to its precision
	Fields    []Field // of a Struct
	Key       *Type   // of a Map
	Element   *Type   // of an Array, or the values of a Map
	Nulls     bool    // whether an Array's elements, or a Map's values, may be NULL
}

// Primitive reports whether the type has no parts.
func (t Type) Primitive() bool { return t.Kind > Invalid && t.Kind < Struct }

// String is the type as SQL writes it: struct<a:long,b:array<string>>.
func (t Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case Array:
		return "array<" + t.Element.String() + ">"
	case Map:
		return "map<" + t.Key.String() + "," + t.Element.String() + ">"
	case Struct:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = f.Name + ":" + f.Type.String()
		}
		return "struct<" + strings.Join(parts, ",") + ">"
	}
	return t.Kind.String()
}

// Equal reports whether two types are the same, their fields' names, nullability and metadata included.
func (t Type) Equal(u Type) bool {
	a, errA := appendType(nil, t)
	b, errB := appendType(nil, u)
	return errA == nil && errB == nil && string(a) == string(b)
}

// Leaf is a column that holds values: no struct, but arrays and maps as wholes.
type Leaf struct {
	Path []string // names from the top
	Type Type
}

// Name is the path with dots, a name with other characters than letters, digits and _ in backquotes, as Spark writes it.
func (l Leaf) Name() string { return PathString(l.Path) }

// PathString writes a path with dots.
func PathString(path []string) string {
	parts := make([]string, len(path))
	for i, name := range path {
		parts[i] = name
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			parts[i] = "`" + strings.ReplaceAll(name, "`", "``") + "`"
		}
	}
	return strings.Join(parts, ".")
}

// walk calls f for t and every type below it, with the path and the field that the type is of (nil within arrays and maps).
func (t *Type) walk(path []string, field *Field, f func(path []string, t *Type, field *Field)) {
	f(path, t, field)
	sub := func(u *Type, field *Field, name string) {
		if u != nil {
			u.walk(append(path[:len(path):len(path)], name), field, f)
		}
	}
	for i := range t.Fields {
		sub(&t.Fields[i].Type, &t.Fields[i], t.Fields[i].Name)
	}
	sub(t.Key, nil, "key")
	if t.Kind == Map {
		sub(t.Element, nil, "value")
	} else {
		sub(t.Element, nil, "element")
	}
}
