package graph

import (
	"maps"
	"slices"
)

// Record is the durable part of a job's graph, for encoding/json.
type Record struct {
	State    State           `json:"state"`
	Phase    Phase           `json:"phase,omitempty"`
	Root     RootKind        `json:"root,omitempty"`
	More     bool            `json:"more,omitempty"`
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
	Inputs     []int32      `json:"inputs,omitempty"`
	Stored     bool         `json:"stored,omitempty"`
	Repeatable bool         `json:"repeatable,omitempty"`
	Freed      bool         `json:"freed,omitempty"`
	Generation int          `json:"generation,omitempty"`
	Losses     int          `json:"losses,omitempty"`
	LostFrom   []string     `json:"lost_from,omitempty"`
	Tasks      []TaskRecord `json:"tasks"`
}

// TaskRecord is one task's counters. Its state follows from its attempts.
type TaskRecord struct {
	Failures int      `json:"failures,omitempty"`
	Losses   int      `json:"losses,omitempty"`
	Reruns   int      `json:"reruns,omitempty"`
	Avoid    []string `json:"avoid,omitempty"`
	LastErr  string   `json:"last_error,omitempty"`
}

// AttemptRecord is one attempt.
type AttemptRecord struct {
	ID         string `json:"id"`
	Task       TaskID `json:"task"`
	Executor   string `json:"executor,omitempty"` // empty: not sent; UnknownExecutor: nobody has noted it
	State      string `json:"state"`              // live, won, ended
	Generation int    `json:"generation,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Gone       bool   `json:"gone,omitempty"` // it won, and its output cannot be had
	Rows       int64  `json:"rows,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"`
}

// Record copies the job's durable state.
func (g *Graph) Record() Record {
	out := Record{
		State: g.state, Phase: g.phase, Root: g.root, More: g.more, External: g.external, Finished: g.finished,
		Taken: g.rootBegun(), Asked: g.asked, Released: g.released, Reason: g.reason, Failure: g.failure,
	}
	for _, s := range g.stages {
		out.Stages = append(out.Stages, s.record())
	}
	for _, a := range g.order {
		out.Attempts = append(out.Attempts, AttemptRecord{
			ID: a.id, Task: a.task.id, Executor: a.executor, State: string(a.state), Generation: a.generation, Reason: a.reason, Gone: a.gone,
			Rows: a.rows, Bytes: a.bytes,
		})
	}
	return out
}

func (s *stage) record() StageRecord {
	sr := StageRecord{
		Inputs: s.inputs, Stored: s.stored, Repeatable: s.repeatable, Freed: s.freed, Generation: s.generation, Losses: s.losses,
		LostFrom: slices.Sorted(maps.Keys(s.lostFrom)), Tasks: make([]TaskRecord, len(s.tasks)),
	}
	for i, t := range s.tasks {
		sr.Tasks[i] = TaskRecord{Failures: t.failures, Losses: t.losses, Reruns: t.reruns, Avoid: slices.Clone(t.avoid), LastErr: t.lastErr}
	}
	return sr
}
