package graph

// Action is something that the caller has to do.
type Action interface{ action() }

// Launch a new attempt of a task on an executor of the caller's choice, when there is room. Journal it first (S71), tell Launched after.
type Launch struct {
	Task    TaskID
	Attempt string
	Number  int      // 1 for the task's first attempt
	Avoid   []string // executors on which the task failed before; a preference
	// Generation is that of what the stage reads. It belongs in the attempt's record.
	Generation  int
	Speculative bool // another attempt of the task runs
}

// PlanMore asks for further stages: every known one is complete. StagesAdded or PlanFailed answers. Emitted once until then, and again after
// a restart.
type PlanMore struct{}

// AdoptAttempt: the executor that registered goes on with the attempt, or repeats its report of it.
type AdoptAttempt struct{ Attempt, Executor string }

// CancelAttempt tells the executor to stop the attempt. If it was never sent it is taken out of the queue. Executor may be empty.
type CancelAttempt struct{ Attempt, Executor, Reason string }

// Reply answers a TaskSucceeded: whether the attempt won, and if not, why not.
type Reply struct {
	Attempt string
	Won     bool
	Reason  string
}

// Sweep is the duty to delete everything that the attempt wrote or may still write (S72), but for what was accepted (TaskSucceeded).
type Sweep struct{ Attempt, Executor string }

// RunRoot: start the scheduler root, off the event loop (S17). It begins with TakeRoot.
type RunRoot struct {
	Resume bool // an earlier incarnation had begun it
}

// CancelRoot asks a running root to stop. A commit's coordinator answers with RootCancelled, RootCancelRefused or the root's own end.
type CancelRoot struct{ Reason string }

// AnswerCancel answers all who have sent Cancel and have no answer yet.
type AnswerCancel struct {
	Cancelled bool
	Message   string
}

// Finish: the job has its final state. Emitted once, before the actions that clean up.
type Finish struct {
	State   State
	Failure *Failure // Failed only
	Result  []byte   // of the root
	Reason  string   // Cancelled: who asked
}

// FreeData frees outputs that attempts keep on executors for others to read. It may name one again: an executor that has not got the
// word still has it.
type FreeData struct{ Attempts []StoredAttempt }

// StoredAttempt is an attempt whose output its executor keeps. Executor is empty where nobody has noted whose it is: whoever has it.
type StoredAttempt struct{ Attempt, Executor string }

func (Launch) action()        {}
func (PlanMore) action()      {}
func (AdoptAttempt) action()  {}
func (CancelAttempt) action() {}
func (Reply) action()         {}
func (Sweep) action()         {}
func (RunRoot) action()       {}
func (CancelRoot) action()    {}
func (AnswerCancel) action()  {}
func (Finish) action()        {}
func (FreeData) action()      {}
