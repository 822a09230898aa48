package sql

// OverwriteMode says how an INSERT OVERWRITE chooses the rows that it removes.
type OverwriteMode int

// The modes.
const (
	OverwriteDefault    OverwriteMode = iota // INSERT OVERWRITE t: as the statement's setting says
	OverwritePartitions                      // the partitions that rows are written to
	OverwriteFixed                           // PARTITION (p = 'x'): the rows with these values
	OverwriteWhere                           // REPLACE WHERE: the rows for which the condition is true
)

// Overwrite is what an INSERT removes in the commit that adds its rows.
type Overwrite struct {
	Mode  OverwriteMode
	Where *Condition // OverwriteWhere
}

// PartitionValue is an item of PARTITION (p = 'x', q).
type PartitionValue struct {
	Column Ident
	Value  *Literal // nil: the query gives it
}

// Truncate is TRUNCATE TABLE.
type Truncate struct {
	Table    Name
	IfExists bool
}

// Validate is VALIDATE statement: all checks of a write, and no change. Statement is one that writes rows.
type Validate struct {
	Statement Statement
}

func (*Truncate) statement() {}
func (*Validate) statement() {}

// ConditionKind is the class of a condition.
type ConditionKind int

// The classes. NOT IN, IS NOT NULL and BETWEEN are written with ConditionNot and ConditionAnd.
const (
	ConditionConstant ConditionKind = iota + 1 // TRUE, FALSE
	ConditionAnd
	ConditionOr
	ConditionNot
	ConditionCompare // Column Operator Values[0]
	ConditionIn
	ConditionIsNull
	ConditionColumn // a boolean column by itself
)

// Condition is what may stand behind REPLACE WHERE: comparisons of columns with literals, and what combines them.
type Condition struct {
	Kind     ConditionKind
	Terms    []*Condition // AND, OR: two or more; NOT: one
	Column   []Ident      // the path of a column
	Operator string       // = <> < <= > >=
	Values   []Literal    // COMPARE: one; IN: one or more
	Constant bool
	Text     string // as written
}

// LiteralKind is the class of a literal.
type LiteralKind int

// The classes of literals.
const (
	LiteralNull LiteralKind = iota + 1
	LiteralBoolean
	LiteralNumber
	LiteralString
)

// Literal is a constant. Type is the word in front of a string, as in DATE '2026-01-31', in upper case; empty: none.
type Literal struct {
	Kind   LiteralKind
	Text   string // strings: decoded; numbers: with their sign
	Type   string
	Source string // as written
	Offset int
}
