package sql

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer cuts a text into tokens by DuckDB's rules (which are PostgreSQL's): it has to agree with DuckDB about where strings,
// quoted names and comments end, because that decides where a statement does.
type lexer struct {
	text string
	pos  int
}

// Tokenize returns all tokens of a text.
func Tokenize(text string) ([]Token, error) {
	lx := &lexer{text: text}
	if i := invalidUTF8(text); i >= 0 {
		return nil, newError(text[:i], i, "the statement is not valid UTF-8 from here on", "save the text as UTF-8")
	}
	var out []Token
	for {
		tok, ok, err := lx.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		out = append(out, tok)
	}
}

func invalidUTF8(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func (lx *lexer) next() (Token, bool, error) {
	if err := lx.skipBlank(); err != nil {
		return Token{}, false, err
	}
	if lx.pos >= len(lx.text) {
		return Token{}, false, nil
	}
	tok, err := lx.scan()
	return tok, err == nil, err
}

func (lx *lexer) scan() (Token, error) {
	start := lx.pos
	c := lx.text[start]
	switch {
	case c == '\'':
		return lx.plainString(start)
	case c == '"':
		return lx.quotedIdent(start)
	case c == '$':
		return lx.dollar(start)
	case isDigit(c) || c == '.' && isDigit(lx.at(1)):
		return lx.number(start), nil
	case c == 0:
		return Token{}, newError(lx.text, start, "a NUL character is not allowed in a statement", "")
	case (c == 'e' || c == 'E') && lx.at(1) == '\'':
		return lx.escapeString(start)
	case isIdentStart(c):
		lx.skipIdent()
		return Token{Kind: KindIdent, Value: lx.text[start:lx.pos], Start: start, End: lx.pos}, nil
	}
	lx.pos++
	return Token{Kind: KindSymbol, Value: lx.text[start:lx.pos], Start: start, End: lx.pos}, nil
}

// at returns the byte at an offset from the current position, 0 at the end.
func (lx *lexer) at(off int) byte {
	if i := lx.pos + off; i < len(lx.text) {
		return lx.text[i]
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isIdentStart: every byte of a character outside ASCII may begin a name, as in PostgreSQL.
func isIdentStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func isIdentPart(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '$' }

func (lx *lexer) skipIdent() {
	for lx.pos < len(lx.text) {
		c := lx.text[lx.pos]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(lx.text[lx.pos:])
			if isWideSpace(r) {
				return
			}
			lx.pos += n
			continue
		}
		if !isIdentPart(c) {
			return
		}
		lx.pos++
	}
}

// isWideSpace reports the spaces outside ASCII, which DuckDB reads as blanks: U+FEFF is the byte order mark of some editors.
func isWideSpace(r rune) bool {
	return r >= utf8.RuneSelf && (unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b')
}

// skipBlank passes white space and comments; block comments nest.
func (lx *lexer) skipBlank() error {
	for lx.pos < len(lx.text) {
		c := lx.text[lx.pos]
		switch {
		case c == ' ' || c >= '\t' && c <= '\r':
			lx.pos++
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(lx.text[lx.pos:])
			if !isWideSpace(r) {
				return nil
			}
			lx.pos += n
		case c == '-' && lx.at(1) == '-':
			lx.lineComment()
		case c == '/' && lx.at(1) == '*':
			if err := lx.blockComment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (lx *lexer) lineComment() {
	if i := strings.IndexAny(lx.text[lx.pos:], "\n\r"); i >= 0 {
		lx.pos += i
		return
	}
	lx.pos = len(lx.text)
}

func (lx *lexer) blockComment() error {
	start, depth := lx.pos, 0
	for lx.pos < len(lx.text) {
		switch {
		case lx.text[lx.pos] == '/' && lx.at(1) == '*':
			depth++
			lx.pos += 2
		case lx.text[lx.pos] == '*' && lx.at(1) == '/':
			depth--
			lx.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			lx.pos++
		}
	}
	return newError(lx.text, start, "this comment is never closed", "close it with */ (comments nest: each /* needs its own)")
}

func (lx *lexer) plainString(start int) (Token, error) {
	end, ok := closingQuote(lx.text, start+1, '\'')
	if !ok {
		return Token{}, newError(lx.text, start, "this string is never closed", "end it with ', and write a quote inside it as ''")
	}
	lx.pos = end
	return Token{Kind: KindString, Value: strings.ReplaceAll(lx.text[start+1:end-1], "''", "'"), Start: start, End: end}, nil
}

func (lx *lexer) quotedIdent(start int) (Token, error) {
	end, ok := closingQuote(lx.text, start+1, '"')
	if !ok {
		return Token{}, newError(lx.text, start, "this quoted name is never closed", `end it with ", and write a quote inside it as ""`)
	}
	lx.pos = end
	return Token{Kind: KindQuoted, Value: strings.ReplaceAll(lx.text[start+1:end-1], `""`, `"`), Start: start, End: end}, nil
}

// closingQuote returns the index after the quote that ends the string whose content begins at i. A doubled quote is content.
func closingQuote(text string, i int, quote byte) (int, bool) {
	for {
		n := strings.IndexByte(text[i:], quote)
		if n < 0 {
			return 0, false
		}
		i += n + 1
		if i >= len(text) || text[i] != quote {
			return i, true
		}
		i++
	}
}

// dollar reads $tag$…$tag$; anything else that begins with a dollar sign is a parameter, which DuckDB will refuse or bind.
func (lx *lexer) dollar(start int) (Token, error) {
	i := start + 1
	for i < len(lx.text) && lx.text[i] != '$' && isIdentPart(lx.text[i]) {
		i++
	}
	if i >= len(lx.text) || lx.text[i] != '$' || i > start+1 && isDigit(lx.text[start+1]) {
		lx.pos++
		return Token{Kind: KindSymbol, Value: "$", Start: start, End: lx.pos}, nil
	}
	tag := lx.text[start : i+1]
	n := strings.Index(lx.text[i+1:], tag)
	if n < 0 {
		return Token{}, newError(lx.text, start, "this string is never closed", "end it with "+tag)
	}
	body := lx.text[i+1 : i+1+n]
	lx.pos = i + 1 + n + len(tag)
	return Token{Kind: KindString, Value: body, Start: start, End: lx.pos}, nil
}

func (lx *lexer) number(start int) Token {
	if lx.text[lx.pos] == '0' && (lx.at(1)|0x20 == 'x' || lx.at(1)|0x20 == 'b' || lx.at(1)|0x20 == 'o') && isHex(lx.at(2)) {
		lx.pos += 2
		for isHex(lx.at(0)) || lx.at(0) == '_' {
			lx.pos++
		}
		return Token{Kind: KindNumber, Value: lx.text[start:lx.pos], Start: start, End: lx.pos}
	}
	lx.digits()
	if lx.at(0) == '.' && lx.at(1) != '.' {
		lx.pos++
		lx.digits()
	}
	if lx.at(0)|0x20 == 'e' {
		off := 1
		if lx.at(1) == '+' || lx.at(1) == '-' {
			off = 2
		}
		if isDigit(lx.at(off)) {
			lx.pos += off
			lx.digits()
		}
	}
	return Token{Kind: KindNumber, Value: lx.text[start:lx.pos], Start: start, End: lx.pos}
}

func (lx *lexer) digits() {
	for isDigit(lx.at(0)) || lx.at(0) == '_' && isDigit(lx.at(1)) {
		lx.pos++
	}
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// escapeString reads E'…', in which a backslash escapes.
func (lx *lexer) escapeString(start int) (Token, error) {
	var b strings.Builder
	text := lx.text
	for i := start + 2; i < len(text); {
		switch c := text[i]; {
		case c == '\'' && i+1 < len(text) && text[i+1] == '\'':
			b.WriteByte('\'')
			i += 2
		case c == '\'':
			lx.pos = i + 1
			return Token{Kind: KindString, Value: b.String(), Start: start, End: i + 1}, nil
		case c == '\\' && i+1 < len(text):
			i = unescape(&b, text, i+1)
		default:
			b.WriteByte(c)
			i++
		}
	}
	return Token{}, newError(text, start, "this string is never closed", `end it with ', and write a quote inside it as '' or \'`)
}

// unescape writes what the escape at text[i:] (after its backslash) stands for and returns where it ends.
func unescape(b *strings.Builder, text string, i int) int {
	c := text[i]
	if r := strings.IndexByte("bfnrt", c); r >= 0 {
		b.WriteByte("\b\f\n\r\t"[r])
		return i + 1
	}
	var base, width int
	from := i + 1
	switch {
	case c == 'x':
		base, width = 16, 2
	case c == 'u':
		base, width = 16, 4
	case c == 'U':
		base, width = 16, 8
	case c >= '0' && c <= '7':
		base, width, from = 8, 3, i
	default:
		r, n := utf8.DecodeRuneInString(text[i:])
		b.WriteRune(r)
		return i + n
	}
	end := from
	for end < len(text) && end < from+width && isHex(text[end]) && (base == 16 || text[end] <= '7') {
		end++
	}
	v, err := strconv.ParseUint(text[from:end], base, 32)
	if err != nil {
		b.WriteByte(c)
		return i + 1
	}
	b.WriteRune(rune(v)) // values above U+10FFFF become U+FFFD, as DuckDB refuses them anyway
	return end
}
