package graph

import "fmt"

// State of a job. The texts are stored in records.
type State string

// The states of a job.
const (
	Queued     State = "queued"
	Planning   State = "planning"
	Running    State = "running"
	Successful State = "successful"
	Failed     State = "failed"
	Cancelled  State = "cancelled"
)

// Terminal reports whether the state never changes again.
func (s State) Terminal() bool { return s == Successful || s == Failed || s == Cancelled }

// Phase of a Running job.
type Phase string

// The phases of a Running job.
const (
	PhaseStages    Phase = "stages"
	PhaseRoot      Phase = "root"
	PhaseResolving Phase = "resolving"
)

// RootKind says what the scheduler runs after the stages.
type RootKind string

// Kinds of root.
const (
	RootNone   RootKind = ""
	RootPlain  RootKind = "plain"  // may be abandoned at any moment
	RootCommit RootKind = "commit" // has a seal: its coordinator decides about a cancel
)

// TaskID names a task of a job.
type TaskID struct {
	Stage int32 `json:"stage"`
	Task  int32 `json:"task"`
}

func (t TaskID) String() string { return fmt.Sprintf("%d/%d", t.Stage, t.Task) }

// Failure is why a job failed.
type Failure struct {
	Code    string `json:"code"` // user, io, resource, internal, lost, root, …: stable names for clients
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (f *Failure) Error() string { return f.Message }

// Codes of failures that the graph itself makes.
const (
	CodeUser     = "user"
	CodeIO       = "io"
	CodeResource = "resource"
	CodeInternal = "internal"
	CodeLost     = "executor-lost"
	CodeRoot     = "root"
)
