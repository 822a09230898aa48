package sql

func (p *parser) delete() (Statement, error) {
	p.pos++
	if err := p.expect("FROM", "write DELETE FROM table WHERE …"); err != nil {
		return nil, err
	}
	table, err := p.targetName()
	if err != nil {
		return nil, err
	}
	d := &Delete{Table: table}
	if d.Alias, err = p.targetAlias("WHERE", "USING", "RETURNING", "LIMIT", "ORDER"); err != nil {
		return nil, err
	}
	if p.peek().is("USING") {
		return nil, p.fail("DELETE … USING is not supported", "write WHERE … IN (SELECT …) or WHERE EXISTS (SELECT …), or MERGE INTO … WHEN MATCHED THEN DELETE")
	}
	if p.accept("WHERE") {
		if d.Where, err = p.where("DELETE"); err != nil {
			return nil, err
		}
	}
	if err := p.noReturning("DELETE"); err != nil {
		return nil, err
	}
	return d, p.end("DELETE")
}

// where reads the condition of DELETE and UPDATE to the statement's end.
func (p *parser) where(what string) (*Fragment, error) {
	f, err := p.expression("a condition", "write WHERE and the condition that rows have to meet", func(at int) bool {
		return p.toks[at].isAny("RETURNING", "LIMIT", "ORDER", "GROUP", "HAVING", "UNION", "QUALIFY", "WHERE")
	})
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.isAny("LIMIT", "ORDER") {
		return nil, p.fail(what+" … "+keyword(t)+" is not supported", "say in WHERE which rows, for example WHERE id IN (SELECT id FROM … ORDER BY … LIMIT …)")
	}
	return &f, nil
}

func (p *parser) noReturning(what string) error {
	if t := p.peek(); t.is("RETURNING") {
		return p.failAt(t, "RETURNING is not supported", "run a SELECT before the "+what)
	}
	return nil
}
