package sql

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is what is wrong with a statement, and where.
type Error struct {
	Message string
	Hint    string // what to write instead; may be empty
	Offset  int    // in bytes
	Line    int    // from 1
	Column  int    // from 1, in characters
	Snippet string // the line and a caret below the place
}

// Error gives message, place, snippet and hint, each on lines of its own.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d, column %d: %s", e.Line, e.Column, e.Message)
	if e.Snippet != "" {
		b.WriteString("\n" + e.Snippet)
	}
	if e.Hint != "" {
		b.WriteString("\nhint: " + e.Hint)
	}
	return b.String()
}

// Shift moves an error by the place of its text in a longer one, for statements cut out of a script.
func (e *Error) Shift(script string, offset int) *Error {
	return newError(script, e.Offset+offset, e.Message, e.Hint)
}

func newError(text string, offset int, message, hint string) *Error {
	offset = min(max(offset, 0), len(text))
	line, column := position(text, offset)
	return &Error{Message: message, Hint: hint, Offset: offset, Line: line, Column: column, Snippet: snippet(text, offset)}
}

func position(text string, offset int) (line, column int) {
	before := text[:offset]
	line = strings.Count(before, "\n") + 1
	return line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// window is how much of a long line a snippet shows on each side of the place.
const window = 60

func snippet(text string, offset int) string {
	from := strings.LastIndexByte(text[:offset], '\n') + 1
	to := len(text)
	if i := strings.IndexByte(text[offset:], '\n'); i >= 0 {
		to = offset + i
	}
	before, after := text[from:offset], strings.TrimRight(text[offset:to], "\r")
	before, after = lastRunes(before, window), firstRunes(after, window)
	if strings.TrimSpace(before+after) == "" {
		return ""
	}
	return "  " + clean(before) + clean(after) + "\n  " + blank(before) + "^"
}

// clean keeps control characters away from the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

// blank is as wide as s on a terminal: tabs stay, wide characters take two cells, combining ones none.
func blank(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteByte('\t')
		case unicode.In(r, unicode.Mn, unicode.Me):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			b.WriteString("  ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func lastRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	rs := []rune(s)
	return "…" + string(rs[len(rs)-n:])
}

func firstRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}
