package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

// session is one connected stream. The pool sends under its lock, so that sending never waits: messages are queued until the executor reads
// them. Launches among them are bounded by its slots and analyses by those that run; the rest, by a limit past which the session is closed.
type session struct {
	maxQueue int
	maxBytes int64
	full     func() // called once where the limit is passed

	mu     sync.Mutex
	queue  []*executorv1.SessionResponse
	bytes  int64 // of those whose size may be large
	wake   chan struct{}
	done   chan struct{}
	once   sync.Once
	waits  map[string]waiter
	broken bool
	seen   atomic.Int64 // when the last message came, in nanoseconds

	accesses chan struct{} // one for each request for access that is under way
}

// waiter is an analysis that the executor was asked for.
type waiter struct {
	req    *executorv1.Analyze
	answer chan *executorv1.AnalyzeResult
}

func (p *Pool) newSession(executor string) *session {
	s := &session{
		maxQueue: p.cfg.MaxUnsent, maxBytes: p.cfg.MaxUnsentBytes, wake: make(chan struct{}, 1), done: make(chan struct{}),
		waits: map[string]waiter{}, accesses: make(chan struct{}, maxAccess),
	}
	s.full = func() {
		p.cfg.Logger.Warn("executor does not read what it is sent; its session is closed", "executor", executor, "messages", s.maxQueue, "bytes", s.maxBytes)
	}
	s.heard()
	return s
}

func (s *session) heard() { s.seen.Store(time.Now().UnixNano()) }

func (s *session) lastSeen() time.Time { return time.Unix(0, s.seen.Load()) }

// large is the size of a message that may have one.
func large(m *executorv1.SessionResponse) int64 {
	if m.GetLaunch() == nil && m.GetAnalyze() == nil && m.GetAccess() == nil {
		return 0
	}
	return int64(proto.Size(m))
}

func (s *session) send(m *executorv1.SessionResponse) {
	size := large(m)
	s.mu.Lock()
	over := len(s.queue) >= s.maxQueue || len(s.queue) > 0 && s.bytes+size > s.maxBytes
	if !over {
		s.queue = append(s.queue, m)
		s.bytes += size
	}
	s.mu.Unlock()
	if over { // what is not sent is repeated, or lost with the session
		s.once.Do(func() {
			s.full()
			close(s.done)
		})
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) take() []*executorv1.SessionResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.queue
	s.queue, s.bytes = nil, 0
	return out
}

func (s *session) close() { s.once.Do(func() { close(s.done) }) }

// expect registers a waiter for an analysis; nil when the session is over.
func (s *session) expect(req *executorv1.Analyze) chan *executorv1.AnalyzeResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return nil
	}
	ch := make(chan *executorv1.AnalyzeResult, 1)
	s.waits[req.GetRequestId()] = waiter{req, ch}
	return ch
}

func (s *session) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, id)
}

func (s *session) analyzed(r *executorv1.AnalyzeResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.waits[r.RequestId]; ok {
		delete(s.waits, r.RequestId)
		w.answer <- r
	}
}

// fail ends all waiters.
func (s *session) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	for id, w := range s.waits {
		delete(s.waits, id)
		close(w.answer)
	}
}
