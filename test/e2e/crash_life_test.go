package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// Processes that die when they start or stop: the next ones work, and nothing is left of them.
func TestCrash_AtStartAndStop(t *testing.T) {
	t.Parallel()
	points := []string{"plugins.start.after-copy", "plugins.start.after-handshake", "plugins.stop.after-drain"}
	s := newCrashStage(t, points, "")
	works := func(t *testing.T) {
		s.awaitAll(t)
		require.NoError(t, s.execute(t, t.Name(), "INSERT INTO lake.crash.t SELECT 1 AS id"))
	}
	s.SQL("CREATE TABLE lake.crash.t (id BIGINT)")
	for _, p := range points[:2] {
		t.Run(p, func(t *testing.T) {
			s.Use(t)
			s.Scheduler.Terminate(t)
			s.faults.ArmAhead(t, p)
			s.StartSchedulerToDie(s.env, "TMPDIR="+s.tmp())
			s.faults.Disarm(t, p)
			s.startScheduler()
			works(t)
		})
	}
	t.Run(points[2], func(t *testing.T) {
		s.Use(t)
		s.pluginsRun(t)
		s.faults.Arm(t, points[2], 0)
		s.Scheduler.Terminate(t)
		require.True(t, s.Scheduler.Killed())
		s.faults.Disarm(t, points[2])
		s.startScheduler()
		works(t)
	})
	t.Run("executor.session.registered", func(t *testing.T) {
		s.Use(t)
		s.Executors[0].Terminate(t)
		s.RestartExecutor(0, fault.Env+"=executor.session.registered=kill")
		s.Executors[0].Wait(t)
		require.True(t, s.Executors[0].Killed())
		s.RestartExecutor(0, s.env)
		works(t)
	})
	require.EqualValues(t, 4, s.Table("crash", "t").Records)
	t.Run("afterwards", s.afterwards)
}

func (s *crashStage) pluginsRun(t *testing.T) {
	harness.Eventually(t, "the plugin runs", func() bool { return len(s.Plugins()) > 0 })
}

// elsewhere are the points that no table of crashes names, and why.
var elsewhere = map[string]string{
	"scheduler.outbox.after-send":   "TestLineage_NothingIsLostInACrash",
	"plugins.start.after-copy":      "TestCrash_AtStartAndStop",
	"plugins.start.after-handshake": "TestCrash_AtStartAndStop",
	"plugins.stop.after-drain":      "TestCrash_AtStartAndStop",
	"executor.session.registered":   "TestCrash_AtStartAndStop",
	"journal.rewrite.before-copy":   "TestCrash_WhileTheJournalIsCompacted",
	"journal.rewrite.before-sync":   "TestCrash_WhileTheJournalIsCompacted",
	"journal.rewrite.before-rename": "TestCrash_WhileTheJournalIsCompacted",
	"journal.rewrite.after-rename":  "TestCrash_WhileTheJournalIsCompacted",
	"journal.write.before-commit":   "fails in TestJournal_WritesThatFail; dying there is dying before the points that name the write",
	"catalog.commit.before-reload":  "reached only after another failure: TestUnknown_SentAgainUntilItLands",
	"broker.hint.before":            "no sink in this repository keeps hint files; the broker's own tests pass it",
	"executor.drain.received":       "TestCrash_WhileDraining",
	"executor.drain.before-leave":   "TestCrash_WhileDraining",
	"executor.flight.serve":         "an executor that is gone by then: TestFlight_ResultsOfExecutorsThatEnd",
	"executor.flight.batch":         "fails in TestFlight_AnExecutorThatBreaksOff; an executor that is gone: TestFlight_ResultsOfExecutorsThatEnd",
	"scheduler.drop.before":         "TestDelta_DropIsCutOff",
	"scheduler.drop.aside":          "TestDelta_DropIsCutOff",
	"scheduler.files.before-remove": "TestDelta_VacuumIsCutOff",
	"scheduler.expire.after-commit": "TestMaintenance_ExpiryOverCrashes",
	"scheduler.expire.before-done":  "TestMaintenance_ExpiryOverCrashes",
	"upkeep.expire.before-remove":   "TestMaintenance_ExpiryOverCrashes",
	"executor.sweep.before":         "the scheduler removes files by itself while executors share its storage; the executor's own tests pass it",
}

// Every fault point of the source is one at which something dies in these tests, or says where it is tested.
func TestCrash_EveryPointIsCovered(t *testing.T) {
	covered := slices.Concat(pointsOf(schedulerCrashes), pointsOf(recoveryCrashes), pointsOf(executorCrashes), pointsOf(pluginCrashes), pointsOf(stagedCrashes), pointsOf(stagedSchedulerCrashes), pointsOf(groupCrashes), pointsOf(deleteFileCrashes),
		pointsOf(storageCrashes), pointsOf(storageRecoveries), pointsOf(bodyCrashes), pointsOf(deltaPlugins))
	call := regexp.MustCompile(`\b(?:fault\.Hit|hit)\("([a-z0-9.-]+)"\)`)
	found := 0
	require.NoError(t, filepath.WalkDir(harness.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != harness.Root() {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range call.FindAllStringSubmatch(string(b), -1) {
			found++
			require.True(t, slices.Contains(covered, m[1]) != (elsewhere[m[1]] != ""), "%s of %s: want it in a table of crashes, or else in elsewhere", m[1], path)
		}
		return err
	}))
	require.Greater(t, found, 60)
}

// A scheduler that is told to stop while its plugins start leaves nothing of them either.
func TestCrash_StopWhilePluginsStart(t *testing.T) {
	t.Parallel()
	s := newCrashStage(t, nil, "")
	for _, e := range s.Executors {
		e.Terminate(t)
	}
	s.Scheduler.Kill()
	for i := range 20 {
		s.startScheduler()
		time.Sleep(time.Duration(i) * 8 * time.Millisecond) // the moments of a start
		s.Scheduler.Terminate(t)
		require.Empty(t, s.leftovers(t), "stopped %d ms after it was ready", i*8)
	}
}
