package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

type nobody struct{}

func (nobody) Adopt(*executorv1.AttemptRef, string) bool                         { return true }
func (nobody) Assigned(*executorv1.AttemptRef, string)                           {}
func (nobody) TaskEnded(*executorv1.TaskStatus, string) error                    { return nil }
func (nobody) Unseen(string, []*executorv1.AttemptRef)                           {}
func (nobody) ExecutorLost(string, []*executorv1.AttemptRef)                     {}
func (nobody) Keep(*executorv1.AttemptRef) bool                                  { return true }
func (nobody) Joined(string, []*executorv1.AttemptRef, []*executorv1.AttemptRef) {}
func (nobody) Progress(*executorv1.TaskProgress)                                 {}

func (nobody) Access(context.Context, string, *executorv1.AccessRequest, *executorv1.Analyze) *executorv1.Access {
	return &executorv1.Access{}
}

// table is a pool whose executors exist only in it.
type table struct {
	*Pool
	t        testing.TB
	sessions map[string]*session
}

func newTable(t testing.TB, cfg Config) *table {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return &table{New(cfg, nobody{}), t, map[string]*session{}}
}

func (p *table) join(id string, slots int32) {
	p.t.Helper()
	s := p.newSession(id)
	_, ok := p.enter(&executorv1.Register{ExecutorId: id, Slots: slots}, s, &executorv1.Registered{}, nil)
	require.True(p.t, ok)
	p.sessions[id] = s
	s.take()
}

func (p *table) launch(pull bool, job string, attempts ...string) {
	for _, a := range attempts {
		p.Launch(Work{Task: &planv1.Task{JobId: job, AttemptId: a}, Pull: pull})
	}
}

func (p *table) launchAvoiding(attempt string, avoid ...string) {
	p.Launch(Work{Task: &planv1.Task{JobId: "j", AttemptId: attempt}, Avoid: avoid})
}

// got are the attempts that an executor was sent since the last call.
func (p *table) got(id string) string {
	var out []string
	for _, m := range p.sessions[id].take() {
		if l := m.GetLaunch(); l != nil {
			out = append(out, l.GetTask().GetAttemptId())
		}
	}
	return strings.Join(out, " ")
}

func reading(job, attempt string, bytes map[string]int64) *planv1.Task {
	src := &planv1.ExchangeSource{}
	for id, n := range bytes {
		src.Parts = append(src.Parts, &planv1.ExchangePart{ExecutorId: id, Bytes: n})
	}
	return &planv1.Task{JobId: job, AttemptId: attempt, Sources: []*planv1.Source{{Kind: &planv1.Source_Exchange{Exchange: src}}}}
}

func TestDistribution_WhoGetsTheTask(t *testing.T) {
	for name, c := range map[string]struct {
		by      Distribution
		running map[string]int   // of executors x, y and z, with 4, 8 and 8 slots
		reads   map[string]int64 // bytes on executors
		want    string           // three tasks, in order
	}{
		"least loaded":                 {by: LeastLoaded, want: "y z y"},
		"least loaded, some are":       {by: LeastLoaded, running: map[string]int{"y": 6, "z": 7}, want: "x x y"},
		"round robin":                  {by: RoundRobin, want: "x y z"},
		"round robin, one is full":     {by: RoundRobin, running: map[string]int{"x": 4}, want: "y z y"},
		"locality":                     {by: Locality, reads: map[string]int64{"x": 10, "z": 11}, want: "z z z"},
		"locality, it is full":         {by: Locality, running: map[string]int{"z": 8}, reads: map[string]int64{"x": 10, "z": 11}, want: "x x x"},
		"locality, all these are full": {by: Locality, running: map[string]int{"z": 8, "x": 4}, reads: map[string]int64{"x": 10, "z": 11}, want: "y y y"},
		"locality, of one that left":   {by: Locality, reads: map[string]int64{"gone": 10}, want: "y z y"},
		"locality without inputs":      {by: Locality, want: "y z y"},
		"bytes are summed":             {by: Locality, reads: map[string]int64{"x": 3}, want: "x x x"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTable(t, Config{Distribution: c.by})
			for _, e := range []struct {
				id    string
				slots int32
			}{{"x", 4}, {"y", 8}, {"z", 8}} {
				s := p.newSession(e.id)
				var adopted []*executorv1.AttemptRef
				for i := range c.running[e.id] {
					adopted = append(adopted, &executorv1.AttemptRef{JobId: "other", AttemptId: fmt.Sprint(e.id, i)})
				}
				_, ok := p.enter(&executorv1.Register{ExecutorId: e.id, Slots: e.slots}, s, &executorv1.Registered{}, adopted)
				require.True(t, ok)
			}
			var got []string
			for i := range 3 {
				p.Launch(Work{Task: reading("j", fmt.Sprint(i), c.reads)})
				got = append(got, p.Holder(fmt.Sprint(i)))
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

func TestParseDistribution(t *testing.T) {
	d, err := ParseDistribution("")
	require.NoError(t, err)
	require.Equal(t, LeastLoaded, d)
	_, err = ParseDistribution("random")
	require.ErrorContains(t, err, "round-robin")
}

// A small job gets the next free slot although a large one came first and has more to do.
func TestFairness_SmallJobIsNotBehindALargeOne(t *testing.T) {
	for _, pull := range []bool{false, true} {
		t.Run(fmt.Sprintf("pull=%v", pull), func(t *testing.T) {
			p := newTable(t, Config{})
			p.join("x", 4)
			ask := func() { p.polled("x", p.sessions["x"], 1) }
			for i := range 1000 {
				p.launch(pull, "large", fmt.Sprint("l", i))
			}
			for range 4 {
				ask()
			}
			require.Equal(t, "l0 l1 l2 l3", p.got("x"))
			p.launch(pull, "small", "s0", "s1", "s2")
			require.Empty(t, p.got("x"), "all slots are held by long tasks")
			p.Ended("l0")
			ask()
			require.Equal(t, "s0", p.got("x"), "the large job has three, the small one none")
			p.Ended("l1")
			ask()
			require.Equal(t, "s1", p.got("x"), "two against one")
			p.Ended("l2")
			ask()
			require.Equal(t, "l4", p.got("x"), "one against two")
			p.Ended("s0")
			ask()
			require.Equal(t, "s2", p.got("x"))
			p.Ended("s1")
			p.Ended("s2")
			ask()
			ask()
			require.Equal(t, "l5 l6", p.got("x"), "what others do not need is the large job's")
		})
	}
}

// Jobs of both policies take turns.
func TestFairness_BetweenPolicies(t *testing.T) {
	p := newTable(t, Config{})
	p.join("x", 2)
	p.launch(false, "push", "a", "b", "c", "d")
	p.launch(true, "pull", "1", "2", "3", "4")
	require.Equal(t, "a b", p.got("x"))
	p.polled("x", p.sessions["x"], 2)
	p.Ended("a")
	require.Equal(t, "1", p.got("x"))
	p.Ended("b")
	require.Equal(t, "c", p.got("x"), "nobody has asked again, but one was asked for and the other job has none")
	p.Ended("c")
	p.Ended("1")
	require.Equal(t, "d 2", p.got("x"))
	p.Ended("2")
	p.Ended("d")
	require.Empty(t, p.got("x"), "both that were asked for were given")
}

func TestPull_NothingIsSentUnasked(t *testing.T) {
	p := newTable(t, Config{})
	p.join("x", 3)
	p.launch(true, "j", "a", "b", "c", "d", "e", "f")
	require.Empty(t, p.got("x"))
	require.Equal(t, 6, p.Queued("j"))
	x := p.sessions["x"]
	p.polled("x", x, 0)
	p.polled("x", x, -1)
	require.Empty(t, p.got("x"))
	p.polled("x", x, 2)
	require.Equal(t, "a b", p.got("x"))
	p.Ended("a")
	p.Ended("b")
	require.Empty(t, p.got("x"), "free slots are not a question")
	p.polled("x", x, 1<<30)
	require.Equal(t, "c d e", p.got("x"), "as many as it has slots, however many it asks for")
	p.polled("x", x, 1)
	p.join("x", 3) // a new session, which asks by itself
	require.Empty(t, p.got("x"))
	p.polled("x", x, 1)
	require.Empty(t, p.got("x"), "the question came in a session that is over")
	p.polled("x", p.sessions["x"], 1)
	require.Equal(t, "f", p.got("x"))
}

func TestAvoid_IsAPreference(t *testing.T) {
	p := newTable(t, Config{AvoidWait: time.Hour})
	p.join("x", 1)
	p.launchAvoiding("a", "x")
	require.Equal(t, "a", p.got("x"), "there is no other")
	p.join("y", 1)
	p.launchAvoiding("b", "x")
	require.Equal(t, "b", p.got("y"))
	p.Ended("a")
	p.launchAvoiding("c", "x")
	p.launchAvoiding("d", "x", "y")
	require.Equal(t, "d", p.got("x"), "it avoids all that there are")
	require.Empty(t, p.got("y"))
	require.Equal(t, 1, p.Queued("j"))
	p.Ended("d")
	require.Empty(t, p.got("x"), "c waits for y")
	p.launch(false, "j", "e")
	require.Equal(t, "e", p.got("x"), "which holds up nobody else")
	p.Ended("b")
	require.Equal(t, "c", p.got("y"))
	require.Zero(t, p.Queued("j"))
}

func TestAvoid_EndsWhenTheOthersLeave(t *testing.T) {
	p := newTable(t, Config{AvoidWait: time.Hour})
	p.join("x", 1)
	p.join("y", 1)
	p.launch(false, "k", "busy", "too")
	p.launchAvoiding("a", "x")
	p.Ended("busy")
	p.Ended("too")
	p.launchAvoiding("b", "y")
	require.Equal(t, "a", strings.Fields(p.got("y"))[1])
	p.got("x")
	p.launchAvoiding("c", "x")
	p.Ended("b")
	require.Empty(t, p.got("x"))
	_, err := p.Drain("y", "", 0)
	require.NoError(t, err)
	require.Equal(t, "c", p.got("x"))
}

func TestAvoid_DoesNotWaitForEver(t *testing.T) {
	p := newTable(t, Config{AvoidWait: 20 * time.Millisecond})
	p.join("x", 1)
	p.join("y", 1)
	p.launch(false, "k", "one", "two")
	require.NotEmpty(t, p.Holder("two"))
	p.launchAvoiding("a", "x")
	p.Ended("one")
	p.Ended("two")
	require.Equal(t, "y", p.Holder("a"))
	p.launchAvoiding("b", "y")
	p.launchAvoiding("c", "x", "nobody")
	require.Empty(t, p.Holder("c"))
	p.Ended("b")
	require.Eventually(t, func() bool { return p.Holder("c") != "" }, 10*time.Second, time.Millisecond, "it waits for ever")
	require.Equal(t, "x", p.Holder("c"), "the other one is still busy")
}

func TestCancel_TakesAnAttemptOutOfTheQueue(t *testing.T) {
	p := newTable(t, Config{AvoidWait: time.Hour})
	p.join("x", 1)
	p.join("y", 1)
	p.launch(false, "j", "a", "b", "c", "d", "e")
	p.launchAvoiding("f", "x")
	ref := func(id string) *executorv1.AttemptRef { return &executorv1.AttemptRef{JobId: "j", AttemptId: id} }
	require.True(t, p.Cancel(ref("c"), "why"))
	require.True(t, p.Cancel(ref("e"), "why"))
	require.False(t, p.Cancel(ref("c"), "again"))
	require.Equal(t, 2, p.Queued("j"))
	x, y := p.got("x"), p.got("y")
	p.Ended(x)
	require.Equal(t, "d", p.got("x"))
	require.True(t, p.Cancel(ref("f"), "why"))
	require.Zero(t, p.Queued("j"))
	p.Ended(y)
	p.Ended("d")
	require.Empty(t, p.got("x")+p.got("y"))
	require.Empty(t, p.jobs, "nothing is kept of a job that has neither")
	require.Empty(t, p.waiting)
	require.Empty(t, p.attempts)
}

func TestDrain_GivesNothingMore(t *testing.T) {
	p := newTable(t, Config{})
	p.join("abc1", 2)
	p.join("abd2", 2)
	p.launch(true, "j", "1", "2")
	id, err := p.Drain("abc", "maintenance", time.Minute)
	require.NoError(t, err)
	require.Equal(t, "abc1", id)
	d := p.sessions["abc1"].take()[0].GetDrain()
	require.Equal(t, "maintenance", d.GetReason())
	require.EqualValues(t, 60_000, d.GetLimitMillis())
	require.True(t, p.Executors()[0].Leaving)
	require.Equal(t, 1, p.Connected())
	require.Equal(t, 2, p.Slots())
	p.polled("abc1", p.sessions["abc1"], 2)
	p.launch(false, "k", "3", "4", "5")
	require.Empty(t, p.got("abc1"))
	require.Equal(t, "3 4", p.got("abd2"))

	s := p.newSession("abc1") // it comes back, perhaps without having heard
	_, ok := p.enter(&executorv1.Register{ExecutorId: "abc1", Slots: 2}, s, &executorv1.Registered{}, nil)
	require.True(t, ok)
	sent := s.take()
	require.NotNil(t, sent[0].GetRegistered())
	require.NotNil(t, sent[1].GetDrain())
	require.Len(t, sent, 2)

	for name, want := range map[string]string{"ab": "several", "": "lists", "zz": "lists", "abc12": "lists"} {
		_, err := p.Drain(name, "", 0)
		require.ErrorIs(t, err, ErrUnknownExecutor, name)
		require.ErrorContains(t, err, want)
	}
}

// An executor that does not read is not sent more and more.
func TestSession_WithoutAReaderIsClosed(t *testing.T) {
	for name, send := range map[string]func(*Pool, int){
		"frees": func(p *Pool, i int) { p.Free("x", "j", []string{fmt.Sprint(i)}) },
		"large analyses": func(p *Pool, _ int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.executors["x"].session.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Analyze{Analyze: &executorv1.Analyze{Sql: strings.Repeat("x", 1<<10)}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTable(t, Config{MaxUnsent: 100, MaxUnsentBytes: 50 << 10})
			p.join("x", 1)
			s := p.sessions["x"]
			for i := range 1000 {
				send(p.Pool, i)
			}
			select {
			case <-s.done:
			default:
				t.Fatal("it goes on")
			}
			require.LessOrEqual(t, len(s.queue), 100)
			require.LessOrEqual(t, s.bytes, int64(50<<10))
			require.NotEmpty(t, s.queue)
		})
	}
}

func TestHeap_IsAlwaysInOrder(t *testing.T) {
	type member struct{ key, at int }
	r := rand.New(rand.NewPCG(1, 2))
	h := heap[*member]{less: func(a, b *member) bool { return a.key < b.key }, at: func(m *member) *int { return &m.at }}
	all := make([]*member, 60)
	for i := range all {
		all[i] = &member{key: r.IntN(20)}
	}
	for range 5000 {
		m := all[r.IntN(len(all))]
		m.key = r.IntN(20)
		h.set(m, r.IntN(3) > 0)
		in := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m.at == 0 })
		require.Len(t, h.items, len(in))
		for i, m := range h.items {
			require.Equal(t, i+1, m.at)
		}
		if len(in) == 0 {
			continue
		}
		least := slices.MinFunc(in, func(a, b *member) int { return a.key - b.key })
		require.Equal(t, least.key, h.items[0].key)
		odd, ok := h.first(func(m *member) bool { return m.key%2 == 1 })
		in = slices.DeleteFunc(in, func(m *member) bool { return m.key%2 == 0 })
		require.Equal(t, len(in) > 0, ok)
		if ok {
			require.Equal(t, slices.MinFunc(in, func(a, b *member) int { return a.key - b.key }).key, odd.key)
		}
	}
}

func TestSlow_WhichAttempts(t *testing.T) {
	now := time.Now()
	s := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	run := func(id string, age float64, bytes int64) Running { return Running{id, now.Add(-s(age)), bytes} }
	finished := []time.Duration{s(1), s(2), s(2), s(3)}
	slow := Slow{Percent: 300, Age: s(5)}
	for name, c := range map[string]struct {
		slow   Slow
		sample Sample
		want   string
	}{
		"nothing is done":           {slow, Sample{Tasks: 4, Running: []Running{run("a", 100, 0)}}, ""},
		"too little is done":        {slow, Sample{Tasks: 9, Finished: finished, Running: []Running{run("a", 100, 0)}}, ""},
		"three times the median":    {slow, Sample{Tasks: 8, Finished: finished, Running: []Running{run("a", 6.5, 0), run("b", 5.5, 0)}}, "a"},
		"younger than the least":    {Slow{Percent: 300, Age: s(10)}, Sample{Tasks: 8, Finished: finished, Running: []Running{run("a", 9, 0), run("b", 10.5, 0)}}, "b"},
		"the slowest first":         {slow, Sample{Tasks: 8, Finished: finished, Running: []Running{run("b", 7, 0), run("c", 9, 0), run("a", 8, 0)}}, "c a b"},
		"nearly done":               {slow, Sample{Tasks: 8, Finished: finished, Bytes: 400, Running: []Running{run("a", 7, 90), run("b", 7, 10)}}, "b"},
		"nearly done for too long":  {slow, Sample{Tasks: 8, Finished: finished, Bytes: 400, Running: []Running{run("a", 13, 99)}}, "a"},
		"nobody makes any bytes":    {slow, Sample{Tasks: 8, Finished: finished, Running: []Running{run("a", 7, 1)}}, "a"},
		"all are done but this one": {slow, Sample{Tasks: 1, Finished: []time.Duration{s(1)}, Running: []Running{run("a", 6, 0)}}, "a"},
	} {
		require.Equal(t, c.want, strings.Join(c.slow.Of(now, c.sample), " "), name)
	}
}

// BenchmarkPool is what a task costs here, launched, assigned and ended, with 100 executors and 100 jobs.
func BenchmarkPool(b *testing.B) {
	for _, by := range Distributions() {
		b.Run(by, func(b *testing.B) {
			p := newTable(b, Config{Distribution: Distribution(by)})
			for i := range 100 {
				p.join(fmt.Sprint("e", i), 4)
			}
			tasks := make([]*planv1.Task, b.N)
			for i := range tasks {
				tasks[i] = &planv1.Task{JobId: fmt.Sprint("j", i%100), AttemptId: fmt.Sprint(i)}
			}
			b.ResetTimer()
			for i, t := range tasks {
				p.Launch(Work{Task: t})
				if i >= 400 {
					p.Ended(tasks[i-400].AttemptId)
				}
				if i%1000 == 0 {
					for _, s := range p.sessions {
						s.take()
					}
				}
			}
		})
	}
}
