package dispatch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/dispatch"
)

// jobs is a Handler that runs tasks until each is done: what is lost is launched again under a new name.
type jobs struct {
	t    *testing.T
	pool *dispatch.Pool
	pull func(job string) bool

	mu       sync.Mutex
	open     map[string]*planv1.Task // attempts
	done     map[string]int          // by task
	left     int
	next     int
	ended    chan struct{} // closed when all tasks are done
	assigned int
}

func (j *jobs) launch(job, task string) {
	j.mu.Lock()
	j.next++
	t := &planv1.Task{JobId: job, AttemptId: fmt.Sprintf("%s#%d", task, j.next), Sql: task}
	j.open[t.AttemptId] = t
	j.mu.Unlock()
	j.pool.Launch(dispatch.Work{Task: t, Pull: j.pull(job)})
}

// Access implements dispatch.Handler.
func (j *jobs) Access(context.Context, string, *executorv1.AccessRequest, *executorv1.Analyze) *executorv1.Access {
	return &executorv1.Access{}
}

func (j *jobs) close(id string) *planv1.Task {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.open[id]
	delete(j.open, id)
	return t
}

func (j *jobs) again(refs []*executorv1.AttemptRef) {
	for _, r := range refs {
		if t := j.close(r.AttemptId); t != nil {
			j.launch(t.JobId, t.Sql)
		}
	}
}

func (j *jobs) Adopt(ref *executorv1.AttemptRef, _ string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open[ref.AttemptId] != nil
}

func (j *jobs) Assigned(*executorv1.AttemptRef, string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.assigned++
}

func (j *jobs) TaskEnded(st *executorv1.TaskStatus, _ string) error {
	t := j.close(st.Attempt.AttemptId)
	if t == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done[t.Sql]++
	if j.left--; j.left == 0 {
		close(j.ended)
	}
	return nil
}

func (j *jobs) Unseen(_ string, a []*executorv1.AttemptRef)                       { j.again(a) }
func (j *jobs) ExecutorLost(_ string, a []*executorv1.AttemptRef)                 { j.again(a) }
func (j *jobs) Keep(*executorv1.AttemptRef) bool                                  { return false }
func (j *jobs) Joined(string, []*executorv1.AttemptRef, []*executorv1.AttemptRef) {}
func (j *jobs) Progress(*executorv1.TaskProgress)                                 {}

// worker is an executor that takes its time, loses its connection, and comes back with what it has, or without.
type worker struct {
	t     *testing.T
	id    string
	slots int
	polls bool
	c     executorv1.ExecutorGatewayClient
	jobs  *jobs
	stop  chan struct{}

	mu      sync.Mutex
	rand    *rand.Rand
	running []*executorv1.AttemptRef
	asked   int
	drained bool
	wrong   []string
}

// life is sessions one after the other; a worker that dies gets another name.
func (w *worker) life() {
	for n := 0; ; n++ {
		select {
		case <-w.stop:
			return
		default:
		}
		w.session(n)
	}
}

func (w *worker) chance(of int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(of) == 0
}

func (w *worker) session(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	st, err := w.c.Session(ctx)
	if err != nil {
		return
	}
	w.mu.Lock()
	if n > 0 && w.rand.IntN(3) == 0 { // it was killed, and another is started
		w.id, w.running, w.drained = fmt.Sprintf("%s'", w.id), nil, false
	}
	reg := &executorv1.Register{ExecutorId: w.id, Slots: int32(w.slots), Attempts: slices.Clone(w.running)}
	w.asked = 0
	w.mu.Unlock()
	if st.Send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: reg}}) != nil {
		return
	}
	m, err := st.Recv()
	if err != nil {
		return
	}
	kept := map[string]bool{}
	for _, a := range m.GetRegistered().GetAdopted() {
		kept[a.AttemptId] = true
	}
	w.mu.Lock()
	w.running = slices.DeleteFunc(w.running, func(a *executorv1.AttemptRef) bool { return !kept[a.AttemptId] })
	w.mu.Unlock()
	received := make(chan *executorv1.SessionResponse)
	go func() {
		defer close(received)
		for {
			m, err := st.Recv()
			if err != nil {
				return
			}
			received <- m
		}
	}()
	defer func() {
		cancel()
		for range received { //nolint:revive // until it ends
		}
	}()
	work := time.NewTicker(time.Millisecond)
	defer work.Stop()
	for {
		w.ask(st)
		select {
		case <-w.stop:
			return
		case m, ok := <-received:
			if !ok {
				return
			}
			w.take(m)
		case <-work.C:
			if w.chance(60) {
				return // the connection breaks
			}
			w.finish(st)
		}
	}
}

func (w *worker) ask(st interface {
	Send(*executorv1.SessionRequest) error
},
) {
	w.mu.Lock()
	n := w.slots - len(w.running) - w.asked
	if n > 0 && w.polls && !w.drained {
		w.asked += n
	} else {
		n = 0
	}
	w.mu.Unlock()
	if n > 0 {
		_ = st.Send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Poll{Poll: &executorv1.Poll{Tasks: int32(n)}}})
	}
}

func (w *worker) take(m *executorv1.SessionResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case m.GetDrain() != nil:
		w.drained = true
	case m.GetLaunch() != nil:
		l := m.GetLaunch()
		if w.drained {
			w.wrong = append(w.wrong, "a task after a drain")
		}
		if pull := w.jobs.pull(l.Task.JobId); pull != l.Polled {
			w.wrong = append(w.wrong, fmt.Sprintf("job %s pulls: %v, and its task says %v", l.Task.JobId, pull, l.Polled))
		}
		if l.Polled {
			if w.asked--; w.asked < 0 {
				w.wrong = append(w.wrong, "a task that was not asked for")
			}
		}
		if w.running = append(w.running, &executorv1.AttemptRef{JobId: l.Task.JobId, AttemptId: l.Task.AttemptId}); len(w.running) > w.slots {
			w.wrong = append(w.wrong, fmt.Sprintf("%d tasks for %d slots", len(w.running), w.slots))
		}
	case m.GetAck() != nil:
		w.running = slices.DeleteFunc(w.running, func(a *executorv1.AttemptRef) bool { return a.AttemptId == m.GetAck().Attempt.AttemptId })
	}
}

// finish reports one of the running tasks, perhaps one that was reported before.
func (w *worker) finish(st interface {
	Send(*executorv1.SessionRequest) error
},
) {
	w.mu.Lock()
	var ref *executorv1.AttemptRef
	if len(w.running) > 0 {
		ref = w.running[w.rand.IntN(len(w.running))]
	}
	w.mu.Unlock()
	if ref != nil {
		_ = st.Send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: &executorv1.TaskStatus{Attempt: ref}}})
	}
}

// Under either policy, and where jobs of both run, every task is done once, however sessions break and executors die or are drained; no executor has
// more than its slots, and none gets what it did not ask for.
func TestPool_ConformsUnderBothPolicies(t *testing.T) {
	for name, pull := range map[string]func(string) bool{
		"push": func(string) bool { return false },
		"pull": func(string) bool { return true },
		"both": func(job string) bool { return job[len(job)-1]%2 == 0 },
	} {
		for _, by := range dispatch.Distributions() {
			t.Run(name+" "+by, func(t *testing.T) {
				t.Parallel()
				const executors, many, tasks = 5, 6, 25
				h := &jobs{t: t, pull: pull, open: map[string]*planv1.Task{}, done: map[string]int{}, left: many * tasks, ended: make(chan struct{})}
				var c executorv1.ExecutorGatewayClient
				h.pool, c = serve(t, dispatch.Config{ReconnectGrace: 30 * time.Millisecond, AvoidWait: 10 * time.Millisecond, Distribution: dispatch.Distribution(by)}, h)
				stop := make(chan struct{})
				var all []*worker
				var group sync.WaitGroup
				for n := range executors {
					w := &worker{t: t, id: fmt.Sprint("e", n), slots: 1 + n, polls: true, c: c, jobs: h, stop: stop, rand: rand.New(rand.NewPCG(uint64(n), 7))}
					all = append(all, w)
					group.Go(w.life)
				}
				for i := range tasks {
					for n := range many {
						h.launch(fmt.Sprint("job", n), fmt.Sprintf("job%d/%d", n, i))
					}
				}
				_, _ = h.pool.Drain("e4", "a test", 0) // it may not be there yet
				select {
				case <-h.ended:
				case <-time.After(patience):
					t.Errorf("%d tasks are not done", h.left)
				}
				close(stop)
				group.Wait()
				for _, w := range all {
					require.Empty(t, w.wrong, w.id)
				}
				require.Len(t, h.done, many*tasks)
				for task, n := range h.done {
					require.Equal(t, 1, n, task)
				}
				require.GreaterOrEqual(t, h.assigned, many*tasks)
				for n := range many {
					require.Zero(t, h.pool.Queued(fmt.Sprint("job", n)))
				}
			})
		}
	}
}
