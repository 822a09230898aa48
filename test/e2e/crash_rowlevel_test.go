package e2e_test

import "testing"

// Wherever somebody dies, a row-level statement has changed its rows, all of them and once.
func TestCrash_DeleteScheduler(t *testing.T) {
	runCrashes(t, scheduler, as("delete", schedulerCrashes[half:]))
}

func TestCrash_DeleteRecovery(t *testing.T) { runCrashes(t, scheduler, as("delete", recoveryCrashes)) }
func TestCrash_DeletePlugin(t *testing.T)   { runCrashes(t, plugin, as("delete", pluginCrashes)) }

func TestCrash_MergeExecutor(t *testing.T) { runCrashes(t, executor, as("merge", executorCrashes)) }
func TestCrash_MergeScheduler(t *testing.T) {
	runCrashes(t, scheduler, as("merge", schedulerCrashes[:half]))
}
