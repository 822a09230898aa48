package graph

// Snapshot is a job as people see it.
type Snapshot struct {
	State      State
	Phase      Phase
	Root       RootKind
	Stages     int
	StagesDone int
	More       bool // further stages will be planned
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

// Snapshot counts; rows and bytes are those of winners and of running attempts. Its cost is that of the number of stages.
func (g *Graph) Snapshot() Snapshot {
	out := Snapshot{
		State: g.state, Phase: g.phase, Root: g.root, Stages: len(g.stages), More: g.more, Cancelling: g.asked, Failure: g.failure,
		Running: g.live - g.waiting, Waiting: g.waiting, Rows: g.rows, Bytes: g.bytes,
	}
	for _, s := range g.stages {
		out.Tasks += len(s.tasks)
		out.TasksDone += s.done
		if s.complete() {
			out.StagesDone++
		}
	}
	return out
}

// StageView is one stage as people see it.
type StageView struct {
	Tasks, Done, Waiting int
	Stored, Freed        bool
	Reruns               int // times that its input had to be made again
}

// StageViews lists the stages in order.
func (g *Graph) StageViews() []StageView {
	out := make([]StageView, len(g.stages))
	for i, s := range g.stages {
		out[i] = StageView{Tasks: len(s.tasks), Done: s.done, Waiting: s.pend, Stored: s.stored, Freed: s.freed, Reruns: s.losses}
	}
	return out
}

// TaskViews lists the tasks in order.
func (g *Graph) TaskViews() []TaskView {
	var out []TaskView
	for _, s := range g.stages {
		for _, t := range s.tasks {
			out = append(out, t.view())
		}
	}
	return out
}

// TaskView shows one task.
func (g *Graph) TaskView(id TaskID) (TaskView, bool) {
	t := g.task(id)
	if t == nil {
		return TaskView{}, false
	}
	return t.view(), true
}

// TaskOf is the task of an attempt.
func (g *Graph) TaskOf(attemptID string) (TaskID, bool) {
	a := g.attempts[attemptID]
	if a == nil {
		return TaskID{}, false
	}
	return a.task.id, true
}

func (t *task) view() TaskView {
	v := TaskView{TaskID: t.id, State: string(t.state), Attempts: len(t.attempts), LastErr: t.lastErr}
	if v.State == "" {
		v.State = "pending"
	}
	a := t.winner // it stands for the task, or the newest does
	if n := len(t.attempts); a == nil && n > 0 {
		a = t.attempts[n-1]
	}
	if a != nil {
		v.Executor, v.Attempt, v.Rows, v.Bytes = a.executor, a.id, a.rows, a.bytes
	}
	return v
}

// Winner is the attempt that won a task, and the executor that ran it: where to fetch its output. ok is false while there is none, and while
// its output cannot be had.
func (g *Graph) Winner(id TaskID) (attempt, executor string, ok bool) {
	t := g.task(id)
	if t == nil || t.winner == nil || t.winner.gone || t.winner.orphan {
		return "", "", false
	}
	return t.winner.id, t.winner.executor, true
}

// Winners gives the winning attempt of each task that has one, in the order of the tasks. Complete says that each has: what a root reads
// or commits (S10).
func (g *Graph) Winners() (winners []string, complete bool) {
	complete = true
	for _, s := range g.stages {
		for _, t := range s.tasks {
			if t.winner == nil {
				complete = complete && s.skipped
				continue
			}
			winners = append(winners, t.winner.id)
		}
	}
	return winners, complete
}
