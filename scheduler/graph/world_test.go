package graph

import (
	"fmt"

	"pgregory.net/rapid"
)

// world drives a graph with events that may come from anywhere in any order, and keeps count of what the graph asked for.
type world struct {
	t        *rapid.T
	cfg      Config
	g        *Graph
	plan     Planned
	later    []StageSpec // added one by one
	next     int
	ids      []string       // every attempt that was launched or begun
	swept    map[string]int // times
	won      map[string]bool
	finishes []Finish
	runRoots int // in this incarnation
	takes    int // in this incarnation
	asked    bool
	freed    map[string]bool
	// content stands for the rows of an attempt: two attempts of a repeatable stage that read the same have the same.
	content map[string]string
	read    map[string]map[TaskID]string // what each attempt has read
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, swept: map[string]int{}, won: map[string]bool{}, freed: map[string]bool{}, content: map[string]string{}, read: map[string]map[TaskID]string{}}
	w.cfg = Config{
		MaxInFlight: rapid.IntRange(0, 3).Draw(t, "in flight"), MaxSpeculative: rapid.IntRange(0, 2).Draw(t, "speculative"),
		MaxLosses: rapid.SampledFrom([]int{0, 50}).Draw(t, "losses"), // so that some jobs see many
		NewAttempt: func() string {
			w.next++
			return fmt.Sprintf("a%d", w.next)
		},
	}
	w.g = New(w.cfg)
	w.plan = Planned{
		Root:     rapid.SampledFrom([]RootKind{RootNone, RootPlain, RootCommit}).Draw(t, "root"),
		External: rapid.IntRange(0, 9).Draw(t, "external") == 0,
	}
	if w.plan.External {
		w.plan.Stages = []StageSpec{{Tasks: rapid.IntRange(0, 3).Draw(t, "tasks")}}
		return w
	}
	n := rapid.IntRange(0, 4).Draw(t, "stages")
	for i := range n {
		spec := StageSpec{Tasks: rapid.IntRange(0, 3).Draw(t, "tasks"), Stored: i < n-1 || rapid.Bool().Draw(t, "stored"), Repeatable: rapid.Bool().Draw(t, "repeatable")}
		if i == n-1 && w.plan.Root == RootCommit {
			spec.Stored = false
		}
		for in := range i {
			if in == i-1 || rapid.Bool().Draw(t, "reads") {
				spec.Inputs = append(spec.Inputs, int32(in))
			}
		}
		w.plan.Stages = append(w.plan.Stages, spec)
	}
	if n > 0 && rapid.Bool().Draw(t, "adaptive") {
		w.later, w.plan.Stages = w.plan.Stages[1:], w.plan.Stages[:1]
		w.plan.More = true
	}
	return w
}

// addStages answers PlanMore, whether it was asked for or not.
func (w *world) addStages() {
	if len(w.later) == 0 {
		w.apply(StagesAdded{})
		return
	}
	if w.g.State() == Running && w.g.Snapshot().More {
		ev := StagesAdded{Stages: w.later[:1], More: len(w.later) > 1}
		w.later = w.later[1:]
		w.apply(ev)
	}
}

func (w *world) apply(ev Event) {
	if _, ok := ev.(StagesAdded); ok {
		w.asked = false
	}
	w.carryOut(fmt.Sprintf("%T%+v", ev, ev), func() []Action { return w.g.Apply(ev) })
}

// carryOut runs one step and checks what each single step must keep.
func (w *world) carryOut(what string, step func() []Action) {
	before := w.g.State()
	actions := step()
	for _, a := range actions {
		w.note(what, before, a)
	}
	w.check(what, before)
}

func (w *world) note(what string, before State, a Action) {
	t := w.t
	switch a := a.(type) {
	case Launch:
		w.launched(what, a)
	case PlanMore:
		if w.asked || w.g.State() != Running || !w.g.Snapshot().More {
			t.Fatalf("%s: asked for more stages twice, or in state %s", what, w.g.State())
		}
		w.asked = true
	case Reply:
		if a.Won == (a.Reason != "") {
			t.Fatalf("%s: %+v", what, a)
		}
		if a.Won {
			w.won[a.Attempt] = true
			delete(w.swept, a.Attempt) // if it had been given up, what was accepted is kept all the same
		}
	case Sweep:
		w.swept[a.Attempt]++
		if at := w.g.attempts[a.Attempt]; w.won[a.Attempt] && !at.task.stage.stored && w.g.State() != Failed && w.g.State() != Cancelled {
			t.Fatalf("%s: the winner %s is swept in state %s", what, a.Attempt, w.g.State())
		}
	case RunRoot:
		w.runRoots++
		if _, complete := w.g.Winners(); !complete || w.plan.Root == RootNone {
			t.Fatalf("%s: root runs on incomplete input", what)
		}
		w.consistent(what)
	case Finish:
		w.finishes = append(w.finishes, a)
		if before.Terminal() || a.State != w.g.State() || !a.State.Terminal() || (a.Failure != nil) != (a.State == Failed) {
			t.Fatalf("%s: %+v from %s", what, a, before)
		}
		if a.State == Successful {
			w.consistent(what)
		}
	case FreeData:
		for _, o := range a.Attempts {
			w.free(what, o)
		}
	}
}

// launched notes what the attempt reads: all of it must be there.
func (w *world) launched(what string, a Launch) {
	w.ids = append(w.ids, a.Attempt)
	if w.g.State() != Running || w.plan.External {
		w.t.Fatalf("%s: launch in state %s, external %v", what, w.g.State(), w.plan.External)
	}
	s := w.g.stages[a.Task.Stage]
	read := map[TaskID]string{}
	for _, in := range s.inputs {
		for _, p := range w.g.stages[in].tasks {
			id, _, ok := w.g.Winner(p.id)
			if !ok || p.stage.stored && w.freed[id] {
				w.t.Fatalf("%s: %s is launched and the output of %s (attempt %q) is not there", what, a.Attempt, p.id, id)
			}
			read[p.id] = w.content[id]
		}
	}
	w.read[a.Attempt] = read
	w.content[a.Attempt] = a.Attempt
	if s.repeatable {
		w.content[a.Attempt] = fmt.Sprint(a.Task, read) // maps print in order
	}
}

// free checks that nobody reads what is freed: no attempt that runs, no task that may still run, no root (S43, T6).
func (w *world) free(what string, o StoredAttempt) {
	a := w.g.attempts[o.Attempt]
	if a == nil || a.executor != o.Executor {
		return // of another job, or somebody else's copy
	}
	w.freed[o.Attempt] = true
	if a.state != attemptWon {
		return
	}
	s := a.task.stage
	if !s.stored {
		return // an executor says that it keeps what it need not
	}
	for _, r := range s.readers {
		if w.g.State() == Running && !r.complete() {
			w.t.Fatalf("%s: %s freed while stage %d is not complete", what, o.Attempt, r.id)
		}
	}
	if s.last() && w.g.State() == Running {
		w.t.Fatalf("%s: the root's input %s is freed while the job runs", what, o.Attempt)
	}
}

// consistent checks S73: every winner has read what its producers' winners hold, or the same rows.
func (w *world) consistent(what string) {
	for _, a := range w.g.order {
		if a.state != attemptWon {
			continue
		}
		for p, content := range w.read[a.id] {
			now := w.g.task(p).winner
			if now == nil && w.g.task(p).stage.skipped {
				continue // it was lost when nobody needed it any more
			}
			if now == nil || w.content[now.id] != content {
				w.t.Fatalf("%s: attempt %s of %s has read %q of %s, whose winner holds something else", what, a.id, a.task.id, content, p)
			}
		}
	}
}

func (w *world) check(what string, before State) {
	t, g := w.t, w.g
	if before.Terminal() && g.State() != before {
		t.Fatalf("%s: %s became %s", what, before, g.State())
	}
	if len(w.finishes) > 1 || w.runRoots > 1 || w.takes > 1 {
		t.Fatalf("%s: %d ends, %d roots, %d takes", what, len(w.finishes), w.runRoots, w.takes)
	}
	var live, waiting int
	var rows int64
	for _, a := range g.order {
		if w.swept[a.id] > 1 || (w.swept[a.id] == 1) != (a.state == attemptEnded) {
			t.Fatalf("%s: attempt %s is %s and was swept %d times", what, a.id, a.state, w.swept[a.id])
		}
		_, held := g.held[a.executor][a]
		if want := a.executor != "" && (a.state == attemptLive || a.state == attemptWon && a.task.stage.stored && !a.task.stage.freed && !a.gone); held != want {
			t.Fatalf("%s: attempt %s (%s, executor %q) in the index: %v", what, a.id, a.state, a.executor, held)
		}
		if a.state != attemptEnded {
			rows += a.rows
		}
		if a.state == attemptLive {
			live++
			if a.executor == "" {
				waiting++
			}
			if g.State().Terminal() {
				t.Fatalf("%s: attempt %s lives on", what, a.id)
			}
		}
	}
	if live != g.live || waiting != g.waiting || rows != g.rows || w.cfg.MaxInFlight > 0 && !w.plan.External && live > w.cfg.MaxInFlight {
		t.Fatalf("%s: %d live, counted %d; %d waiting, counted %d; %d rows, counted %d", what, live, g.live, waiting, g.waiting, rows, g.rows)
	}
	doubled := 0
	for _, s := range g.stages {
		w.checkStage(what, s)
		for _, tk := range s.tasks {
			if tk.live > 1 {
				doubled++
			}
		}
	}
	if doubled != g.doubled || !w.plan.External && doubled > w.cfg.MaxSpeculative {
		t.Fatalf("%s: %d tasks with several attempts, counted %d", what, doubled, g.doubled)
	}
}

func (w *world) checkStage(what string, s *stage) {
	var done, pend, gone, absent int
	for _, tk := range s.tasks {
		if (tk.state == taskDone) != (tk.winner != nil) {
			w.t.Fatalf("%s: task %s is %q with winner %v", what, tk.id, tk.state, tk.winner)
		}
		live := 0
		for _, a := range tk.attempts {
			if a.state == attemptLive {
				live++
			}
		}
		if live != tk.live || (live > 0) != (tk.state == taskRunning) && w.g.State() == Running {
			w.t.Fatalf("%s: task %s is %q with %d live attempts, counted %d", what, tk.id, tk.state, live, tk.live)
		}
		switch tk.state {
		case taskDone:
			done++
			if tk.winner.gone {
				gone++
			}
			if tk.winner.gone || tk.winner.orphan {
				absent++
			}
		case taskPending:
			pend++
		}
	}
	if done != s.done || pend != s.pend || s.stored && w.g.State() == Running && (gone != s.gone || absent != s.absent) {
		w.t.Fatalf("%s: stage %d counts %d %d %d %d, are %d %d %d %d", what, s.id, s.done, s.pend, s.gone, s.absent, done, pend, gone, absent)
	}
	if s.gone > 0 && w.g.State() == Running && w.g.Phase() == PhaseStages && s.needed() {
		w.t.Fatalf("%s: an output of stage %d is gone and needed, and is not made again", what, s.id)
	}
}
