package icefile

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// avroName makes a name that every Avro library accepts. ASCII names come out as the reference implementation writes them; it also lets letters of
// other alphabets pass, which not every library does.
func avroName(name string) string {
	var b strings.Builder
	for i, c := range utf16.Encode([]rune(name)) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		digit := c >= '0' && c <= '9'
		switch {
		case letter || digit && i > 0:
			b.WriteByte(byte(c))
		case digit:
			b.WriteByte('_')
			b.WriteByte(byte(c))
		default:
			fmt.Fprintf(&b, "_x%X", c)
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}

// avroNames makes names that also differ from each other.
func avroNames(fields []partitionField) []string {
	out, taken := make([]string, len(fields)), map[string]bool{}
	for i, f := range fields {
		n := avroName(f.name)
		if taken[n] {
			n = fmt.Sprintf("%s_%d", n, f.id)
		}
		for taken[n] {
			n += "_"
		}
		taken[n], out[i] = true, n
	}
	return out
}
