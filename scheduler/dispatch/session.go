package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// session is one connected stream. Messages are queued without bound, since the pool sends under its lock: what is queued is bounded
// by slots and by running analyses.
type session struct {
	mu     sync.Mutex
	queue  []*executorv1.SessionResponse
	wake   chan struct{}
	done   chan struct{}
	once   sync.Once
	waits  map[string]chan *executorv1.AnalyzeResult
	broken bool
}

func newSession() *session {
	return &session{wake: make(chan struct{}, 1), done: make(chan struct{}), waits: map[string]chan *executorv1.AnalyzeResult{}}
}

func (s *session) send(m *executorv1.SessionResponse) {
	s.mu.Lock()
	s.queue = append(s.queue, m)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) take() []*executorv1.SessionResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.queue
	s.queue = nil
	return out
}

func (s *session) close() { s.once.Do(func() { close(s.done) }) }

// expect registers a waiter for an analysis; nil when the session is over.
func (s *session) expect(id string) chan *executorv1.AnalyzeResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return nil
	}
	ch := make(chan *executorv1.AnalyzeResult, 1)
	s.waits[id] = ch
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
	if ch := s.waits[r.RequestId]; ch != nil {
		delete(s.waits, r.RequestId)
		ch <- r
	}
}

// fail ends all waiters.
func (s *session) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	for id, ch := range s.waits {
		delete(s.waits, id)
		close(ch)
	}
}

// Session serves one executor's stream until it ends.
func (p *Pool) Session(st grpc.BidiStreamingServer[executorv1.SessionRequest, executorv1.SessionResponse]) error {
	first, err := st.Recv()
	if err != nil {
		return err
	}
	reg := first.GetRegister()
	if reg == nil || reg.ExecutorId == "" || reg.Slots < 1 {
		return status.Error(codes.InvalidArgument, "the first message of a session has to be Register with an executor id and at least one slot")
	}
	if reg.KnownEpoch > p.cfg.Epoch && !mutant.On("dispatch/older-scheduler-serves") {
		return status.Errorf(codes.FailedPrecondition, "this scheduler (epoch %d) is older than the one this executor served last (epoch %d)", p.cfg.Epoch, reg.KnownEpoch)
	}
	s := newSession()
	if err := p.join(reg, s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(st.Context())
	defer cancel()
	go func() { // ends with ctx
		for {
			for _, m := range s.take() {
				if st.Send(m) != nil {
					cancel()
					return
				}
			}
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
		}
	}()
	recv := make(chan error, 1)
	go func() { recv <- p.receive(st, reg.ExecutorId, s) }() // ends when the stream does
	select {
	case err = <-recv:
	case <-s.done:
		err = status.Error(codes.Unavailable, "the scheduler ended the session")
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.fail()
	p.disconnected(reg.ExecutorId, s)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// join enters the executor and answers its registration.
func (p *Pool) join(reg *executorv1.Register, s *session) error {
	answer := &executorv1.Registered{Epoch: p.cfg.Epoch, HeartbeatMillis: p.cfg.Heartbeat.Milliseconds()}
	for _, a := range reg.Attempts {
		if p.handler.Adopt(a, reg.ExecutorId) || mutant.On("dispatch/everything-adopted") {
			answer.Adopted = append(answer.Adopted, a)
		}
	}
	attempts := slices.Clone(answer.Adopted)
	var outputs []*executorv1.AttemptRef
	for _, o := range reg.Outputs {
		if p.handler.Keep(o) {
			outputs = append(outputs, o)
		}
	}
	answer.Adopted = append(answer.Adopted, outputs...)
	if !p.enter(reg, s, answer, attempts) {
		return status.Error(codes.Unavailable, "the scheduler is stopping")
	}
	p.handler.Joined(reg.ExecutorId, attempts, outputs)
	return nil
}

// enter makes the session the executor's. It returns false when the pool is closed.
func (p *Pool) enter(reg *executorv1.Register, s *session, answer *executorv1.Registered, attempts []*executorv1.AttemptRef) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	e := p.executors[reg.ExecutorId]
	var lost []*executorv1.AttemptRef
	if e == nil {
		e = &executor{running: map[string]*executorv1.AttemptRef{}}
		p.executors[reg.ExecutorId] = e
	} else {
		if e.lostAt != nil {
			e.lostAt.Stop()
			e.lostAt = nil
		}
		if e.session != nil {
			e.session.close()
		}
	}
	adopted := map[string]*executorv1.AttemptRef{}
	for _, a := range attempts {
		adopted[a.AttemptId] = a
	}
	for id, a := range e.running { // launched into the broken stream and never seen by the executor
		if adopted[id] == nil {
			lost = append(lost, a)
		}
	}
	e.info, e.session, e.running, e.lastSeen, e.leaving = reg, s, adopted, time.Now(), false
	s.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Registered{Registered: answer}})
	p.cfg.Logger.Info("executor joined", "executor", reg.ExecutorId, "host", reg.Host, "pid", reg.Pid, "slots", reg.Slots, "adopted", len(attempts), "outputs", len(answer.Adopted)-len(attempts))
	if len(lost) > 0 {
		go p.handler.ExecutorLost(reg.ExecutorId, lost)
	}
	p.fill()
	p.signal()
	return true
}

func (p *Pool) receive(st grpc.BidiStreamingServer[executorv1.SessionRequest, executorv1.SessionResponse], id string, s *session) error {
	for {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		p.mu.Lock()
		if e := p.executors[id]; e != nil && e.session == s {
			e.lastSeen = time.Now()
		}
		p.mu.Unlock()
		switch m := m.Message.(type) {
		case *executorv1.SessionRequest_Heartbeat:
			for _, t := range m.Heartbeat.Progress {
				p.handler.Progress(t)
			}
		case *executorv1.SessionRequest_Status:
			go p.ended(m.Status, id, s) // a journal write must not hold up heartbeats
		case *executorv1.SessionRequest_Analyzed:
			s.analyzed(m.Analyzed)
		case *executorv1.SessionRequest_Leave:
			p.leave(id)
		case *executorv1.SessionRequest_Register:
			return status.Error(codes.InvalidArgument, "Register comes once, first")
		}
	}
}

func (p *Pool) ended(st *executorv1.TaskStatus, id string, s *session) {
	if st.Attempt == nil {
		return
	}
	if err := p.handler.TaskEnded(st, id); err != nil {
		p.cfg.Logger.Warn("task status not taken; the executor will repeat it", "attempt", st.Attempt.AttemptId, "error", err)
		return
	}
	p.Ended(st.Attempt.AttemptId)
	if mutant.On("dispatch/status-unacknowledged") {
		return
	}
	s.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Ack{Ack: &executorv1.StatusAck{Attempt: st.Attempt}}})
}

// leave takes no more work to an executor; its running attempts may end.
func (p *Pool) leave(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.executors[id]; e != nil {
		e.leaving = true
	}
}

// disconnected starts the grace time of an executor whose session broke.
func (p *Pool) disconnected(id string, s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.executors[id]
	if e == nil || e.session != s || p.closed {
		return
	}
	e.session = nil
	grace := p.cfg.ReconnectGrace
	if e.leaving && len(e.running) == 0 {
		grace = 0
	}
	p.cfg.Logger.Info("executor disconnected", "executor", id, "running", len(e.running), "grace", grace)
	e.lostAt = time.AfterFunc(grace, func() { p.lose(id, e) })
	p.signal()
}

func (p *Pool) lose(id string, e *executor) {
	p.mu.Lock()
	if p.executors[id] != e || e.session != nil || p.closed {
		p.mu.Unlock()
		return
	}
	delete(p.executors, id)
	if mutant.On("dispatch/loss-untold") {
		e.running = nil
	}
	lost := make([]*executorv1.AttemptRef, 0, len(e.running))
	for _, a := range e.running {
		lost = append(lost, a)
	}
	p.signal()
	leaving := e.leaving
	p.mu.Unlock()
	if leaving && len(lost) == 0 {
		p.cfg.Logger.Info("executor left", "executor", id)
	} else {
		p.cfg.Logger.Warn("executor lost", "executor", id, "attempts", len(lost))
	}
	p.handler.ExecutorLost(id, lost)
}

// Exited tells that a process is known to be gone, so that no grace time is needed.
func (p *Pool) Exited(pid int) {
	p.mu.Lock()
	var id string
	var gone *executor
	for i, e := range p.executors {
		if int(e.info.Pid) == pid {
			id, gone = i, e
		}
	}
	if gone != nil {
		if gone.session != nil {
			gone.session.close()
			gone.session = nil
		}
		if gone.lostAt != nil {
			gone.lostAt.Stop()
		}
	}
	p.mu.Unlock()
	if gone != nil {
		p.lose(id, gone)
	}
}

// Watch ends the sessions of executors that have been silent too long, until ctx ends.
func (p *Pool) Watch(ctx context.Context) {
	tick := time.NewTicker(max(p.cfg.LostAfter/6, 50*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			p.mu.Lock()
			for id, e := range p.executors {
				if e.session != nil && now.Sub(e.lastSeen) > p.cfg.LostAfter && !mutant.On("dispatch/silence-unnoticed") {
					p.cfg.Logger.Warn("executor silent", "executor", id, "since", e.lastSeen)
					e.session.close()
				}
			}
			p.mu.Unlock()
		}
	}
}

// Analyze has one executor analyse a query. It waits for an executor up to the grace time.
func (p *Pool) Analyze(ctx context.Context, req *executorv1.Analyze) (*executorv1.AnalyzeResult, error) {
	for tries := 0; ; tries++ {
		s, err := p.anySession(ctx)
		if err != nil {
			return nil, err
		}
		ch := s.expect(req.RequestId)
		if ch == nil {
			continue
		}
		s.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Analyze{Analyze: req}})
		select {
		case r, ok := <-ch:
			if ok {
				return r, nil
			}
			if tries >= 2 { // the query may be what ends them
				return nil, fmt.Errorf("%w: %d executors were lost while they analysed this statement", ErrNoExecutor, tries+1)
			}
		case <-ctx.Done():
			s.forget(req.RequestId)
			return nil, ctx.Err()
		}
	}
}

// anySession is the session of the least busy executor.
func (p *Pool) anySession(ctx context.Context) (*session, error) {
	grace := time.NewTimer(p.cfg.EmptyGrace)
	defer grace.Stop()
	for {
		p.mu.Lock()
		var best *executor
		for _, e := range p.executors {
			if e.usable() && (best == nil || len(e.running) < len(best.running)) {
				best = e
			}
		}
		changed := p.changed
		var s *session
		if best != nil {
			s = best.session
		}
		p.mu.Unlock()
		if s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-grace.C:
			if mutant.On("dispatch/no-advice") {
				return nil, ErrNoExecutor
			}
			return nil, fmt.Errorf("%w: waited %s; start one with: signet executor --scheduler ADDRESS", ErrNoExecutor, p.cfg.EmptyGrace)
		}
	}
}
