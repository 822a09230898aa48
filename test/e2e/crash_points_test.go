package e2e_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where the scheduler dies: in the order in which a statement gets there.
var schedulerCrashes = []crash{
	{point: "scheduler.submit.after-journal", do: "insert"},
	{point: "plugins.preparewrite.before", do: "insert"},
	{point: "broker.load.before", do: "insert"},
	{point: "catalog.load.before-query", do: "insert"},
	{point: "plugins.preparewrite.after", do: "insert"},
	{point: "sources.resolve.before", do: "insert"},
	{point: "scheduler.plan.before-journal", do: "insert"},
	{point: "scheduler.launch.before", do: "insert"},
	{point: "scheduler.launch.before", passing: 1, do: "insert"},
	{point: "plugins.stage.before", do: "insert"},
	{point: "scheduler.manifest.received", do: "insert"},
	{point: "scheduler.manifest.before-journal", do: "insert"},
	{point: "scheduler.manifest.before-journal", passing: 1, do: "insert"},
	{point: "scheduler.manifest.before-ack", do: "insert"},
	{point: "scheduler.manifest.before-ack", passing: 1, do: "insert"},
	{point: "scheduler.root.start", do: "insert"},
	{point: "scheduler.stage.before-finish", do: "insert"},
	{point: "broker.put.before", do: "insert"}, // an Iceberg manifest
	{point: "storage.put.before-sync", do: "insert"},
	{point: "storage.put.before-link", do: "insert"},
	{point: "storage.put.after-link", do: "insert"},
	{point: "broker.put.after", do: "insert"},
	{point: "plugins.stage.after", do: "insert"},
	{point: "scheduler.root.before-commit", do: "insert"},
	{point: "plugins.commit.before", do: "insert"},
	{point: "broker.put.before", passing: 1, do: "insert"}, // the list
	{point: "storage.put.before-sync", passing: 1, do: "insert"},
	{point: "storage.put.before-link", passing: 1, do: "insert"},
	{point: "storage.put.after-link", passing: 1, do: "insert"},
	{point: "broker.put.after", passing: 1, do: "insert"},
	{point: "broker.seal.before", do: "insert"},
	{point: "scheduler.seal.before-journal", do: "insert"},
	{point: "scheduler.seal.after-journal", do: "insert"},
	{point: "broker.seal.after", do: "insert"},
	{point: "catalog.commit.before-metadata", do: "insert"},
	{point: "storage.put.before-sync", passing: 2, do: "insert"}, // the metadata
	{point: "storage.put.before-link", passing: 2, do: "insert"},
	{point: "storage.put.after-link", passing: 2, do: "insert"},
	{point: "catalog.commit.after-metadata", do: "insert"},
	{point: "catalog.commit.before-swap", do: "insert"},
	{point: "catalog.commit.after-swap", do: "insert"},
	{point: "broker.seal.after", do: "insert v1"},
	{point: "catalog.commit.after-metadata", do: "insert v1"},
	{point: "catalog.commit.before-swap", do: "insert v1"},
	{point: "catalog.commit.after-swap", do: "insert v1"},
	{point: "broker.commit.lost-reply", do: "insert v1"},
	{point: "broker.commit.after-send", do: "insert"},
	{point: "broker.commit.lost-reply", do: "insert"},
	{point: "broker.settle.before", do: "insert"},
	{point: "scheduler.settle.before-journal", do: "insert"},
	{point: "scheduler.settle.after-journal", do: "insert", after: true},
	{point: "broker.settle.after", do: "insert", after: true},
	{point: "plugins.commit.after", do: "insert", after: true},

	{point: "scheduler.manifest.before-ack", do: "ctas"},
	{point: "scheduler.root.before-commit", do: "ctas"},
	{point: "broker.put.after", do: "ctas"},
	{point: "scheduler.seal.before-journal", do: "ctas"},
	{point: "scheduler.seal.after-journal", do: "ctas"},
	{point: "catalog.create.before-insert", do: "ctas"},
	{point: "catalog.create.after-insert", do: "ctas"},
	{point: "broker.commit.after-send", do: "ctas"},
	{point: "scheduler.settle.before-journal", do: "ctas"},

	{point: "plugins.altertable.before", do: "alter"},
	{point: "broker.alter.before", do: "alter"},
	{point: "broker.alter.after", do: "alter"},
	{point: "plugins.altertable.after", do: "alter"},
	{point: "plugins.createtable.before", do: "create"},
	{point: "broker.create.before", do: "create"},
	{point: "catalog.create.before-insert", do: "create"},
	{point: "catalog.create.after-insert", do: "create", lost: true},
	{point: "broker.create.after", do: "create", lost: true},
	{point: "plugins.createtable.after", do: "create", lost: true},
	{point: "plugins.droptable.before", do: "drop"},
	{point: "broker.drop.before", do: "drop"},
	{point: "broker.drop.after", do: "drop"},
	{point: "plugins.droptable.after", do: "drop"},

	{point: "scheduler.plan.before-journal", do: "rewrite"},
	{point: "scheduler.manifest.before-ack", do: "rewrite"},
	{point: "scheduler.root.before-commit", do: "rewrite"},
	{point: "scheduler.seal.after-journal", do: "rewrite"},
	{point: "broker.commit.after-send", do: "rewrite"},
	{point: "scheduler.settle.before-journal", do: "rewrite"},
	{point: "scheduler.root.before-commit", do: "rewrite manifests"},
	{point: "scheduler.seal.after-journal", do: "rewrite manifests"},
	{point: "broker.commit.after-send", do: "rewrite manifests"},

	{point: "scheduler.sweep.before", do: "bad insert", after: true},
}

// Where the scheduler dies that takes up what another one has left.
var recoveryCrashes = []crash{
	{point: "scheduler.submit.after-journal", again: "scheduler.plan.before-journal", do: "insert"},
	{point: "scheduler.manifest.before-ack", again: "scheduler.stage.before-finish", do: "insert"},
	{point: "scheduler.root.before-commit", again: "scheduler.seal.after-journal", do: "insert"},
	{point: "scheduler.root.before-commit", again: "broker.sweep.before", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "broker.look.before", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "broker.resolve.before-send", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "catalog.commit.after-metadata", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "catalog.commit.after-swap", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "scheduler.settle.after-journal", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "catalog.create.after-insert", do: "ctas"},
	{point: "scheduler.seal.after-journal", again: "broker.resolve.before-send", do: "insert v1"},
	{point: "broker.commit.after-send", again: "broker.look.before", do: "insert v1"},
	{point: "broker.commit.after-send", again: "broker.look.before", do: "insert"},
	{point: "broker.commit.after-send", again: "scheduler.settle.after-journal", do: "insert"},
}

var executorCrashes = []crash{
	{point: "executor.analyze.start", do: "insert"},
	{point: "executor.analyze.before-open", do: "insert"},
	{point: "executor.task.start", do: "insert"},
	{point: "executor.copy.before", do: "insert"},
	{point: "executor.copy.after", do: "insert"},
	{point: "executor.upload.before-fsync", do: "insert"},
	{point: "executor.upload.after-link", do: "insert"},
	{point: "executor.upload.after-dirsync", do: "insert"},
	{point: "executor.report.before", do: "insert"},
	{point: "executor.report.after-send", do: "insert", after: true},
	{point: "executor.add.before", do: "add files"},
	{point: "executor.add.after", do: "add files"},
	{point: "executor.report.before", do: "add files"},
	{point: "executor.copy.after", do: "add copies"},
	{point: "executor.copy.after", do: "rewrite"},
	{point: "executor.report.before", do: "rewrite"},
	{point: "executor.upload.after-link", do: "ctas"},
	{point: "executor.report.before", do: "ctas"},
	{point: "executor.result.before-check", do: "select"},
}

var pluginCrashes = []crash{
	{point: "iceberg.load.before", do: "insert"},
	{point: "iceberg.load.before", passing: 1, do: "insert"},
	{point: "iceberg.stage.before-put", do: "insert"},
	{point: "iceberg.stage.after-put", do: "insert"},
	{point: "sdk.stage.before-reply", do: "insert"},
	{point: "sdk.commit.before", do: "insert"},
	{point: "iceberg.commit.before-list", do: "insert"},
	{point: "iceberg.commit.after-list", do: "insert"},
	{point: "sdk.commit-point.before-send", do: "insert"},
	{point: "iceberg.commit.before-send", do: "insert"},
	{point: "iceberg.commit.after-send", do: "insert", after: true},
	{point: "sdk.commit-point.after-reply", do: "insert", after: true},
	{point: "sdk.commit.before-reply", do: "insert", after: true},
	{point: "iceberg.commit.before-list", do: "insert v1"},
	{point: "iceberg.commit.after-send", do: "insert v1", after: true},
	{point: "iceberg.commit.before-list", do: "rewrite"},
	{point: "iceberg.commit.before-send", do: "rewrite manifests"},
	{point: "iceberg.stage.after-put", do: "ctas"},
	{point: "iceberg.commit.before-list", do: "ctas"},
	{point: "iceberg.commit.before-send", do: "ctas"},
	{point: "iceberg.commit.after-send", do: "ctas", after: true},
	{point: "iceberg.create.before-send", do: "create"},
	{point: "iceberg.create.after-send", do: "create", lost: true},
	{point: "iceberg.drop.before-send", do: "drop"},
	{point: "iceberg.alter.before-load", do: "alter"},
	{point: "iceberg.alter.before-send", do: "alter"},
	{point: "iceberg.alter.after-send", do: "alter"},
}

// half divides the scheduler's crashes among two clusters, which run beside each other.
var half = slices.IndexFunc(schedulerCrashes, func(c crash) bool { return c.point == "scheduler.root.before-commit" })

func TestCrash_SchedulerBeforeTheCommit(t *testing.T) {
	runCrashes(t, scheduler, schedulerCrashes[:half])
}

// Numbers in docs/semantics.md: S62.
func TestCrash_SchedulerAtTheCommit(t *testing.T) { runCrashes(t, scheduler, schedulerCrashes[half:]) }
func TestCrash_Recovery(t *testing.T)             { runCrashes(t, scheduler, recoveryCrashes) }
func TestCrash_Executor(t *testing.T)             { runCrashes(t, executor, executorCrashes) }
func TestCrash_Plugin(t *testing.T)               { runCrashes(t, plugin, pluginCrashes) }

func runCrashes(t *testing.T, who string, crashes []crash) { runCrashesOn(t, 2, who, crashes) }

func runCrashesOn(t *testing.T, executors int, who string, crashes []crash) {
	t.Parallel()
	s := newCrashStage(t, pointsOf(crashes), "")
	for len(s.Executors) < executors {
		s.StartExecutor(s.env, "TMPDIR="+s.tmp())
	}
	s.AwaitExecutors(executors)
	for _, c := range some(t.Name(), crashes) {
		c.who = who
		t.Run(c.name(), func(t *testing.T) { s.run(t, c) })
	}
	t.Run("afterwards", s.afterwards)
}

func pointsOf(crashes []crash) []string {
	var points []string
	for _, c := range crashes {
		for _, p := range []string{c.point, c.again} {
			if p != "" && !slices.Contains(points, p) {
				points = append(points, p)
			}
		}
	}
	return points
}

// afterwards: what has ended stays as it has ended, also for a scheduler that starts once more, and nothing is left over.
func (s *crashStage) afterwards(t *testing.T) {
	s.Use(t)
	s.Scheduler.Kill()
	s.startScheduler()
	for _, j := range s.JobsAbout("lake.crash.") {
		if want, ok := s.states[j.GetJobId()]; ok {
			require.Equal(t, want, j.GetState(), j)
		}
	}
	s.Stop()
	require.Empty(t, s.leftovers(t))
}
