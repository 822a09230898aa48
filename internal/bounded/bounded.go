// Package bounded cuts texts that somebody else has made: messages of errors quote values, and a value may have any size. What is cut says so, and
// stays valid UTF-8.
package bounded

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Message is the most bytes of an error's message, and of its hint.
const Message = 8 << 10

// Text keeps the beginning and the end of a text of more than most bytes.
func Text(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head := strings.ToValidUTF8(s[:most*3/4], "")
	tail := s[len(s)-most/4:]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s … (%d bytes left out) … %s", head, len(s)-len(head)-len(tail), strings.ToValidUTF8(tail, ""))
}

// Line is the beginning of a text, at most bytes of it, as one line: what a server says must not make lines of a log.
func Line(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Error is e with texts of at most Message bytes each. It may be e itself.
func Error(e *planv1.Error) *planv1.Error {
	if e == nil || len(e.GetMessage()) <= Message && len(e.GetHint()) <= Message {
		return e
	}
	return &planv1.Error{Class: e.GetClass(), Message: Text(e.GetMessage(), Message), Hint: Text(e.GetHint(), Message), LostAttempt: e.GetLostAttempt()}
}
