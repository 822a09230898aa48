package sql

import (
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// AlterTable changes a table's metadata, all changes in one commit; or its name.
type AlterTable struct {
	Table    Name
	IfExists bool
	// Changes are as the sink gets them: only the table knows which of its columns a name means.
	Changes  []*sinkv1.Change
	RenameTo *Name
}

// Call is CALL catalog.system.procedure(…).
type Call struct {
	Catalog   *Ident // nil: not named
	Procedure Ident
	Args      []Arg
}

// Arg is one argument of a procedure.
type Arg struct {
	Name  *Ident // nil: by its place
	Value Constant
}

// Constant is a constant. One of its members is set, or none for NULL.
type Constant struct {
	Value  *planv1.Value // strings, numbers, booleans, bytes
	Items  []Constant    // an array; of a map, keys and values in turn
	IsList bool
	IsMap  bool
	Offset int
}

// ShowProperties is SHOW TBLPROPERTIES.
type ShowProperties struct {
	Table Name
	Key   string // empty: all
}

// ShowHistory lists what of a table's history has a name: "BRANCHES", "TAGS" or "SNAPSHOTS".
type ShowHistory struct {
	Table Name
	What  string
}

// DescribeHistory is DESCRIBE HISTORY table [LIMIT n].
type DescribeHistory struct {
	Table Name
	Limit int64 // newest commits; 0: all
}

// Vacuum is VACUUM table [RETAIN n HOURS] [DRY RUN].
type Vacuum struct {
	Table       Name
	RetainHours *int64 // nil: as the table says
	DryRun      bool
}

func (*DescribeHistory) statement() {}
func (*Vacuum) statement()          {}

func (*AlterTable) statement()     {}
func (*Call) statement()           {}
func (*ShowProperties) statement() {}
func (*ShowHistory) statement()    {}
