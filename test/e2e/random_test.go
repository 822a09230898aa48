package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// Nightly asks for the long version of tests that are random.
func nightly() bool { return os.Getenv("SIGNET_NIGHTLY") != "" }

// S62: whoever is killed whenever, and again while the scheduler recovers: every job ends, and the table has its rows once.
func TestCrash_AtRandom(t *testing.T) {
	t.Parallel()
	rounds := 20
	switch {
	case testing.Short():
		rounds = 4
	case nightly():
		rounds = 150
	}
	seed := seed(t)
	t.Logf("SIGNET_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // choices, not secrets
	s := newCrashStage(t, nil, "")
	for round := range rounds {
		if !t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) { s.round(t, rng) }) {
			return // the rounds are not independent
		}
	}
	t.Run("afterwards", s.afterwards)
}

// round runs three INSERTs into one table while one or two processes are killed.
func (s *crashStage) round(t *testing.T, rng *rand.Rand) {
	const jobs = 3
	s.Use(t)
	s.n++
	name := fmt.Sprintf("t%d", s.n)
	table := "lake.crash." + name
	s.SQL(fmt.Sprintf(withBaseline, table))
	s.renewSupervisor(t)

	text := func(i int) string {
		return fmt.Sprintf("INSERT INTO %s SELECT id + %d AS id FROM '%s'", table, i*10_000, s.input)
	}
	answers := make(chan error, jobs)
	for i := range jobs {
		go func() { answers <- s.execute(t, fmt.Sprintf("%s/%d", name, i), text(i)) }()
	}
	kills := 1 + rng.IntN(2)
	for range kills {
		delay, victim := time.Duration(rng.IntN(700))*time.Millisecond, rng.IntN(3)
		<-time.After(delay) // the moment is what is tested
		t.Logf("after %s dies %s", delay, s.kill(t, victim, rng))
	}
	var errs []error
	harness.Eventually(t, "every statement is answered", func() bool {
		s.revive(t, "")
		for len(errs) < jobs {
			select {
			case err := <-answers:
				errs = append(errs, err)
			default:
				return false
			}
		}
		return true
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	s.awaitAll(t)

	found := s.JobsAbout(table + " SELECT")
	require.Len(t, found, jobs)
	for _, j := range found {
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), j)
		s.states[j.GetJobId()] = j.GetState()
	}
	after := s.Table("crash", name)
	ids := idsOf(t, after)
	require.Len(t, ids, baseline+jobs*bulkFiles*bulkRows)
	require.LessOrEqual(t, after.Snapshots, 1+jobs, "each has one, which it may share")
	require.Greater(t, after.Snapshots, 1)
	for _, j := range found {
		requireLanded(t, after, j.GetJobId(), 1)
	}
	// Metadata of a job that met a conflict is removed after the job's end, and not taken up again by the next scheduler.
	s.awaitClean(t, name, func(path string) bool { return strings.HasSuffix(path, ".avro") })
}

// kill kills somebody, and starts the scheduler again at once: only then can it be killed while it recovers.
func (s *crashStage) kill(t *testing.T, victim int, rng *rand.Rand) string {
	switch victim {
	case 0:
		s.Scheduler.Kill()
		s.startScheduler()
		return scheduler
	case 1:
		n := rng.IntN(len(s.Executors))
		s.Executors[n].Kill()
		return executor
	}
	for _, p := range s.Plugins() {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may be gone
	}
	return plugin
}
