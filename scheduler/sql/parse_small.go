package sql

func (p *parser) drop() (Statement, error) {
	p.pos++
	if t := p.peek(); !p.accept("TABLE") {
		if k := keyword(t); k != "" {
			return nil, p.failAt(t, "DROP "+k+" is not supported yet", "only DROP TABLE is")
		}
		return nil, p.unexpected("TABLE", "")
	}
	d := &DropTable{IfExists: p.accept("IF", "EXISTS")}
	var err error
	if d.Table, err = p.tableName(); err != nil {
		return nil, err
	}
	if t := p.peek(); t.isAny("CASCADE", "RESTRICT", "PURGE") {
		return nil, p.failAt(t, "DROP TABLE … "+keyword(t)+" is not supported", "leave it out; the data files stay where they are")
	}
	if p.peek().is(",") {
		return nil, p.fail("one table at a time", "write one DROP TABLE for each")
	}
	return d, p.end("the table name")
}

func (p *parser) showStatement() (Statement, error) {
	p.pos++
	t := p.peek()
	p.pos++
	switch keyword(t) {
	case "CATALOGS":
		return &ShowCatalogs{}, p.end("SHOW CATALOGS")
	case "SCHEMAS", "NAMESPACES":
		return p.showSchemas()
	case "TABLES":
		return p.showTables()
	case "TBLPROPERTIES", "PROPERTIES":
		return p.showProperties()
	case "BRANCHES", "TAGS", "SNAPSHOTS":
		return p.showHistory(keyword(t))
	case "CREATE":
		if p.accept("TABLE") {
			n, err := p.tableName()
			if err != nil {
				return nil, err
			}
			return &ShowCreate{Table: n}, p.end("the table name")
		}
	}
	p.pos--
	hint := "SHOW CATALOGS, SHOW SCHEMAS [FROM catalog], SHOW TABLES [FROM schema], SHOW CREATE TABLE table, SHOW TBLPROPERTIES table, and SHOW BRANCHES, TAGS and SNAPSHOTS FROM table are supported"
	switch keyword(t) {
	case "DATABASES":
		hint = "write SHOW CATALOGS or SHOW SCHEMAS"
	case "COLUMNS":
		hint = "DESCRIBE table shows columns and partitioning"
	}
	return nil, p.unexpected("CATALOGS, SCHEMAS or TABLES", hint)
}

func (p *parser) showSchemas() (Statement, error) {
	s := &ShowSchemas{}
	if p.accept("FROM") || p.accept("IN") {
		id, err := p.ident("a catalog name")
		if err != nil {
			return nil, err
		}
		s.Catalog = &id
	}
	return s, p.endShow()
}

func (p *parser) showTables() (Statement, error) {
	s := &ShowTables{}
	if p.accept("FROM") || p.accept("IN") {
		n, err := p.name("a schema name", 2)
		if err != nil {
			return nil, err
		}
		s.Schema = &n
	}
	return s, p.endShow()
}

func (p *parser) endShow() error {
	if t := p.peek(); t.isAny("LIKE", "WHERE") {
		return p.failAt(t, keyword(t)+" in SHOW is not supported yet", "")
	}
	return p.end("SHOW")
}

func (p *parser) describe() (Statement, error) {
	p.pos++
	if p.peek().is("TABLE") && p.peekAt(1).isName() {
		p.pos++
	}
	if p.peek().is("HISTORY") && p.peekAt(1).isName() {
		return p.describeHistory()
	}
	if p.startsQuery() {
		return nil, p.fail("DESCRIBE takes a table", "EXPLAIN query shows the types of its columns")
	}
	if p.peek().Kind == KindString {
		return nil, p.fail("DESCRIBE takes a table", "EXPLAIN SELECT * FROM 'file' shows the columns of a file")
	}
	n, err := p.tableName()
	if err != nil {
		return nil, err
	}
	return &Describe{Table: n}, p.end("the table name")
}

// refusals says, for statements that people will try, why they do not run and what to do.
var refusals = map[string]string{
	"REPLACE":    "write CREATE OR REPLACE TABLE",
	"COPY":       "use INSERT INTO table SELECT * FROM 'file' to load; the client prints SELECT as CSV or JSON",
	"EXPORT":     "the client prints SELECT as CSV or JSON",
	"IMPORT":     "use INSERT INTO table SELECT * FROM 'file'",
	"ATTACH":     "catalogs are listed in the configuration of the scheduler",
	"DETACH":     "catalogs are listed in the configuration of the scheduler",
	"USE":        "write names in full (catalog.schema.table), or give defaults: signet sql --catalog and --schema, or headers over Flight SQL",
	"SET":        "a statement's settings come with it: signet sql --set NAME=VALUE, or a header of the same name over Flight SQL; limits are set in the configuration of the scheduler",
	"RESET":      "statements run with DuckDB's own settings; limits are set in the configuration of the scheduler",
	"PRAGMA":     "statements run with DuckDB's own settings; limits are set in the configuration of the scheduler",
	"BEGIN":      "each statement commits by itself, at once and whole",
	"START":      "each statement commits by itself, at once and whole",
	"COMMIT":     "each statement commits by itself, at once and whole",
	"ROLLBACK":   "each statement commits by itself, at once and whole",
	"ABORT":      "signet cancel ID cancels a job",
	"INSTALL":    "extensions are fixed when the executor is built",
	"LOAD":       "extensions are fixed when the executor is built",
	"EXECUTE":    "send the statement itself",
	"PREPARE":    "send the statement itself",
	"DEALLOCATE": "send the statement itself",
	"ANALYZE":    "table maintenance is not part of this version",
	"OPTIMIZE":   "CALL system.rewrite_data_files(table => 'demo.t') makes large files of small ones",
	"CHECKPOINT": "table maintenance is not part of this version",
	"GRANT":      "access is set in the configuration of the scheduler",
	"REVOKE":     "access is set in the configuration of the scheduler",
	"COMMENT":    "write COMMENT 'text' in CREATE TABLE",
	"PIVOT":      pivotHint,
	"UNPIVOT":    "put it into a query: SELECT * FROM (UNPIVOT …)",
	"SUMMARIZE":  summarizeHint,
}

const (
	pivotHint     = "put it into a query, with its values named: SELECT * FROM (PIVOT … ON column IN ('a', 'b') USING …)"
	summarizeHint = "ask for what you need: SELECT count(*), count(DISTINCT a), min(a), max(a), avg(a) FROM …"
)

const supported = "SELECT, INSERT, DELETE, UPDATE, MERGE, TRUNCATE TABLE, CREATE TABLE, CREATE SCHEMA, ALTER TABLE, DROP TABLE, CALL, VACUUM, CACHE TABLE, SHOW, DESCRIBE, EXPLAIN and VALIDATE are supported"

func (p *parser) refuse(t Token) error {
	word := keyword(t)
	if hint, ok := refusals[word]; ok {
		return p.fail(word+" is not supported yet", hint)
	}
	if near := nearest(word, []string{"SELECT", "INSERT", "DELETE", "UPDATE", "MERGE", "CREATE", "ALTER", "CALL", "DROP", "SHOW", "DESCRIBE", "EXPLAIN", "TRUNCATE", "VACUUM", "VALIDATE", "WITH", "VALUES", "FROM"}); near != "" {
		return p.unexpected("a statement", "did you mean "+near+"?")
	}
	return p.unexpected("a statement", supported)
}
