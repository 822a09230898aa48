package sql

// showProperties reads SHOW TBLPROPERTIES table [('key')].
func (p *parser) showProperties() (Statement, error) {
	if !p.accept("FROM") {
		p.accept("IN")
	}
	n, err := p.tableName()
	if err != nil {
		return nil, err
	}
	s := &ShowProperties{Table: n}
	if p.accept("(") {
		if s.Key, err = p.propertyKey(); err != nil {
			return nil, err
		}
		if err := p.expect(")", "one property at a time"); err != nil {
			return nil, err
		}
	}
	return s, p.end("SHOW TBLPROPERTIES")
}

// showHistory reads what follows SHOW BRANCHES, TAGS and SNAPSHOTS.
func (p *parser) showHistory(what string) (Statement, error) {
	if !p.accept("FROM") && !p.accept("IN") {
		return nil, p.unexpected("FROM", "write SHOW "+what+" FROM table")
	}
	n, err := p.tableName()
	if err != nil {
		return nil, err
	}
	return &ShowHistory{Table: n, What: what}, p.end("SHOW " + what)
}
