package sim

import (
	"math/rand/v2"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
)

// chooser draws the steps of a schedule. Most of them let the world go on; the others are what goes wrong.
type chooser struct {
	w     *World
	rnd   *rand.Rand
	wrong int  // in a hundred
	lazy  bool // loops lag behind what is reported to them
	ops   []Op // each as often as it is likely
	buf   []Step
}

// faults says how likely what goes wrong is, compared to each other, by the profile of the world.
var faults = [profiles]map[Op]int{
	{
		OpLose: 10, OpRepeat: 10, OpCancel: 2, OpPlanFails: 1, OpStraggle: 12, OpLost: 8, OpCrash: 2, OpFuse: 4, OpFull: 1, OpKill: 3, OpGiveUp: 1, OpFail: 10,
		OpNoPart: 5, OpDie: 8, OpDrain: 3, OpLapse: 2, OpTwice: 2, OpDeny: 1, OpOther: 3, OpRollback: 2, OpTimeout: 2,
	},
	{
		OpLose: 14, OpRepeat: 14, OpCancel: 6, OpStraggle: 8, OpLost: 4, OpCrash: 2, OpFuse: 6, OpFull: 2, OpKill: 6, OpGiveUp: 2, OpFail: 2, OpDie: 2, OpLapse: 4, OpTwice: 8,
		OpDeny: 14, OpOther: 10, OpRollback: 8, OpTimeout: 16, OpResolve: 8,
	},
	{OpLost: 10, OpDie: 10, OpNoPart: 8, OpLose: 4, OpStraggle: 4, OpFuse: 3, OpCrash: 3, OpKill: 1, OpOther: 1},
}

func newChooser(w *World, seed uint64) *chooser {
	c := &chooser{w: w, rnd: rand.New(rand.NewPCG(seed, 2))} //nolint:gosec // it has to be the same every time
	c.wrong = []int{3, 7, 14, 30}[c.rnd.IntN(4)]
	c.lazy = c.rnd.IntN(3) == 0 || w.profile == profileLoss
	for op := range opCount {
		for range faults[w.profile][op] {
			c.ops = append(c.ops, op)
		}
	}
	return c
}

func (c *chooser) next() (Step, bool) {
	if c.rnd.IntN(100) < c.wrong {
		return c.fault()
	}
	c.buf = c.w.ready(c.buf[:0])
	if len(c.buf) == 0 || c.rnd.IntN(12) == 0 {
		c.buf = c.w.overdue(c.buf)
	}
	if len(c.buf) == 0 {
		return c.fault()
	}
	s := c.buf[c.rnd.IntN(len(c.buf))]
	return s, s.Op != OpLoop || !c.lazy || c.rnd.IntN(4) == 0
}

// ready lists the steps that let the world go on.
func (w *World) ready(out []Step) []Step {
	for _, e := range w.execs[1:] {
		switch {
		case !e.up:
			out = append(out, Step{Op: OpBegin, Exec: e.n})
		case !e.joined && w.sched != nil:
			out = append(out, Step{Op: OpJoin, Exec: e.n})
		}
		for _, t := range e.tasks {
			switch t.state {
			case fetching:
				out = append(out, Step{Op: OpFetch, Job: t.att.job, Att: t.att.n, Exec: e.n})
			case working:
				out = append(out, Step{Op: OpWork, Job: t.att.job, Att: t.att.n, Exec: e.n})
			}
		}
	}
	for _, m := range w.net {
		out = append(out, m.step(OpDeliver))
	}
	if w.sched == nil {
		return append(out, Step{Op: OpStart})
	}
	for _, j := range w.jobs[1:] {
		if r := w.runOf(j.n); r != nil {
			out = w.readyOf(r, out)
		} else if !j.submitted {
			out = append(out, Step{Op: OpSubmit, Job: j.n})
		}
	}
	return out
}

func (w *World) readyOf(r *run, out []Step) []Step {
	add := func(op Op) { out = append(out, Step{Op: op, Job: r.n}) }
	if len(r.queue) > 0 {
		add(OpLoop)
		add(OpLoop) // or queues only grow
	}
	if r.planning {
		add(OpPlan)
	}
	if len(r.waiting) > 0 {
		for _, e := range w.execs[1:] {
			if e.joined && !e.draining && len(e.tasks) < slots {
				out = append(out, Step{Op: OpDispatch, Job: r.n, Exec: e.n})
			}
		}
	}
	for _, m := range r.checked {
		out = append(out, Step{Op: OpAccept, Job: r.n, Att: m.att.n})
	}
	if r.due {
		add(OpRoot)
	}
	if r.external && r.g.Phase() == graph.PhaseStages {
		if r.m.State() == coordinator.Ready {
			add(OpFinish)
		} else if len(w.net)+len(r.checked) < 10 {
			for t := range r.stages[0].Tasks {
				out = append(out, Step{Op: OpWrite, Job: r.n, Arg: t + 1})
			}
		}
	}
	if r.rootRuns {
		add(OpRead)
	}
	if r.calling {
		add(OpLoad)
		if r.view != nil {
			add(OpSeal)
			add(OpSeal)
		}
	}
	return out
}

// overdue lists what happens when time has passed.
func (w *World) overdue(out []Step) []Step {
	for _, e := range w.execs[1:] {
		for _, t := range e.tasks {
			if t.state >= reported {
				out = append(out, Step{Op: OpReport, Job: t.att.job, Att: t.att.n, Exec: e.n})
			}
		}
		if e.draining {
			out = append(out, Step{Op: OpLeave, Exec: e.n})
		}
	}
	for _, d := range w.jrn.duties {
		out = append(out, Step{Op: OpSweep, Job: d.att.job, Att: d.att.n})
	}
	if w.sched == nil {
		return out
	}
	for _, p := range w.sched.known {
		if e := w.execs[p.exec]; !p.lost && (!e.up || e.gen != p.gen) {
			out = append(out, Step{Op: OpLost, Exec: p.exec, Arg: p.gen})
		}
	}
	for _, r := range w.sched.jobs {
		if r == nil {
			continue
		}
		if r.orphans {
			out = append(out, Step{Op: OpExpire, Job: r.n})
		}
		if r.m != nil && r.m.State() == coordinator.Resolving {
			out = append(out, Step{Op: OpResolve, Job: r.n})
		}
		if r.told != "" && !r.collected {
			out = append(out, Step{Op: OpCollect, Job: r.n})
		}
	}
	return out
}

// fault draws something that goes wrong; false: this time it cannot.
func (c *chooser) fault() (Step, bool) {
	w, rnd := c.w, c.rnd
	s := Step{Op: c.ops[rnd.IntN(len(c.ops))]}
	switch s.Op {
	case OpLose, OpRepeat:
		if len(w.net) == 0 {
			return s, false
		}
		if m := w.lastCommit(); m != nil && rnd.IntN(2) == 0 {
			return m.step(s.Op), true
		}
		return w.net[rnd.IntN(len(w.net))].step(s.Op), true
	case OpTwice, OpDeny:
		if m := w.lastCommit(); m != nil && m.kind == mRequest {
			t := m.step(s.Op)
			t.Arg = 0
			return t, true
		}
		return s, false
	case OpOther:
		s.Job = 1 + rnd.IntN(len(w.tables))
	case OpRollback:
		s.Job, s.Arg = 1+rnd.IntN(len(w.tables)), rnd.IntN(3)
	case OpFuse:
		s.Arg = 1 + rnd.IntN(12)
	case OpFull:
		s.Arg = 1 + rnd.IntN(2)
	case OpCrash, OpKill:
	case OpFail, OpNoPart:
		return c.task(s)
	case OpDie, OpDrain:
		s.Exec = 1 + rnd.IntN(len(w.execs)-1)
	case OpLost:
		if w.sched == nil || len(w.sched.known) == 0 {
			return s, false
		}
		p := w.sched.known[rnd.IntN(len(w.sched.known))]
		if rnd.IntN(3) > 0 {
			p = c.needed(p)
		}
		s.Exec, s.Arg = p.exec, p.gen
	case OpTimeout, OpLapse:
		state := coordinator.Sealed
		if s.Op == OpLapse {
			state = coordinator.Committing
		}
		for _, j := range w.jobs[1:] {
			if r := w.runOf(j.n); r != nil && r.m != nil && r.m.State() == state {
				return Step{Op: s.Op, Job: j.n}, true
			}
		}
		return s, false
	default:
		s.Job = 1 + rnd.IntN(len(w.jobs)-1)
		if s.Op == OpStraggle {
			s.Att = len(w.jobs[s.Job].atts) - 1 - rnd.IntN(3)
			return s, s.Att > 0
		}
	}
	return s, true
}

// needed is an executor whose outputs a root reads, or have been read by an attempt that has not ended, if there is one: the loss that hurts
// most.
func (c *chooser) needed(other *process) *process {
	var from []string
	for _, r := range c.w.sched.jobs {
		if r == nil || !r.rootRuns {
			continue
		}
		for t := range r.stages[r.last()].Tasks {
			if _, id, ok := r.g.Winner(graph.TaskID{Stage: r.last(), Task: int32(t)}); ok { //nolint:gosec // few
				from = append(from, id)
			}
		}
	}
	for _, e := range c.w.execs[1:] {
		for _, t := range e.tasks {
			if t.state == working || t.state == reported {
				for _, p := range t.parts {
					from = append(from, p.exec)
				}
			}
		}
	}
	if len(from) == 0 {
		return other
	}
	id := from[c.rnd.IntN(len(from))]
	for _, p := range c.w.sched.known {
		if p.id == id {
			return p
		}
	}
	return other
}

// lastCommit is the newest request to a catalog, or answer of one, on its way.
func (w *World) lastCommit() *message {
	for i := len(w.net) - 1; i >= 0; i-- {
		if w.net[i].req != nil {
			return w.net[i]
		}
	}
	return nil
}

func (c *chooser) task(s Step) (Step, bool) {
	e := c.w.execs[1+c.rnd.IntN(len(c.w.execs)-1)]
	if len(e.tasks) == 0 {
		return s, false
	}
	a := e.tasks[c.rnd.IntN(len(e.tasks))].att
	s.Job, s.Att, s.Exec = a.job, a.n, e.n
	if s.Op == OpFail {
		s.Arg = int([]planv1.ErrorClass{
			planv1.ErrorClass_ERROR_CLASS_IO, planv1.ErrorClass_ERROR_CLASS_RESOURCE, planv1.ErrorClass_ERROR_CLASS_INTERNAL,
			planv1.ErrorClass_ERROR_CLASS_KILLED, planv1.ErrorClass_ERROR_CLASS_KILLED, planv1.ErrorClass_ERROR_CLASS_KILLED,
		}[c.rnd.IntN(6)])
	}
	return s, true
}
