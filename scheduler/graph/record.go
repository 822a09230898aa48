package graph

import (
	"fmt"
	"slices"
)

// Record is the durable part of a job's graph, for encoding/json.
type Record struct {
	State    State           `json:"state"`
	Phase    Phase           `json:"phase,omitempty"`
	Root     RootKind        `json:"root,omitempty"`
	Durable  bool            `json:"durable,omitempty"`
	External bool            `json:"external,omitempty"`
	Finished bool            `json:"finished,omitempty"`
	Taken    bool            `json:"taken,omitempty"` // the root may have begun
	Asked    bool            `json:"asked,omitempty"`
	Released bool            `json:"released,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Failure  *Failure        `json:"failure,omitempty"`
	Stages   []StageRecord   `json:"stages,omitempty"`
	Attempts []AttemptRecord `json:"attempts,omitempty"` // oldest first
}

// StageRecord is one stage.
type StageRecord struct {
	Inputs []int32      `json:"inputs,omitempty"`
	Tasks  []TaskRecord `json:"tasks"`
}

// TaskRecord is one task's counters. Its state follows from its attempts.
type TaskRecord struct {
	Failures int      `json:"failures,omitempty"`
	Losses   int      `json:"losses,omitempty"`
	Avoid    []string `json:"avoid,omitempty"`
	LastErr  string   `json:"last_error,omitempty"`
}

// AttemptRecord is one attempt.
type AttemptRecord struct {
	ID       string `json:"id"`
	Task     TaskID `json:"task"`
	Executor string `json:"executor,omitempty"`
	State    string `json:"state"` // live, won, ended
	Reason   string `json:"reason,omitempty"`
	Rows     int64  `json:"rows,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
}

// Record copies the job's durable state.
func (g *Graph) Record() Record {
	out := Record{
		State: g.state, Phase: g.phase, Root: g.root, Durable: g.durable, External: g.external, Finished: g.finished,
		Taken: g.rootBegun(), Asked: g.asked, Released: g.released, Reason: g.reason, Failure: g.failure,
	}
	for _, s := range g.stages {
		sr := StageRecord{Inputs: s.inputs, Tasks: make([]TaskRecord, len(s.tasks))}
		for i, t := range s.tasks {
			sr.Tasks[i] = TaskRecord{Failures: t.failures, Losses: t.losses, Avoid: slices.Clone(t.avoid), LastErr: t.lastErr}
		}
		out.Stages = append(out.Stages, sr)
	}
	for _, id := range g.order {
		a := g.attempts[id]
		out.Attempts = append(out.Attempts, AttemptRecord{
			ID: a.id, Task: a.task, Executor: a.executor, State: string(a.state), Reason: a.reason, Rows: a.rows, Bytes: a.bytes,
		})
	}
	return out
}

// Restore makes the job that a record describes, in a new incarnation of the scheduler, and says what to do first. A job that was being
// planned is Queued again. Attempts on executors wait for ExecutorJoined or AdoptionExpired; one that was not sent yet is given up, and
// should an executor know it after all, it is refused. The root of a commit is due again, marked Resume, if it had begun.
func Restore(cfg Config, r Record) (*Graph, []Action, error) {
	g := New(cfg)
	g.state, g.phase, g.root, g.durable, g.external = r.State, r.Phase, r.Root, r.Durable, r.External
	g.finished, g.asked, g.reason, g.failure = r.Finished, r.Asked, r.Reason, r.Failure
	g.released = r.Released
	if g.state == Planning {
		g.state = Queued
	}
	for i, sr := range r.Stages {
		s := newStage(sr.Inputs, len(sr.Tasks))
		for j, tr := range sr.Tasks {
			s.tasks[j] = &task{id: TaskID{int32(i), int32(j)}, failures: tr.Failures, losses: tr.Losses, avoid: slices.Clone(tr.Avoid), lastErr: tr.LastErr}
		}
		g.stages = append(g.stages, s)
	}
	if err := g.restoreAttempts(r.Attempts); err != nil {
		return nil, nil, err
	}
	if g.state == Running {
		g.resume(r.Taken)
	}
	return g, g.out, nil
}

func (g *Graph) restoreAttempts(records []AttemptRecord) error {
	for _, ar := range records {
		t := g.task(ar.Task)
		if t == nil || g.attempts[ar.ID] != nil {
			return fmt.Errorf("attempt %s of task %s: no such task, or twice in the record", ar.ID, ar.Task)
		}
		a := &attempt{id: ar.ID, task: ar.Task, executor: ar.Executor, state: attemptState(ar.State), reason: ar.Reason, rows: ar.Rows, bytes: ar.Bytes}
		g.attempts[a.id] = a
		g.order = append(g.order, a.id)
		t.attempts = append(t.attempts, a.id)
		switch a.state {
		case attemptLive:
			a.orphan = true
			g.live++
			g.set(t, taskRunning)
		case attemptWon:
			if t.winner != "" {
				return fmt.Errorf("task %s has two winners, %s and %s", t.id, t.winner, a.id)
			}
			g.set(t, taskDone)
			t.winner = a.id
		case attemptEnded:
		default:
			return fmt.Errorf("attempt %s is %q, which is no state", ar.ID, ar.State)
		}
	}
	return nil
}

// resume goes on with a Running job.
func (g *Graph) resume(begun bool) {
	switch {
	case g.phase == PhaseStages:
		for _, id := range slices.Clone(g.order) {
			if a := g.attempts[id]; a.state == attemptLive && a.executor == "" {
				g.retry(id, "the scheduler restarted before it was sent")
			}
		}
		g.advance()
	case !begun:
		g.stagesDone(false)
	case g.root == RootCommit:
		g.resumed = true
		g.stagesDone(true)
		if g.asked {
			g.emit(CancelRoot{Reason: g.reason})
		}
	default:
		g.fail(Failure{Code: CodeRoot, Message: "the scheduler restarted while it ran the job's scheduler root", Hint: "look whether it took effect, then submit the statement again"})
	}
}
