package graph

import planv1 "github.com/signet-io/signet/api/plan/v1"

// Event is something that happened. Events that no longer matter (late, repeated, of unknown attempts) are legal and change nothing.
type Event interface{ event() }

// PlanStarted: the job left the queue.
type PlanStarted struct{}

// Planned: the job's stages are known. Stages stand behind those they read.
type Planned struct {
	Stages []StageSpec
	Root   RootKind
	// More: further stages will be planned. PlanMore asks for them when all of these are complete.
	More bool
	// External: somebody else runs the tasks. Nothing is launched; AttemptBegun announces attempts, and the root waits for WriteFinished.
	External bool
}

// StageSpec is one stage. A stage without tasks is complete at once.
type StageSpec struct {
	Tasks  int
	Inputs []int32 // stages that must be complete first; each smaller than the stage's own number
	// Stored: the output of a task lies on the executor that ran it, and is lost with it. Otherwise a winner's output is durable (task
	// manifests in the journal, results pushed to the scheduler).
	Stored bool
	// Repeatable: a task that runs again over the same input gives the same rows in the same partitions. Otherwise whatever was made from a
	// lost output is made again with it (S73).
	Repeatable bool
}

// StagesAdded answers PlanMore. The stages' numbers go on from those known.
type StagesAdded struct {
	Stages []StageSpec
	More   bool
}

// PlanFailed: the statement cannot be planned, or, where more stages were to come, not to its end.
type PlanFailed struct{ Failure Failure }

// Launched: the executor has been sent the attempt.
type Launched struct{ Attempt, Executor string }

// LaunchFailed: the attempt could not be sent. It is retried and not counted; that the executor may be lost is a separate event.
type LaunchFailed struct{ Attempt, Reason string }

// AttemptBegun: an external writer began an attempt.
type AttemptBegun struct {
	Task     TaskID
	Attempt  string
	Executor string
}

// TaskSucceeded: the attempt's output is complete, checked, and durable if it wins (ask Verdict before making it so). Reply answers.
type TaskSucceeded struct {
	Attempt string
	Rows    int64
	Bytes   int64
	// Accepted: the output was made durable before the graph was asked, as a manifest that its coordinator accepted. It wins although the
	// attempt may have been given up meanwhile; a Sweep that was emitted for it must not touch what is accepted.
	Accepted bool
}

// TaskFailed: the attempt ended with an error.
type TaskFailed struct {
	Attempt     string
	Class       planv1.ErrorClass
	Message     string
	Hint        string
	LostAttempt string // FETCH: whose output cannot be had
}

// TaskLost: nobody will hear of the attempt again, though its executor may live. Counts as a loss.
type TaskLost struct{ Attempt, Reason string }

// Progress of a running attempt.
type Progress struct {
	Attempt     string
	Rows, Bytes int64
}

// Capacity: from now on as many attempts may be in flight, in the place of Config.MaxInFlight. 0: any number.
type Capacity struct{ InFlight int }

// Straggling: the attempt runs and is slow. A second one is launched beside it, if Config.MaxSpeculative has room.
type Straggling struct{ Attempt string }

// ExecutorJoined: an executor registered and still knows these attempts of this job (running, or reported and not acknowledged), and keeps
// the outputs of these. Each attempt is answered with AdoptAttempt or CancelAttempt, and an output that nobody needs with FreeData.
// Attempts that were sent to it and that it does not know are retried; outputs that it should have and has not are gone.
type ExecutorJoined struct {
	Executor string
	Attempts []string
	Outputs  []string
}

// ExecutorLost: an executor is gone, with all that it had not delivered.
type ExecutorLost struct{ Executor, Reason string }

// AdoptionExpired: executors had their time to register again after a restart. Attempts that none of them claimed are retried, and outputs
// that none of them has are gone.
type AdoptionExpired struct{}

// WriteFinished: an external writer says that it has delivered everything.
type WriteFinished struct{}

// Cancel: somebody wants the job to end. AnswerCancel tells what came of it.
type Cancel struct{ Reason string }

// RootSucceeded: the root has run; for a commit: its data has landed.
type RootSucceeded struct{ Result []byte }

// RootFailed: the root failed, definitely: of a commit nothing has landed and nothing can land any more.
type RootFailed struct{ Failure Failure }

// RootResolving: a commit was sent and its outcome is unknown (Unknown), or is no longer unknown but the root goes on.
type RootResolving struct{ Unknown bool }

// RootCancelled: the coordinator honoured CancelRoot; nothing has landed and nothing can land any more.
type RootCancelled struct{}

// RootCancelRefused: it is too late for the coordinator to cancel. The root goes on.
type RootCancelRefused struct{ Message string }

// ResultReleased: the client has fetched the result that the final stage holds, or had its time to.
type ResultReleased struct{}

func (PlanStarted) event()       {}
func (Planned) event()           {}
func (PlanFailed) event()        {}
func (StagesAdded) event()       {}
func (Straggling) event()        {}
func (Capacity) event()          {}
func (Launched) event()          {}
func (LaunchFailed) event()      {}
func (AttemptBegun) event()      {}
func (TaskSucceeded) event()     {}
func (TaskFailed) event()        {}
func (TaskLost) event()          {}
func (Progress) event()          {}
func (ExecutorJoined) event()    {}
func (ExecutorLost) event()      {}
func (AdoptionExpired) event()   {}
func (WriteFinished) event()     {}
func (Cancel) event()            {}
func (RootSucceeded) event()     {}
func (RootFailed) event()        {}
func (RootResolving) event()     {}
func (RootCancelled) event()     {}
func (RootCancelRefused) event() {}
func (ResultReleased) event()    {}
