package graph

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// restored is a job of a stored stage of one task and a durable one of two, of which the first task has been accepted, as a journal has it that
// knows of no output of the stored stage.
func restored(t *testing.T, repeatable bool, accepted ...string) (*Graph, []Action) {
	t.Helper()
	r := Record{State: Running, Phase: PhaseStages, Root: RootCommit, Stages: []StageRecord{
		{Stored: true, Repeatable: repeatable, Tasks: make([]TaskRecord, 1)}, {Inputs: []int32{0}, Tasks: make([]TaskRecord, 2)},
	}}
	for i, id := range accepted {
		r.Attempts = append(r.Attempts, AttemptRecord{ID: id, Task: TaskID{1, int32(i)}, Executor: UnknownExecutor, State: "won"})
	}
	r.Attempts = append(r.Attempts, AttemptRecord{ID: "live", Task: TaskID{1, 1}, Executor: UnknownExecutor, State: "live"})
	n := 0
	g, actions, err := Restore(Config{NewAttempt: func() string { n++; return "new" + strconv.Itoa(n) }}, r)
	require.NoError(t, err)
	return g, actions
}

// S62, S73: what one accepted task has read is gone, and another still has to read it.
func TestRestore_LostInputOfAnAcceptedTask(t *testing.T) {
	g, actions := restored(t, true, "x0")
	require.Equal(t, Running, g.State(), "it comes again the same")
	require.Contains(t, actions, Launch{Task: TaskID{0, 0}, Attempt: "new1", Number: 1})
	require.Error(t, g.Verdict("live"), "who was reading it waits for it")

	g, _ = restored(t, false, "x0")
	require.Equal(t, Failed, g.State(), "it may come otherwise")
	require.Contains(t, g.Failure().Message, "task 1/0 is accepted")

	g, _ = restored(t, false)
	require.Equal(t, Running, g.State(), "nobody has read it to his end")
	require.Error(t, g.Verdict("live"))
}

// S62: what all have read need not be made again.
func TestRestore_NobodyNeedsWhatIsNotThere(t *testing.T) {
	for _, repeatable := range []bool{false, true} {
		g, actions := restored(t, repeatable, "x0", "x1")
		require.Equal(t, PhaseRoot, g.Phase())
		require.Equal(t, []Action{
			CancelAttempt{Attempt: "live", Executor: UnknownExecutor, Reason: "another attempt of the task was first"},
			Sweep{Attempt: "live", Executor: UnknownExecutor},
			RunRoot{},
		}, actions)
		winners, complete := g.Winners()
		require.Equal(t, []string{"x0", "x1"}, winners)
		require.True(t, complete)
	}
}

// S73: an attempt that was launched before what it reads was replaced does not go on; one that was accepted ends the job.
func TestRestore_OldGenerations(t *testing.T) {
	record := func(state string) Record {
		return Record{
			State: Running, Phase: PhaseStages, Root: RootCommit,
			Stages: []StageRecord{{Stored: true, Tasks: make([]TaskRecord, 1)}, {Inputs: []int32{0}, Generation: 2, Tasks: make([]TaskRecord, 2)}},
			Attempts: []AttemptRecord{
				{ID: "p", Task: TaskID{0, 0}, Executor: "e1", State: "won"},
				{ID: "old", Task: TaskID{1, 0}, Executor: "e1", State: state, Generation: 1},
				{ID: "new", Task: TaskID{1, 1}, Executor: "e1", State: "live", Generation: 2},
			},
		}
	}
	cfg := Config{NewAttempt: func() string { return "next" }}
	g, _, err := Restore(cfg, record("live"))
	require.NoError(t, err)
	require.Error(t, g.Verdict("old"))
	require.NoError(t, g.Verdict("new"))
	g, _, err = Restore(cfg, record("won"))
	require.NoError(t, err)
	require.Equal(t, Failed, g.State())
}

// Holds tells whether an executor may go.
func TestGraph_Holds(t *testing.T) {
	n := 0
	g := New(Config{NewAttempt: func() string { n++; return "a" + strconv.Itoa(n) }})
	g.Apply(Planned{Stages: []StageSpec{{Tasks: 1, Stored: true}, {Tasks: 1, Inputs: []int32{0}}}})
	id := shownAttempt(g, TaskID{0, 0})
	require.False(t, g.Holds("e1"))
	g.Apply(Launched{id, "e1"})
	require.True(t, g.Holds("e1"), "it runs an attempt")
	g.Apply(TaskSucceeded{Attempt: id})
	require.True(t, g.Holds("e1"), "its output is needed")
	id = shownAttempt(g, TaskID{1, 0})
	g.Apply(Launched{id, "e2"})
	require.True(t, g.Holds("e2"))
	g.Apply(TaskSucceeded{Attempt: id})
	require.False(t, g.Holds("e1"), "it was read")
	require.False(t, g.Holds("e2"), "its output is durable")
}

func shownAttempt(g *Graph, id TaskID) string {
	v, _ := g.TaskView(id)
	return v.Attempt
}
