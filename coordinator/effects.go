package coordinator

import "fmt"

// Effects are what a step asks of its caller, in this order: persist Record, then take Actions.
type Effects struct {
	State State
	// Record is the machine's durable state after the step; nil when the step changed nothing. After StepApart it is without Accepted, unless it is final.
	Record *Record
	// Accepted is the entry that this step added to Record.Accepted, for journals that store those one by one.
	Accepted *Accepted
	Actions  []Action
}

// ActionKind says what to do.
type ActionKind int

const (
	// ActAcknowledge: tell the reporter of Task and AttemptID that its manifest is safe. Also given, without a Record, for a repeated report.
	ActAcknowledge ActionKind = iota + 1
	// ActCallSink: a Commit call to the sink should be in flight; start one unless there is one.
	ActCallSink
	// ActSend: Attempt may leave for its commit point.
	ActSend
	// ActResolve: send the identical Attempt again until it lands, is found, or is dead.
	ActResolve
	// ActFinish: the job has its end; tell everybody.
	ActFinish
	// ActSweepLosers: the files of attempts that were not accepted may go.
	ActSweepLosers
	// ActSweepAll: no file of the job is referenced; all may go.
	ActSweepAll
)

var actionNames = [...]string{"none", "acknowledge", "call-sink", "send", "resolve", "finish", "sweep-losers", "sweep-all"}

func (k ActionKind) String() string {
	if k < 0 || int(k) >= len(actionNames) {
		return fmt.Sprintf("ActionKind(%d)", int(k))
	}
	return actionNames[k]
}

// Action is one thing to do after the record is safe. Every action may be repeated: a crash between record and action repeats it.
type Action struct {
	Kind      ActionKind
	Task      int      // ActAcknowledge
	AttemptID string   // ActAcknowledge
	Attempt   *Attempt // ActSend, ActResolve; not to be changed
}
