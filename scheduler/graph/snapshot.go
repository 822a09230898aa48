package graph

// Snapshot is a job as people see it.
type Snapshot struct {
	State      State
	Phase      Phase
	Root       RootKind
	Stages     int
	StagesDone int
	Tasks      int
	TasksDone  int
	Running    int // attempts on executors
	Waiting    int // attempts that wait for an executor
	Rows       int64
	Bytes      int64
	Cancelling bool // a cancel waits for the root's answer
	Failure    *Failure
}

// TaskView is one task as people see it.
type TaskView struct {
	TaskID
	State    string // pending, running, done
	Attempts int
	Executor string // of the newest attempt, or of the winner
	Attempt  string
	Rows     int64
	Bytes    int64
	LastErr  string
}

// Snapshot counts; rows and bytes are those of winners and of running attempts.
func (g *Graph) Snapshot() Snapshot {
	out := Snapshot{State: g.state, Phase: g.phase, Root: g.root, Stages: len(g.stages), Cancelling: g.asked, Failure: g.failure}
	for _, s := range g.stages {
		out.Tasks += len(s.tasks)
		out.TasksDone += s.done
		if s.complete() {
			out.StagesDone++
		}
	}
	for _, a := range g.attempts {
		if a.state == attemptEnded {
			continue
		}
		out.Rows += a.rows
		out.Bytes += a.bytes
		switch {
		case a.state != attemptLive:
		case a.executor == "":
			out.Waiting++
		default:
			out.Running++
		}
	}
	return out
}

// TaskViews lists the tasks in order.
func (g *Graph) TaskViews() []TaskView {
	var out []TaskView
	for _, s := range g.stages {
		for _, t := range s.tasks {
			v := TaskView{TaskID: t.id, State: string(t.state), Attempts: len(t.attempts), LastErr: t.lastErr}
			if v.State == "" {
				v.State = "pending"
			}
			if a := g.shown(t); a != nil {
				v.Executor, v.Attempt, v.Rows, v.Bytes = a.executor, a.id, a.rows, a.bytes
			}
			out = append(out, v)
		}
	}
	return out
}

// shown is the attempt that stands for a task: its winner, or the newest.
func (g *Graph) shown(t *task) *attempt {
	if t.winner != "" {
		return g.attempts[t.winner]
	}
	if n := len(t.attempts); n > 0 {
		return g.attempts[t.attempts[n-1]]
	}
	return nil
}

// Winners gives the winning attempt of each task that has one, in the order of the tasks. Complete says that each has: what a root reads
// or commits (S10).
func (g *Graph) Winners() (winners []string, complete bool) {
	complete = true
	for _, s := range g.stages {
		for _, t := range s.tasks {
			if t.winner == "" {
				complete = false
				continue
			}
			winners = append(winners, t.winner)
		}
	}
	return winners, complete
}
