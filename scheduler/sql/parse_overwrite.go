package sql

import "strings"

// Prefixes of a last name part that means a branch or a tag of the table, where there is no table of that name.
const (
	BranchPrefix = "branch_"
	TagPrefix    = "tag_"
)

// targetName reads the name of a table that is written: a branch may follow it, as in lake.demo.t.branch_audit.
func (p *parser) targetName() (Name, error) {
	at := p.pos
	n, err := p.name("a table name", 4)
	if err != nil || len(n.Parts) < 4 {
		return n, err
	}
	last := strings.ToLower(n.Parts[3].Text)
	if strings.HasPrefix(last, BranchPrefix) || strings.HasPrefix(last, TagPrefix) {
		return n, nil
	}
	p.pos = at
	return p.tableName() // which says what is wrong
}

// overwriteHead reads what stands between INSERT OVERWRITE and the table's name.
func (p *parser) overwriteHead() *Overwrite {
	if p.accept("PARTITIONS", "INTO") {
		if p.peek().is("TABLE") && p.peekAt(1).isName() {
			p.pos++
		}
		return &Overwrite{Mode: OverwritePartitions}
	}
	p.accept("INTO")
	if p.peek().is("TABLE") && p.peekAt(1).isName() {
		p.pos++
	}
	return &Overwrite{Mode: OverwriteDefault}
}

// partitionClause reads PARTITION (p = 'x', q) behind the table's name.
func (p *parser) partitionClause(ins *Insert) error {
	at := p.peek()
	if !p.accept("PARTITION") {
		return nil
	}
	if ins.Overwrite != nil && ins.Overwrite.Mode == OverwritePartitions {
		return p.failAt(at, "INSERT OVERWRITE PARTITIONS and a PARTITION clause exclude each other", "leave one out")
	}
	fixed := 0
	if err := p.list(func() error { return p.partitionItem(ins, &fixed) }); err != nil {
		return err
	}
	if ins.Overwrite == nil {
		return nil
	}
	ins.Overwrite.Mode = OverwriteFixed
	if fixed < len(ins.Partition) { // as in Hive: a partition whose value the query gives is replaced where rows are written to it
		ins.Overwrite.Mode = OverwritePartitions
	}
	return nil
}

func (p *parser) partitionItem(ins *Insert, fixed *int) error {
	id, err := p.ident("a partition column")
	if err != nil {
		return err
	}
	if p.peek().is("(") {
		return p.fail("a PARTITION clause names columns, not transforms", "name the column, or use REPLACE WHERE with a range of it")
	}
	item := PartitionValue{Column: id}
	if p.accept("=") {
		v, err := p.literal()
		if err != nil {
			return err
		}
		item.Value = &v
		*fixed++
	}
	for _, have := range ins.Partition {
		if strings.EqualFold(have.Column.Text, id.Text) {
			return newError(p.text, id.Offset, "the PARTITION clause names "+DisplayIdent(id.Text)+" twice", "")
		}
	}
	ins.Partition = append(ins.Partition, item)
	return nil
}

// replaceWhere reads REPLACE WHERE condition in front of the query.
func (p *parser) replaceWhere(ins *Insert) error {
	at := p.peek()
	if !p.accept("REPLACE") {
		return nil
	}
	if p.peek().is("USING") || p.peek().is("ON") {
		return p.fail("INSERT … REPLACE "+keyword(p.peek())+" is not supported", "write REPLACE WHERE condition, or INSERT OVERWRITE PARTITIONS INTO t")
	}
	if err := p.expect("WHERE", "write INSERT INTO t REPLACE WHERE day = '2026-01-31' SELECT …"); err != nil {
		return err
	}
	if ins.Partition != nil || ins.Overwrite != nil && ins.Overwrite.Mode != OverwriteDefault {
		return p.failAt(at, "REPLACE WHERE cannot be combined with partitions to replace", "say all of it in the condition")
	}
	cond, err := p.condition()
	if err != nil {
		return err
	}
	ins.Overwrite = &Overwrite{Mode: OverwriteWhere, Where: cond}
	return nil
}

func (p *parser) truncate() (Statement, error) {
	p.pos++
	if p.peek().is("TABLE") { // DuckDB's and PostgreSQL's TRUNCATE t works, too
		p.pos++
	}
	t := &Truncate{IfExists: p.accept("IF", "EXISTS")}
	var err error
	if t.Table, err = p.targetName(); err != nil {
		return nil, err
	}
	t.IfExists = p.accept("IF", "EXISTS") || t.IfExists
	switch w := p.peek(); {
	case w.is("PARTITION"):
		return nil, p.fail("TRUNCATE … PARTITION is not supported", "write DELETE FROM t WHERE …")
	case w.isAny("CASCADE", "RESTRICT", "RESTART", "CONTINUE"):
		return nil, p.fail("TRUNCATE TABLE … "+keyword(w)+" is not supported", "leave it out")
	case w.is(","):
		return nil, p.fail("one table at a time", "write one TRUNCATE TABLE for each")
	}
	return t, p.end("the table name")
}

func (p *parser) validate() (Statement, error) {
	p.pos++
	if p.done() {
		return nil, p.unexpected("a statement to validate", "for example VALIDATE INSERT INTO t SELECT …")
	}
	at := p.peek()
	if at.isAny("EXPLAIN", "VALIDATE") {
		return nil, p.fail("VALIDATE takes a statement that writes", "")
	}
	inner, err := p.statement()
	if err != nil {
		return nil, err
	}
	if !writesRows(inner) {
		return nil, p.failAt(at, "this statement writes no rows: there is nothing to validate", "VALIDATE takes INSERT, DELETE, UPDATE, MERGE, CREATE TABLE AS and ADD FILES")
	}
	return &Validate{Statement: inner}, nil
}

// writesRows tells statements that run as tasks which write.
func writesRows(st Statement) bool {
	switch st := st.(type) {
	case *Insert, *Delete, *Update, *Merge, *AddFiles:
		return true
	case *CreateTable:
		return st.Query != nil
	}
	return false
}

// explainable tells statements that have a plan.
func explainable(st Statement) bool {
	switch st := st.(type) {
	case *Select, *Truncate:
		return true
	case *CreateTable:
		return st.Query != nil
	}
	return writesRows(st)
}

// createOrReplace reads what follows CREATE OR.
func (p *parser) createOrReplace() (Statement, error) {
	p.pos++
	if err := p.expect("REPLACE", "write CREATE OR REPLACE TABLE t AS SELECT …"); err != nil {
		return nil, err
	}
	t := p.peek()
	if !p.accept("TABLE") {
		if k := keyword(t); k != "" {
			return nil, p.failAt(t, "CREATE OR REPLACE "+k+" is not supported", "CREATE OR REPLACE TABLE is")
		}
		return nil, p.unexpected("TABLE", "")
	}
	if p.peek().is("IF") && p.peekAt(1).is("NOT") {
		return nil, p.fail("OR REPLACE and IF NOT EXISTS exclude each other", "leave one out")
	}
	st, err := p.createTable()
	if c, ok := st.(*CreateTable); ok && err == nil {
		c.Replace = true
	}
	return st, err
}
