package sql

// Fragment is a part of a statement that DuckDB reads: an expression, or what stands behind FROM. Its text is as written.
type Fragment struct {
	Text   string
	Offset int // of Text in the text that was parsed
	// String: it is one string literal; Null: it is NULL; Default: it is DEFAULT.
	String, Null, Default bool
}

// Delete is DELETE FROM table [[AS] alias] [WHERE condition].
type Delete struct {
	Table Name
	Alias string // as which columns may be qualified; empty: the table's own name
	Where *Fragment
}

// Update is UPDATE table [[AS] alias] SET column = value, … [FROM …] [WHERE condition].
type Update struct {
	Table Name
	Alias string
	Set   []Assignment
	From  *Fragment
	Where *Fragment
}

// Assignment is column = value.
type Assignment struct {
	Column Ident
	Value  Fragment
}

// Merge is MERGE INTO table [[AS] alias] USING source ON condition WHEN ….
type Merge struct {
	Table  Name
	Alias  string
	Source Fragment // as behind FROM, its alias included
	Name   string   // by which columns of the source are qualified
	On     Fragment
	When   []MergeClause
}

// MergeMatch says which rows a clause of MERGE is about.
type MergeMatch int

// The kinds of clauses.
const (
	Matched            MergeMatch = iota + 1
	NotMatched                    // rows of the source without one of the table
	NotMatchedBySource            // rows of the table without one of the source
)

// MergeAction says what a clause of MERGE does.
type MergeAction int

// The actions.
const (
	MergeNothing MergeAction = iota + 1
	MergeDelete
	MergeUpdate
	MergeInsert
)

// MergeClause is WHEN … THEN ….
type MergeClause struct {
	Match  MergeMatch
	And    *Fragment
	Action MergeAction
	// All: UPDATE SET *, INSERT *: every column from the source's of the same name.
	All bool
	// Set are UPDATE's, and INSERT's columns with their values. An INSERT without a list of columns has Columns nil and Values alone.
	Set     []Assignment
	Values  []Fragment // INSERT
	Columns []Ident    // INSERT
	Offset  int
}

func (*Delete) statement() {}
func (*Update) statement() {}
func (*Merge) statement()  {}
