package sql

func (p *parser) cache() (Statement, error) {
	p.pos++
	if !p.accept("TABLE") {
		return nil, p.unexpected("TABLE", "write CACHE TABLE name AS SELECT …")
	}
	c := &Cache{}
	var err error
	if c.Name, err = p.cacheName(); err != nil {
		return nil, err
	}
	if !p.accept("AS") {
		return nil, p.unexpected("AS", "write CACHE TABLE name AS SELECT …")
	}
	if c.Query, err = p.query("CACHE TABLE"); err != nil {
		return nil, err
	}
	return c, nil
}

func (p *parser) uncache() (Statement, error) {
	p.pos++
	if !p.accept("TABLE") {
		return nil, p.unexpected("TABLE", "write UNCACHE TABLE name")
	}
	u := &Uncache{IfExists: p.accept("IF", "EXISTS")}
	var err error
	if u.Name, err = p.cacheName(); err != nil {
		return nil, err
	}
	return u, p.end("the name of the cached table")
}

// cacheName is a name of one part: cached tables are in no schema.
func (p *parser) cacheName() (Ident, error) {
	id, err := p.ident("the name of a cached table")
	if err == nil && p.peek().is(".") {
		err = p.fail("a cached table is in no schema", "give it a name of one part")
	}
	return id, err
}
