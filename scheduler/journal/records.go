package journal

import (
	"encoding/json"
	"time"
)

// Job is the durable record of one job. Plan and Spec are serialised plan.v1 messages, empty until the job is planned.
type Job struct {
	ID             string            `json:"id"`
	Principal      string            `json:"principal"`
	Key            string            `json:"key,omitempty"` // the client's idempotency key
	StatementHash  string            `json:"statement_hash"`
	SQL            string            `json:"sql"`
	DefaultCatalog string            `json:"default_catalog,omitempty"`
	DefaultSchema  string            `json:"default_schema,omitempty"`
	BaseDir        string            `json:"base_dir,omitempty"`
	Plan           []byte            `json:"plan,omitempty"` // plan.v1.PhysicalPlan, instead of SQL
	Settings       map[string]string `json:"settings,omitempty"`
	Kind           string            `json:"kind"`
	State          State             `json:"state"`
	Error          *JobError         `json:"error,omitempty"`
	Warnings       []string          `json:"warnings,omitempty"`
	Result         []byte            `json:"result,omitempty"` // inline result, Arrow IPC stream
	HasRows        bool              `json:"has_rows,omitempty"`
	Submitted      time.Time         `json:"submitted"`
	Finished       time.Time         `json:"finished,omitzero"`
	CommitKey      string            `json:"commit_key,omitempty"`
	Marker         string            `json:"marker,omitempty"`
	Write          *Write            `json:"write,omitempty"`
	Session        *Session          `json:"session,omitempty"`
	Input          string            `json:"input,omitempty"` // file with the rows of an ingest
	Progress       Progress          `json:"progress,omitzero"`
	Trace          string            `json:"trace,omitempty"`        // W3C traceparent of the submission
	CancelledBy    string            `json:"cancelled_by,omitempty"` // who was told that it is or will be Cancelled; empty once a write is planned
	RootBegun      bool              `json:"root_begun,omitempty"`   // a scheduler root other than a commit may have taken effect
	Lineage        json.RawMessage   `json:"lineage,omitempty"`      // what it reads and writes, as its lineage events say it; while it is open
	Landing        *Landing          `json:"landing,omitempty"`      // how its commit landed, as far as its format counts
	Untidy         bool              `json:"untidy,omitempty"`       // it has ended, and the records of its work are there still
	Upkeep         *Upkeep           `json:"upkeep,omitempty"`       // it is a schedule's, not a client's
	Does           []Does            `json:"does,omitempty"`         // what it was permitted to do
	Did            []Did             `json:"did,omitempty"`          // what it has done besides a commit of rows; while it is open

	// Keep lets the rows of a query stay on their executor. A restart forgets it: what was kept is lost with it.
	Keep *KeepRows `json:"-"`
}

// Does is what a job does in one schema: a set of actions, as the scheduler numbers them.
type Does struct {
	Catalog string   `json:"catalog"`
	Schema  []string `json:"schema"`
	Actions uint8    `json:"actions"`
}

// Did is one thing that a job has done to a table or schema, for the audit log.
type Did struct {
	What      string `json:"what"`
	Catalog   string `json:"catalog"`
	Table     string `json:"table,omitempty"`
	Schema    string `json:"schema,omitempty"`
	Procedure string `json:"procedure,omitempty"`
	Files     int64  `json:"files,omitempty"`
	Unknown   bool   `json:"unknown,omitempty"`
}

// KeepRows says which results stay on their executors.
type KeepRows struct {
	Above   int64    // bytes
	Readers [][]byte // SHA-256 of tokens of which a client shows one; none: it need not
}

// State is a job's durable state; running jobs are StateOpen.
type State string

// The durable states. Terminal ones never change.
const (
	StateOpen       State = "open"
	StateSuccessful State = "successful"
	StateFailed     State = "failed"
	StateCancelled  State = "cancelled"
)

// Terminal tells whether the state is final.
func (s State) Terminal() bool { return s != StateOpen }

// JobError is what the client sees of a failure.
type JobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Progress is what a finished job's list entry shows.
type Progress struct {
	Stages int   `json:"stages,omitempty"`
	Tasks  int   `json:"tasks,omitempty"`
	Rows   int64 `json:"rows,omitempty"`
	Bytes  int64 `json:"bytes,omitempty"`
}

// Write is the durable part of a planned write: with it a restarted scheduler goes on without planning again.
type Write struct {
	Catalog string   `json:"catalog"`
	Schema  []string `json:"schema"`
	Table   string   `json:"table"`
	Mode    int32    `json:"mode"` // sink.v1 WriteMode
	Tasks   int      `json:"tasks"`
	Spec    []byte   `json:"spec"` // plan.v1 WriteSpec
	Plan    string   `json:"plan,omitempty"`
	// Location is where the commit creates the table; empty for a table that exists.
	Location string `json:"location,omitempty"`
	// Repeatable says of each stage whether a task that runs again gives the same rows.
	Repeatable []bool `json:"repeatable,omitempty"`
}

// Landing is what a commit did, as the snapshot's summary has it. Several jobs may share one.
type Landing struct {
	SnapshotID     int64             `json:"snapshot_id"`
	SequenceNumber int64             `json:"sequence_number,omitempty"`
	Operation      string            `json:"operation,omitempty"` // append, overwrite, delete, replace
	Summary        map[string]string `json:"summary,omitempty"`   // counts and totals
}

// Upkeep is the run of a schedule that a job is.
type Upkeep struct {
	Catalog string   `json:"catalog"`
	Ident   []string `json:"ident"` // of the table: its namespace and name
	Why     string   `json:"why"`   // what made it due
	Key     string   `json:"key"`   // of the run, among those of the table
	Slot    int64    `json:"slot,omitempty"`
}

// Session is an external write session as it was begun.
type Session struct {
	Table string `json:"table"`
	Tasks int    `json:"tasks"`
}

// Attempt is the durable record of one try of one task, written before it is launched (S71).
type Attempt struct {
	Job      string    `json:"job"`
	Stage    int32     `json:"stage"`
	Task     int32     `json:"task"`
	ID       string    `json:"id"`
	Epoch    uint64    `json:"epoch"`
	Prefix   string    `json:"prefix,omitempty"`
	Location string    `json:"location,omitempty"` // of the table: the store that holds the prefix
	Catalog  string    `json:"catalog,omitempty"`
	Ident    []string  `json:"ident,omitempty"` // of the table, whose credentials reach the prefix where a catalog gives some
	Executor string    `json:"executor,omitempty"`
	Launched time.Time `json:"launched"`
	// Generation of what it reads: attempts of two are never mixed (S73).
	Generation int `json:"generation,omitempty"`
}

// Output is what a task's winner keeps on its executor for later stages.
type Output struct {
	Job        string `json:"job"`
	Stage      int32  `json:"stage"`
	Task       int32  `json:"task"`
	Attempt    string `json:"attempt"`
	Executor   string `json:"executor"`
	Address    string `json:"address,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Rows       int64  `json:"rows,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"`
	Parts      []byte `json:"parts,omitempty"` // plan.v1 ExchangeOutput
}

// Manifest is an accepted task manifest: the serialised chunks exactly as they came.
type Manifest struct {
	Job     string   `json:"job"`
	Stage   int32    `json:"stage"`
	Task    int32    `json:"task"`
	Attempt string   `json:"attempt"`
	Files   int64    `json:"files"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	Chunks  [][]byte `json:"chunks"`
}

// Duty is a prefix that has to be swept. It stays until the sweep is known to be final (S72).
type Duty struct {
	Prefix    string    `json:"prefix"`
	Catalog   string    `json:"catalog"`
	Location  string    `json:"location"`
	Ident     []string  `json:"ident,omitempty"` // of the table; empty: the operator's credentials reach the prefix
	Job       string    `json:"job"`
	Attempt   string    `json:"attempt"`
	Executor  string    `json:"executor,omitempty"`
	Confirmed bool      `json:"confirmed"` // the executor has said that the attempt is over
	NotBefore time.Time `json:"not_before"`
	Sweeps    int       `json:"sweeps"`
	// Until is when the last access to the prefix has run out that an executor may have; zero: it never had any. The duty is not over before.
	Until  time.Time `json:"until,omitzero"`
	Expiry *Expiry   `json:"expiry,omitempty"` // in place of a prefix to be swept; Prefix is a name then
	// Failures in a row, and when the first of them was; zero: none.
	Failures     int       `json:"failures,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
}

// Expiry is a table's snapshots that are, or are about to be, removed from its metadata. The files that only they needed have to go.
type Expiry struct {
	Ident      []string          `json:"ident"` // of the table: its namespace and name
	TableUUID  string            `json:"table_uuid"`
	Snapshots  []ExpiredSnapshot `json:"snapshots"`
	Statistics []string          `json:"statistics,omitempty"` // files that the metadata named before
	Readers    []string          `json:"readers,omitempty"`    // jobs that may read the files; they go when these have ended
}

// ExpiredSnapshot is a snapshot with its manifest list.
type ExpiredSnapshot struct {
	ID   int64  `json:"id"`
	List string `json:"list"`
}

// Commit is a job's commit state: the coordinator's record, opaque here.
type Commit struct {
	Job    string          `json:"job"`
	Record json.RawMessage `json:"record"`
}

// Accepted is one entry of the commit state's list of accepted manifests, opaque here. Entries are written one by one: a state that listed them all
// would be written anew, longer each time, with every task.
type Accepted struct {
	Job   string          `json:"job"`
	Task  int             `json:"task"`
	Entry json.RawMessage `json:"entry"`
}

// Group is the seal of an attempt that carries the units of several jobs: the coordinator's record, opaque here.
type Group struct {
	ID     string          `json:"id"`
	Record json.RawMessage `json:"record"`
}
