package plan

import (
	"errors"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// errNoCast: the two types have no implicit cast. Other errors of assignable say more.
var errNoCast = errors.New("no implicit cast")

// integerBits are DuckDB's integers; a negative number means unsigned.
var integerBits = map[string]int{
	"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128,
	"UTINYINT": -8, "USMALLINT": -16, "UINTEGER": -32, "UBIGINT": -64, "UHUGEINT": -128,
}

func isInteger(k planv1.TypeKind) bool {
	return k >= planv1.TypeKind_TYPE_KIND_INT8 && k <= planv1.TypeKind_TYPE_KIND_INT64
}

// assignable reports whether a query's column of type from may go into a table's column of type to without a CAST in the query. path
// names the place inside the column for errors.
func assignable(from EngineType, to *planv1.Type, path string) error {
	if from.Name == "NULL" {
		return nil
	}
	switch to.GetKind() {
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		return assignStruct(from, to, path)
	case planv1.TypeKind_TYPE_KIND_LIST:
		return assignList(from, to, path)
	case planv1.TypeKind_TYPE_KIND_MAP:
		return assignMap(from, to, path)
	}
	if assignPrimitive(from, to) {
		return nil
	}
	return castError(from, to, path)
}

func castError(from EngineType, to *planv1.Type, path string) error {
	if path == "" {
		return errNoCast
	}
	return fmt.Errorf("%w of %s from %s to %s", errNoCast, path, from, TypeText(to))
}

// assignPrimitive holds the rules of casts.md for types without fields.
func assignPrimitive(from EngineType, to *planv1.Type) bool {
	kind := to.GetKind()
	if bits, ok := integerBits[from.Name]; ok {
		return assignInteger(bits, kind)
	}
	switch from.Name {
	case "DECIMAL":
		return assignDecimal(from, to)
	case "FLOAT":
		return kind == planv1.TypeKind_TYPE_KIND_FLOAT32 || kind == planv1.TypeKind_TYPE_KIND_FLOAT64
	case "DATE":
		return kind == planv1.TypeKind_TYPE_KIND_DATE || zoneless(kind)
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS":
		return zoneless(kind)
	case "BLOB":
		return kind == planv1.TypeKind_TYPE_KIND_BINARY || kind == planv1.TypeKind_TYPE_KIND_FIXED
	case "ENUM", "JSON":
		return kind == planv1.TypeKind_TYPE_KIND_STRING
	}
	name, ok := plainTypes[kind]
	return ok && name == from.Name
}

func zoneless(k planv1.TypeKind) bool {
	return k == planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS || k == planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS
}

// assignInteger: into integers and decimals of any size, because the executor checks every value. So it does for a DOUBLE, and for a
// FLOAT, which takes what has at most 32 bits.
func assignInteger(bits int, to planv1.TypeKind) bool {
	switch {
	case isInteger(to), to == planv1.TypeKind_TYPE_KIND_DECIMAL, to == planv1.TypeKind_TYPE_KIND_FLOAT64:
		return true
	case to == planv1.TypeKind_TYPE_KIND_FLOAT32:
		return bits >= -16 && bits <= 32
	}
	return false
}

// Digits that identify every value of a floating point type: a constant such as 0.1 is a DECIMAL to DuckDB, and with so many digits
// the nearest binary number is what was meant.
const (
	floatDigits  = 9
	doubleDigits = 17
)

// assignDecimal: the fraction must fit; the engine checks the integral digits of every value.
func assignDecimal(from EngineType, to *planv1.Type) bool {
	switch k := to.GetKind(); {
	case k == planv1.TypeKind_TYPE_KIND_DECIMAL:
		return from.Scale <= to.GetScale()
	case isInteger(k):
		return from.Scale == 0
	case k == planv1.TypeKind_TYPE_KIND_FLOAT64:
		return from.Precision <= doubleDigits
	case k == planv1.TypeKind_TYPE_KIND_FLOAT32:
		return from.Precision <= floatDigits
	}
	return false
}

func assignList(from EngineType, to *planv1.Type, path string) error {
	if from.Name != "LIST" && from.Name != "ARRAY" || len(to.GetFields()) != 1 {
		return castError(from, to, path)
	}
	return assignable(from.Fields[0].Type, to.GetFields()[0].GetType(), joinPath(path, "element"))
}

func assignMap(from EngineType, to *planv1.Type, path string) error {
	if from.Name != "MAP" || len(to.GetFields()) != 2 {
		return castError(from, to, path)
	}
	if err := assignable(from.Fields[0].Type, to.GetFields()[0].GetType(), joinPath(path, "key")); err != nil {
		return err
	}
	return assignable(from.Fields[1].Type, to.GetFields()[1].GetType(), joinPath(path, "value"))
}

// assignField adds to assignable that NULL alone cannot fill a required field of a struct. (Lists and maps may be empty.)
func assignField(from EngineType, to *planv1.Field, path string) error {
	if from.Name == "NULL" && to.GetRequired() {
		return fmt.Errorf("%s is required and the query gives NULL", path)
	}
	return assignable(from, to.GetType(), path)
}

// assignStruct matches fields by name. A field that only the query has would be lost: refused. One that only the table has becomes
// NULL, unless it is required.
func assignStruct(from EngineType, to *planv1.Type, path string) error {
	if from.Name != "STRUCT" {
		return castError(from, to, path)
	}
	if from.Fields[0].Name == "" {
		return assignRow(from, to, path)
	}
	names := make([]string, len(to.GetFields()))
	for i, f := range to.GetFields() {
		names[i] = f.GetName()
	}
	source := make([]int, len(names))
	for i, f := range from.Fields {
		at, _ := sql.Find(f.Name, names)
		if at < 0 {
			return extraField(f.Name, names, path)
		}
		if source[at] != 0 {
			return fmt.Errorf("%s and %s both go to %s", joinPath(path, from.Fields[source[at]-1].Name), joinPath(path, f.Name), joinPath(path, names[at]))
		}
		source[at] = i + 1
	}
	for i, f := range to.GetFields() {
		where := joinPath(path, f.GetName())
		if source[i] > 0 {
			if err := assignField(from.Fields[source[i]-1].Type, f, where); err != nil {
				return err
			}
		} else if f.GetRequired() {
			return fmt.Errorf("%s is required and the query's struct lacks it", where)
		}
	}
	return nil
}

func extraField(name string, have []string, path string) error {
	hint := ""
	if near := sql.Suggest(name, have); near != "" {
		hint = "; did you mean " + sql.DisplayIdent(near) + "?"
	}
	return fmt.Errorf("the table's struct has no field %s%s", joinPath(path, name), hint)
}

// assignRow: row(1, 'x') has no names, so its values go by position, all of them.
func assignRow(from EngineType, to *planv1.Type, path string) error {
	if len(from.Fields) != len(to.GetFields()) {
		return fmt.Errorf("a row of %d values without names cannot fill the %d fields of the table's struct", len(from.Fields), len(to.GetFields()))
	}
	for i, f := range to.GetFields() {
		if err := assignField(from.Fields[i].Type, f, joinPath(path, f.GetName())); err != nil {
			return err
		}
	}
	return nil
}

// assignLiteral: a string constant may be meant as any value that has a text form; the engine parses it and fails on what it cannot
// read.
func assignLiteral(to *planv1.Type) bool {
	_, primitive := plainTypes[to.GetKind()]
	return primitive || to.GetKind() == planv1.TypeKind_TYPE_KIND_DECIMAL
}
