package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// Op is what a step does.
type Op uint8

// The steps. What each refers to is in its Step; one that does not apply does nothing, so that any list of steps can be replayed.
const (
	OpNone Op = iota

	// clients
	OpSubmit
	OpCancel
	OpCollect // fetch a result that lies on executors
	OpWrite   // an external writer delivers a task; Arg is the task, from 1
	OpFinish  // and says that this was all

	// network; Arg is the message's kind
	OpDeliver
	OpLose
	OpRepeat
	OpTwice // a request reaches the catalog twice, as a proxy does it, and the second answer counts
	OpDeny  // the catalog refuses a request for good

	// the scheduler
	OpPlan
	OpPlanFails
	OpLoop     // a job's loop takes its next event
	OpDispatch // a waiting attempt goes to an executor
	OpAccept   // a checked manifest is accepted
	OpRoot     // the root is started
	OpRead     // a plain root reads its input
	OpStraggle
	OpExpire  // executors had their time to come back after a restart
	OpLost    // an executor is given up; Arg is its incarnation
	OpSweep   // a clean-up duty is carried out
	OpTimeout // the answer to a commit request is awaited no longer
	OpResolve // a request of unknown outcome is looked up and sent again
	OpLapse   // the lease of a plugin of an earlier incarnation is used once more
	OpCrash
	OpStart
	OpFuse // the scheduler will crash at a place inside a later step; Arg counts the places
	OpFull // the journal cannot be written; Arg is the number of writes

	// the plugin
	OpLoad   // it reads the table
	OpSeal   // it asks for the commit point
	OpGiveUp // it refuses the job for good
	OpKill   // it dies

	// executors
	OpFetch
	OpWork
	OpFail   // Arg is the error class
	OpNoPart // a part cannot be fetched, though it is there
	OpReport // it repeats what is not acknowledged
	OpJoin
	OpDie
	OpBegin
	OpDrain
	OpLeave

	// the table; Job is the table
	OpOther    // somebody else commits
	OpRollback // main is set to an earlier snapshot; Arg counts back

	opCount
)

var opNames = [opCount]string{
	"none", "submit", "cancel", "collect", "write", "finish", "deliver", "lose", "repeat", "twice", "deny", "plan", "plan-fails", "loop", "dispatch", "accept", "root", "read",
	"straggle", "expire", "lost", "sweep", "timeout", "resolve", "lapse", "crash", "start", "fuse", "full", "load", "seal", "give-up", "kill", "fetch", "work", "fail",
	"no-part", "report", "join", "die", "begin", "drain", "leave", "other", "rollback",
}

func (o Op) String() string { return opNames[o] }

// Step is one step. Zero fields are not printed.
type Step struct {
	Op                  Op
	Job, Att, Exec, Arg int
}

func (s Step) String() string {
	var b strings.Builder
	b.WriteString(s.Op.String())
	switch s.Op {
	case OpDeliver, OpLose, OpRepeat:
		b.WriteString(" " + kind(s.Arg).String())
		s.Arg = 0
	}
	for _, f := range []struct {
		letter string
		n      int
	}{{"j", s.Job}, {"a", s.Att}, {"e", s.Exec}, {"x", s.Arg}} {
		if f.n != 0 {
			b.WriteString(" " + f.letter + strconv.Itoa(f.n))
		}
	}
	return b.String()
}

// ParseStep reads what String wrote.
func ParseStep(line string) (Step, error) {
	words := strings.Fields(line)
	bad := func(w string) (Step, error) { return Step{}, fmt.Errorf("step %q: %q is not understood", line, w) }
	if len(words) == 0 {
		return bad("")
	}
	var s Step
	for i, n := range opNames {
		if n == words[0] {
			s.Op = Op(i) //nolint:gosec // few
		}
	}
	if s.Op == OpNone {
		return bad(words[0])
	}
	for _, w := range words[1:] {
		if k, ok := kindOf(w); ok {
			s.Arg = int(k)
			continue
		}
		n, err := strconv.Atoi(w[1:])
		if err != nil {
			return bad(w)
		}
		switch w[0] {
		case 'j':
			s.Job = n
		case 'a':
			s.Att = n
		case 'e':
			s.Exec = n
		case 'x':
			s.Arg = n
		default:
			return bad(w)
		}
	}
	return s, nil
}
