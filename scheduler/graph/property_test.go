package graph

import (
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

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
			if a := w.g.attempts[id]; won && a.task.stage.stored && !w.freed[id] && (w.plan.Root != RootNone || !a.task.stage.last()) {
				t.Fatalf("the output of %s is never freed", id)
			}
			if won == (w.swept[id] == 1) || won && w.g.State() != Successful {
				t.Fatalf("attempt %s in a %s job: won %v, swept %d times", id, w.g.State(), won, w.swept[id])
			}
		}
		if len(w.finishes) != 1 {
			t.Fatalf("finished %d times", len(w.finishes))
		}
	})
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

// A job of many tasks is not slow: what one event costs does not grow with the number of attempts. Ten times the tasks cost about ten times
// as much; where each event looked at all of them, it would be a hundred times.
func BenchmarkGraph(b *testing.B) {
	for _, tasks := range []int{1_000, 10_000} {
		b.Run(strconv.Itoa(tasks), func(b *testing.B) {
			for b.Loop() {
				manyTasks(b, tasks)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
		})
	}
}

func TestGraph_TenThousandTasks(t *testing.T) { manyTasks(t, 10_000) }

func manyTasks(t testing.TB, tasks int) {
	n := 0
	g := New(Config{MaxInFlight: 100, NewAttempt: func() string { n++; return strconv.Itoa(n) }})
	queue := g.Apply(Planned{Stages: []StageSpec{{Tasks: tasks, Stored: true, Repeatable: true}, {Tasks: tasks, Inputs: []int32{0}}}, Root: RootCommit})
	done := 0
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		if l, ok := a.(Launch); ok {
			done++
			executor := "e" + strconv.Itoa(done%50)
			queue = append(queue, g.Apply(Launched{l.Attempt, executor})...)
			if done == tasks/2 || done == tasks*3/2 {
				queue = append(queue, g.Apply(ExecutorLost{Executor: "e7"})...)
			}
			queue = append(queue, g.Apply(Progress{Attempt: l.Attempt, Rows: 1})...)
			queue = append(queue, g.Apply(TaskSucceeded{Attempt: l.Attempt})...)
			if g.Snapshot().State != Running {
				t.Fatal(g.Failure())
			}
		}
	}
	if done < 2*tasks || g.Phase() != PhaseRoot {
		t.Fatalf("%d done, phase %s", done, g.Phase())
	}
}
