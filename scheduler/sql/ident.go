package sql

import "strings"

// Ident is one part of a name, as written and without its quotes.
type Ident struct {
	Text   string
	Quoted bool
	Offset int
}

// Name is a table's or schema's name of one to three parts.
type Name struct {
	Parts []Ident
}

// Strings returns the parts' texts.
func (n Name) Strings() []string {
	out := make([]string, len(n.Parts))
	for i, p := range n.Parts {
		out[i] = p.Text
	}
	return out
}

// String writes the name so that Parse reads it as the same name.
func (n Name) String() string { return JoinName(n.Strings()) }

// Offset is where the name begins.
func (n Name) Offset() int {
	if len(n.Parts) == 0 {
		return 0
	}
	return n.Parts[0].Offset
}

// JoinName writes a name from its parts, with quotes where they are needed.
func JoinName(parts []string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = DisplayIdent(p)
	}
	return strings.Join(out, ".")
}

// QuoteIdent always quotes. Generated SQL uses it for every name, so that reserved words and odd characters work.
func QuoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteString writes a string literal.
func QuoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// DisplayIdent quotes only where a reader would have to, for messages.
func DisplayIdent(name string) string {
	if name == "" || !isIdentStart(name[0]) || reserved(name) {
		return QuoteIdent(name)
	}
	lx := &lexer{text: name}
	lx.skipIdent()
	if lx.pos != len(name) {
		return QuoteIdent(name)
	}
	return name
}

// Find looks a name up: an exact match wins, then a match without regard to case if there is only one. Otherwise index is -1, and
// candidates are the several that match but for case (empty: none does).
func Find(name string, have []string) (index int, candidates []int) {
	for i, h := range have {
		if h == name {
			return i, nil
		}
	}
	for i, h := range have {
		if strings.EqualFold(h, name) {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	return -1, candidates
}

// reservedWords cannot name a table or column without quotes, because a statement's head ends or a clause begins with them.
var reservedWords = map[string]bool{
	"SELECT": true, "FROM": true, "WHERE": true, "WITH": true, "VALUES": true, "TABLE": true, "INTO": true, "AS": true,
	"ORDER": true, "GROUP": true, "HAVING": true, "LIMIT": true, "UNION": true, "ON": true, "CREATE": true, "NOT": true,
	"NULL": true, "CASE": true, "WHEN": true, "THEN": true, "ELSE": true, "END": true, "AND": true, "OR": true, "IN": true,
	"DISTINCT": true, "ALL": true, "DESC": true, "ASC": true, "USING": true, "DEFAULT": true, "PRIMARY": true, "UNIQUE": true,
	"CHECK": true, "FOREIGN": true, "REFERENCES": true, "CONSTRAINT": true,
}

func reserved(name string) bool { return reservedWords[strings.ToUpper(name)] }
