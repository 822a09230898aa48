package sql

const (
	mergeHint = "write MERGE INTO table USING source ON condition WHEN MATCHED THEN UPDATE SET … WHEN NOT MATCHED THEN INSERT (…) VALUES (…)"
	whenHint  = "clauses are WHEN MATCHED, WHEN NOT MATCHED [BY TARGET] and WHEN NOT MATCHED BY SOURCE, each with [AND condition] THEN and what to do"
)

func (p *parser) merge() (Statement, error) {
	p.pos++
	if err := p.expect("INTO", mergeHint); err != nil {
		return nil, err
	}
	table, err := p.targetName()
	if err != nil {
		return nil, err
	}
	m := &Merge{Table: table}
	if m.Alias, err = p.targetAlias("USING"); err != nil {
		return nil, err
	}
	if err := p.expect("USING", mergeHint); err != nil {
		return nil, err
	}
	if err := p.mergeSource(m); err != nil {
		return nil, err
	}
	if err := p.expect("ON", mergeHint); err != nil {
		return nil, err
	}
	if m.On, err = p.expression("a condition", mergeHint, func(at int) bool { return p.toks[at].is("WHEN") }); err != nil {
		return nil, err
	}
	if p.done() {
		return nil, p.unexpected("WHEN", whenHint)
	}
	for p.peek().is("WHEN") {
		c, err := p.mergeClause(m)
		if err != nil {
			return nil, err
		}
		m.When = append(m.When, c)
	}
	if err := p.noReturning("MERGE"); err != nil {
		return nil, err
	}
	if err := p.end("MERGE"); err != nil {
		return nil, err
	}
	return m, p.reachable(m)
}

// mergeSource reads a table, a file, a function or a query, with its alias.
func (p *parser) mergeSource(m *Merge) (err error) {
	from := p.pos
	first := p.peek()
	if m.Source, err = p.fragment("a table, a file or a query in parentheses", mergeHint, func(at int) bool { return p.toks[at].isAny("ON", "USING", ",", "JOIN") }); err != nil {
		return err
	}
	if p.peek().isAny("USING", ",", "JOIN") {
		return p.fail("the source of MERGE is one table or query", "put a join into a query: USING (SELECT … FROM a JOIN b …) AS s ON …")
	}
	toks := p.toks[from:p.pos]
	last := toks[len(toks)-1]
	n := len(toks)
	if last.is(")") { // of AS s (a, b), or of the query or function itself
		for n--; n > 0 && !toks[n].is("("); n-- {
		}
		if n >= 2 && toks[n-1].isName() && (toks[n-2].is("AS") || toks[n-2].is(")")) {
			m.Name = toks[n-1].Value
			return nil
		}
		if first.is("(") || n < 1 {
			return p.failAt(first, "the source has no name", "give it one: USING (SELECT …) AS s")
		}
		return p.failAt(first, "the source has no name", "give it one: USING read_parquet('…') AS s")
	}
	named := n >= 2 && last.isName() && !toks[n-2].is(".")
	switch {
	case named:
		m.Name = last.Value
	case last.isName():
		m.Name = last.Value
	default:
		return p.failAt(first, "the source has no name", "give it one: USING 'file.parquet' AS s")
	}
	return nil
}

func (p *parser) mergeClause(m *Merge) (MergeClause, error) {
	c := MergeClause{Offset: p.peek().Start}
	p.pos++
	switch {
	case p.accept("MATCHED"):
		c.Match = Matched
	case p.accept("NOT", "MATCHED", "BY", "SOURCE"):
		c.Match = NotMatchedBySource
	case p.accept("NOT", "MATCHED"):
		p.accept("BY", "TARGET")
		c.Match = NotMatched
	default:
		return c, p.unexpected("MATCHED or NOT MATCHED", whenHint)
	}
	if p.accept("AND") {
		f, err := p.expression("a condition", whenHint, func(at int) bool { return p.toks[at].is("THEN") })
		if err != nil {
			return c, err
		}
		c.And = &f
	}
	if err := p.expect("THEN", whenHint); err != nil {
		return c, err
	}
	return c, p.mergeAction(m, &c)
}

func (p *parser) mergeAction(m *Merge, c *MergeClause) error {
	t := p.peek()
	switch {
	case p.accept("DO", "NOTHING"):
		c.Action = MergeNothing
		return nil
	case c.Match == NotMatched:
		if !p.accept("INSERT") {
			return p.unexpected("INSERT", "rows of the source that match none of the table can only be inserted")
		}
		c.Action = MergeInsert
		return p.mergeInsert(c)
	case p.accept("DELETE"):
		c.Action = MergeDelete
		return nil
	case p.accept("UPDATE"):
		c.Action = MergeUpdate
		return p.mergeUpdate(m, c)
	case t.is("INSERT"):
		return p.fail("INSERT is for WHEN NOT MATCHED", "write UPDATE SET … or DELETE here")
	}
	return p.unexpected("UPDATE, DELETE or DO NOTHING", whenHint)
}

func (p *parser) mergeUpdate(m *Merge, c *MergeClause) (err error) {
	if err := p.expect("SET", "write UPDATE SET column = value, or UPDATE SET *"); err != nil {
		return err
	}
	if p.accept("*") {
		c.All = true
		return p.fromSource(c)
	}
	c.Set, err = p.assignments(ownNames(m.Table, m.Alias), func(at int) bool { return p.toks[at].isAny("WHEN", "RETURNING") })
	return err
}

func (p *parser) fromSource(c *MergeClause) error {
	if c.Match == NotMatchedBySource {
		p.pos--
		return p.fail("* takes the values from the source, and here is no row of it", "write SET column = value")
	}
	return nil
}

func (p *parser) mergeInsert(c *MergeClause) (err error) {
	if p.accept("*") {
		c.All = true
		return nil
	}
	if p.peek().is("(") {
		if err := p.list(func() error {
			id, err := p.ident("a column name")
			if err != nil {
				return err
			}
			c.Columns = append(c.Columns, id)
			return nil
		}); err != nil {
			return err
		}
	}
	if err := p.expect("VALUES", "write INSERT (columns) VALUES (values), or INSERT *"); err != nil {
		return err
	}
	if err := p.list(func() error {
		f, err := p.expression("a value", "", func(at int) bool { return p.toks[at].isAny(",", ")") })
		if err == nil {
			c.Values = append(c.Values, f)
		}
		return err
	}); err != nil {
		return err
	}
	if p.peek().is(",") {
		return p.fail("one row for each row of the source", "write one list of values")
	}
	return nil
}

// reachable refuses a clause behind one of the same kind that takes every row.
func (p *parser) reachable(m *Merge) error {
	taken := map[MergeMatch]bool{}
	for _, c := range m.When {
		if taken[c.Match] {
			return newError(p.text, c.Offset, "this clause is never reached: one of the same kind without AND stands before it", "put the clause without AND last")
		}
		taken[c.Match] = c.And == nil
	}
	return nil
}
