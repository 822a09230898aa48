package graph

import (
	"encoding/json"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"pgregory.net/rapid"
)

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
	w.runRoots, w.takes, w.asked = 0, 0, false
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
	switch rapid.IntRange(0, 27).Draw(w.t, "step") {
	case 0:
		w.apply(PlanStarted{})
	case 1, 2:
		w.apply(w.plan)
	case 3, 4:
		w.apply(Launched{w.attempt(), w.executor()})
	case 5, 6, 7:
		w.apply(TaskSucceeded{Attempt: w.attempt(), Rows: 1})
	case 27: // a manifest that was accepted whatever the graph has decided meanwhile
		if a := w.g.attempts[w.attempt()]; a != nil && !a.task.stage.stored {
			w.apply(TaskSucceeded{Attempt: a.id, Rows: 1, Accepted: true})
		}
	case 8:
		w.apply(TaskFailed{Attempt: w.attempt(), Class: planv1.ErrorClass(rapid.IntRange(0, 6).Draw(w.t, "class")), Message: "m", LostAttempt: w.attempt()})
	case 9:
		w.apply(TaskLost{w.attempt(), "r"})
	case 10:
		w.apply(LaunchFailed{w.attempt(), "r"})
	case 11:
		w.apply(ExecutorLost{w.executor(), "r"})
	case 12:
		w.apply(ExecutorJoined{w.executor(), w.some(), w.some()})
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
	case 22:
		w.apply(Straggling{w.attempt()})
	case 23, 24:
		w.addStages()
	case 25: // the likely case: everything that runs gets on
		for _, a := range w.g.order[:len(w.g.order):len(w.g.order)] {
			if a.state == attemptLive {
				w.apply(Launched{a.id, w.executor()})
				w.apply(TaskSucceeded{Attempt: a.id, Rows: 1})
			}
		}
	case 26:
		w.fetchFailure()
	}
}

// fetchFailure is one that a reader may truly have.
func (w *world) fetchFailure() {
	for _, a := range w.g.order {
		if a.state != attemptLive || len(a.task.stage.inputs) == 0 || !rapid.Bool().Draw(w.t, "this one") {
			continue
		}
		if p := w.g.stages[a.task.stage.inputs[0]]; len(p.tasks) > 0 {
			lost := p.tasks[rapid.IntRange(0, len(p.tasks)-1).Draw(w.t, "part")].winner
			w.apply(TaskFailed{Attempt: a.id, Class: planv1.ErrorClass_ERROR_CLASS_FETCH, Message: "m", LostAttempt: lost.id})
		}
		return
	}
}

func (w *world) some() []string {
	var out []string
	for range rapid.IntRange(0, 3).Draw(w.t, "some") {
		out = append(out, w.attempt())
	}
	return out
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
	if w.asked {
		w.addStages()
		return
	}
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
