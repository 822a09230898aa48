package sql

import (
	"errors"
	"strings"
)

func (p *parser) create() (Statement, error) {
	p.pos++
	t := p.peek()
	switch {
	case p.accept("TABLE"):
		return p.createTable()
	case p.accept("SCHEMA"), p.accept("NAMESPACE"):
		return p.createSchema()
	case t.is("OR"):
		return p.createOrReplace()
	case t.isAny("TEMP", "TEMPORARY"):
		return nil, p.fail("temporary tables are not supported", "use WITH name AS (…) inside the query")
	case t.is("DATABASE"):
		return nil, p.fail("CREATE DATABASE is not supported", "write CREATE SCHEMA; catalogs are listed in the configuration")
	}
	if k := keyword(t); k != "" {
		return nil, p.fail("CREATE "+k+" is not supported yet", "CREATE TABLE and CREATE SCHEMA are")
	}
	return nil, p.unexpected("TABLE or SCHEMA", "")
}

func (p *parser) createSchema() (Statement, error) {
	s := &CreateSchema{IfNotExists: p.accept("IF", "NOT", "EXISTS")}
	var err error
	if s.Name, err = p.name("a schema name", 2); err != nil {
		return nil, err
	}
	return s, p.end("the schema name")
}

func (p *parser) createTable() (Statement, error) {
	c := &CreateTable{IfNotExists: p.accept("IF", "NOT", "EXISTS")}
	var err error
	if c.Table, err = p.tableName(); err != nil {
		return nil, err
	}
	if p.peek().is("(") {
		if err := p.list(func() error { return p.columnDef(c) }); err != nil {
			return nil, err
		}
		if err := p.checkUnique(c); err != nil {
			return nil, err
		}
	}
	if err := p.tableClauses(c); err != nil {
		return nil, err
	}
	if p.accept("AS") {
		q, err := p.query("CREATE TABLE")
		if err != nil {
			return nil, err
		}
		c.Query = &q
		return c, p.checkNamesOnly(c)
	}
	if err := p.definitionTail(); err != nil {
		return nil, err
	}
	if len(c.Columns) == 0 {
		return nil, p.unexpected("columns or AS query", "write CREATE TABLE t (id BIGINT, name VARCHAR) or CREATE TABLE t AS SELECT …")
	}
	return c, p.checkTyped(c)
}

func (p *parser) checkUnique(c *CreateTable) error {
	seen := make(map[string]bool, len(c.Columns))
	for _, col := range c.Columns {
		if seen[col.Name.Text] {
			return newError(p.text, col.Name.Offset, "the table has two columns "+DisplayIdent(col.Name.Text), "")
		}
		seen[col.Name.Text] = true
	}
	return nil
}

func (p *parser) checkNamesOnly(c *CreateTable) error {
	for _, col := range c.Columns {
		if col.Type != nil {
			return newError(p.text, col.Name.Offset, "CREATE TABLE AS takes its types from the query; column "+DisplayIdent(col.Name.Text)+" has one",
				"leave the types out, or write a CAST in the query")
		}
	}
	return nil
}

func (p *parser) checkTyped(c *CreateTable) error {
	for _, col := range c.Columns {
		if col.Type == nil {
			return newError(p.text, col.Name.Offset, "column "+DisplayIdent(col.Name.Text)+" has no type", "for example "+DisplayIdent(col.Name.Text)+" VARCHAR")
		}
	}
	return nil
}

// definitionTail refuses what stands behind a table's clauses, by name where people try it.
func (p *parser) definitionTail() error {
	t := p.peek()
	switch {
	case p.done():
		return nil
	case t.is("USING"):
		return p.fail("a USING clause is not supported", "the table's catalog decides its format")
	case t.is("LOCATION"):
		return p.fail("a LOCATION is not supported yet", "the catalog places its tables")
	case t.is("LIKE"):
		return p.fail("CREATE TABLE LIKE is not supported yet", "write CREATE TABLE t AS SELECT * FROM other LIMIT 0")
	case t.is("CLUSTERED"):
		return p.fail("CLUSTERED BY is not supported", "write PARTITIONED BY (bucket(16, col))")
	case p.startsQuery():
		return p.unexpected("AS", "write CREATE TABLE t AS SELECT …")
	}
	return p.end("the table definition")
}

// tableClauses reads PARTITIONED BY, ORDERED BY, WITH and COMMENT in any order, each once.
func (p *parser) tableClauses(c *CreateTable) error {
	seen := map[string]bool{}
	for {
		at := p.peek()
		kind := p.clauseKind()
		if kind == "" {
			return nil
		}
		if seen[kind] {
			return p.failAt(at, "a second "+kind, "one is enough")
		}
		seen[kind] = true
		if err := p.clause(c, kind, at); err != nil {
			return err
		}
	}
}

// clauseKind passes the words that begin a clause and names it.
func (p *parser) clauseKind() string {
	switch {
	case p.accept("PARTITIONED", "BY"), p.accept("PARTITION", "BY"):
		return "PARTITIONED BY"
	case p.accept("ORDERED", "BY"), p.accept("SORTED", "BY"), p.accept("ORDER", "BY"):
		return "ORDERED BY"
	case p.peek().is("WITH") && p.peekAt(1).is("("), p.peek().is("TBLPROPERTIES"), p.peek().is("OPTIONS"):
		p.pos++
		return "WITH"
	case p.accept("COMMENT"):
		return "COMMENT"
	}
	return ""
}

func (p *parser) clause(c *CreateTable, kind string, at Token) error {
	switch kind {
	case "PARTITIONED BY":
		return p.list(func() error { return p.partitionTerm(c) })
	case "ORDERED BY":
		if c.Sort != nil {
			return p.failAt(at, "the sort order is given twice", "use ORDERED BY or the property sort-order")
		}
		return p.list(func() error { return p.sortTerm(&c.Sort) })
	case "WITH":
		return p.list(func() error { return p.property(c) })
	}
	p.accept("=")
	t := p.peek()
	if t.Kind != KindString {
		return p.unexpected("a string", "for example COMMENT 'flights of 2026'")
	}
	p.pos++
	return p.setProperty(c, at, "comment", t.Value)
}

func (p *parser) columnDef(c *CreateTable) error {
	if t := p.peek(); t.isAny("PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "CONSTRAINT") && !p.peekAt(1).isAny(",", ")") {
		return p.fail(keyword(t)+" is not supported: no engine would enforce it on the table", "leave the constraint out")
	}
	id, err := p.ident("a column name")
	if err != nil {
		return err
	}
	col := ColumnDef{Name: id}
	if !p.peek().isAny(",", ")") && !p.done() {
		if col.Type, err = p.typ(); err != nil {
			return err
		}
		if err := p.columnOptions(&col); err != nil {
			return err
		}
	}
	c.Columns = append(c.Columns, col)
	return nil
}

// columnOptions reads NOT NULL, NULL, DEFAULT value and COMMENT 'text' behind a column.
func (p *parser) columnOptions(col *ColumnDef) error {
	for {
		t := p.peek()
		switch {
		case p.accept("NOT", "NULL"):
			col.Required = true
		case p.accept("NULL"):
		case p.accept("COMMENT"):
			if p.peek().Kind != KindString {
				return p.unexpected("a string", "for example COMMENT 'in metres'")
			}
			col.Comment = p.peek().Value
			p.pos++
		case p.accept("DEFAULT"):
			at := p.peek()
			v, err := p.constant()
			if err != nil {
				return err
			}
			if col.Default = v.Value; v.Value == nil && col.Required {
				return p.failAt(at, "the default of a required column cannot be NULL", "leave DEFAULT NULL out")
			}
		case t.isAny("PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT"):
			return p.fail(keyword(t)+" is not supported: no engine would enforce it on the table", "leave the constraint out")
		case t.isAny("GENERATED", "AS", "COLLATE", "IDENTITY", "AUTO_INCREMENT"):
			return p.fail(keyword(t)+" is not supported in a column definition", "leave it out")
		default:
			return nil
		}
	}
}

// property reads 'key' = value, where the key may be a dotted name without quotes and the value any literal.
func (p *parser) property(c *CreateTable) error {
	at := p.peek()
	var key strings.Builder
	switch {
	case at.Kind == KindString:
		key.WriteString(at.Value)
		p.pos++
	case at.isName():
		for {
			id, err := p.ident("a property name")
			if err != nil {
				return err
			}
			key.WriteString(id.Text)
			if !p.accept(".") {
				break
			}
			key.WriteByte('.')
		}
		if p.peek().is("-") {
			return p.failAt(at, "a property name with a dash needs quotes", "for example 'write.target-file-size-bytes' = 536870912")
		}
	default:
		return p.unexpected("a property name", "for example WITH ('write.parquet.compression-codec' = 'zstd')")
	}
	if key.Len() == 0 {
		return p.failAt(at, "a property name must not be empty", "")
	}
	if err := p.expect("=", "for example 'write.parquet.compression-codec' = 'zstd'"); err != nil {
		return err
	}
	value, err := p.propertyValue()
	if err != nil {
		return err
	}
	if key.String() == sortOrderProperty {
		return p.sortProperty(c, at, value)
	}
	return p.setProperty(c, at, key.String(), value)
}

func (p *parser) propertyValue() (string, error) {
	sign := ""
	if p.accept("-") {
		sign = "-"
	}
	t := p.peek()
	switch {
	case t.Kind == KindNumber, sign == "" && (t.Kind == KindString || t.Kind == KindIdent && !reserved(t.Value)):
		p.pos++
		return sign + t.Value, nil
	}
	return "", p.unexpected("a value", "a string in single quotes, a number, true or false")
}

func (p *parser) setProperty(c *CreateTable, at Token, key, value string) error {
	if _, ok := c.Properties[key]; ok {
		return p.failAt(at, "the property "+QuoteString(key)+" is given twice", "")
	}
	if c.Properties == nil {
		c.Properties = map[string]string{}
	}
	c.Properties[key] = value
	return nil
}

// sortOrderProperty is another way to write ORDERED BY, as some clients can only give properties.
const sortOrderProperty = "sort-order"

func (p *parser) sortProperty(c *CreateTable, at Token, value string) error {
	if c.Sort != nil {
		return p.failAt(at, "the sort order is given twice", "use ORDERED BY or the property sort-order")
	}
	toks, err := Tokenize("(" + value + ")")
	if err != nil {
		return p.failAt(at, "the property sort-order cannot be read", "for example 'sort-order' = 'day DESC, id'")
	}
	sub := &parser{text: "(" + value + ")", toks: toks}
	err = sub.list(func() error { return sub.sortTerm(&c.Sort) })
	if err == nil {
		err = sub.end("the sort order")
	}
	var e *Error
	if errors.As(err, &e) {
		return p.failAt(at, "the property sort-order cannot be read: "+e.Message, "for example 'sort-order' = 'day DESC, id'")
	}
	for i := range c.Sort {
		c.Sort[i].Column.Offset = at.Start
	}
	return nil
}
