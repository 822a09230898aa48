package sql

import (
	"slices"
	"strings"
)

// fragment takes an expression, or what stands behind FROM, up to a token at which stop holds outside of all brackets and CASE … END. What is in it, DuckDB
// decides; that it ends where it seems to is checked here, because it is put between other parts of a query.
func (p *parser) fragment(what, hint string, stop func(at int) bool) (Fragment, error) {
	from, depth := p.pos, 0
	var open []Token
	for ; p.pos < len(p.toks); p.pos++ {
		t := p.toks[p.pos]
		switch {
		case t.isAny("(", "[", "{"):
			open = append(open, t)
		case t.isAny(")", "]", "}"):
			if len(open) == 0 {
				if stop(p.pos) {
					return p.fragmentFrom(from, what, hint)
				}
				return Fragment{}, p.fail("this "+t.Value+" closes nothing", "")
			}
			if closer[open[len(open)-1].Value] != t.Value {
				return Fragment{}, p.fail("this "+t.Value+" closes nothing", "")
			}
			open = open[:len(open)-1]
		case len(open) > 0 || p.afterDot(p.pos):
		case t.is("CASE"):
			depth++
		case t.is("END") && depth > 0:
			depth--
		case depth == 0 && stop(p.pos):
			return p.fragmentFrom(from, what, hint)
		}
	}
	if len(open) > 0 {
		t := open[len(open)-1]
		return Fragment{}, p.failAt(t, "this "+t.Value+" is never closed", "")
	}
	return p.fragmentFrom(from, what, hint)
}

// afterDot: the word is a part of a name, whatever it is called.
func (p *parser) afterDot(at int) bool {
	return at > 0 && p.toks[at-1].is(".") && p.toks[at-1].End == p.toks[at].Start
}

func (p *parser) fragmentFrom(from int, what, hint string) (Fragment, error) {
	if p.pos == from {
		return Fragment{}, p.unexpected(what, hint)
	}
	first, last := p.toks[from], p.toks[p.pos-1]
	one := p.pos == from+1
	return Fragment{
		Text: p.text[first.Start:last.End], Offset: first.Start,
		String: one && first.Kind == KindString, Null: one && first.is("NULL"), Default: one && first.is("DEFAULT"),
	}, nil
}

// HasQuery: there is a subquery in it, or a column that has such a name.
func (f *Fragment) HasQuery() bool {
	if f == nil {
		return false
	}
	toks, _ := Tokenize(f.Text) // it was read before
	return slices.ContainsFunc(toks, func(t Token) bool { return t.isAny("SELECT", "FROM", "VALUES", "WITH", "TABLE") })
}

// expression is a fragment that is no query.
func (p *parser) expression(what, hint string, stop func(at int) bool) (Fragment, error) {
	if t := p.peek(); t.isAny("SELECT", "WITH", "VALUES", "TABLE") || t.is("FROM") && !stop(p.pos) {
		return Fragment{}, p.fail("a query in place of "+what, "put it into parentheses")
	}
	return p.fragment(what, hint, stop)
}

// targetAlias reads the optional name under which the statement's text refers to the table.
func (p *parser) targetAlias(clauses ...string) (string, error) {
	as := p.accept("AS")
	if t := p.peek(); !as && (!t.isName() || t.isAny(clauses...)) {
		return "", nil
	}
	if t := p.peek(); t.Kind == KindIdent && reserved(t.Value) {
		return "", p.unexpected("an alias", "a name that is a reserved word needs double quotes: "+QuoteIdent(t.Value))
	}
	id, err := p.ident("an alias")
	if err != nil {
		return "", err
	}
	if p.peek().is("(") {
		return "", p.fail("an alias of the table that is written takes no list of columns", "use the table's own column names")
	}
	return id.Text, nil
}

// assignments reads column = value, …. own are the names by which the table may be qualified.
func (p *parser) assignments(own []string, stop func(at int) bool) ([]Assignment, error) {
	var out []Assignment
	for {
		if p.peek().is("(") {
			return nil, p.fail("a list of columns on the left of = is not supported", "write one assignment for each column: SET a = 1, b = 2")
		}
		col, err := p.assigned(own)
		if err != nil {
			return nil, err
		}
		if err := p.expect("=", "write SET column = value"); err != nil {
			return nil, err
		}
		v, err := p.expression("a value", "write SET column = value", func(at int) bool { return p.toks[at].is(",") || stop(at) })
		if err != nil {
			return nil, err
		}
		out = append(out, Assignment{Column: col, Value: v})
		if !p.accept(",") {
			return out, nil
		}
	}
}

// assigned reads the column of an assignment, which the table's name may qualify.
func (p *parser) assigned(own []string) (Ident, error) {
	from := p.peek()
	if from.Kind == KindIdent && reserved(from.Value) {
		return Ident{}, p.unexpected("a column name", "a name that is a reserved word needs double quotes: "+QuoteIdent(from.Value))
	}
	id, err := p.ident("a column name")
	if err != nil {
		return id, err
	}
	if !p.peek().is(".") {
		return id, nil
	}
	if at, _ := Find(id.Text, own); at < 0 {
		return id, p.failAt(from, "SET takes whole columns, not fields inside them", "give the whole struct: SET s = struct_update(s, f := 1)")
	}
	p.pos++
	if id, err = p.ident("a column name"); err != nil {
		return id, err
	}
	if p.peek().is(".") {
		return id, p.failAt(from, "SET takes whole columns, not fields inside them", "give the whole struct: SET s = struct_update(s, f := 1)")
	}
	return id, nil
}

// ownNames are those by which a statement may qualify columns of the table that it writes.
func ownNames(table Name, alias string) []string {
	if alias != "" {
		return []string{alias}
	}
	parts := table.Strings()
	if last := parts[len(parts)-1]; len(parts) > 1 && strings.HasPrefix(strings.ToLower(last), BranchPrefix) {
		return []string{parts[len(parts)-2], last}
	}
	return parts[len(parts)-1:]
}
