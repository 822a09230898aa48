package stages

import (
	"fmt"
	"strings"

	"github.com/signet-io/signet/executor/duckdb"
)

// integers are the sizes of integer types, in bytes; unsigned ones are in unsigned, too.
var integers = map[string]int{
	"TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8, "HUGEINT": 16, "UTINYINT": 1, "USMALLINT": 2, "UINTEGER": 4, "UBIGINT": 8, "UHUGEINT": 16,
}

// digits are the decimal digits that an integer type may need.
var digits = map[string]int{"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19, "UTINYINT": 3, "USMALLINT": 5, "UINTEGER": 10, "UBIGINT": 20}

var (
	signedOf   = map[int]string{1: "TINYINT", 2: "SMALLINT", 4: "INTEGER", 8: "BIGINT", 16: "HUGEINT"}
	unsignedOf = map[int]string{1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER", 8: "UBIGINT", 16: "UHUGEINT"}
)

func decimalOf(t string) (width, scale int, ok bool) {
	if !strings.HasPrefix(t, "DECIMAL(") {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(t, "DECIMAL(%d,%d)", &width, &scale)
	return width, scale, err == nil && n == 2
}

// isNumber reports a type that sum and avg add up as they are.
func isNumber(t string) bool {
	_, _, dec := decimalOf(t)
	return integers[t] > 0 || dec || isFloat(t)
}

func isFloat(t string) bool { return t == "DOUBLE" || t == "FLOAT" }

// keyType is the type in which two columns are compared, if values that compare as equal are equal in it; empty: they cannot be hashed together.
func keyType(a, b string) string {
	if a == b {
		if hashable(a) {
			return a
		}
		return ""
	}
	if integers[a] > 0 && integers[b] > 0 {
		return integerKey(a, b)
	}
	aw, as, adec := decimalOf(a)
	bw, bs, bdec := decimalOf(b)
	if !adec && digits[a] > 0 {
		aw, as, adec = digits[a], 0, bdec
	}
	if !bdec && digits[b] > 0 {
		bw, bs, bdec = digits[b], 0, adec
	}
	if adec && bdec {
		scale := max(as, bs)
		width := max(aw-as, bw-bs) + scale
		if width > 38 {
			return ""
		}
		return fmt.Sprintf("DECIMAL(%d,%d)", width, scale)
	}
	if a == "DOUBLE" && isNumber(b) || b == "DOUBLE" && isNumber(a) {
		return "DOUBLE"
	}
	if a == "DATE" && b == "TIMESTAMP" || a == "TIMESTAMP" && b == "DATE" {
		return "TIMESTAMP"
	}
	return ""
}

func integerKey(a, b string) string {
	au, bu := unsignedOf[integers[a]] == a, unsignedOf[integers[b]] == b
	size := max(integers[a], integers[b])
	switch {
	case au && bu:
		return unsignedOf[size]
	case !au && !bu:
		return signedOf[size]
	}
	if au && integers[a] == size || bu && integers[b] == size {
		size *= 2
	}
	return signedOf[size] // none beyond 16 bytes
}

// hashable types have one hash per value; nested ones are left to a single task.
func hashable(t string) bool {
	if strings.HasSuffix(t, "]") || t == `"NULL"` {
		return false
	}
	switch {
	case strings.HasPrefix(t, "STRUCT"), strings.HasPrefix(t, "MAP"), strings.HasPrefix(t, "UNION"), strings.HasPrefix(t, "VARIANT"), t == "JSON":
		return t == "JSON"
	case t == "INTERVAL", t == "BIT", t == "TIME WITH TIME ZONE":
		return false // equal values of several forms
	}
	return true
}

// carriable types come out of an exchange as they went in.
func carriable(t string) bool {
	_, ok := duckdb.Carrier(t)
	return ok
}
