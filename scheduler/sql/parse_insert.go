package sql

func (p *parser) insert() (Statement, error) {
	p.pos++
	ins := &Insert{}
	switch t := p.peek(); {
	case p.accept("OVERWRITE"):
		ins.Overwrite = p.overwriteHead()
	case t.is("OR"):
		return nil, p.failAt(t, "INSERT OR "+keyword(p.peekAt(1))+" is not supported: tables have no keys", "use INSERT INTO")
	default:
		if err := p.expect("INTO", "write INSERT INTO table SELECT …"); err != nil {
			return nil, err
		}
		if p.peek().is("TABLE") && p.peekAt(1).isName() {
			p.pos++ // Spark's INSERT INTO TABLE t
		}
	}
	var err error
	if ins.Table, err = p.targetName(); err != nil {
		return nil, err
	}
	if p.peek().is("AS") {
		return nil, p.fail("an alias for the target table is not supported", "leave it out")
	}
	if err := p.partitionClause(ins); err != nil {
		return nil, err
	}
	if ins.Columns, err = p.columnList(); err != nil {
		return nil, err
	}
	byName := p.peek()
	switch {
	case p.accept("BY", "NAME"):
		ins.ByName = true
	case p.accept("BY", "POSITION"):
	}
	if ins.ByName && ins.Columns != nil {
		return nil, p.failAt(byName, "BY NAME and a column list exclude each other", "drop one of them: BY NAME takes the names from the query")
	}
	if err := p.replaceWhere(ins); err != nil {
		return nil, err
	}
	if t := p.peek(); t.is("OVERRIDING") {
		return nil, p.failAt(t, "OVERRIDING is not supported: tables have no identity columns", "leave it out")
	}
	ins.Query, err = p.query("INSERT")
	if err != nil {
		return nil, err
	}
	return ins, nil
}

// columnList reads an optional (a, b). A parenthesis may open the query instead: INSERT INTO t (SELECT 1). A first word that could do
// both is a column where a comma or the end of the list follows: INSERT INTO t (values, b).
func (p *parser) columnList() ([]Ident, error) {
	if !p.peek().is("(") {
		return nil, nil
	}
	if p.startsQuery() && (p.peekAt(1).is("(") || !p.peekAt(2).isAny(",", ")")) {
		return nil, nil
	}
	var out []Ident
	err := p.list(func() error {
		id, err := p.ident("a column name")
		if err != nil {
			return err
		}
		if p.peek().is(".") {
			return p.fail("a column list names whole columns, not fields inside them", "give the whole struct: {'a': 1, 'b': 2}")
		}
		out = append(out, id)
		return nil
	})
	return out, err
}
