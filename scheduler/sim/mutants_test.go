//go:build mutant

package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/sim"
)

// mutants are the ways in which graph and coordinator are broken on purpose, and what each of them breaks.
var mutants = []struct{ where, name, breaks string }{
	{"graph", "incomplete", "S15: the root starts only after all stages succeeded"},
	{"graph", "root-after-end", "S18: a job that is not Running never runs its root"},
	{"graph", "late-success", "T1: output is keyed by task, one attempt wins"},
	{"graph", "second-goes-on", "T1: the other attempts of a task end when one has won"},
	{"graph", "accepted-refused", "S60: what was accepted is never given up"},
	{"graph", "mixed-by-acceptance", "S73: an accepted attempt is not mixed with another run of what it has read"},
	{"graph", "loss-unnoticed", "a lost result is run again"},
	{"graph", "never-tainted", "S73: non-deterministic stages rerun together with their consumers"},
	{"graph", "taint-stops", "S73: and with the consumers of these"},
	{"graph", "reader-goes-on", "S73: an attempt that was reading a lost output is not mixed with those that read its replacement"},
	{"graph", "input-absent", "S71: after a restart readers wait for the outputs to come back"},
	{"graph", "freed-early", "freed data is never read"},
	{"graph", "root-input-freed", "S43: the root's input is never freed while the root runs"},
	{"graph", "kept-for-ever", "S44: the data of a job that has ended is all freed"},
	{"graph", "cancel-at-once", "S21: the seal decides about a cancel"},
	{"graph", "losses-uncounted", "three losses on one task fail the job"},
	{"graph", "failures-uncounted", "four counted failures of a task fail the job"},
	{"graph", "reruns-uncounted", "an output that nobody can fetch does not keep a job busy for ever"},
	{"graph", "root-forgotten", "S21, S62: after a restart the coordinator is still asked about a cancel"},
	{"graph", "orphans-forgotten", "S71: attempts that nobody claims after a restart are given up"},
	{"graph", "restart-mixes", "S62, S73: nor does a restart mix rows of two runs"},
	{"graph", "plan-forgotten", "S62: after a restart further stages are asked for again"},
	{"coordinator", "any-epoch", "S65: an old incarnation is refused at the seal"},
	{"coordinator", "stale-outcome", "S68: an outcome settles the attempt that it is about"},
	{"coordinator", "second-manifest", "S60: the first accepted manifest of a task stays"},
	{"coordinator", "ready-early", "S15: one missing writer means no commit at all"},
	{"coordinator", "commit-swept", "S61: the files of a landed commit are never swept"},
	{"coordinator", "sealed-twice", "S68: at most one attempt is sealed"},
	{"coordinator", "cancelled-sealed", "S21: after the seal a cancel waits"},
	{"coordinator", "failed-sealed", "S67: nothing ends a job while its request may land"},
	{"coordinator", "conflict-unsettled", "S67: after an unknown outcome a conflict is not believed"},
	{"coordinator", "refused-unsettled", "S67: nor is a refusal"},
	{"coordinator", "unknown-is-conflict", "S63: a lost reply is never guessed to be a no"},
	{"coordinator", "restart-unseals", "S62: a sealed attempt only rolls forward after a restart"},
	{"coordinator", "restart-ends", "S62: a restart ends no job that may commit"},
}

// within is how many seeds may pass before a mutant is caught.
const within = 5000

// TestMutants_AreAllCaught: each broken variant breaks a rule within a few seeds. What is not broken does not.
func TestMutants_AreAllCaught(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			mutate(t, m.where, m.name)
			first, every := uint64(1), 1
			if strings.Contains(m.breaks, "S73") { // the worlds that are about it
				first, every = 2, 3
			}
			f := play(first, within, every, *steps)
			require.NotNil(t, f, "not caught within %d seeds: %s", within, m.breaks)
			t.Logf("%s/%s (%s) is caught: %v", m.where, m.name, m.breaks, f)
		})
	}
	require.Nil(t, play(1, 100, 1, *steps), "nothing is broken")
}

func mutate(t *testing.T, where, name string) {
	switch where {
	case "graph":
		graph.Mutant = name
	case "coordinator":
		coordinator.Mutant = name
	}
	t.Cleanup(func() { graph.Mutant, coordinator.Mutant = "", "" })
}

// TestShrink_LeavesWhatMatters: a failure is reduced to a script that breaks the same rule, and of which no step can go.
func TestShrink_LeavesWhatMatters(t *testing.T) {
	mutate(t, "graph", "cancel-at-once")
	f := play(1, within, 1, *steps)
	require.NotNil(t, f)
	small := sim.Shrink(f)
	require.Less(t, len(small.Steps), 60)
	seed, steps, err := sim.ParseScript(small.Script())
	require.NoError(t, err)
	require.Equal(t, small.Steps, steps)
	again := sim.Play(seed, steps, nil)
	require.NotNil(t, again)
	require.Equal(t, f.Rule, again.Rule)
	for i := range steps {
		less := sim.Play(seed, append(append([]sim.Step{}, steps[:i]...), steps[i+1:]...), nil)
		require.True(t, less == nil || less.Rule != f.Rule, "step %d, %s, is not needed", i+1, steps[i])
	}
}
