package schedule

// Event is something that happened. Events about catalogs without a policy, late and repeated ones are legal and change nothing.
type Event interface{ event() }

// Tick: time has passed.
type Tick struct{}

// Committed: a commit of this cluster has made a snapshot. Several jobs may have made one.
type Committed struct {
	Table    Table
	Snapshot int64
}

// Dropped: the table is gone.
type Dropped struct{ Table Table }

// Found answers Find. Table is empty behind the last one.
type Found struct {
	Catalog string
	Table   string
}

// FindFailed answers Find, too: the catalog could not be asked.
type FindFailed struct{ Catalog string }

// Ended answers Run.
type Ended struct {
	Table  Table
	Result Result
}

// Started: a run was begun by an earlier incarnation. If it has ended, Ended follows.
type Started struct {
	Table Table
	Why   Why
	Key   string
	Slot  int64 // of ByPeriod
}

func (Tick) event()       {}
func (Committed) event()  {}
func (Dropped) event()    {}
func (Found) event()      {}
func (FindFailed) event() {}
func (Ended) event()      {}
func (Started) event()    {}

// Result of a run.
type Result int

// Results.
const (
	Done    Result = iota + 1 // it is as it should be
	Nothing                   // there was nothing to do
	Failed
	Gone // there is no such table any more
)

// Action is something that the caller has to do.
type Action interface{ action() }

// Find asks for the catalog's first table behind a name, in the order of names; the first of all behind "". Found or FindFailed answers.
type Find struct {
	Catalog string
	After   string
}

// Run a table's maintenance. Ended answers.
type Run struct {
	Table Table
	Why   Why
	Key   string // names the run among those of the table
	Slot  int64  // of ByPeriod: the beginning of the period, in milliseconds since 1970
}

func (Find) action() {}
func (Run) action()  {}

// Why a table's maintenance is due.
type Why string

// Reasons.
const (
	ByPeriod  Why = "period"
	ByCommits Why = "commits"
)
