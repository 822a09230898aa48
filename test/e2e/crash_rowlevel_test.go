package e2e_test

import (
	"slices"
	"testing"
)

// Wherever somebody dies, a row-level statement has changed its rows, all of them and once.
func TestCrash_DeleteScheduler(t *testing.T) {
	runCrashes(t, scheduler, as("delete", schedulerCrashes[half:]))
}

func TestCrash_DeleteRecovery(t *testing.T) { runCrashes(t, scheduler, as("delete", recoveryCrashes)) }
func TestCrash_DeletePlugin(t *testing.T)   { runCrashes(t, plugin, as("delete", pluginCrashes)) }

func TestCrash_MergeExecutor(t *testing.T) { runCrashes(t, executor, as("merge", executorCrashes)) }
func TestCrash_MergeScheduler(t *testing.T) {
	runCrashes(t, scheduler, as("merge", oneTask(schedulerCrashes[:half])))
}

// oneTask leaves out the points that only a second task reaches.
func oneTask(cases []crash) []crash {
	return slices.DeleteFunc(slices.Clone(cases), func(c crash) bool { return c.passing > 0 })
}
