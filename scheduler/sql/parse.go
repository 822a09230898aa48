package sql

// Parse reads exactly one statement; semicolons after it are allowed. Its errors are *Error.
func Parse(text string) (Statement, error) {
	toks, err := Tokenize(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, toks: trimSemicolons(toks)}
	if len(p.toks) == 0 {
		return nil, p.fail("there is no statement here", "type a statement, for example: SHOW SCHEMAS")
	}
	for i, t := range p.toks {
		if t.is(";") {
			p.pos = min(i+1, len(p.toks)-1)
			return nil, p.fail("more than one statement", "send one statement at a time; signet sql -f FILE runs a script")
		}
	}
	if err := p.refuseReserved(); err != nil {
		return nil, err
	}
	return p.statement()
}

// ParseTableName reads the name of a table, as statements write it, and nothing else. Its errors are *Error.
func ParseTableName(text string) (Name, error) {
	toks, err := Tokenize(text)
	if err != nil {
		return Name{}, err
	}
	p := &parser{text: text, toks: toks}
	n, err := p.tableName()
	if err != nil {
		return Name{}, err
	}
	return n, p.end("the table name")
}

// ParseCondition reads a condition of comparisons with constants, as REPLACE WHERE takes it, and nothing else. Its errors are *Error.
func ParseCondition(text string) (*Condition, error) {
	toks, err := Tokenize(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, toks: toks}
	c, err := p.condition()
	if err != nil {
		return nil, err
	}
	return c, p.end("the condition")
}

func trimSemicolons(toks []Token) []Token {
	for len(toks) > 0 && toks[len(toks)-1].is(";") {
		toks = toks[:len(toks)-1]
	}
	for len(toks) > 0 && toks[0].is(";") {
		toks = toks[1:]
	}
	return toks
}

func (p *parser) statement() (Statement, error) {
	t := p.peek()
	if p.startsQuery() {
		q, err := p.query("statement")
		if err != nil {
			return nil, err
		}
		return &Select{Query: q}, nil
	}
	switch keyword(t) {
	case "INSERT":
		return p.insert()
	case "DELETE":
		return p.delete()
	case "UPDATE":
		return p.update()
	case "MERGE":
		return p.merge()
	case "CREATE":
		return p.create()
	case "DROP":
		return p.drop()
	case "SHOW":
		return p.showStatement()
	case "DESCRIBE", "DESC":
		return p.describe()
	case "ALTER":
		return p.alter()
	case "CALL":
		return p.call()
	case "EXPLAIN":
		return p.explain()
	case "CACHE":
		return p.cache()
	case "VACUUM":
		return p.vacuum()
	case "TRUNCATE":
		return p.truncate()
	case "VALIDATE":
		return p.validate()
	case "UNCACHE":
		return p.uncache()
	}
	return nil, p.refuse(t)
}

// startsQuery reports whether a query begins here. Parentheses may open one: (SELECT 1) UNION (SELECT 2).
func (p *parser) startsQuery() bool {
	i := 0
	for p.peekAt(i).is("(") {
		i++
	}
	return p.peekAt(i).isAny("SELECT", "WITH", "VALUES", "FROM", "TABLE")
}

// query takes the rest of the statement as a query's text.
func (p *parser) query(what string) (Query, error) {
	if p.done() {
		return Query{}, p.unexpected("a query", "write SELECT …, VALUES … or FROM …")
	}
	if !p.startsQuery() {
		return Query{}, p.notAQuery()
	}
	first, last := p.peek(), p.toks[len(p.toks)-1]
	if err := p.checkQuery(what); err != nil {
		return Query{}, err
	}
	p.pos = len(p.toks)
	return Query{Text: p.text[first.Start:last.End], Offset: first.Start}, nil
}

func (p *parser) notAQuery() error {
	t := p.peek()
	switch keyword(t) {
	case "PIVOT", "UNPIVOT", "SUMMARIZE":
		return p.failAt(t, keyword(t)+" cannot stand here", refusals[keyword(t)])
	case "DESCRIBE":
		return p.failAt(t, "DESCRIBE cannot stand here", "it is a statement of its own")
	case "DEFAULT":
		return p.failAt(t, "DEFAULT VALUES is not supported yet", "name the columns: INSERT INTO t (a) VALUES (…)")
	}
	return p.unexpected("a query", "write SELECT …, VALUES … or FROM …")
}

// checkQuery refuses what DuckDB would not find for us, because it looks at the query alone: brackets that do not match, and clauses
// that belong to the statement around it.
func (p *parser) checkQuery(what string) error {
	var open []Token
	for i := p.pos; i < len(p.toks); i++ {
		t := p.toks[i]
		switch {
		case t.isAny("(", "[", "{"):
			open = append(open, t)
		case t.isAny(")", "]", "}"):
			if len(open) == 0 || closer[open[len(open)-1].Value] != t.Value {
				return p.failAt(t, "this "+t.Value+" closes nothing", "")
			}
			open = open[:len(open)-1]
		case len(open) == 0:
			if err := p.checkTail(i, what); err != nil {
				return err
			}
		}
	}
	if len(open) > 0 {
		t := open[len(open)-1]
		return p.failAt(t, "this "+t.Value+" is never closed", "")
	}
	return nil
}

var closer = map[string]string{"(": ")", "[": "]", "{": "}"}

func (p *parser) checkTail(i int, what string) error {
	t := p.toks[i]
	if i > p.pos && t.isAny("INSERT", "UPDATE", "DELETE", "MERGE") && p.peek().is("WITH") && p.toks[i-1].is(")") {
		return p.failAt(t, "WITH in front of "+keyword(t)+" is not supported",
			"put it behind: INSERT INTO t WITH … SELECT …")
	}
	if what != "INSERT" {
		return nil
	}
	if t.is("RETURNING") {
		return p.failAt(t, "RETURNING is not supported yet", "run a SELECT after the INSERT")
	}
	if t.is("ON") && i+1 < len(p.toks) && p.toks[i+1].is("CONFLICT") && p.conflictClause(i+2) {
		return p.failAt(t, "ON CONFLICT is not supported: tables have no keys", "filter the query against the table, or wait for MERGE")
	}
	return nil
}

// conflictClause tells ON CONFLICT [(…)] DO from a join condition on a column named conflict.
func (p *parser) conflictClause(i int) bool {
	if i < len(p.toks) && p.toks[i].is("(") {
		for i < len(p.toks) && !p.toks[i].is(")") {
			i++
		}
		i++
	}
	return i < len(p.toks) && p.toks[i].is("DO")
}

func (p *parser) explain() (Statement, error) {
	p.pos++
	analyze := p.accept("ANALYZE")
	if t := p.peek(); t.isAny("VERBOSE") {
		return nil, p.failAt(t, "EXPLAIN "+keyword(t)+" is not supported yet", "EXPLAIN shows the plan without running it")
	}
	if p.accept("(") {
		p.pos--
		if !p.startsQuery() {
			return nil, p.fail("options of EXPLAIN are not supported yet", "write EXPLAIN and the statement")
		}
	}
	if p.done() {
		return nil, p.unexpected("a statement to explain", "")
	}
	at := p.peek()
	if at.is("EXPLAIN") {
		return nil, p.fail("EXPLAIN cannot explain itself", "")
	}
	inner, err := p.statement()
	if err != nil {
		return nil, err
	}
	if explainable(inner) {
		return &Explain{Statement: inner, Analyze: analyze}, nil
	}
	return nil, p.failAt(at, "this statement runs at once and has no plan", "EXPLAIN takes SELECT, INSERT, DELETE, UPDATE, MERGE, TRUNCATE, CREATE TABLE AS and ADD FILES")
}
