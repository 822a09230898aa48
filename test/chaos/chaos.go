package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// Options of a run.
type Options struct {
	Seed      uint64
	Jobs      int
	Executors int
	Clients   int           // statements at a time
	Every     time.Duration // between two kills
	KillFor   time.Duration // after which nobody is killed any more, whether all statements have been answered or not
	Bound     time.Duration // within which each statement must have a definite answer once nobody is killed any more
}

// stage is one run.
type stage struct {
	*harness.Cluster
	t     *testing.T
	o     Options
	l     *ledger
	input string
	list  []*statement
	rng   *rand.Rand // of the kills
	kills map[string]int
	due   map[int]time.Time // when executors that were killed come back
}

// Run executes statements while processes die, and checks what came of them.
func Run(t *testing.T, o Options) {
	t.Logf("SEED=%d JOBS=%d", o.Seed, o.Jobs)
	s := &stage{t: t, o: o, l: newLedger(), rng: rand.New(rand.NewPCG(o.Seed, 1)), kills: map[string]int{}, due: map[int]time.Time{}} //nolint:gosec // choices, not secrets
	s.input = harness.Bulky(t, t.TempDir(), bulkFiles, bulkRows)
	s.list = statements(rand.New(rand.NewPCG(o.Seed, 0)), o.Jobs, s.input) //nolint:gosec // the same
	s.Cluster = harness.New(t, harness.Options{})
	t.Cleanup(s.keepLogs) // before the cluster's directory goes
	s.prepare()
	s.l.start = time.Now()
	answered := s.ask()
	s.havoc(answered)
	select {
	case <-answered:
	case <-time.After(o.Bound):
		t.Errorf("some statements were not answered within %s after the last kill", o.Bound)
	}
	took := time.Since(s.l.start)
	jobs := s.awaitEnd()
	s.check(jobs)
	s.awaitClean()
	s.Stop()
	for _, path := range s.leftovers() {
		t.Errorf("left over after everything has stopped: %s", path)
	}
	s.summary(jobs, took)
}

func (s *stage) env() string { return "TMPDIR=" + filepath.Join(s.Dir, "tmp") }

// prepare starts the processes with a directory for temporary files of their own, and makes the tables.
func (s *stage) prepare() {
	require.NoError(s.t, os.Mkdir(filepath.Join(s.Dir, "tmp"), 0o700))
	s.Scheduler.Terminate(s.t)
	s.StartScheduler(s.env())
	for range s.o.Executors {
		s.StartExecutor(s.env())
	}
	s.AwaitExecutors(s.o.Executors)
	s.SQL("CREATE SCHEMA lake.c")
	for i := range factFiles {
		verb := "INSERT INTO lake.c.facts"
		if i == 0 {
			verb = "CREATE TABLE lake.c.facts AS"
		}
		n := factRows / factFiles
		s.SQL(fmt.Sprintf("%s SELECT i AS id, i %% %d AS k, i %% %d AS g FROM range(%d, %d) r(i)", verb, keys, groups, i*n, i*n+n))
	}
	s.SQL("CREATE TABLE lake.c.names AS SELECT i AS k, 'name ' || i AS name FROM range(60) r(i); INSERT INTO lake.c.names SELECT i AS k, 'name ' || i AS name FROM range(60, 120) r(i)")
	script := "CREATE TABLE lake.c.parts (job BIGINT, id BIGINT, g BIGINT) PARTITIONED BY (g) WITH ('write.distribution-mode' = 'hash');"
	for _, name := range []string{"one0", "one1", "bulk", "plain"} {
		script += "CREATE TABLE lake.c." + name + " (job BIGINT, id BIGINT);"
	}
	for _, st := range s.list {
		if st.kind == "session" {
			script += "CREATE TABLE lake.c." + st.table + " (job BIGINT, id BIGINT);"
		}
	}
	s.SQL(script)
}

// ask has clients run the statements. The channel is closed when all are answered.
func (s *stage) ask() <-chan struct{} {
	queue := make(chan *statement, len(s.list))
	for _, st := range s.list {
		queue <- st
	}
	close(queue)
	var all sync.WaitGroup
	for range s.o.Clients {
		all.Go(func() {
			for st := range queue {
				s.one(st)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	return done
}

func (s *stage) one(st *statement) {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.KillFor+s.o.Bound)
	defer cancel()
	var both sync.WaitGroup
	var once sync.Once
	both.Go(func() { run(ctx, s.l, s.Address, st, 0, &once) })
	if st.twice {
		both.Go(func() { run(ctx, s.l, s.Address, st, time.Duration(st.n%7)*100*time.Millisecond, &once) })
	}
	both.Wait()
}

// havoc kills one process after the other until all statements are answered or it is time to stop, and leaves everybody alive.
func (s *stage) havoc(answered <-chan struct{}) {
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	for end := time.After(s.o.KillFor); ; {
		select {
		case <-answered:
			s.reviveAll()
			return
		case <-end:
			s.reviveAll()
			return
		case <-tick.C:
		}
		s.revive(time.Now())
		s.kill()
	}
}

// kill ends one process with SIGKILL. A scheduler is started again at once: only so it can be killed while it recovers.
func (s *stage) kill() {
	switch at := s.rng.IntN(10); {
	case at < 4:
		n := s.rng.IntN(len(s.Executors))
		if s.Executors[n].Ended() {
			return
		}
		s.Executors[n].Kill()
		s.due[n] = time.Now().Add(time.Duration(s.rng.IntN(2000)) * time.Millisecond)
		s.killed(fmt.Sprintf("executor %d", n), "executor")
	case at < 7:
		s.Scheduler.Kill()
		s.killed("scheduler", "scheduler")
		s.StartScheduler(s.env())
	default:
		for _, p := range s.Plugins() {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may be gone
		}
		s.killed("sink", "sink")
	}
}

func (s *stage) killed(who, kind string) {
	s.kills[kind]++
	s.t.Logf("%7.2fs  %s is killed", time.Since(s.l.start).Seconds(), who)
}

func (s *stage) revive(now time.Time) {
	for n, at := range s.due {
		if now.After(at) {
			s.RestartExecutor(n, s.env())
			delete(s.due, n)
		}
	}
}

func (s *stage) reviveAll() {
	s.revive(time.Now().Add(time.Hour))
	s.AwaitExecutors(s.o.Executors)
}

// awaitEnd waits until every job has ended.
func (s *stage) awaitEnd() []*schedulerv1.Job {
	var all, open []*schedulerv1.Job
	ended := harness.Soon(s.o.Bound, func() bool {
		open = nil
		all = s.JobsAbout("")
		for _, j := range all {
			if !client.Terminal(j.GetState()) {
				open = append(open, j)
			}
		}
		return len(open) == 0
	})
	if !ended {
		for _, j := range open {
			s.t.Errorf("job %s does not end: %v", j.GetJobId(), j)
		}
	}
	return all
}
