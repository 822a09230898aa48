package sql

func (p *parser) update() (Statement, error) {
	p.pos++
	if t := p.peek(); t.is("OR") {
		return nil, p.failAt(t, "UPDATE OR "+keyword(p.peekAt(1))+" is not supported: tables have no keys", "use UPDATE")
	}
	table, err := p.targetName()
	if err != nil {
		return nil, err
	}
	u := &Update{Table: table}
	if u.Alias, err = p.targetAlias("SET"); err != nil {
		return nil, err
	}
	if err := p.expect("SET", "write UPDATE table SET column = value WHERE …"); err != nil {
		return nil, err
	}
	if p.peek().is("*") {
		return nil, p.fail("SET * is for MERGE", "write SET column = value")
	}
	stop := func(at int) bool {
		// IS DISTINCT FROM compares.
		return p.toks[at].isAny("WHERE", "RETURNING", "LIMIT", "ORDER") || p.toks[at].is("FROM") && (at == 0 || !p.toks[at-1].is("DISTINCT"))
	}
	if u.Set, err = p.assignments(ownNames(table, u.Alias), stop); err != nil {
		return nil, err
	}
	if p.accept("FROM") {
		f, err := p.fragment("a table or a query", "write FROM table, or FROM (SELECT …) AS s", func(at int) bool { return p.toks[at].isAny("WHERE", "RETURNING") })
		if err != nil {
			return nil, err
		}
		u.From = &f
	}
	if p.accept("WHERE") {
		if u.Where, err = p.where("UPDATE"); err != nil {
			return nil, err
		}
	}
	if err := p.noReturning("UPDATE"); err != nil {
		return nil, err
	}
	return u, p.end("UPDATE")
}
