package graph

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"pgregory.net/rapid"
)

// world drives a graph with events that may come from anywhere in any order, and keeps count of what the graph asked for.
type world struct {
	t        *rapid.T
	cfg      Config
	g        *Graph
	plan     Planned
	next     int
	ids      []string       // every attempt that was launched or begun
	swept    map[string]int // times
	won      map[string]bool
	finishes []Finish
	runRoots int // in this incarnation
	takes    int // in this incarnation
	freed    map[int32]int
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, swept: map[string]int{}, won: map[string]bool{}, freed: map[int32]int{}}
	w.cfg = Config{MaxInFlight: rapid.IntRange(0, 3).Draw(t, "in flight"), NewAttempt: func() string {
		w.next++
		return fmt.Sprintf("a%d", w.next)
	}}
	w.g = New(w.cfg)
	w.plan = Planned{
		Root:     rapid.SampledFrom([]RootKind{RootNone, RootPlain, RootCommit}).Draw(t, "root"),
		Durable:  rapid.Bool().Draw(t, "durable"),
		External: rapid.IntRange(0, 4).Draw(t, "external") == 0,
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "stages") {
		spec := StageSpec{Tasks: rapid.IntRange(0, 3).Draw(t, "tasks")}
		if i > 0 {
			spec.Inputs = []int32{int32(i - 1)}
		}
		w.plan.Stages = append(w.plan.Stages, spec)
	}
	return w
}

func (w *world) apply(ev Event) {
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
		w.ids = append(w.ids, a.Attempt)
		if w.g.State() != Running || w.plan.External {
			t.Fatalf("%s: launch in state %s, external %v", what, w.g.State(), w.plan.External)
		}
	case Reply:
		if a.Won == (a.Reason != "") {
			t.Fatalf("%s: %+v", what, a)
		}
		if a.Won {
			w.won[a.Attempt] = true
		}
	case Sweep:
		w.swept[a.Attempt]++
		if w.won[a.Attempt] && (w.plan.Durable || w.plan.Root == RootCommit) && w.g.State() != Failed && w.g.State() != Cancelled {
			t.Fatalf("%s: the winner %s is swept in state %s", what, a.Attempt, w.g.State())
		}
	case RunRoot:
		w.runRoots++
		if _, complete := w.g.Winners(); !complete || w.plan.Root == RootNone {
			t.Fatalf("%s: root runs on incomplete input", what)
		}
	case Finish:
		w.finishes = append(w.finishes, a)
		if before.Terminal() || a.State != w.g.State() || !a.State.Terminal() || (a.Failure != nil) != (a.State == Failed) {
			t.Fatalf("%s: %+v from %s", what, a, before)
		}
	case FreeData:
		for _, s := range a.Stages {
			w.freed[s]++
		}
		if !w.g.State().Terminal() {
			t.Fatalf("%s: data freed in state %s", what, w.g.State())
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
	live := 0
	for _, id := range g.order {
		a := g.attempts[id]
		if w.swept[id] > 1 || (w.swept[id] == 1) != (a.state == attemptEnded) {
			t.Fatalf("%s: attempt %s is %s and was swept %d times", what, id, a.state, w.swept[id])
		}
		if a.state == attemptLive {
			live++
			if g.State().Terminal() {
				t.Fatalf("%s: attempt %s lives on", what, id)
			}
		}
	}
	if live != g.live || w.cfg.MaxInFlight > 0 && !w.plan.External && live > w.cfg.MaxInFlight {
		t.Fatalf("%s: %d live, counted %d", what, live, g.live)
	}
	for _, s := range g.stages {
		done, pend := 0, 0
		for _, tk := range s.tasks {
			if (tk.state == taskDone) != (tk.winner != "") {
				t.Fatalf("%s: task %s is %q with winner %q", what, tk.id, tk.state, tk.winner)
			}
			if tk.state == taskDone {
				done++
			}
			if tk.state == taskPending {
				pend++
			}
		}
		if done != s.done || pend != s.pend {
			t.Fatalf("%s: counts %d %d, are %d %d", what, s.done, s.pend, done, pend)
		}
	}
	for s, n := range w.freed {
		if n > 1 {
			t.Fatalf("%s: stage %d freed %d times", what, s, n)
		}
	}
}

func (w *world) attempt() string {
	if len(w.ids) == 0 {
		return "none"
	}
	return rapid.SampledFrom(w.ids).Draw(w.t, "attempt")
}

func (w *world) executor() string {
	return rapid.SampledFrom([]string{"e1", "e2", "e3"}).Draw(w.t, "executor")
}

func (w *world) take() {
	if err := w.g.TakeRoot(); err == nil {
		w.takes++
		if w.g.State() != Running || w.runRoots == 0 {
			w.t.Fatalf("root taken in state %s after %d RunRoot", w.g.State(), w.runRoots)
		}
	}
}

func (w *world) restart() {
	data, err := json.Marshal(w.g.Record())
	if err != nil {
		w.t.Fatal(err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		w.t.Fatal(err)
	}
	w.runRoots, w.takes = 0, 0
	w.carryOut("restart", func() []Action {
		g, actions, err := Restore(w.cfg, r)
		if err != nil {
			w.t.Fatal(err)
		}
		w.g = g
		return actions
	})
}

// step does something, likely or not.
func (w *world) step() {
	switch rapid.IntRange(0, 21).Draw(w.t, "step") {
	case 0:
		w.apply(PlanStarted{})
	case 1, 2:
		w.apply(w.plan)
	case 3, 4:
		w.apply(Launched{w.attempt(), w.executor()})
	case 5, 6, 7:
		w.apply(TaskSucceeded{Attempt: w.attempt(), Rows: 1})
	case 8:
		w.apply(TaskFailed{Attempt: w.attempt(), Class: planv1.ErrorClass(rapid.IntRange(0, 6).Draw(w.t, "class")), Message: "m"})
	case 9:
		w.apply(TaskLost{w.attempt(), "r"})
	case 10:
		w.apply(LaunchFailed{w.attempt(), "r"})
	case 11:
		w.apply(ExecutorLost{w.executor(), "r"})
	case 12:
		w.apply(ExecutorJoined{w.executor(), []string{w.attempt(), w.attempt()}})
	case 13:
		w.apply(AdoptionExpired{})
	case 14:
		if rapid.IntRange(0, 2).Draw(w.t, "cancel") == 0 {
			w.apply(Cancel{"c"})
		}
	case 15:
		w.begin()
	case 16:
		w.apply(WriteFinished{})
	case 17:
		w.take()
	case 18:
		w.apply(rapid.SampledFrom([]Event{
			RootSucceeded{}, RootFailed{Failure{Message: "f"}}, RootResolving{true}, RootResolving{}, RootCancelled{}, RootCancelRefused{"late"},
		}).Draw(w.t, "root"))
	case 19:
		w.restart()
	case 20:
		w.apply(ResultReleased{})
	case 21:
		w.apply(Progress{Attempt: w.attempt(), Rows: 5})
	}
}

// begin begins an external attempt.
func (w *world) begin() {
	if !w.plan.External {
		return
	}
	id := w.cfg.NewAttempt()
	w.apply(AttemptBegun{Task: TaskID{0, int32(rapid.IntRange(0, 3).Draw(w.t, "task"))}, Attempt: id, Executor: "x"})
	if w.g.attempts[id] != nil {
		w.ids = append(w.ids, id)
	}
}

// TestGraph_AnyEvents_Property: whatever comes, in whatever order, with restarts in between, every single step keeps the invariants of
// doc.go; and from wherever that leads, a world that works brings the job to an end in which every attempt is a winner of a successful job, or swept.
func TestGraph_AnyEvents_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.step()
		}
		w.settle()
		for _, id := range w.ids {
			won := w.g.attempts[id].state == attemptWon
			if won == (w.swept[id] == 1) || won && w.g.State() != Successful {
				t.Fatalf("attempt %s in a %s job: won %v, swept %d times", id, w.g.State(), won, w.swept[id])
			}
		}
		if len(w.finishes) != 1 {
			t.Fatalf("finished %d times", len(w.finishes))
		}
	})
}

func (w *world) settle() {
	w.apply(PlanStarted{})
	w.apply(w.plan)
	w.apply(AdoptionExpired{})
	for range 1000 {
		if w.g.State().Terminal() {
			return
		}
		w.settleOnce()
	}
	w.t.Fatalf("the job does not end: %+v", w.g.Snapshot())
}

func (w *world) settleOnce() {
	if w.g.Phase() != PhaseStages {
		w.take()
		if w.takes > 0 {
			w.apply(RootSucceeded{})
		}
		return
	}
	if w.plan.External {
		for _, v := range w.g.TaskViews() {
			if v.State == "pending" {
				id := w.cfg.NewAttempt()
				w.apply(AttemptBegun{Task: v.TaskID, Attempt: id, Executor: "x"})
				w.ids = append(w.ids, id)
			}
		}
		w.apply(WriteFinished{})
	}
	for _, id := range w.ids {
		if w.g.attempts[id].state == attemptLive {
			w.apply(TaskSucceeded{Attempt: id})
		}
	}
}

// TestRestore_KeepsTheRecord_Property: a record of a restored job is the same record, but for what the restart itself gave up.
func TestRestore_KeepsTheRecord_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			w.step()
		}
		w.restart()
		once := w.g.Record()
		w.restart()
		twice := w.g.Record()
		for i := range once.Attempts { // those that waited for an executor are given up at each restart
			if once.Attempts[i].State == string(attemptLive) && once.Attempts[i].Executor == "" {
				return
			}
		}
		if !reflect.DeepEqual(once, twice) {
			t.Fatalf("%+v\n%+v", once, twice)
		}
	})
}

func TestRestore_RefusesBrokenRecords(t *testing.T) {
	stage := []StageRecord{{Tasks: make([]TaskRecord, 1)}}
	for name, r := range map[string]Record{
		"no such task": {State: Running, Phase: PhaseStages, Attempts: []AttemptRecord{{ID: "a", State: "live"}}},
		"twice":        {State: Running, Phase: PhaseStages, Stages: stage, Attempts: []AttemptRecord{{ID: "a", State: "ended"}, {ID: "a", State: "ended"}}},
		"two winners":  {State: Running, Phase: PhaseStages, Stages: stage, Attempts: []AttemptRecord{{ID: "a", State: "won"}, {ID: "b", State: "won"}}},
		"state":        {State: Running, Phase: PhaseStages, Stages: stage, Attempts: []AttemptRecord{{ID: "a", State: "?"}}},
	} {
		if _, _, err := Restore(Config{NewAttempt: func() string { return "x" }}, r); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A job of many tasks is not slow: what one event costs does not grow with the number of attempts.
func TestGraph_TenThousandTasks(t *testing.T) {
	n := 0
	g := New(Config{MaxInFlight: 8, NewAttempt: func() string { n++; return fmt.Sprint(n) }})
	queue := g.Apply(Planned{Stages: []StageSpec{{Tasks: 10_000}}, Root: RootCommit})
	done := 0
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		if l, ok := a.(Launch); ok {
			done++
			queue = append(queue, g.Apply(TaskSucceeded{Attempt: l.Attempt})...)
		}
	}
	if done != 10_000 || g.Phase() != PhaseRoot {
		t.Fatalf("%d done, phase %s", done, g.Phase())
	}
}
