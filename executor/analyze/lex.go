package analyze

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is as coarse as the splicing needs.
type tokenKind int

const (
	tokenWord   tokenKind = iota + 1 // identifier, keyword or number
	tokenQuoted                      // "identifier"
	tokenString                      // 'text', E'text', $$text$$
	tokenSign                        // one character of anything else
)

type token struct {
	kind       tokenKind
	start, end int
}

// lex splits SQL into tokens; comments and blanks fall away. It follows DuckDB's lexer in what ends a token, which is all that matters: a text that
// was spliced wrongly does not pass the comparison of trees.
func lex(sql string) []token {
	var out []token
	for i := 0; i < len(sql); {
		start := i
		switch c := sql[i]; {
		case strings.HasPrefix(sql[i:], "--"):
			i = skipTo(sql, i, "\n")
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			i = skipComment(sql, i)
			continue
		case c == '\'':
			i = skipQuoted(sql, i, '\'', false)
			out = append(out, token{tokenString, start, i})
		case c == '"':
			i = skipQuoted(sql, i, '"', false)
			out = append(out, token{tokenQuoted, start, i})
		case (c == 'e' || c == 'E') && strings.HasPrefix(sql[i+1:], "'"):
			i = skipQuoted(sql, i+1, '\'', true)
			out = append(out, token{tokenString, start, i})
		case c == '$' && dollarTag(sql[i:]) != "":
			tag := dollarTag(sql[i:])
			i = skipTo(sql, i+len(tag), tag)
			out = append(out, token{tokenString, start, i})
		default:
			r, n := utf8.DecodeRuneInString(sql[i:])
			switch {
			case unicode.IsSpace(r):
				i += n
			case wordRune(r):
				for i < len(sql) {
					if r, n = utf8.DecodeRuneInString(sql[i:]); !wordRune(r) {
						break
					}
					i += n
				}
				out = append(out, token{tokenWord, start, i})
			default:
				i += n
				out = append(out, token{tokenSign, start, i})
			}
		}
	}
	return out
}

func wordRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) || r >= utf8.RuneSelf && !unicode.IsSpace(r)
}

// skipTo answers the index after the next end, or the end of the text.
func skipTo(sql string, from int, end string) int {
	if n := strings.Index(sql[from:], end); n >= 0 {
		return from + n + len(end)
	}
	return len(sql)
}

func skipComment(sql string, i int) int {
	depth := 0
	for i < len(sql) {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth, i = depth+1, i+2
		case strings.HasPrefix(sql[i:], "*/"):
			if depth, i = depth-1, i+2; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return i
}

// skipQuoted passes over a quoted text in which the quote is doubled, or escaped if escapes are on.
func skipQuoted(sql string, i int, quote byte, escapes bool) int {
	for i++; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] == quote && i+1 < len(sql) && sql[i+1] == quote:
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// dollarTag answers $tag$ at the start of s.
func dollarTag(s string) string {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '$':
			return s[:i+1]
		case c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)) || i > 1 && unicode.IsDigit(rune(c)):
		default:
			return ""
		}
	}
	return ""
}

// ident answers the name that a token spells.
func ident(sql string, t token) string {
	text := sql[t.start:t.end]
	switch t.kind {
	case tokenQuoted:
		return strings.ReplaceAll(strings.TrimSuffix(text[1:], `"`), `""`, `"`)
	case tokenString:
		if text[0] != '\'' {
			return ""
		}
		return strings.ReplaceAll(strings.TrimSuffix(text[1:], "'"), "''", "'")
	default:
		return text
	}
}
