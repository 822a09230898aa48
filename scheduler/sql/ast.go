package sql

import planv1 "github.com/signet-io/signet/api/plan/v1"

// Statement is one of the types below.
type Statement interface{ statement() }

// Query is a query's text as written, without the semicolon and without comments around it.
type Query struct {
	Text   string
	Offset int // of Text in the text that was parsed
}

// Select is a statement that is a query.
type Select struct {
	Query Query
}

// Insert is INSERT INTO table [PARTITION (…)] [(columns)] [BY NAME] query, and INSERT OVERWRITE where Overwrite is set.
type Insert struct {
	Table     Name
	Partition []PartitionValue
	Columns   []Ident // nil without a list; duplicates are for the planner to refuse
	ByName    bool
	Overwrite *Overwrite // nil: nothing is removed
	Query     Query
}

// CreateTable is CREATE TABLE, and CREATE TABLE AS where Query is set.
type CreateTable struct {
	Table       Name
	IfNotExists bool
	Replace     bool // CREATE OR REPLACE
	// Columns are the table's. With Query they may only name the query's columns and have no type.
	Columns    []ColumnDef
	Partition  []PartitionTerm
	Sort       []SortTerm
	Properties map[string]string
	Query      *Query
}

// ColumnDef is one column of CREATE TABLE.
type ColumnDef struct {
	Name     Ident
	Type     *planv1.Type // nil in the column list of CREATE TABLE AS
	Required bool
	Comment  string
	Default  *planv1.Value // as ALTER TABLE … ADD COLUMN has it: a literal, of the column's type only for the sink; nil without one
}

// PartitionTerm is one term of PARTITIONED BY.
type PartitionTerm struct {
	Column    Ident
	Transform planv1.TransformKind
	Param     int32 // BUCKET and TRUNCATE
}

// SortTerm is one term of ORDERED BY. Where NULLS is not said, they come first in ascending and last in descending order, as Iceberg's
// own default has it.
type SortTerm struct {
	Column     Ident
	Transform  planv1.TransformKind
	Param      int32
	Descending bool
	NullsFirst bool
}

// CreateSchema is CREATE SCHEMA.
type CreateSchema struct {
	Name        Name
	IfNotExists bool
}

// DropTable is DROP TABLE.
type DropTable struct {
	Table    Name
	IfExists bool
}

// Cache is CACHE TABLE name AS query.
type Cache struct {
	Name  Ident
	Query Query
}

// Uncache is UNCACHE TABLE [IF EXISTS] name.
type Uncache struct {
	Name     Ident
	IfExists bool
}

// ShowCatalogs is SHOW CATALOGS.
type ShowCatalogs struct{}

// ShowSchemas is SHOW SCHEMAS [FROM catalog].
type ShowSchemas struct {
	Catalog *Ident
}

// ShowTables is SHOW TABLES [FROM [catalog.]schema].
type ShowTables struct {
	Schema *Name
}

// ShowCreate is SHOW CREATE TABLE.
type ShowCreate struct {
	Table Name
}

// Describe is DESCRIBE table.
type Describe struct {
	Table Name
}

// Explain is EXPLAIN statement. Statement is a Select, an Insert or a CreateTable with a query; offsets in it count from the
// beginning of the whole text.
type Explain struct {
	Statement Statement
	Analyze   bool // run it, and show what was measured
}

func (*Select) statement()       {}
func (*Insert) statement()       {}
func (*CreateTable) statement()  {}
func (*CreateSchema) statement() {}
func (*DropTable) statement()    {}
func (*Cache) statement()        {}
func (*Uncache) statement()      {}
func (*ShowCatalogs) statement() {}
func (*ShowSchemas) statement()  {}
func (*ShowTables) statement()   {}
func (*ShowCreate) statement()   {}
func (*Describe) statement()     {}
func (*Explain) statement()      {}
