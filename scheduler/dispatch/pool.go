package dispatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

// ErrNoExecutor is returned where work needs an executor and none came within the grace time.
var ErrNoExecutor = errors.New("no executor is connected")

// Handler decides what executor events mean. Its methods may block for a journal write, but not for another executor event. None is called with
// the Pool's lock held.
type Handler interface {
	// Adopt tells whether an attempt that an executor brings along at its registration is still wanted (S71).
	Adopt(ref *executorv1.AttemptRef, executor string) bool
	// Assigned tells that an attempt was sent to an executor. It may come after the attempt's end.
	Assigned(ref *executorv1.AttemptRef, executor string)
	// TaskEnded takes an attempt's end. A nil error acknowledges it; otherwise the executor repeats the report.
	TaskEnded(st *executorv1.TaskStatus, executor string) error
	// Unseen names attempts that were sent to an executor which came back without them. The executor itself is not lost.
	Unseen(executor string, attempts []*executorv1.AttemptRef)
	// ExecutorLost names the attempts that went with an executor; what it kept for others is gone, too.
	ExecutorLost(executor string, attempts []*executorv1.AttemptRef)
	// Keep tells whether an output that an executor brings along may still be needed; otherwise it is dropped.
	Keep(ref *executorv1.AttemptRef) bool
	// Joined follows a registration: the attempts that were adopted, and the outputs that are kept.
	Joined(executor string, adopted, outputs []*executorv1.AttemptRef)
	// Progress takes what a heartbeat says of a running attempt.
	Progress(p *executorv1.TaskProgress)
	// Access answers a request for access to object stores, for an attempt that the executor holds or for an analysis that it was asked for (nil: an
	// attempt). ctx ends with the session. What it answers is a credential: nobody may keep or print it.
	Access(ctx context.Context, executor string, r *executorv1.AccessRequest, analysis *executorv1.Analyze) *executorv1.Access
}

// Config of a Pool. Zero durations and limits mean the defaults named.
type Config struct {
	Epoch          uint64
	Heartbeat      time.Duration // how often executors report; 10 s
	LostAfter      time.Duration // silence that makes an executor lost; 60 s
	ReconnectGrace time.Duration // time to come back after a broken session; 5 s
	EmptyGrace     time.Duration // how long work waits for a first executor; 60 s
	Distribution   Distribution  // LeastLoaded
	AvoidWait      time.Duration // how long an attempt waits for an executor that it does not avoid; 5 s
	MaxUnsent      int           // messages that wait for an executor to read them; 20,000
	MaxUnsentBytes int64         // of launches and analyses among them; 64 MiB
	Logger         *slog.Logger
}

func (c *Config) defaults() {
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.LostAfter = cmp.Or(c.LostAfter, 60*time.Second)
	c.ReconnectGrace = cmp.Or(c.ReconnectGrace, 5*time.Second)
	c.EmptyGrace = cmp.Or(c.EmptyGrace, 60*time.Second)
	c.Distribution = cmp.Or(c.Distribution, LeastLoaded)
	c.AvoidWait = cmp.Or(c.AvoidWait, 5*time.Second)
	c.MaxUnsent = cmp.Or(c.MaxUnsent, 20_000)
	c.MaxUnsentBytes = cmp.Or(c.MaxUnsentBytes, 64<<20)
	c.Logger = cmp.Or(c.Logger, slog.Default())
}

// Pool is the set of executors. Safe for concurrent use.
type Pool struct {
	cfg     Config
	handler Handler

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when an executor comes or goes
	executors map[string]*executor
	attempts  map[string]*executor // that hold a slot, by id
	waiting   map[string]*item     // attempts that do not, by id
	jobs      map[string]*jobQueue
	parked    []*item // they wait for executors that they do not avoid
	alarmed   bool
	clock     uint64 // orders turns

	free, asking     heap[*executor] // that could be given a task unasked; that have asked for one
	pushing, pulling heap[*jobQueue] // that have tasks for them
	usable, slots    int             // executors that can take work, and their slots

	assigned []assignment // to be told when the lock is free
	closed   bool
}

type assignment struct {
	ref      *executorv1.AttemptRef
	executor string
}

type executor struct {
	id       string
	info     *executorv1.Register
	session  *session // nil while disconnected
	running  map[string]*executorv1.AttemptRef
	lostAt   *time.Timer
	lastSeen time.Time // of earlier sessions
	leaving  bool      // it said so
	drained  *executorv1.Drain
	asked    int    // tasks that it has asked for and not been given
	served   uint64 // when it was given its last one
	counted  bool   // among the usable
	atFree   int
	atAsking int
}

// New makes an empty pool.
func New(cfg Config, h Handler) *Pool {
	cfg.defaults()
	p := &Pool{
		cfg: cfg, handler: h, changed: make(chan struct{}), executors: map[string]*executor{}, attempts: map[string]*executor{}, waiting: map[string]*item{},
		jobs: map[string]*jobQueue{},
	}
	p.free = heap[*executor]{less: cfg.Distribution.before, at: func(e *executor) *int { return &e.atFree }}
	p.asking = heap[*executor]{less: cfg.Distribution.before, at: func(e *executor) *int { return &e.atAsking }}
	p.pushing = heap[*jobQueue]{less: (*jobQueue).before, at: func(q *jobQueue) *int { return &q.atPush }}
	p.pulling = heap[*jobQueue]{less: (*jobQueue).before, at: func(q *jobQueue) *int { return &q.atPull }}
	return p
}

// unlock ends a change and tells what was assigned in it.
func (p *Pool) unlock() {
	told := p.assigned
	p.assigned = nil
	p.mu.Unlock()
	for _, a := range told {
		p.handler.Assigned(a.ref, a.executor)
	}
}

// Info describes one executor.
type Info struct {
	ID, Host  string
	PID       int
	Slots     int
	Running   int
	Connected bool
	Leaving   bool // it is drained, or stops
	LastSeen  time.Time
	Exchange  string // address where it serves its outputs
}

// Executors lists the executors that are connected or may still come back.
func (p *Pool) Executors() []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Info, 0, len(p.executors))
	for _, e := range p.executors {
		out = append(out, e.describe())
	}
	slices.SortFunc(out, func(a, b Info) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Executor is one of them.
func (p *Pool) Executor(id string) (Info, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.executors[id]; e != nil {
		return e.describe(), true
	}
	return Info{}, false
}

func (e *executor) describe() Info {
	return Info{
		ID: e.id, Host: e.info.Host, PID: int(e.info.Pid), Slots: int(e.info.Slots), Running: len(e.running), Connected: e.session != nil,
		Leaving: e.leaving || e.drained != nil, LastSeen: e.seen(), Exchange: e.info.ExchangeAddress,
	}
}

// Connected is the number of executors that can take work now.
func (p *Pool) Connected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usable
}

// Slots is the number of tasks that they can run at one time.
func (p *Pool) Slots() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots
}

func (e *executor) usable() bool { return e.session != nil && !e.leaving && e.drained == nil }

func (e *executor) free() int { return int(e.info.Slots) - len(e.running) }

func (e *executor) seen() time.Time {
	if e.session != nil {
		return e.session.lastSeen()
	}
	return e.lastSeen
}

// touch puts an executor where it belongs after a change. Called with mu held.
func (p *Pool) touch(e *executor) {
	usable := e.usable() && p.executors[e.id] == e
	if usable != e.counted {
		e.counted = usable
		by := 1
		if !usable {
			by = -1
		}
		p.usable += by
		p.slots += by * int(e.info.Slots)
	}
	room := usable && e.free() > 0
	p.free.set(e, room)
	p.asking.set(e, room && e.asked > 0)
}

// hold gives an attempt one of an executor's slots.
func (p *Pool) hold(e *executor, ref *executorv1.AttemptRef) {
	p.release(ref.AttemptId)
	e.running[ref.AttemptId] = ref
	p.attempts[ref.AttemptId] = e
	q := p.ofJob(ref.JobId)
	q.running++
	p.ranked(q)
	p.touch(e)
}

// release takes an attempt's slot back. It returns what it was; nil: it had none.
func (p *Pool) release(attempt string) *executorv1.AttemptRef {
	e := p.attempts[attempt]
	if e == nil {
		return nil
	}
	ref := e.running[attempt]
	delete(e.running, attempt)
	delete(p.attempts, attempt)
	q := p.ofJob(ref.JobId)
	q.running--
	p.ranked(q)
	p.touch(e)
	return ref
}

// Ended frees the slot of an attempt.
func (p *Pool) Ended(attempt string) {
	p.mu.Lock()
	defer p.unlock()
	if p.release(attempt) != nil {
		p.fill()
	}
}

// Cancel takes an attempt out of the queue, or asks the executor that holds it to end it. It returns false when neither has it.
func (p *Pool) Cancel(ref *executorv1.AttemptRef, reason string) bool {
	p.mu.Lock()
	defer p.unlock()
	if it := p.waiting[ref.AttemptId]; it != nil {
		p.drop(it)
		p.ranked(it.job)
		return true
	}
	e := p.attempts[ref.AttemptId]
	if e == nil || e.session == nil {
		return false
	}
	e.session.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Cancel{Cancel: &executorv1.CancelTask{Attempt: ref, Reason: reason}}})
	return true
}

// Holder is the executor that holds an attempt; "" if none does.
func (p *Pool) Holder(attempt string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.attempts[attempt]; e != nil {
		return e.id
	}
	return ""
}

// signal wakes those who wait for an executor. Called with mu held.
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
