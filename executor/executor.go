package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
)

// Executor is one executor process' work. Make it with New and run it once.
type Executor struct {
	cfg     Config
	id      string
	log     *slog.Logger
	pool    *duckdb.Pool
	shared  *shared
	parting atomic.Bool // the session ends for good
	scratch *scratch
	conn    *grpc.ClientConn
	client  executorv1.ExecutorGatewayClient
	slots   chan struct{}
	analyst chan struct{} // bounds analyses

	life context.Context //nolint:containedctx // ends when everything must stop at once
	kill context.CancelCauseFunc
	work sync.WaitGroup // attempts, analyses, sweeps

	mu       sync.Mutex
	attempts map[string]*attempt
	epoch    uint64 // the newest served
	session  *session
	stopping bool
	wake     chan struct{} // closed and replaced when attempts change
}

// New prepares an executor: its scratch directory, its DuckDB pool and its connection, which is made when needed.
func New(cfg Config) (*Executor, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("executor id: %w", err)
	}
	e := &Executor{
		cfg: cfg, id: id.String(), slots: make(chan struct{}, cfg.Slots), analyst: make(chan struct{}, maxAnalyses),
		attempts: map[string]*attempt{}, wake: make(chan struct{}),
	}
	e.log = cfg.Logger.With("executor", e.id)
	if e.scratch, err = newScratch(cfg.Scratch, e.id, e.log); err != nil {
		return nil, err
	}
	if e.conn, err = grpc.NewClient(cfg.Scheduler, cfg.dialOptions()...); err != nil {
		return nil, errors.Join(fmt.Errorf("scheduler address %q: %w", cfg.Scheduler, err), e.scratch.Remove())
	}
	e.client = executorv1.NewExecutorGatewayClient(e.conn)
	e.pool = duckdb.NewPool(duckdb.Options{Ready: min(cfg.Slots+1, 4), Setup: transform.Register, MemoryBytes: cfg.MemoryBytes / int64(cfg.Slots), Logger: e.log})
	e.shared = &shared{e: e}
	e.life, e.kill = context.WithCancelCause(context.Background())
	return e, nil
}

// ID is the executor's own.
func (e *Executor) ID() string { return e.id }

// Run serves until ctx ends, then leaves: running tasks get Config.Drain to finish, what they report is delivered if the scheduler is
// there.
func (e *Executor) Run(ctx context.Context) error {
	e.log.Info("executor started", "scheduler", e.cfg.Scheduler, "slots", e.cfg.Slots, "threads", e.cfg.Threads, "memory", e.cfg.MemoryBytes, "scratch", e.scratch.Path)
	served := make(chan struct{})
	serveCtx, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	go func() {
		defer close(served)
		e.serve(serveCtx)
	}()
	<-ctx.Done()
	e.leave()
	e.goodbye()
	stopServing()
	<-served
	e.kill(fmt.Errorf("%w: the executor has stopped", errKilled))
	e.work.Wait()
	e.log.Info("executor stopped")
	e.shared.close()
	return errors.Join(e.pool.Close(), e.conn.Close(), e.scratch.Remove())
}

// leave ends the work in order: no new tasks, a time to finish, then cancels.
func (e *Executor) leave() {
	e.mu.Lock()
	e.stopping = true
	e.mu.Unlock()
	e.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Leave{Leave: &executorv1.Leave{Reason: "stopped"}}})
	if e.waitIdle(e.cfg.Drain) {
		return
	}
	for _, a := range e.all() {
		if !a.reported.Load() {
			a.cancel(fmt.Errorf("%w: the executor is stopping", errKilled))
		}
	}
	if !e.waitIdle(farewell) {
		e.log.Warn("leaving with attempts that the scheduler has not acknowledged", "attempts", len(e.all()))
	}
}

// goodbye ends the session in order, so that nothing that was queued is cut off.
func (e *Executor) goodbye() {
	e.mu.Lock()
	s := e.session
	e.mu.Unlock()
	if s == nil {
		return
	}
	e.parting.Store(true)
	s.close()
	select {
	case <-s.over:
	case <-time.After(farewell):
	}
}

// farewell is how long cancelled tasks may take to say so.
const farewell = time.Second

// waitIdle waits until no attempt runs and none is unacknowledged; without a scheduler nobody waits for acknowledgements. False if that
// takes longer than d.
func (e *Executor) waitIdle(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		busy, wake := e.busy()
		if !busy {
			return true
		}
		select {
		case <-wake:
		case <-timer.C:
			return false
		}
	}
}

func (e *Executor) busy() (busy bool, wake <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.attempts {
		if a.running.Load() || e.session != nil {
			return true, e.wake
		}
	}
	return false, e.wake
}
