package dispatch

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// ErrNoExecutor is returned where work needs an executor and none came within the grace time.
var ErrNoExecutor = errors.New("no executor is connected")

// Handler decides what executor events mean. Its methods may block for a journal write, but not for another executor event.
type Handler interface {
	// Adopt tells whether an attempt that an executor brings along at its registration is still wanted (S71).
	Adopt(ref *executorv1.AttemptRef, executor string) bool
	// TaskEnded takes an attempt's end. A nil error acknowledges it; otherwise the executor repeats the report.
	TaskEnded(st *executorv1.TaskStatus, executor string) error
	// ExecutorLost names the attempts that went with an executor; what it kept for others is gone, too.
	ExecutorLost(executor string, attempts []*executorv1.AttemptRef)
	// Keep tells whether an output that an executor brings along may still be needed; otherwise it is dropped.
	Keep(ref *executorv1.AttemptRef) bool
	// Joined follows a registration: the attempts that were adopted, and the outputs that are kept.
	Joined(executor string, adopted, outputs []*executorv1.AttemptRef)
	// Progress takes what a heartbeat says of a running attempt.
	Progress(p *executorv1.TaskProgress)
}

// Config of a Pool. Zero durations mean the defaults named.
type Config struct {
	Epoch          uint64
	Heartbeat      time.Duration // how often executors report; 10 s
	LostAfter      time.Duration // silence that makes an executor lost; 60 s
	ReconnectGrace time.Duration // time to come back after a broken session; 5 s
	EmptyGrace     time.Duration // how long work waits for a first executor; 60 s
	Logger         *slog.Logger
}

func (c *Config) defaults() {
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.LostAfter = cmp.Or(c.LostAfter, 60*time.Second)
	c.ReconnectGrace = cmp.Or(c.ReconnectGrace, 5*time.Second)
	c.EmptyGrace = cmp.Or(c.EmptyGrace, 60*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
}

// Pool is the set of executors. Safe for concurrent use.
type Pool struct {
	cfg     Config
	handler Handler

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at every change that waiters care about
	executors map[string]*executor
	queue     map[string][]*planv1.Task // by job
	turns     []string                  // jobs with queued tasks, next first
	closed    bool
}

type executor struct {
	info     *executorv1.Register
	session  *session // nil while disconnected
	running  map[string]*executorv1.AttemptRef
	lastSeen time.Time
	lostAt   *time.Timer
	leaving  bool
}

// New makes an empty pool.
func New(cfg Config, h Handler) *Pool {
	cfg.defaults()
	return &Pool{cfg: cfg, handler: h, changed: make(chan struct{}), executors: map[string]*executor{}, queue: map[string][]*planv1.Task{}}
}

// Info describes one executor.
type Info struct {
	ID, Host  string
	PID       int
	Slots     int
	Running   int
	Connected bool
	LastSeen  time.Time
	Exchange  string // address where it serves its outputs
}

// Executors lists the executors that are connected or may still come back.
func (p *Pool) Executors() []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Info, 0, len(p.executors))
	for id, e := range p.executors {
		out = append(out, Info{ID: id, Host: e.info.Host, PID: int(e.info.Pid), Slots: int(e.info.Slots), Running: len(e.running), Connected: e.session != nil, LastSeen: e.lastSeen, Exchange: e.info.ExchangeAddress})
	}
	slices.SortFunc(out, func(a, b Info) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Connected is the number of executors that can take work now.
func (p *Pool) Connected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.executors {
		if e.usable() {
			n++
		}
	}
	return n
}

func (e *executor) usable() bool { return e.session != nil && !e.leaving }

// Launch queues an attempt until a slot is free.
func (p *Pool) Launch(task *planv1.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, waiting := p.queue[task.JobId]; !waiting {
		p.turns = append(p.turns, task.JobId)
	}
	p.queue[task.JobId] = append(p.queue[task.JobId], task)
	p.fill()
}

// DropQueued forgets the queued attempts of a job and returns them.
func (p *Pool) DropQueued(job string) []*planv1.Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.queue[job]
	delete(p.queue, job)
	p.turns = slices.DeleteFunc(p.turns, func(j string) bool { return j == job })
	return out
}

// Queued is the number of attempts of a job that wait for a slot.
func (p *Pool) Queued(job string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue[job])
}

// fill gives free slots to queued attempts, jobs taking turns. Called with mu held.
func (p *Pool) fill() {
	for len(p.turns) > 0 && !p.closed {
		e := p.pick()
		if e == nil {
			return
		}
		job := p.turns[0]
		p.turns = p.turns[1:]
		task := p.queue[job][0]
		if rest := p.queue[job][1:]; len(rest) > 0 {
			p.queue[job] = rest
			p.turns = append(p.turns, job)
		} else {
			delete(p.queue, job)
		}
		e.running[task.AttemptId] = &executorv1.AttemptRef{JobId: task.JobId, Stage: task.Stage, Task: task.Task, AttemptId: task.AttemptId, Epoch: task.Epoch}
		e.session.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Launch{Launch: &executorv1.Launch{Task: task}}})
	}
}

// pick is the usable executor with the most free slots, or nil.
func (p *Pool) pick() *executor {
	var best *executor
	free := 0
	for _, e := range p.executors {
		if n := int(e.info.Slots) - len(e.running); e.usable() && n > free {
			best, free = e, n
		}
	}
	return best
}

// Ended frees the slot of an attempt.
func (p *Pool) Ended(attempt string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.executors {
		if _, ok := e.running[attempt]; ok {
			delete(e.running, attempt)
			p.fill()
			p.signal()
			return
		}
	}
}

// Cancel asks the executor that holds an attempt to end it. It returns false when no connected executor holds it.
func (p *Pool) Cancel(ref *executorv1.AttemptRef, reason string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.executors {
		if _, ok := e.running[ref.AttemptId]; ok && e.session != nil {
			e.session.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Cancel{Cancel: &executorv1.CancelTask{Attempt: ref, Reason: reason}}})
			return true
		}
	}
	return false
}

// Holder is the executor that holds an attempt; "" if none does.
func (p *Pool) Holder(attempt string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, e := range p.executors {
		if _, ok := e.running[attempt]; ok {
			return id
		}
	}
	return ""
}

// signal wakes those who wait for a change. Called with mu held.
func (p *Pool) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Close ends all sessions; executors see a broken stream and look for the next scheduler.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, e := range p.executors {
		if e.lostAt != nil {
			e.lostAt.Stop()
		}
		if e.session != nil {
			e.session.close()
		}
	}
	p.signal()
}
