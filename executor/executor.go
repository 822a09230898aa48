package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/inputs"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/internal/exchangeclient"
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
	objects *signed.Client // of object stores
	cache   *inputs.Cache  // of their objects
	serving *serving       // what this executor's tasks leave for others
	dialer  *exchangeclient.Dialer
	slots   chan struct{}
	analyst chan struct{} // bounds analyses
	asking  chan struct{} // bounds requests for access

	life context.Context //nolint:containedctx // ends when everything must stop at once
	kill context.CancelCauseFunc
	work sync.WaitGroup // attempts, analyses, sweeps

	mu       sync.Mutex
	attempts map[string]*attempt
	epoch    uint64 // the newest served
	session  *session
	asked    int                                // tasks that this session has asked for and not been given
	accesses map[string]chan *executorv1.Access // who waits for access, by request
	stopping bool
	draining bool
	wake     chan struct{} // closed and replaced when attempts change
	drain    chan struct{} // closed when the scheduler has asked for a drain
	overdue  chan struct{} // closed when that has taken too long
	late     sync.Once     // closes overdue
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
		asking: make(chan struct{}, accessAtATime), accesses: map[string]chan *executorv1.Access{}, attempts: map[string]*attempt{}, wake: make(chan struct{}), drain: make(chan struct{}), overdue: make(chan struct{}),
	}
	e.log = cfg.Logger.With("executor", e.id)
	if e.scratch, err = newScratch(cfg.Scratch, e.id, e.log); err != nil {
		return nil, err
	}
	if e.conn, err = grpc.NewClient(cfg.Scheduler, cfg.dialOptions()...); err != nil {
		return nil, errors.Join(fmt.Errorf("scheduler address %q: %w", cfg.Scheduler, err), e.scratch.Remove())
	}
	if e.serving, err = newServing(cfg.Exchange, e.scratch.Path); err != nil {
		return nil, errors.Join(err, e.conn.Close(), e.scratch.Remove())
	}
	e.dialer = exchangeclient.NewDialer(cfg.Fetch)
	e.objects = signed.New()
	e.cache = &inputs.Cache{Dir: filepath.Join(e.scratch.Path, "objects"), Limit: cfg.ObjectCacheBytes, MinFree: max(cfg.MinFreeBytes, 0), Client: e.objects}
	e.client = executorv1.NewExecutorGatewayClient(e.conn)
	e.pool = duckdb.NewPool(duckdb.Options{Ready: min(cfg.Slots+1, 4), Setup: transform.Register, MemoryBytes: cfg.MemoryBytes / int64(cfg.Slots), Logger: e.log})
	e.shared = &shared{e: e}
	e.life, e.kill = context.WithCancelCause(context.Background())
	return e, nil
}

// ID is the executor's own.
func (e *Executor) ID() string { return e.id }

// Run serves until ctx ends, then leaves: running tasks get Config.Drain to finish, what they report is delivered if the scheduler is
// there, and their outputs are served for as long. A drain that the scheduler asks for ends it as well, when
// nobody needs this executor any more, or at the limit that the drain has, if it has one.
func (e *Executor) Run(ctx context.Context) error {
	e.log.Info("executor started", "scheduler", e.cfg.Scheduler, "slots", e.cfg.Slots, "threads", e.cfg.Threads, "memory", e.cfg.MemoryBytes, "scratch", e.scratch.Path, "exchange", e.serving.address)
	if exchangeclient.IsLoopback(e.serving.address) && !exchangeclient.IsLoopback(e.cfg.Scheduler) {
		e.log.Warn("other machines cannot fetch what tasks leave here: jobs that exchange rows between machines will fail (--exchange-listen)", "exchange", e.serving.address)
	}
	e.serving.start()
	served := make(chan struct{})
	serveCtx, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	go func() {
		defer close(served)
		e.serve(serveCtx)
	}()
	select {
	case <-ctx.Done():
	case <-e.drained(ctx):
	}
	e.leave()
	e.goodbye()
	stopServing()
	<-served
	e.kill(fmt.Errorf("%w: the executor has stopped", errKilled))
	e.work.Wait()
	e.log.Info("executor stopped")
	e.shared.close()
	e.serving.stop()
	e.objects.Close()
	return errors.Join(e.pool.Close(), e.conn.Close(), e.dialer.Close(), e.scratch.Remove())
}

// leave ends the work in order: no new tasks, a time to finish, then cancels.
func (e *Executor) leave() {
	e.mu.Lock()
	e.stopping = true
	reason := e.leaving()
	e.mu.Unlock()
	e.send(leave(reason))
	if e.waitIdle(e.cfg.Drain, true) {
		return
	}
	if held, _ := e.serving.store.Held(); held > 0 {
		e.log.Warn("leaving with outputs that somebody may still need", "outputs", held)
	}
	for _, a := range e.all() {
		if !a.reported.Load() {
			a.cancel(fmt.Errorf("%w: the executor is stopping", errKilled))
		}
	}
	if !e.waitIdle(farewell, false) {
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

// waitIdle waits until no attempt runs, none is unacknowledged and, with outputs, none of those is kept; without a scheduler nobody acknowledges or
// frees anything. False if that takes longer than d.
func (e *Executor) waitIdle(d time.Duration, outputs bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		busy, connected, wake := e.busy()
		held, freed := e.serving.store.Held()
		if !busy && (!outputs || held == 0 || !connected) {
			return true
		}
		select {
		case <-wake:
		case <-freed:
		case <-timer.C:
			return false
		}
	}
}

func (e *Executor) busy() (busy, connected bool, wake <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	connected = e.session != nil
	for _, a := range e.attempts {
		if a.running.Load() || connected {
			return true, connected, e.wake
		}
	}
	return false, connected, e.wake
}
