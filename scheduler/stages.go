package scheduler

import (
	"crypto/rand"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/plan"
)

// kept is what a task's winner has left on its executor for later stages.
type kept struct {
	stage, task       int32
	executor, address string
	rows, bytes       int64
	output            *planv1.ExchangeOutput
}

// partIndex is the output of a complete stage by partition, in the order of its tasks.
type partIndex map[int32][]*planv1.ExchangePart

// take makes runnable stages of planned ones.
func (l *loop) take(b plan.Batch) error {
	for _, st := range b.Stages {
		tasks := make([]*planv1.Task, st.Tasks())
		for i := range tasks {
			tasks[i] = st.Task(i)
			tasks[i].JobId = l.j.id
			if l.check != nil {
				asCheck(tasks[i])
			}
			if ex := tasks[i].GetExchange(); ex != nil {
				ex.Ticket = l.ticket()
			}
			if res := tasks[i].GetResult(); res != nil {
				l.keepRows(res)
			}
		}
		for _, t := range tasks {
			l.bytes += int64(proto.Size(t))
		}
		if limit := int64(l.s.cfg.Limits.MaxPlanBytes); limit > 0 && l.bytes > limit {
			return fail(codeResource, "set signet.max_tasks lower, or raise the setting", "the plan's tasks have more than %d bytes, the value of limits.max_plan_bytes", limit)
		}
		l.add(stageRun{tasks: tasks, inputs: st.Inputs, repeatable: st.Repeatable})
	}
	return nil
}

func (l *loop) add(st stageRun) {
	st.firstInfo = len(l.infos)
	l.stages = append(l.stages, st)
	for _, t := range st.tasks {
		l.infos = append(l.infos, &schedulerv1.TaskInfo{Stage: t.Stage, Task: t.Task, State: "pending"})
	}
	if st.stored() {
		l.j.stored.Store(true)
	}
	l.j.view.planned(st.tasks)
}

// ticket is what lets one fetch the job's outputs. All stages have the same.
func (l *loop) ticket() string {
	for _, st := range l.stages {
		if st.stored() {
			return st.tasks[0].GetExchange().GetTicket()
		}
	}
	return newTicket()
}

func newTicket() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (l *loop) specs(from int) []graph.StageSpec {
	var out []graph.StageSpec
	for _, st := range l.stages[from:] {
		out = append(out, graph.StageSpec{Tasks: len(st.tasks), Inputs: st.inputs, Stored: st.stored(), Repeatable: st.repeatable})
	}
	return out
}

// launches makes the attempts that actions ask for, with the parts that they read.
func (l *loop) launches(actions []graph.Action) []*planv1.Task {
	var out []*planv1.Task
	clear(l.rows)
	for _, a := range actions {
		if a, ok := a.(graph.Launch); ok {
			l.touched[a.Task] = true
			if a.Generation > 0 {
				l.generation[a.Attempt] = a.Generation
			}
			if len(a.Avoid) > 0 {
				l.avoid[a.Attempt] = a.Avoid
			}
			out = append(out, l.attempt(l.stages[a.Task.Stage].tasks[a.Task.Task], a.Attempt))
		}
	}
	return out
}

func (l *loop) attempt(t *planv1.Task, id string) *planv1.Task {
	var out *planv1.Task
	if t.GetWrite() != nil {
		out = l.w.attemptTask(t, id)
	} else {
		out = &planv1.Task{JobId: l.j.id, Stage: t.Stage, Task: t.Task, AttemptId: id, Epoch: l.s.journal.Epoch(), Sql: t.Sql, Work: t.Work}
	}
	out.Sources = plan.FillParts(t.Sources, func(stage, partition int32) []*planv1.ExchangePart { return l.parts(stage)[partition] })
	return out
}

// parts is what the winners of a stage have left: one attempt for each task (T1).
func (l *loop) parts(stage int32) partIndex {
	if idx, ok := l.rows[stage]; ok {
		return idx
	}
	idx := partIndex{}
	for i, t := range l.stages[stage].tasks {
		id, _, ok := l.g.Winner(graph.TaskID{Stage: stage, Task: int32(i)}) //nolint:gosec // as many as were planned
		k := l.kept[id]
		if !ok || k == nil {
			continue // the graph launches nothing before every task has one
		}
		for _, p := range k.output.GetPartitions() {
			idx[p.Partition] = append(idx[p.Partition], &planv1.ExchangePart{
				Task: t.Task, AttemptId: id, Partition: p.Partition, ExecutorId: k.executor, Address: k.address, Ticket: t.GetExchange().GetTicket(),
				Rows: p.Rows, Bytes: p.Bytes, Sha256: p.Sha256,
			})
		}
	}
	l.rows[stage] = idx
	return idx
}

// measures is the output of every stage that keeps it.
func (l *loop) measures() map[int32]plan.Measure {
	out := map[int32]plan.Measure{}
	for i := range l.stages {
		if !l.stages[i].stored() {
			continue
		}
		n := l.stages[i].tasks[0].GetExchange().GetPartitions()
		m := plan.Measure{Rows: make([]int64, n), Bytes: make([]int64, n)}
		for p, parts := range l.parts(int32(i)) { //nolint:gosec // few
			for _, part := range parts {
				m.Rows[p] += part.Rows
				m.Bytes[p] += part.Bytes
			}
		}
		out[int32(i)] = m //nolint:gosec // few
	}
	return out
}

// keep notes what an attempt has left.
func (l *loop) keep(ev taskDone) {
	if ev.output == nil {
		return
	}
	id, ok := l.g.TaskOf(ev.attempt)
	if !ok {
		return
	}
	if task := l.stages[id.Stage].tasks[id.Task]; task.GetResult() != nil {
		l.locate(ev, task)
		return
	}
	if !l.stages[id.Stage].stored() {
		return
	}
	slices.SortFunc(ev.output.Partitions, func(a, b *planv1.ExchangePartition) int { return int(a.Partition - b.Partition) })
	l.kept[ev.attempt] = &kept{
		stage: id.Stage, task: id.Task, executor: ev.executor, address: l.s.pool.Address(ev.executor), rows: ev.rows, bytes: ev.bytes, output: ev.output,
	}
	if l.w != nil {
		l.unsaved = append(l.unsaved, ev.attempt)
	}
}

// forget drops what an attempt has left: it was given up.
func (l *loop) forget(attempt string) {
	k := l.kept[attempt]
	delete(l.kept, attempt)
	delete(l.generation, attempt)
	if k != nil {
		l.s.pool.Free(k.executor, l.j.id, []string{attempt})
	}
}

// free lets executors go of outputs. While a root reads they stay: it may be cancelled and still be reading (S43, T6).
func (l *loop) free(attempts []graph.StoredAttempt) {
	if mutant.On("scheduler/nothing-freed") {
		return
	}
	byExecutor := map[string][]string{}
	for _, a := range attempts {
		executor := a.Executor
		if k := l.kept[a.Attempt]; k != nil {
			executor = k.executor
		}
		byExecutor[executor] = append(byExecutor[executor], a.Attempt)
	}
	if l.root.running() {
		return // all of the job's outputs are freed at its end
	}
	for executor, ids := range byExecutor {
		l.s.pool.Free(executor, l.j.id, ids)
	}
}

// touch marks the task of an attempt as changed.
func (l *loop) touch(attempt string) {
	if l.g == nil {
		return
	}
	if id, ok := l.g.TaskOf(attempt); ok {
		l.touched[id] = true
	}
}

// publish lets others see what has changed.
func (l *loop) publish() {
	snap := l.g.Snapshot()
	stages := int32(snap.Stages) //nolint:gosec // few
	if l.rootKind() != graph.RootNone {
		stages++ // the scheduler's own, last
	}
	changed, attempts := make([]*schedulerv1.TaskInfo, 0, len(l.touched)), make([]string, 0, len(l.touched))
	for id := range l.touched {
		v, ok := l.g.TaskView(id)
		if !ok {
			continue
		}
		executor := v.Executor
		if executor == "" || executor == graph.UnknownExecutor {
			executor = l.s.pool.Holder(v.Attempt)
		}
		attempts = append(attempts, v.Attempt)
		changed = append(changed, &schedulerv1.TaskInfo{
			Stage: v.Stage, Task: v.Task, State: v.State, Attempts: int32(v.Attempts), Executor: executor, Rows: v.Rows, Bytes: v.Bytes, Error: v.LastErr, //nolint:gosec // few
		})
	}
	clear(l.touched)
	l.j.update(func() {
		l.j.tasks = l.infos
		l.j.attempts = append(l.j.attempts, make([]string, len(l.infos)-len(l.j.attempts))...)
		for n, t := range changed {
			at := l.stages[t.Stage].firstInfo + int(t.Task)
			l.infos[at], l.j.attempts[at] = t, attempts[n]
		}
		p := &l.j.progress
		p.Stages, p.StagesDone, p.Tasks, p.TasksDone = stages, int32(snap.StagesDone), int32(snap.Tasks), int32(snap.TasksDone) //nolint:gosec // few
		p.Running, p.Rows, p.Bytes = int32(min(snap.Running+snap.Waiting, snap.Tasks-snap.TasksDone)), snap.Rows, snap.Bytes    //nolint:gosec // few
	})
}
