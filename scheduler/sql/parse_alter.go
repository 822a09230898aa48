package sql

import (
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

const alterHint = "ADD FILES; ADD, DROP, RENAME and ALTER COLUMN; ADD, DROP and REPLACE PARTITION FIELD; WRITE ORDERED BY; SET and UNSET TBLPROPERTIES; CREATE, REPLACE and DROP BRANCH and TAG; RENAME TO"

// actionWords begin an action. After a comma they do, and other words go on with a list.
var actionWords = []string{"ADD", "DROP", "RENAME", "ALTER", "CHANGE", "SET", "UNSET", "WRITE", "CREATE", "REPLACE"}

// alter reads ALTER TABLE [IF EXISTS] table action {, action}.
func (p *parser) alter() (Statement, error) {
	p.pos++
	if t := p.peek(); !p.accept("TABLE") {
		if k := keyword(t); k != "" {
			return nil, p.failAt(t, "ALTER "+k+" is not supported", "only ALTER TABLE is")
		}
		return nil, p.unexpected("TABLE", "")
	}
	a := &AlterTable{IfExists: p.accept("IF", "EXISTS")}
	start := p.pos
	target, err := p.targetName()
	if err != nil {
		return nil, err
	}
	if p.accept("ADD", "FILES") {
		if a.IfExists {
			return nil, p.failAt(p.toks[start-1], "IF EXISTS cannot stand here: files are added to a table or not", "leave it out")
		}
		return p.addFiles(target)
	}
	p.pos = start // only what writes takes a branch's name
	if a.Table, err = p.tableName(); err != nil {
		return nil, err
	}
	for {
		at := p.peek()
		if p.done() {
			return nil, p.unexpected("what to change", alterHint)
		}
		if err := p.action(a); err != nil {
			return nil, err
		}
		if a.RenameTo != nil && (len(a.Changes) > 0 || !p.done()) {
			return nil, p.failAt(at, "RENAME TO stands alone: the name is the catalog's, the rest is the table's", "write two statements")
		}
		if !p.accept(",") {
			return a, p.end("the change")
		}
	}
}

func (p *parser) action(a *AlterTable) error {
	t := p.peek()
	p.pos++
	switch {
	case t.is("ADD"):
		return p.addAction(a)
	case t.is("DROP"):
		return p.dropAction(a)
	case t.is("RENAME"):
		return p.renameAction(a)
	case t.is("ALTER"), t.is("CHANGE"):
		return p.columnAction(a)
	case t.is("SET"), t.is("UNSET"):
		return p.propertyAction(a, t)
	case t.is("WRITE"):
		return p.writeAction(a)
	case t.is("CREATE"), t.is("REPLACE"):
		return p.refAction(a, t)
	}
	p.pos--
	return p.unexpected("what to change", alterHint)
}

func (a *AlterTable) add(c *sinkv1.Change) { a.Changes = append(a.Changes, c) }

// path reads a column's name, with dots between the names of nested fields.
func (p *parser) path() ([]string, error) {
	var out []string
	for {
		id, err := p.ident("a column name")
		if err != nil {
			return nil, err
		}
		out = append(out, id.Text)
		if len(out) > maxDepth {
			return nil, p.fail("a column's name has too many parts", "")
		}
		if !p.accept(".") {
			return out, nil
		}
	}
}

// more reads the comma of a list without parentheses, if an item of the list follows and no action.
func (p *parser) more() bool {
	if !p.peek().is(",") || p.peekAt(1).isAny(actionWords...) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) addAction(a *AlterTable) error {
	switch t := p.peek(); {
	case p.accept("PARTITION", "FIELD"):
		c, err := p.partitionTransform()
		if err != nil {
			return err
		}
		a.add(&sinkv1.Change{Kind: &sinkv1.Change_AddPartitionField{AddPartitionField: c}})
		return nil
	case t.is("PARTITION"):
		return p.failAt(t, "ADD PARTITION is not supported: partitions come with their rows", "ADD PARTITION FIELD changes how the table is partitioned")
	case t.isAny("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
		return p.failAt(t, keyword(t)+" is not supported: no engine would enforce it on the table", "leave the constraint out")
	case t.is("FILES"):
		return p.failAt(t, "ADD FILES stands alone: it is a write, the rest are changes of the table's definition", "write two statements")
	}
	if !p.accept("COLUMNS") {
		p.accept("COLUMN")
	}
	exists := p.accept("IF", "NOT", "EXISTS")
	one := func() error { return p.addColumn(a, exists) }
	if p.peek().is("(") {
		return p.list(one)
	}
	for {
		if err := one(); err != nil {
			return err
		}
		if !p.more() {
			return nil
		}
	}
}

func (p *parser) addColumn(a *AlterTable, ifNotExists bool) error {
	at := p.peek()
	path, err := p.path()
	if err != nil {
		return err
	}
	last := len(path) - 1
	if p.done() || p.peek().isAny(",", ")") {
		return p.failAt(at, "column "+JoinName(path)+" has no type", "for example "+JoinName(path)+" VARCHAR")
	}
	add := &sinkv1.AddColumn{Parent: path[:last], Field: &planv1.Field{Name: path[last]}, IfNotExists: ifNotExists}
	if add.Field.Type, err = p.typ(); err != nil {
		return err
	}
	for {
		t := p.peek()
		switch {
		case p.accept("NOT", "NULL"):
			add.Field.Required = true
		case p.accept("NULL"):
		case p.accept("COMMENT"):
			add.Field.Doc, err = p.comment()
		case p.accept("DEFAULT"):
			var v Constant
			if v, err = p.constant(); err == nil {
				add.Field.WriteDefault, add.InitialDefault = v.Value, v.Value
			}
		case p.accept("FIRST"):
			add.First = true
		case p.accept("AFTER"):
			add.After, err = p.sibling()
		case t.isAny("PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT"):
			return p.fail(keyword(t)+" is not supported: no engine would enforce it on the table", "leave the constraint out")
		case t.isAny("GENERATED", "AS", "COLLATE", "IDENTITY", "AUTO_INCREMENT"):
			return p.fail(keyword(t)+" is not supported in a column definition", "leave it out")
		default:
			a.add(&sinkv1.Change{Kind: &sinkv1.Change_AddColumn{AddColumn: add}})
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sibling reads the column that another is put behind.
func (p *parser) sibling() (string, error) {
	path, err := p.path()
	if err != nil {
		return "", err
	}
	return path[len(path)-1], nil
}

func (p *parser) comment() (string, error) {
	t := p.peek()
	if t.Kind != KindString {
		return "", p.unexpected("a string", "for example COMMENT 'in metres'")
	}
	p.pos++
	return t.Value, nil
}

// constant is a literal that is one value.
func (p *parser) constant() (Constant, error) {
	t := p.peek()
	v, err := p.constantValue()
	if err == nil && v.IsMap {
		err = p.failAt(t, "a map cannot stand here", "a string in single quotes, a number, TRUE, FALSE or NULL")
	}
	if err == nil && v.IsList {
		err = p.failAt(t, "an array cannot stand here", "a string in single quotes, a number, TRUE, FALSE or NULL")
	}
	return v, err
}

func (p *parser) dropAction(a *AlterTable) error {
	t := p.peek()
	switch {
	case p.accept("PARTITION", "FIELD"):
		d, err := p.dropField()
		if err != nil {
			return err
		}
		a.add(&sinkv1.Change{Kind: &sinkv1.Change_DropPartitionField{DropPartitionField: d}})
		return nil
	case t.is("PARTITION"):
		return p.fail("DROP PARTITION is not supported", "DELETE FROM … WHERE removes a partition's rows; DROP PARTITION FIELD changes how the table is partitioned")
	case p.accept("BRANCH"), p.accept("TAG"):
		d := &sinkv1.DropRef{Tag: t.is("TAG"), IfExists: p.accept("IF", "EXISTS")}
		id, err := p.ident("the name of the " + lower(t))
		d.Name = id.Text
		a.add(&sinkv1.Change{Kind: &sinkv1.Change_DropRef{DropRef: d}})
		return err
	case t.isAny("CONSTRAINT", "IDENTIFIER"):
		return p.fail("DROP "+keyword(t)+" is not supported", "")
	}
	if !p.accept("COLUMN") && !p.accept("COLUMNS") {
		return p.unexpected("COLUMN, PARTITION FIELD, BRANCH or TAG", "for example ALTER TABLE t DROP COLUMN c")
	}
	exists := p.accept("IF", "EXISTS")
	one := func() error {
		path, err := p.path()
		a.add(&sinkv1.Change{Kind: &sinkv1.Change_DropColumn{DropColumn: &sinkv1.DropColumn{Path: path, IfExists: exists}}})
		return err
	}
	if p.peek().is("(") {
		return p.list(one)
	}
	for {
		if err := one(); err != nil {
			return err
		}
		if t := p.peek(); t.isAny("CASCADE", "RESTRICT") {
			return p.fail("DROP COLUMN … "+keyword(t)+" is not supported", "leave it out")
		}
		if !p.more() {
			return nil
		}
	}
}

func (p *parser) renameAction(a *AlterTable) error {
	if p.accept("TO") {
		n, err := p.tableName()
		a.RenameTo = &n
		return err
	}
	p.accept("COLUMN")
	path, err := p.path()
	if err != nil {
		return err
	}
	if err := p.expect("TO", "write RENAME COLUMN a TO b, or RENAME TO table"); err != nil {
		return err
	}
	id, err := p.ident("a column name")
	if err == nil && p.peek().is(".") {
		return p.fail("a column is renamed in its place", "the new name has no dots: RENAME COLUMN a.b TO c")
	}
	a.add(&sinkv1.Change{Kind: &sinkv1.Change_RenameColumn{RenameColumn: &sinkv1.RenameColumn{Path: path, Name: id.Text}}})
	return err
}

// columnAction reads ALTER COLUMN column and one or more of TYPE, SET and DROP NOT NULL, SET and DROP DEFAULT, COMMENT, FIRST and AFTER.
func (p *parser) columnAction(a *AlterTable) error {
	p.accept("COLUMN")
	path, err := p.path()
	if err != nil {
		return err
	}
	c := &sinkv1.ChangeColumn{Path: path}
	for n := 0; ; n++ {
		t := p.peek()
		switch {
		case p.accept("SET", "DATA", "TYPE"), p.accept("TYPE"):
			c.Type, err = p.typ()
		case p.accept("SET", "NOT", "NULL"):
			c.Required = true
		case p.accept("DROP", "NOT", "NULL"):
			c.Optional = true
		case p.accept("SET", "DEFAULT"):
			var v Constant
			if v, err = p.constant(); err == nil {
				c.WriteDefault, c.DropDefault = v.Value, v.Value == nil
			}
		case p.accept("DROP", "DEFAULT"):
			c.DropDefault = true
		case p.accept("COMMENT"):
			var text string
			text, err = p.comment()
			c.Doc = &text
		case p.accept("FIRST"):
			c.First = true
		case p.accept("AFTER"):
			c.After, err = p.sibling()
		case n == 0:
			hint := "TYPE type, SET NOT NULL, DROP NOT NULL, SET DEFAULT value, DROP DEFAULT, COMMENT 'text', FIRST or AFTER column"
			if t.isName() {
				hint = "to rename a column write RENAME COLUMN a TO b; else " + hint
			}
			return p.unexpected("what to change of the column", hint)
		default:
			a.add(&sinkv1.Change{Kind: &sinkv1.Change_ChangeColumn{ChangeColumn: c}})
			return nil
		}
		if err != nil {
			return err
		}
	}
}
