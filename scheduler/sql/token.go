package sql

import "strings"

// Kind is the class of a token.
type Kind uint8

// The classes of tokens. Comments and white space are none.
const (
	KindIdent  Kind = iota + 1 // an identifier or keyword, without quotes
	KindQuoted                 // "…": an identifier, never a keyword
	KindString                 // '…', E'…' or $tag$…$tag$
	KindNumber
	KindSymbol // one character that is none of the others
)

// Token is one lexical unit. Text[Start:End] is how it was written.
type Token struct {
	Kind  Kind
	Value string // identifiers and strings: decoded; others: as written
	Start int
	End   int
}

// is reports whether the token is the given keyword (upper case) or symbol.
func (t Token) is(word string) bool {
	switch t.Kind {
	case KindIdent:
		return len(t.Value) == len(word) && strings.EqualFold(t.Value, word)
	case KindSymbol:
		return t.Value == word
	}
	return false
}

func (t Token) isName() bool { return t.Kind == KindIdent || t.Kind == KindQuoted }

// isAny reports whether the token is one of the given keywords or symbols.
func (t Token) isAny(words ...string) bool {
	for _, w := range words {
		if t.is(w) {
			return true
		}
	}
	return false
}
