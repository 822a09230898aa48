package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/mutant"
)

// registerTimeout bounds the wait for the answer to Register.
const registerTimeout = 30 * time.Second

// defaultHeartbeat applies where the scheduler names none.
const defaultHeartbeat = 10 * time.Second

// session is one connected stream. What is queued when it breaks is lost; whoever needs an answer repeats.
type session struct {
	mu    sync.Mutex
	queue []*executorv1.SessionRequest
	wake  chan struct{}
	bye   chan struct{} // closed by close
	over  chan struct{} // closed when the stream has ended
	once  sync.Once
}

func newSession() *session {
	return &session{wake: make(chan struct{}, 1), bye: make(chan struct{}), over: make(chan struct{})}
}

// close lets the stream end once all that is queued has been sent.
func (s *session) close() { s.once.Do(func() { close(s.bye) }) }

func (s *session) send(m *executorv1.SessionRequest) {
	s.mu.Lock()
	s.queue = append(s.queue, m)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) take() []*executorv1.SessionRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.queue
	s.queue = nil
	return out
}

// send queues a message on the current session, if there is one.
func (e *Executor) send(m *executorv1.SessionRequest) {
	e.mu.Lock()
	s := e.session
	e.mu.Unlock()
	if s != nil {
		s.send(m)
	}
}

// auth adds the join token, which travels as metadata and is never logged.
func (e *Executor) auth(ctx context.Context) context.Context {
	if e.cfg.Token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+e.cfg.Token)
}

// serve keeps a session until ctx ends.
func (e *Executor) serve(ctx context.Context) {
	pause := backoff{e.cfg.MinBackoff, e.cfg.MaxBackoff, 0}
	for ctx.Err() == nil {
		registered, err := e.serveOnce(ctx)
		if ctx.Err() != nil || e.parting.Load() {
			return
		}
		if registered {
			pause.reset()
		}
		d := pause.next()
		e.log.Warn("no session with the scheduler; trying again", "error", sessionError(err), "pause", d)
		if !sleep(ctx, d) {
			return
		}
	}
}

// serveOnce is one session, from Register to its end.
func (e *Executor) serveOnce(ctx context.Context) (registered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.client.Session(e.auth(ctx))
	if err != nil {
		return false, err
	}
	answer, err := e.register(stream, cancel)
	if err != nil {
		return false, err
	}
	s := newSession()
	if err := e.begin(answer, s); err != nil {
		return false, err
	}
	defer e.finish(s)
	defer close(s.over)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		e.sendLoop(ctx, cancel, stream, s, answer)
	}()
	err = e.receive(stream, answer.GetEpoch())
	cancel()
	<-sent
	return true, err
}

func (e *Executor) register(stream grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse], cancel func()) (*executorv1.Registered, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	e.mu.Lock()
	reg := &executorv1.Register{
		ExecutorId: e.id, Host: host, Slots: int32(e.cfg.Slots), MemoryBytes: e.cfg.MemoryBytes, Version: e.cfg.Version, //nolint:gosec // slots are few
		KnownEpoch: e.epoch, Pid: int32(os.Getpid()), //nolint:gosec // a pid fits
	}
	reg.ExchangeAddress = e.serving.address
	for _, a := range e.attempts {
		reg.Attempts = append(reg.Attempts, a.ref)
	}
	for _, ref := range e.serving.store.Outputs() {
		if e.attempts[ref.GetAttemptId()] == nil { // otherwise its end is not acknowledged yet
			reg.Outputs = append(reg.Outputs, ref)
		}
	}
	e.mu.Unlock()
	timer := time.AfterFunc(registerTimeout, cancel)
	defer timer.Stop()
	if err := stream.Send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: reg}}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m, err := stream.Recv() // after an EOF of Send this is where the reason is
	if err != nil {
		return nil, err
	}
	answer := m.GetRegistered()
	if answer == nil {
		return nil, fmt.Errorf("the scheduler answered Register with %T", m.GetMessage())
	}
	return answer, fault.Hit("executor.session.registered")
}

// begin takes over what the scheduler says: which attempts go on and which outputs are kept, and which are dropped (S71).
func (e *Executor) begin(answer *executorv1.Registered, s *session) error {
	adopted := map[string]bool{}
	for _, ref := range answer.GetAdopted() {
		adopted[ref.GetAttemptId()] = true
	}
	e.mu.Lock()
	if answer.GetEpoch() < e.epoch && !mutant.On("executor/older-scheduler-served") {
		known := e.epoch
		e.mu.Unlock()
		return fmt.Errorf("refusing a scheduler of epoch %d: epoch %d was served already, so another one has taken over", answer.GetEpoch(), known)
	}
	e.epoch, e.session, e.asked = answer.GetEpoch(), s, 0
	var dropped []*attempt
	for id, a := range e.attempts {
		if !adopted[id] {
			dropped = append(dropped, a)
		}
	}
	leaving := e.leaving()
	e.mu.Unlock()
	e.log.Info("registered", "epoch", answer.GetEpoch(), "adopted", len(adopted), "dropped", len(dropped))
	for _, a := range dropped {
		// One that has reported goes on reporting: the answer to that says what became of it.
		if !a.reported.Load() {
			a.cancel(fmt.Errorf("%w: the scheduler does not know the attempt", errKilled))
		}
	}
	e.freeIf("the scheduler does not know them", func(ref *executorv1.AttemptRef) bool { return !adopted[ref.GetAttemptId()] })
	if leaving != "" {
		s.send(leave(leaving))
	}
	e.mu.Lock()
	e.ask()
	e.mu.Unlock()
	return nil
}

func (e *Executor) finish(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == s {
		e.session = nil
		e.changed()
	}
}

// sendLoop is the only sender of a stream. With each heartbeat it repeats what is not acknowledged.
func (e *Executor) sendLoop(ctx context.Context, cancel func(), stream grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse], s *session,
	answer *executorv1.Registered,
) {
	every := time.Duration(answer.GetHeartbeatMillis()) * time.Millisecond
	if every <= 0 {
		every = defaultHeartbeat
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	e.repeat(s)
	for {
		for _, m := range s.take() {
			if err := stream.Send(m); err != nil {
				cancel()
				return
			}
		}
		select {
		case <-s.wake:
		case <-s.bye:
			for _, m := range s.take() {
				if stream.Send(m) != nil {
					cancel()
					return
				}
			}
			if stream.CloseSend() != nil {
				cancel()
			}
			return
		case <-tick.C:
			s.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Heartbeat{Heartbeat: e.heartbeat()}})
			e.repeat(s)
		case <-ctx.Done():
			return
		}
	}
}

func (e *Executor) repeat(s *session) {
	for _, st := range e.unacknowledged() {
		s.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: st}})
	}
}

func (e *Executor) receive(stream grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse], epoch uint64) error {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the scheduler ended the session")
		}
		if err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *executorv1.SessionResponse_Launch:
			e.launch(m.Launch, epoch)
		case *executorv1.SessionResponse_Cancel:
			e.cancelTask(m.Cancel)
		case *executorv1.SessionResponse_Analyze:
			e.analyze(m.Analyze)
		case *executorv1.SessionResponse_Ack:
			e.acknowledged(m.Ack.GetAttempt())
		case *executorv1.SessionResponse_Sweep:
			e.sweep(m.Sweep)
		case *executorv1.SessionResponse_Free:
			e.free(m.Free)
		case *executorv1.SessionResponse_Drain:
			e.startDrain(m.Drain)
		case *executorv1.SessionResponse_Access:
			e.accessGiven(m.Access)
		default:
			e.log.Warn("the scheduler sent something this executor does not know; it may be newer", "message", fmt.Sprintf("%T", m))
		}
	}
}

func (e *Executor) cancelTask(c *executorv1.CancelTask) {
	if a := e.lookup(c.GetAttempt().GetAttemptId()); a != nil {
		a.cancel(fmt.Errorf("%w: %s", errKilled, c.GetReason()))
	}
}

// acknowledged drops an attempt whose status has arrived.
func (e *Executor) acknowledged(ref *executorv1.AttemptRef) {
	e.mu.Lock()
	a := e.attempts[ref.GetAttemptId()]
	known := a != nil && a.status != nil
	e.mu.Unlock()
	if known {
		e.forget(ref.GetAttemptId())
	}
}
