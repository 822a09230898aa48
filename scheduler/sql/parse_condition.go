package sql

import (
	"fmt"
	"strings"
)

const conditionHint = "compare columns with constants: =, <>, <, <=, >, >=, IN, BETWEEN, IS NULL, combined with AND, OR and NOT"

// condition reads comparisons of columns with literals. It ends where something else follows.
func (p *parser) condition() (*Condition, error) {
	return p.terms("OR", ConditionOr, func() (*Condition, error) {
		return p.terms("AND", ConditionAnd, p.conditionNot)
	})
}

// terms reads one or more items that a word joins.
func (p *parser) terms(word string, kind ConditionKind, item func() (*Condition, error)) (*Condition, error) {
	from := p.pos
	first, err := item()
	if err != nil {
		return nil, err
	}
	all := []*Condition{first}
	for p.accept(word) {
		next, err := item()
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	if len(all) == 1 {
		return first, nil
	}
	return &Condition{Kind: kind, Terms: all, Text: p.written(from)}, nil
}

// written is the text from a token to the last one that was read.
func (p *parser) written(from int) string { return p.text[p.toks[from].Start:p.toks[p.pos-1].End] }

func (p *parser) conditionNot() (*Condition, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail(fmt.Sprintf("conditions may nest %d levels deep", maxDepth), "")
	}
	defer func() { p.depth-- }()
	from := p.pos
	switch {
	case p.accept("NOT"):
		term, err := p.conditionNot()
		if err != nil {
			return nil, err
		}
		return p.negated(term, from), nil
	case p.accept("("):
		inner, err := p.condition()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(")", conditionHint)
	}
	return p.comparison()
}

func (p *parser) negated(c *Condition, from int) *Condition {
	return &Condition{Kind: ConditionNot, Terms: []*Condition{c}, Text: p.written(from)}
}

func (p *parser) comparison() (*Condition, error) {
	from := p.pos
	if p.startsLiteral() {
		return p.literalFirst()
	}
	column, err := p.conditionColumn()
	if err != nil {
		return nil, err
	}
	if op, ok := p.operator(); ok {
		v, err := p.comparedLiteral()
		if err != nil {
			return nil, err
		}
		return &Condition{Kind: ConditionCompare, Column: column, Operator: op, Values: []Literal{v}, Text: p.written(from)}, nil
	}
	switch {
	case p.accept("IS", "NULL"), p.accept("ISNULL"):
		return &Condition{Kind: ConditionIsNull, Column: column, Text: p.written(from)}, nil
	case p.accept("IS", "NOT", "NULL"), p.accept("NOTNULL"):
		return p.negated(&Condition{Kind: ConditionIsNull, Column: column, Text: p.written(from)}, from), nil
	case p.accept("NOT", "IN"):
		c, err := p.in(column, from)
		if err != nil {
			return nil, err
		}
		return p.negated(c, from), nil
	case p.accept("IN"):
		return p.in(column, from)
	case p.accept("NOT", "BETWEEN"):
		c, err := p.between(column, from)
		if err != nil {
			return nil, err
		}
		return p.negated(c, from), nil
	case p.accept("BETWEEN"):
		return p.between(column, from)
	}
	if t := p.peek(); t.isAny("LIKE", "ILIKE", "SIMILAR", "GLOB", "IS", "NOT", "+", "-", "*", "/", "%", "|", ":", "[", "~", "!") {
		return nil, p.unexpected("a comparison", conditionHint)
	}
	return &Condition{Kind: ConditionColumn, Column: column, Text: p.written(from)}, nil
}

// literalFirst reads TRUE, FALSE, and comparisons with the literal on the left.
func (p *parser) literalFirst() (*Condition, error) {
	from := p.pos
	at := p.peek()
	v, err := p.literal()
	if err != nil {
		return nil, err
	}
	op, ok := p.operator()
	switch {
	case !ok && v.Kind == LiteralBoolean:
		return &Condition{Kind: ConditionConstant, Constant: strings.EqualFold(v.Text, "true"), Text: v.Source}, nil
	case !ok:
		return nil, p.unexpected("a comparison behind "+v.Source, conditionHint)
	case v.Kind == LiteralNull:
		return nil, p.failAt(at, "a comparison with NULL is never true", "write column IS NULL")
	case p.startsLiteral():
		return nil, p.fail("two constants are compared", conditionHint)
	}
	column, err := p.conditionColumn()
	if err != nil {
		return nil, err
	}
	flipped := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}
	if f := flipped[op]; f != "" {
		op = f
	}
	return &Condition{Kind: ConditionCompare, Column: column, Operator: op, Values: []Literal{v}, Text: p.written(from)}, nil
}

func (p *parser) conditionColumn() ([]Ident, error) {
	if t := p.peek(); t.Kind == KindIdent && reserved(t.Value) {
		return nil, p.unexpected("a column", conditionHint)
	}
	var path []Ident
	for {
		id, err := p.ident("a column")
		if err != nil {
			return nil, err
		}
		path = append(path, id)
		if p.peek().is("(") {
			return nil, p.fail("functions cannot stand in this condition", "compare the column itself, for example with a range: ts >= '2026-01-31' AND ts < '2026-02-01'")
		}
		if !p.accept(".") {
			return path, nil
		}
	}
}

// operator reads a comparison operator; the tokenizer gives its characters one by one.
func (p *parser) operator() (string, bool) {
	for _, op := range []struct {
		toks []string
		op   string
	}{
		{[]string{"<", ">"}, "<>"},
		{[]string{"!", "="}, "<>"},
		{[]string{"<", "="}, "<="},
		{[]string{">", "="}, ">="},
		{[]string{"=", "="}, "="},
		{[]string{"="}, "="},
		{[]string{"<"}, "<"},
		{[]string{">"}, ">"},
	} {
		if p.accept(op.toks...) {
			return op.op, true
		}
	}
	return "", false
}

// comparedLiteral is a literal that is not NULL.
func (p *parser) comparedLiteral() (Literal, error) {
	at := p.peek()
	if at.is("(") || !p.startsLiteral() {
		return Literal{}, p.unexpected("a constant", conditionHint)
	}
	v, err := p.literal()
	if err == nil && v.Kind == LiteralNull {
		err = p.failAt(at, "a comparison with NULL is never true", "write IS NULL or IS NOT NULL")
	}
	return v, err
}

func (p *parser) in(column []Ident, from int) (*Condition, error) {
	c := &Condition{Kind: ConditionIn, Column: column}
	if p.peek().is("(") && p.peekAt(1).isAny("SELECT", "WITH", "VALUES", "FROM", "TABLE") {
		return nil, p.fail("a query cannot stand in this condition", conditionHint)
	}
	err := p.list(func() error {
		v, err := p.comparedLiteral()
		c.Values = append(c.Values, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.Text = p.written(from)
	return c, nil
}

func (p *parser) between(column []Ident, from int) (*Condition, error) {
	low, err := p.comparedLiteral()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND", "write BETWEEN 1 AND 5"); err != nil {
		return nil, err
	}
	high, err := p.comparedLiteral()
	if err != nil {
		return nil, err
	}
	text := p.written(from)
	bound := func(op string, v Literal) *Condition {
		return &Condition{Kind: ConditionCompare, Column: column, Operator: op, Values: []Literal{v}, Text: text}
	}
	return &Condition{Kind: ConditionAnd, Terms: []*Condition{bound(">=", low), bound("<=", high)}, Text: text}, nil
}

// literalTypes are the words that may stand in front of a string.
var literalTypes = []string{"DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "UUID"}

func (p *parser) startsLiteral() bool {
	t := p.peek()
	switch {
	case t.Kind == KindString, t.Kind == KindNumber, t.isAny("TRUE", "FALSE", "NULL"):
		return true
	case t.isAny("-", "+"):
		return p.peekAt(1).Kind == KindNumber
	}
	return t.isAny(literalTypes...) && p.peekAt(1).Kind == KindString
}

func (p *parser) literal() (Literal, error) {
	from, t := p.pos, p.peek()
	v := Literal{Offset: t.Start}
	if !p.startsLiteral() {
		return v, p.unexpected("a constant", "a string in single quotes, a number, TRUE, FALSE, NULL or DATE '2026-01-31'")
	}
	switch {
	case t.isAny("-", "+"):
		p.pos++
		v.Kind, v.Text = LiteralNumber, p.peek().Value
		if t.is("-") {
			v.Text = "-" + v.Text
		}
	case t.Kind == KindNumber:
		v.Kind, v.Text = LiteralNumber, t.Value
	case t.Kind == KindString:
		v.Kind, v.Text = LiteralString, t.Value
	case t.is("NULL"):
		v.Kind = LiteralNull
	case t.isAny("TRUE", "FALSE"):
		v.Kind, v.Text = LiteralBoolean, strings.ToLower(t.Value)
	default:
		p.pos++
		v.Kind, v.Type, v.Text = LiteralString, keyword(t), p.peek().Value
	}
	p.pos++
	v.Source = p.written(from)
	return v, nil
}
