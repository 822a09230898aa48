package host

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Backoff says how long the supervisor waits between failures: from First, doubling, to Max; a plugin that lived for Steady starts over.
type Backoff struct {
	First, Max, Steady time.Duration
}

// DefaultBackoff restarts a plugin that crashed once without a noticeable delay.
func DefaultBackoff() Backoff {
	return Backoff{First: 100 * time.Millisecond, Max: 30 * time.Second, Steady: time.Minute}
}

// instance is a *Plugin; tests of the timing use another.
type instance interface {
	comparable
	Exited() <-chan struct{}
	Stop(context.Context) error
	LastLines() []string
}

// Supervisor keeps one plugin running: it starts it when it is first asked for, and again after a crash. A failed start is tried again only
// when somebody asks, so that a broken plugin costs nothing while nobody needs it.
type Supervisor struct{ s *supervisor[*Plugin] }

// NewSupervisor does not start anything yet.
func NewSupervisor(cfg Config, backoff Backoff) *Supervisor {
	logger := cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	start := func(ctx context.Context) (*Plugin, error) { return Start(ctx, cfg) }
	return &Supervisor{newSupervisor(start, backoff, func(p *Plugin, next time.Duration) {
		logger.Error("sink plugin ended and is started again", "plugin", cfg.Name, "how", p.process.exit(), "after", next, "last_lines", p.LastLines())
	})}
}

// Get gives the running plugin. It starts it first where it does not run, after what is left of the backoff; all callers share one attempt
// and its error. The context bounds the wait of this caller only.
func (s *Supervisor) Get(ctx context.Context) (*Plugin, error) { return s.s.get(ctx) }

// Stop ends the plugin as Plugin.Stop does, and for good.
func (s *Supervisor) Stop(ctx context.Context) error { return s.s.stop(ctx) }

type supervisor[P instance] struct {
	start   func(context.Context) (P, error)
	crashed func(P, time.Duration)
	backoff Backoff
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu       sync.Mutex
	current  P
	attempt  *attempt[P]
	failures int
	last     error
	earliest time.Time
	stopped  bool
}

// attempt is one start, shared by all who wait for it.
type attempt[P instance] struct {
	done chan struct{}
	p    P
	err  error
}

func newSupervisor[P instance](start func(context.Context) (P, error), b Backoff, crashed func(P, time.Duration)) *supervisor[P] {
	ctx, cancel := context.WithCancel(context.Background())
	return &supervisor[P]{start: start, crashed: crashed, backoff: b, ctx: ctx, cancel: cancel}
}

func (s *supervisor[P]) get(ctx context.Context) (P, error) {
	var none P
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return none, ErrStopping
	}
	if s.current != none && alive(s.current) {
		defer s.mu.Unlock()
		return s.current, nil
	}
	a := s.begin()
	last := s.last
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.p, a.err
	case <-ctx.Done():
		if last != nil {
			return none, fmt.Errorf("%w while the plugin is started again after: %w", ctx.Err(), last)
		}
		return none, ctx.Err()
	}
}

func alive[P instance](p P) bool {
	select {
	case <-p.Exited():
		return false
	default:
		return true
	}
}

// begin joins the attempt under way or makes one. Callers hold mu.
func (s *supervisor[P]) begin() *attempt[P] {
	if s.attempt == nil {
		a, wait := &attempt[P]{done: make(chan struct{})}, time.Until(s.earliest)
		s.attempt = a
		s.wg.Go(func() { s.try(a, wait) })
	}
	return s.attempt
}

func (s *supervisor[P]) try(a *attempt[P], wait time.Duration) {
	select {
	case <-time.After(wait):
		a.p, a.err = s.start(s.ctx)
	case <-s.ctx.Done():
		a.err = ErrStopping
	}
	began := time.Now()
	s.mu.Lock()
	s.attempt = nil
	switch {
	case a.err != nil:
		s.last = a.err
		s.delay()
	case s.stopped:
		// stop waits for us and ends it
		s.current = a.p
	default:
		s.current, s.last = a.p, nil
		s.wg.Go(func() { s.watch(a.p, began) })
	}
	s.mu.Unlock()
	close(a.done)
}

// delay sets the earliest time of the next attempt. Callers hold mu.
func (s *supervisor[P]) delay() time.Duration {
	wait := s.backoff.First << min(s.failures, 20)
	if wait <= 0 || wait > s.backoff.Max {
		wait = s.backoff.Max
	}
	s.failures++
	s.earliest = time.Now().Add(wait)
	return wait
}

// watch starts the plugin again when it ends by itself.
func (s *supervisor[P]) watch(p P, began time.Time) {
	select {
	case <-p.Exited():
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	if time.Since(began) >= s.backoff.Steady {
		s.failures = 0
	}
	s.last = ErrCrashed
	s.crashed(p, s.delay())
	s.begin()
}

func (s *supervisor[P]) stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var none P
	if s.current == none {
		return nil
	}
	p := s.current
	s.current = none
	return p.Stop(ctx)
}
