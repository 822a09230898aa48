package sql

import "strings"

// call reads CALL [catalog.]system.procedure(argument, …). An argument is a constant, or name => constant.
func (p *parser) call() (Statement, error) {
	p.pos++
	n, err := p.name("a procedure's name", 3)
	if err != nil {
		return nil, err
	}
	c := &Call{Procedure: n.Parts[len(n.Parts)-1]}
	switch {
	case len(n.Parts) == 3:
		c.Catalog = &n.Parts[0]
		fallthrough
	case len(n.Parts) == 2:
		if at := n.Parts[len(n.Parts)-2]; !strings.EqualFold(at.Text, "system") {
			return nil, newError(p.text, at.Offset, "procedures are in the schema system", "write CALL system."+DisplayIdent(c.Procedure.Text)+"(…), with the catalog in front where there are several")
		}
	}
	if err := p.expect("(", "for example CALL system.expire_snapshots(table => 'demo.t')"); err != nil {
		return nil, err
	}
	for !p.accept(")") {
		if len(c.Args) > 0 {
			if err := p.expect(",", "arguments are separated by commas"); err != nil {
				return nil, err
			}
		}
		arg, err := p.argument()
		if err != nil {
			return nil, err
		}
		if arg.Name == nil && len(c.Args) > 0 && c.Args[len(c.Args)-1].Name != nil {
			return nil, newError(p.text, arg.Value.Offset, "an argument without a name stands behind one with a name", "name all of them, or those at the end")
		}
		c.Args = append(c.Args, arg)
	}
	return c, p.end("the call")
}

func (p *parser) argument() (Arg, error) {
	var a Arg
	if p.peek().isName() && p.peekAt(1).is("=") && p.peekAt(2).is(">") {
		id, err := p.ident("an argument's name")
		if err != nil {
			return a, err
		}
		a.Name = &id
		p.pos += 2
	}
	var err error
	a.Value, err = p.constantValue()
	return a, err
}
