package sql

import (
	"fmt"
	"strings"
)

// maxDepth bounds nested types, so that no text exhausts the stack.
const maxDepth = 64

// parser walks the tokens of one statement. A method that fails leaves it where the error is.
type parser struct {
	text  string
	toks  []Token
	pos   int
	depth int
	// nested: columns of terms may be fields inside structs.
	nested bool
}

// eof is returned by peek behind the last token; it matches no keyword.
var eof = Token{}

func (p *parser) peek() Token { return p.peekAt(0) }

func (p *parser) peekAt(off int) Token {
	if i := p.pos + off; i < len(p.toks) {
		return p.toks[i]
	}
	return eof
}

func (p *parser) done() bool { return p.pos >= len(p.toks) }

// accept passes the given keywords or symbols if all of them follow, in this order.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if !p.peekAt(i).is(w) {
			return false
		}
	}
	p.pos += len(words)
	return true
}

func (p *parser) expect(word, hint string) error {
	if p.accept(word) {
		return nil
	}
	if !isIdentStart(word[0]) {
		word = "'" + word + "'"
	}
	return p.unexpected(word, hint)
}

// unexpected says what was wanted at the current place and what stands there.
func (p *parser) unexpected(wanted, hint string) *Error {
	return p.fail(fmt.Sprintf("expected %s, found %s", wanted, p.found()), hint)
}

func (p *parser) found() string {
	if p.done() {
		return "the end of the statement"
	}
	return p.show(p.peek())
}

func (p *parser) show(t Token) string {
	s := firstRunes(clean(p.text[t.Start:t.End]), 40)
	if t.Kind == KindSymbol || t.Kind == KindNumber {
		return "'" + s + "'"
	}
	return s
}

// fail makes an error at the current token, or behind the last one.
func (p *parser) fail(message, hint string) *Error {
	off := len(p.text)
	switch {
	case !p.done():
		off = p.peek().Start
	case len(p.toks) > 0:
		off = p.toks[len(p.toks)-1].End
	}
	return newError(p.text, off, message, hint)
}

func (p *parser) failAt(t Token, message, hint string) *Error {
	return newError(p.text, t.Start, message, hint)
}

// end checks that nothing is left.
func (p *parser) end(after string) error {
	if p.done() {
		return nil
	}
	return p.fail(fmt.Sprintf("unexpected %s after %s", p.found(), after), "")
}

// ident reads one name of anything but a table.
func (p *parser) ident(what string) (Ident, error) {
	t := p.peek()
	if !t.isName() {
		return Ident{}, p.unexpected(what, quoteHint(t))
	}
	if t.Value == "" {
		return Ident{}, p.fail("a quoted name must not be empty", "")
	}
	p.pos++
	return Ident{Text: t.Value, Quoted: t.Kind == KindQuoted, Offset: t.Start}, nil
}

func quoteHint(t Token) string {
	if t.Kind == KindString {
		return "names take double quotes, single quotes make a string: " + QuoteIdent(t.Value)
	}
	return ""
}

// name reads a table's or schema's name of up to limit parts.
func (p *parser) name(what string, limit int) (Name, error) {
	var n Name
	if t := p.peek(); t.Kind == KindIdent && reserved(t.Value) {
		return n, p.unexpected(what, "a name that is a reserved word needs double quotes: "+QuoteIdent(t.Value))
	}
	for {
		part, err := p.ident(what)
		if err != nil {
			return n, err
		}
		n.Parts = append(n.Parts, part)
		if !p.accept(".") {
			return n, nil
		}
		if len(n.Parts) == limit {
			return n, p.fail(fmt.Sprintf("%s has at most %d parts", what, limit), "a part with a dot in it, as a nested schema has, needs double quotes: \"n1.n2\"")
		}
	}
}

func (p *parser) tableName() (Name, error) { return p.name("a table name", 3) }

// list reads '(' item {',' item} ')'. An empty list or a trailing comma is an error of item's.
func (p *parser) list(item func() error) error {
	if err := p.expect("(", ""); err != nil {
		return err
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if p.accept(",") {
			continue
		}
		return p.expect(")", "items are separated by commas")
	}
}

func keyword(t Token) string {
	if t.Kind == KindIdent {
		return strings.ToUpper(t.Value)
	}
	return ""
}
