package duckdb

import "strings"

// Ident quotes an identifier.
func Ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal quotes a string. DuckDB knows no escapes in plain literals but the doubled quote.
func Literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ListLiteral writes a list of strings.
func ListLiteral(items []string) string {
	var b strings.Builder
	b.WriteByte('[')
	for n, s := range items {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(Literal(s))
	}
	b.WriteByte(']')
	return b.String()
}

// identList are names as a list of columns has them.
func identList(names []string) string {
	quoted := make([]string, len(names))
	for n, name := range names {
		quoted[n] = Ident(name)
	}
	return strings.Join(quoted, ", ")
}
