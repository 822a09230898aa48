package rest

import (
	"encoding/json"
	"strconv"
	"time"
)

// State is the scheduler as a whole.
type State struct {
	Version   string         `json:"version"`
	Cluster   string         `json:"cluster"`
	Epoch     uint64         `json:"epoch"`
	PID       int            `json:"pid"`
	Started   time.Time      `json:"started"`
	Address   string         `json:"address"`
	Isolation string         `json:"isolation"`
	Catalogs  []string       `json:"catalogs"`
	Executors int            `json:"executors"`
	Slots     int            `json:"slots"`
	Running   int            `json:"running_tasks"`
	Queued    int            `json:"queued_tasks"`
	Jobs      map[string]int `json:"jobs"` // the caller's, by state
	Events    EventLog       `json:"event_log"`
}

// EventLog is what became of the records of job histories since the start.
type EventLog struct {
	Written int64 `json:"written"`
	Dropped int64 `json:"dropped"`
	Queued  int   `json:"queued"`
}

// Executor is one executor.
type Executor struct {
	ID        string    `json:"id"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Slots     int       `json:"slots"`
	Running   int       `json:"running_tasks"`
	Connected bool      `json:"connected"`
	Leaving   bool      `json:"leaving"`
	LastSeen  time.Time `json:"last_seen"`
}

// Executors is an answer.
type Executors struct {
	Executors []Executor `json:"executors"`
}

// Job is one job.
type Job struct {
	ID            string            `json:"id"`
	Principal     string            `json:"principal"`
	Statement     string            `json:"statement"`
	Kind          string            `json:"kind"`
	State         string            `json:"state"`
	Phase         string            `json:"phase,omitempty"`
	Message       string            `json:"message,omitempty"`
	Progress      Progress          `json:"progress"`
	Error         *JobError         `json:"error,omitempty"`
	Warnings      []string          `json:"warnings"`
	Settings      map[string]string `json:"settings"`
	HasRows       bool              `json:"has_rows"`
	Submitted     time.Time         `json:"submitted"`
	Finished      *time.Time        `json:"finished,omitempty"`
	TimingsMicros map[string]int64  `json:"timings_micros"`
	Trace         string            `json:"trace,omitempty"`
	Commit        *Commit           `json:"commit,omitempty"`
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

// Progress counts.
type Progress struct {
	Stages     int   `json:"stages"`
	StagesDone int   `json:"stages_done"`
	Tasks      int   `json:"tasks"`
	TasksDone  int   `json:"tasks_done"`
	Running    int   `json:"running"`
	Rows       int64 `json:"rows"`
	Bytes      int64 `json:"bytes"`
}

// JobError is why a job failed or was cancelled.
type JobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Jobs is an answer.
type Jobs struct {
	Jobs []Job `json:"jobs"`
}

// StageID is a number, or "scheduler" for the stage of the scheduler root.
type StageID string

// SchedulerStage is the stage of the scheduler root.
const SchedulerStage StageID = "scheduler"

// MarshalJSON writes numbers as numbers.
func (id StageID) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(id), 10, 32); err == nil {
		return strconv.AppendInt(nil, n, 10), nil
	}
	return json.Marshal(string(id))
}

// Stage is one stage of a job.
type Stage struct {
	ID         StageID  `json:"id"`
	State      string   `json:"state"` // pending, running, done, failed
	Plan       string   `json:"plan"`  // its part of the plan, as EXPLAIN prints it
	Tasks      []Task   `json:"tasks"`
	TasksTotal int      `json:"tasks_total"` // more than are listed, if there are many
	Metrics    *Metrics `json:"metrics,omitempty"`
}

// Metrics are a stage's measures.
type Metrics struct {
	TasksDone int        `json:"tasks_done"`
	Attempts  int        `json:"attempts"`
	Rows      int64      `json:"rows"`
	Bytes     int64      `json:"bytes"`
	Started   *time.Time `json:"started,omitempty"`
	Micros    int64      `json:"micros"` // from its first launch to its last success, or to now
}

// Task is one task.
type Task struct {
	Task     int    `json:"task"`
	State    string `json:"state"` // pending, running, done
	Attempts int    `json:"attempts"`
	Executor string `json:"executor,omitempty"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Error    string `json:"error,omitempty"` // of its last failed attempt
}

// Stages is an answer.
type Stages struct {
	Job    string  `json:"job"`
	Stages []Stage `json:"stages"`
}

// Plan is an answer.
type Plan struct {
	Job  string `json:"job"`
	Plan string `json:"plan"` // as EXPLAIN prints it; empty until the job is planned
}

// Health is an answer.
type Health struct {
	Status  string   `json:"status"` // ok, unavailable
	Reasons []string `json:"reasons,omitempty"`
}

// Problem is an error (RFC 9457). Code is stable: clients branch on it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}
