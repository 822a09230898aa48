package dispatch

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/mutant"
)

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
	s := p.newSession(reg.ExecutorId)
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
	go func() { recv <- p.receive(ctx, st, reg.ExecutorId, s) }() // ends when the stream does
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
	unseen, ok := p.enter(reg, s, answer, attempts)
	if !ok {
		return status.Error(codes.Unavailable, "the scheduler is stopping")
	}
	if len(unseen) > 0 { // before Joined, which would have them retried without counting: an executor that breaks at each launch must not go on for ever
		p.handler.Unseen(reg.ExecutorId, unseen)
	}
	p.handler.Joined(reg.ExecutorId, attempts, outputs)
	return nil
}

// enter makes the session the executor's, and returns the attempts that were sent into the broken stream and never seen by the executor. ok is false
// when the pool is closed.
func (p *Pool) enter(reg *executorv1.Register, s *session, answer *executorv1.Registered, attempts []*executorv1.AttemptRef) (unseen []*executorv1.AttemptRef, ok bool) {
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return nil, false
	}
	e := p.executors[reg.ExecutorId]
	if e == nil {
		e = &executor{id: reg.ExecutorId, running: map[string]*executorv1.AttemptRef{}}
		p.executors[e.id] = e
	} else {
		p.detach(e)
	}
	e.info, e.leaving, e.asked = reg, false, 0
	before := e.running
	adopted := map[string]bool{}
	for _, a := range attempts {
		adopted[a.AttemptId] = true
	}
	for id, a := range before {
		if !adopted[id] {
			p.release(id)
			unseen = append(unseen, a)
		}
	}
	for _, a := range attempts {
		p.hold(e, a)
	}
	e.session = s
	s.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Registered{Registered: answer}})
	if e.drained != nil { // it may not have heard of it
		s.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Drain{Drain: e.drained}})
	}
	p.cfg.Logger.Info("executor joined", "executor", reg.ExecutorId, "host", reg.Host, "pid", reg.Pid, "slots", reg.Slots, "adopted", len(attempts), "outputs", len(answer.Adopted)-len(attempts))
	p.touch(e)
	p.fill()
	p.signal()
	return unseen, true
}

// detach ends an executor's session and the wait for the next.
func (p *Pool) detach(e *executor) {
	if e.lostAt != nil {
		e.lostAt.Stop()
		e.lostAt = nil
	}
	if e.session != nil {
		e.lastSeen = e.session.lastSeen()
		e.session.close()
		e.session = nil
	}
	p.touch(e)
}

func (p *Pool) receive(ctx context.Context, st grpc.BidiStreamingServer[executorv1.SessionRequest, executorv1.SessionResponse], id string, s *session) error {
	for {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		s.heard()
		switch m := m.Message.(type) {
		case *executorv1.SessionRequest_Heartbeat:
			for _, t := range m.Heartbeat.Progress {
				p.handler.Progress(t)
			}
		case *executorv1.SessionRequest_Status:
			go p.ended(m.Status, id) // a journal write must not hold up heartbeats
		case *executorv1.SessionRequest_Analyzed:
			s.analyzed(m.Analyzed)
		case *executorv1.SessionRequest_Poll:
			p.polled(id, s, m.Poll.GetTasks())
		case *executorv1.SessionRequest_AccessRequest:
			p.access(ctx, id, s, m.AccessRequest)
		case *executorv1.SessionRequest_Leave:
			p.leave(id, s)
		case *executorv1.SessionRequest_Register:
			return status.Error(codes.InvalidArgument, "Register comes once, first")
		}
	}
}

func (p *Pool) ended(st *executorv1.TaskStatus, id string) {
	if st.Attempt == nil {
		return
	}
	if err := p.handler.TaskEnded(st, id); err != nil {
		p.cfg.Logger.Warn("task status not taken; the executor will repeat it", "attempt", st.Attempt.AttemptId, "error", err)
		return
	}
	p.mu.Lock()
	defer p.unlock()
	// First, and to the session that there is now: what is launched into the slot finds it free.
	if e := p.executors[id]; e != nil && e.session != nil && !mutant.On("dispatch/status-unacknowledged") {
		e.session.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Ack{Ack: &executorv1.StatusAck{Attempt: st.Attempt}}})
	}
	if e := p.attempts[st.Attempt.AttemptId]; e != nil && e.id == id {
		p.release(st.Attempt.AttemptId)
		p.fill()
	}
}

// polled notes that an executor asks for tasks. It cannot have more than its slots.
func (p *Pool) polled(id string, s *session, tasks int32) {
	p.mu.Lock()
	defer p.unlock()
	e := p.executors[id]
	if e == nil || e.session != s || tasks <= 0 {
		return
	}
	e.asked = min(e.asked+int(min(tasks, e.info.Slots)), int(e.info.Slots))
	p.touch(e)
	p.fill()
}

// leave takes no more work to an executor; its running attempts may end.
func (p *Pool) leave(id string, s *session) {
	p.mu.Lock()
	defer p.unlock()
	if e := p.executors[id]; e != nil && e.session == s {
		e.leaving = true
		p.touch(e)
		p.fill() // what waited for it goes elsewhere
		p.signal()
	}
}

// disconnected starts the grace time of an executor whose session broke.
func (p *Pool) disconnected(id string, s *session) {
	p.mu.Lock()
	defer p.unlock()
	e := p.executors[id]
	if e == nil || e.session != s || p.closed {
		return
	}
	p.detach(e)
	grace := p.cfg.ReconnectGrace
	if e.leaving && len(e.running) == 0 {
		grace = 0
	}
	p.cfg.Logger.Info("executor disconnected", "executor", id, "running", len(e.running), "grace", grace)
	e.lostAt = time.AfterFunc(grace, func() { p.lose(id, e) })
	p.fill()
	p.signal()
}

func (p *Pool) lose(id string, e *executor) {
	p.mu.Lock()
	if p.executors[id] != e || e.session != nil || p.closed {
		p.mu.Unlock()
		return
	}
	if mutant.On("dispatch/loss-untold") {
		e.running = nil
	}
	lost := make([]*executorv1.AttemptRef, 0, len(e.running))
	for _, a := range e.running {
		lost = append(lost, a)
	}
	for _, a := range lost {
		p.release(a.AttemptId)
	}
	delete(p.executors, id)
	p.touch(e)
	p.fill()
	p.signal()
	leaving := e.leaving
	p.unlock()
	if leaving && len(lost) == 0 {
		p.cfg.Logger.Info("executor left", "executor", id)
	} else {
		p.cfg.Logger.Warn("executor lost", "executor", id, "attempts", len(lost))
	}
	p.handler.ExecutorLost(id, lost)
}

// Exited tells that a process of this machine is known to be gone, so that no grace time is needed.
func (p *Pool) Exited(pid int) {
	host, _ := os.Hostname() // executors say what they have from the same call
	p.mu.Lock()
	var gone *executor
	for _, e := range p.executors {
		if int(e.info.Pid) == pid && e.info.Host == host {
			gone = e
		}
	}
	if gone != nil {
		p.detach(gone)
	}
	p.mu.Unlock()
	if gone != nil {
		p.lose(gone.id, gone)
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
				if e.session != nil && now.Sub(e.seen()) > p.cfg.LostAfter && !mutant.On("dispatch/silence-unnoticed") {
					p.cfg.Logger.Warn("executor silent", "executor", id, "since", e.seen())
					e.session.close()
				}
			}
			p.mu.Unlock()
		}
	}
}
