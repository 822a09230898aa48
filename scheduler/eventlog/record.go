package eventlog

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/signet-io/signet/internal/mutant"
)

// Types of records.
const (
	Submitted = "submitted"
	Planned   = "planned"   // again when an adaptive planner has added stages
	Recovered = "recovered" // a scheduler has taken the job up after a restart
	Phase     = "phase"     // resolving: a commit request has no definite answer yet
	Stage     = "stage"
	Attempt   = "attempt"
	Root      = "root"
	End       = "end"
)

// Events of stages, attempts and the root.
const (
	Started   = "started"
	Completed = "completed"
	Launched  = "launched"
	Adopted   = "adopted"
	Succeeded = "succeeded"
	Failed    = "failed"
	Lost      = "lost"
	Stopped   = "stopped"
)

// Record is one line. Every record has a time, a type and a job; the other fields are those of its type.
type Record struct {
	Time  time.Time `json:"time"`
	Type  string    `json:"type"`
	Job   string    `json:"job"`
	Event string    `json:"event,omitempty"` // stage, attempt, root

	// submitted
	Principal string            `json:"principal,omitempty"`
	Statement string            `json:"statement,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"`
	Trace     string            `json:"trace,omitempty"` // trace id

	// planned; and end, where stages have what was measured
	Kind   string        `json:"kind,omitempty"`
	Plan   string        `json:"plan,omitempty"` // as EXPLAIN prints it
	Stages []StageRecord `json:"stages,omitempty"`

	// stage, attempt, root
	Stage    *StageID `json:"stage,omitempty"`
	Task     *int32   `json:"task,omitempty"`
	Attempt  string   `json:"attempt,omitempty"`
	Number   int      `json:"number,omitempty"` // 1 for the first attempt of its task
	Executor string   `json:"executor,omitempty"`
	Tasks    int      `json:"tasks,omitempty"`
	Rows     int64    `json:"rows,omitempty"`
	Bytes    int64    `json:"bytes,omitempty"`
	Micros   int64    `json:"micros,omitempty"` // how long it took
	Reason   string   `json:"reason,omitempty"`
	Class    string   `json:"class,omitempty"` // of a failed attempt's error
	Error    *Failure `json:"error,omitempty"`

	// phase
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`

	// end
	State         string           `json:"state,omitempty"` // successful, failed, cancelled
	Warnings      []string         `json:"warnings,omitempty"`
	TimingsMicros map[string]int64 `json:"timings_micros,omitempty"`
	Dropped       int              `json:"dropped,omitempty"` // records of this job that did not fit the queue
	Commit        *Commit          `json:"commit,omitempty"`
}

// Commit is what a job's commit did, as its format counts. Several jobs may share one.
type Commit struct {
	SnapshotID         int64  `json:"snapshot_id"`
	SequenceNumber     int64  `json:"sequence_number"`
	Operation          string `json:"operation"`
	AddedFiles         int64  `json:"added_files"`
	RemovedFiles       int64  `json:"removed_files"`
	AddedDeleteFiles   int64  `json:"added_delete_files"`
	RemovedDeleteFiles int64  `json:"removed_delete_files"`
	AddedRows          int64  `json:"added_rows"`
	RemovedRows        int64  `json:"removed_rows"`
	Partitions         *int64 `json:"partitions,omitempty"` // touched; absent: not known
	TotalFiles         *int64 `json:"total_files,omitempty"`
	TotalRows          *int64 `json:"total_rows,omitempty"`
}

// text is the commit in words.
func (c *Commit) text() string {
	out := fmt.Sprintf("snapshot %d, sequence number %d, %s: files +%d -%d, rows +%d -%d", c.SnapshotID, c.SequenceNumber, c.Operation, c.AddedFiles, c.RemovedFiles, c.AddedRows, c.RemovedRows)
	if c.AddedDeleteFiles > 0 || c.RemovedDeleteFiles > 0 {
		out += fmt.Sprintf(", delete files +%d -%d", c.AddedDeleteFiles, c.RemovedDeleteFiles)
	}
	if c.Partitions != nil {
		out += ", " + plural(int(*c.Partitions), "partition")
	}
	return out
}

// Failure is an error as clients see it.
type Failure struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// StageRecord is a stage as it was planned and, in an end record, as it ran. The scheduler's own has no tasks and no measures (S46).
type StageRecord struct {
	ID       StageID `json:"id"`
	Plan     string  `json:"plan,omitempty"`
	State    string  `json:"state,omitempty"`
	Tasks    int     `json:"tasks,omitempty"`
	Done     int     `json:"done,omitempty"`
	Attempts int     `json:"attempts,omitempty"`
	Rows     int64   `json:"rows,omitempty"`
	Bytes    int64   `json:"bytes,omitempty"`
	Micros   int64   `json:"micros,omitempty"`
}

// StageID is a stage's number, or a name: the root runs in the stage "scheduler".
type StageID string

// SchedulerStage is the stage of the scheduler root.
const SchedulerStage StageID = "scheduler"

// StageNumber is the id of a numbered stage.
func StageNumber(n int32) StageID { return StageID(strconv.Itoa(int(n))) }

// Number is the stage's number; false for a stage that has a name.
func (id StageID) Number() (int32, bool) {
	n, err := strconv.ParseInt(string(id), 10, 32)
	return int32(n), err == nil
}

// MarshalJSON writes numbers as numbers and names as text.
func (id StageID) MarshalJSON() ([]byte, error) {
	if n, ok := id.Number(); ok {
		return strconv.AppendInt(nil, int64(n), 10), nil
	}
	return json.Marshal(string(id))
}

// UnmarshalJSON reads both (S47).
func (id *StageID) UnmarshalJSON(b []byte) error {
	var n int32
	if json.Unmarshal(b, &n) == nil {
		*id = StageNumber(n)
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil || mutant.On("eventlog/numbers-only") {
		return fmt.Errorf("stage id %s: neither a number nor a name", b)
	}
	*id = StageID(s)
	return nil
}

// kept records are never dropped. A job has a fixed number of them, or one for each stage.
func (r *Record) kept() bool {
	return r.Type == Submitted || r.Type == Planned || r.Type == End && !mutant.On("eventlog/end-dropped")
}

// redact takes secrets out of everything that may be text of others.
func (r *Record) redact(text func(string) string) {
	for _, s := range []*string{&r.Principal, &r.Statement, &r.Plan, &r.Reason, &r.Message, &r.Executor} {
		*s = text(*s)
	}
	if r.Error != nil {
		e := *r.Error
		e.Message, e.Hint = text(e.Message), text(e.Hint)
		r.Error = &e
	}
	if r.Settings != nil {
		m := make(map[string]string, len(r.Settings))
		for k, v := range r.Settings {
			m[text(k)] = text(v)
		}
		r.Settings = m
	}
	for i, w := range r.Warnings {
		if i == 0 {
			r.Warnings = append([]string{}, r.Warnings...)
		}
		r.Warnings[i] = text(w)
	}
	for i, s := range r.Stages {
		if i == 0 {
			r.Stages = append([]StageRecord{}, r.Stages...)
		}
		r.Stages[i].Plan = text(s.Plan)
	}
}
