package e2e_test

import (
	"slices"
	"strings"
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

// Delete files are written, placed, staged and committed as exactly.
func TestCrash_MergeOnReadExecutor(t *testing.T) {
	runCrashes(t, executor, slices.Concat(as("merge on read", afterStart(executorCrashes)), as("merge by vectors", afterStart(executorCrashes)), deleteFileCrashes))
}

var deleteFileCrashes = []crash{
	{point: "executor.deletes.after", do: "delete on read"},
	{point: "executor.deletes.after", do: "merge on read"},
	{point: "executor.deletes.after", do: "delete by vectors"},
	{point: "executor.deletes.after", do: "merge by vectors"},
	{point: "executor.upload.after-link", do: "delete on read"},
	{point: "executor.upload.after-link", do: "delete by vectors"},
	{point: "executor.upload.after-link", passing: 1, do: "merge on read"},
	{point: "executor.upload.after-link", passing: 1, do: "merge by vectors"},
}

func TestCrash_MergeOnReadScheduler(t *testing.T) {
	runCrashes(t, scheduler, slices.Concat(as("delete by vectors", schedulerCrashes[half:]), as("merge on read", oneTask(schedulerCrashes[:half]))))
}

func TestCrash_MergeOnReadRecovery(t *testing.T) {
	runCrashes(t, scheduler, as("merge by vectors", recoveryCrashes))
}

func TestCrash_MergeOnReadPlugin(t *testing.T) {
	runCrashes(t, plugin, slices.Concat(as("delete by vectors", pluginCrashes), as("merge on read", pluginCrashes)))
}

// afterStart leaves out what is about no files.
func afterStart(cases []crash) []crash {
	return slices.DeleteFunc(slices.Clone(cases), func(c crash) bool {
		return strings.HasPrefix(c.point, "executor.analyze.") || c.point == "executor.task.start"
	})
}

// oneTask leaves out the points that only a second task reaches.
func oneTask(cases []crash) []crash {
	return slices.DeleteFunc(slices.Clone(cases), func(c crash) bool { return c.passing > 0 })
}
