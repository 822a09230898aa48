package e2e_test

import (
	"hash/fnv"
	"os"
	"slices"
	"testing"
)

// as is the crashes of one statement for another that gets to the same points.
func as(do string, crashes []crash) []crash {
	var out []crash
	for _, c := range crashes {
		if c.do == "insert" {
			c.do, c.sampled = do, true
			out = append(out, c)
		}
	}
	return out
}

// some leaves out two in three of the crashes that INSERT meets too, in each test others; with SIGNET_CRASHES=all none. INSERT meets all of them always.
func some(test string, crashes []crash) []crash {
	if os.Getenv("SIGNET_CRASHES") == "all" {
		return crashes
	}
	h := fnv.New32a()
	h.Write([]byte(test))
	i := int(h.Sum32() % 3)
	return slices.DeleteFunc(slices.Clone(crashes), func(c crash) bool {
		if c.sampled {
			i++
		}
		return c.sampled && i%3 != 0
	})
}

// atCommit leaves out what a statement without tasks does not get to.
func atCommit(crashes []crash) []crash {
	from := slices.IndexFunc(crashes, func(c crash) bool { return c.point == "scheduler.root.before-commit" })
	return slices.DeleteFunc(slices.Clone(crashes[from:]), func(c crash) bool { return c.passing > 0 })
}

// Wherever somebody dies, an overwrite has replaced the rows that were there, all of them and once.
func TestCrash_OverwriteSchedulerBeforeTheCommit(t *testing.T) {
	runCrashes(t, scheduler, as("overwrite", schedulerCrashes[:half]))
}

func TestCrash_OverwriteSchedulerAtTheCommit(t *testing.T) {
	runCrashes(t, scheduler, as("overwrite", schedulerCrashes[half:]))
}

func TestCrash_OverwriteRecovery(t *testing.T) {
	runCrashes(t, scheduler, as("overwrite", recoveryCrashes))
}

func TestCrash_OverwriteExecutor(t *testing.T) {
	runCrashes(t, executor, as("overwrite", executorCrashes))
}

func TestCrash_OverwritePlugin(t *testing.T) { runCrashes(t, plugin, as("overwrite", pluginCrashes)) }

func TestCrash_OverwriteByFilter(t *testing.T) {
	runCrashes(t, scheduler, as("overwrite by filter", atCommit(schedulerCrashes)))
}

func TestCrash_Truncate(t *testing.T) {
	runCrashes(t, scheduler, as("truncate", atCommit(schedulerCrashes)))
}

func TestCrash_Replace(t *testing.T) {
	runCrashes(t, scheduler, as("replace", atCommit(schedulerCrashes)))
}
