package graph

import (
	"container/heap"
	"fmt"
)

type stage struct {
	id         int32
	inputs     []int32
	readers    []*stage
	stored     bool
	repeatable bool
	tasks      []*task
	done       int
	pend       int       // tasks that wait to be launched
	queue      taskQueue // they, and perhaps some that no longer wait

	gone   int  // winners whose output is gone
	absent int  // they, and those whose executor has not come back after a restart
	freed  bool // nobody will need the outputs again
	closed bool // no task of it will run again
	// After a restart: nobody will read it, though not all of it is there; and what its tasks give may differ from what was read of it.
	skipped, replaced bool
	// generation counts how often what its tasks read was replaced by something else. Attempts of two are never mixed (S73).
	generation int
	losses     int            // times that its input had to be made again
	lostFrom   map[string]int // executors that lost some of its input, and how many attempts there were when that was counted
	lossEvent  int            // the last event that was counted
}

func newStage(id int32, spec StageSpec) *stage {
	n := max(spec.Tasks, 0)
	s := &stage{id: id, inputs: spec.Inputs, stored: spec.Stored, repeatable: spec.Repeatable, tasks: make([]*task, n), pend: n}
	all := make([]task, n)
	for i := range s.tasks {
		all[i] = task{id: TaskID{Stage: id, Task: int32(i)}, stage: s} //nolint:gosec // as many as were planned
		s.tasks[i] = &all[i]
	}
	return s
}

func (s *stage) complete() bool {
	return s.done == len(s.tasks) || s.skipped || mutated("incomplete") && s.done > 0 && s.done == len(s.tasks)-1
}

// last tells whether no stage reads its output: the root does, or the client.
func (s *stage) last() bool { return len(s.readers) == 0 }

func (s *stage) reads(p *stage) bool {
	for _, r := range p.readers {
		if r == s {
			return true
		}
	}
	return false
}

func (s *stage) count(state taskState, by int) {
	switch state {
	case taskDone:
		s.done += by
	case taskPending:
		s.pend += by
	}
}

// next takes the first task that waits.
func (s *stage) next() *task {
	for len(s.queue) > 0 {
		t := heap.Pop(&s.queue).(*task)
		t.queued = false
		if t.state == taskPending {
			return t
		}
	}
	return nil
}

func (s *stage) enqueue(t *task) {
	if !t.queued {
		t.queued = true
		heap.Push(&s.queue, t)
	}
}

// fill queues every task that waits.
func (s *stage) fill() {
	for _, t := range s.tasks {
		if t.state == taskPending {
			s.enqueue(t)
		}
	}
}

// taskQueue is a heap by number: a task that runs again does so before those that never ran.
type taskQueue []*task

func (q taskQueue) Len() int           { return len(q) }
func (q taskQueue) Less(i, j int) bool { return q[i].id.Task < q[j].id.Task }
func (q taskQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *taskQueue) Push(t any)        { *q = append(*q, t.(*task)) }
func (q *taskQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	*q = old[:len(old)-1]
	return t
}

func (g *Graph) planned(e Planned) {
	if g.state != Queued && g.state != Planning {
		return // cancelled while it was planned (T3), or planned twice
	}
	g.state, g.phase = Running, PhaseStages
	g.root, g.external, g.more = e.Root, e.External, e.More
	g.addStages(e.Stages)
}

func (g *Graph) stagesAdded(e StagesAdded) {
	if g.state != Running || g.phase != PhaseStages || !g.more {
		return // nobody waits for them
	}
	g.more, g.planning = e.More, false
	g.addStages(e.Stages)
}

func (g *Graph) planFailed(e PlanFailed) {
	if g.state == Queued || g.state == Planning || g.state == Running && g.phase == PhaseStages && g.more {
		g.fail(e.Failure)
	}
}

func (g *Graph) addStages(specs []StageSpec) {
	g.dirty = true
	for _, spec := range specs {
		s := newStage(int32(len(g.stages)), spec) //nolint:gosec // as many as were planned
		if err := g.link(s); err != nil {
			g.fail(Failure{Code: CodeInternal, Message: err.Error(), Hint: "this is a defect of the planner"})
			return
		}
		s.fill()
	}
}

// link appends a stage and ties it to those it reads.
func (g *Graph) link(s *stage) error {
	for _, in := range s.inputs {
		if in < 0 || in >= s.id {
			return fmt.Errorf("the plan is no plan: stage %d reads stage %d, which does not stand before it", s.id, in)
		}
	}
	g.stages = append(g.stages, s)
	for _, in := range s.inputs {
		if p := g.stages[in]; !s.reads(p) {
			p.readers = append(p.readers, s)
		}
	}
	return nil
}
