package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/dispatch"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/sources"
)

// Options are what the configuration file does not say.
type Options struct {
	Version string
	Logger  *slog.Logger
	// JournalWait is how long Start waits for another scheduler to let go of the journal.
	JournalWait time.Duration
	// ReconnectGrace is how long a broken executor session may take to come back; 5 s if 0.
	ReconnectGrace time.Duration
	// EmptyGrace is how long work waits for a first executor; 60 s if 0.
	EmptyGrace time.Duration
	// Tracing makes spans; nil: the process's own provider, which does nothing unless it was set up.
	Tracing trace.TracerProvider
}

// Server is a running scheduler.
type Server struct {
	cfg     *config.Config
	opts    Options
	log     *slog.Logger
	journal *journal.Journal
	pool    *dispatch.Pool
	roster  *roster
	broker  *broker.Broker
	sources *sources.Resolver
	views   *views
	told    told

	refusals refusals

	catalogs      map[string]*catalogEntry
	sinks         map[string]*sinkEntry
	isolationText string

	ctx      context.Context //nolint:containedctx // the life of the process: jobs derive theirs from it
	stop     context.CancelFunc
	stopping chan struct{}
	stopOnce sync.Once
	group    sync.WaitGroup
	grpc     *grpc.Server
	addr     string
	flight   *flightListener // nil: off
	done     chan struct{}

	mu       sync.Mutex
	jobs     map[string]*job
	attempts map[string]*attempt     // open attempts by id
	toResume []*job                  // between recover and resume
	toTidy   []*job                  // that have ended, with their work in the journal
	groups   map[string]*sealedGroup // those whose outcome an earlier incarnation left open

	maintenance maintenance
	scheduled   int // of jobs, those of schedules

	commits  commitQueue
	admitted *admission
	entering entering // submissions
	prepared prepared
	roots    []rootOption
	rootPool *semaphore.Weighted
	// commitPool bounds the commits that are sent at one time, over all tables.
	commitPool *semaphore.Weighted
	caches     *caches
	fetches    fetches

	exchanges *exchangeclient.Dialer
	relays    *exchangeclient.Dialer // for clients, who may be slow: roots do not wait for them

	endedMu  sync.Mutex
	ended    map[string]time.Time // attempts of this incarnation that their executor has reported over
	pruned   time.Time
	sweepNow chan struct{}
	expiring sync.Mutex // files of expired snapshots are removed by one at a time
}

// commitsAtOnce is enough for tables on many disks and little for one catalog.
const commitsAtOnce = 64

// Start opens the journal, recovers what an earlier incarnation left, and serves until Stop.
func Start(ctx context.Context, cfg *config.Config, opts Options, more ...Option) (*Server, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	listen := cmp.Or(cfg.Listen, "127.0.0.1:0")
	cfg = cloneConfig(cfg, listen)
	if err := checkListen(cfg, "listen", cfg.Listen, true); err != nil {
		return nil, err
	}
	if err := cfg.CheckSecrets(); err != nil {
		return nil, err
	}
	guard, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	jr, err := journal.Open(filepath.Join(cfg.DataDir, "journal.db"), journal.Options{Wait: opts.JournalWait, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, opts: opts, log: opts.Logger, journal: jr, jobs: map[string]*job{}, attempts: map[string]*attempt{},
		stopping: make(chan struct{}), done: make(chan struct{}), ended: map[string]time.Time{}, sweepNow: make(chan struct{}, 1),
	}
	for _, o := range more {
		o(s)
	}
	s.admitted = newAdmission(cfg.Limits)
	s.commitPool = semaphore.NewWeighted(commitsAtOnce)
	s.commits.run, s.commits.spawn, s.prepared.loads.spawn = s.commitTurn, s.spawn, s.spawn
	s.rootPool = semaphore.NewWeighted(int64(cmp.Or(cfg.Limits.Roots, 16)))
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	guard.refused, guard.joined = s.refusedCall, s.joinedBy
	if err := s.start(guard); err != nil {
		s.stop()
		return nil, errors.Join(err, s.closeParts())
	}
	return s, nil
}

func cloneConfig(cfg *config.Config, listen string) *config.Config {
	c := *cfg
	c.Listen = listen
	return &c
}

func (s *Server) start(guard *guard) error {
	err := s.openViews()
	if err != nil {
		return err
	}
	if err := s.openTold(); err != nil {
		return err
	}
	for _, dir := range []string{resultsDir(s.cfg.DataDir), rootsDir(s.cfg.DataDir)} { // rows of an earlier incarnation: nobody can ask for them any more
		if err = os.RemoveAll(dir); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	if s.sources, err = newSources(s.cfg, s.log); err != nil {
		return err
	}
	if s.exchanges, err = newDialer(s.cfg, 0); err != nil {
		return err
	}
	if s.relays, err = newDialer(s.cfg, relaysAtOnce); err != nil {
		return err
	}
	if s.caches, err = openCaches(filepath.Join(s.cfg.DataDir, "cache")); err != nil {
		return err
	}
	s.caches.max = int64(s.cfg.Limits.MaxCacheBytes)
	s.broker = broker.New(s.views.watchSecrets(brokerConfig(s.cfg, s.journal.Epoch(), s.log)))
	if err := s.openCatalogs(s.ctx); err != nil {
		return err
	}
	if err := s.openSinks(); err != nil {
		return err
	}
	s.pool = dispatch.New(dispatch.Config{
		Epoch: s.journal.Epoch(), Heartbeat: s.cfg.Timeouts.Heartbeat, LostAfter: s.cfg.Timeouts.ExecutorLoss,
		ReconnectGrace: s.opts.ReconnectGrace, EmptyGrace: s.opts.EmptyGrace, Logger: s.log,
		Distribution: dispatch.Distribution(s.cfg.Dispatch.Distribution),
	}, s)
	s.roster = openRoster(s.cfg.DataDir)
	if err := s.recover(); err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	s.openMaintenance()
	return s.listen(guard)
}

func (s *Server) listen(guard *guard) error {
	creds, err := s.serverTLS()
	if err != nil {
		return err
	}
	opts := append(append(rpc.ServerOptions(), s.survive()...), guard.options()...)
	opts = append(opts, s.views.grpcOptions()...)
	if creds != nil {
		opts = append(opts, grpc.Creds(creds))
	}
	s.grpc = grpc.NewServer(opts...)
	schedulerv1.RegisterSchedulerServer(s.grpc, &clientAPI{s: s})
	executorv1.RegisterExecutorGatewayServer(s.grpc, &gateway{s: s})
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with listen in the configuration", s.cfg.Listen, err)
	}
	s.addr = l.Addr().String()
	if err := errors.Join(s.views.serve(guard), s.adoptInputs(), s.listenFlight(guard)); err != nil {
		return errors.Join(err, l.Close())
	}
	s.spawn(func() { s.pool.Watch(s.ctx) })
	s.spawn(func() { s.sweepLoop(s.ctx) })
	s.spawn(func() {
		if err := s.grpc.Serve(l); err != nil {
			s.log.Error("listener ended", "error", err)
		}
	})
	s.warmSinks()
	s.tell()
	s.resume()
	s.maintain()
	s.log.Info("scheduler ready", "address", s.addr, "epoch", s.journal.Epoch(), "cluster", s.cfg.Cluster, "catalogs", s.catalogNames())
	return nil
}

func (s *Server) spawn(f func()) {
	s.group.Add(1)
	go func() {
		defer s.group.Done()
		f()
	}()
}

// Addr is the address that clients and executors dial.
func (s *Server) Addr() string { return s.addr }

// Done is closed when the server has stopped.
func (s *Server) Done() <-chan struct{} { return s.done }

// Isolation says in one line how plugins are kept from the host.
func (s *Server) Isolation() string { return s.isolationText }

// ExecutorExited tells that a local executor process is gone, so that its work moves at once.
func (s *Server) ExecutorExited(pid int) { s.pool.Exited(pid) }

// Stop ends the server. Open jobs stay open in the journal and go on after the next Start; sealed commits are given until ctx
// ends to settle.
func (s *Server) Stop(ctx context.Context) error {
	var err error
	s.stopOnce.Do(func() {
		close(s.stopping)
		s.waitSealed(ctx)
		s.stopFlight(ctx)
		s.told.flush(ctx, s.log)
		s.stop()
		s.pool.Close()
		stopped := make(chan struct{})
		go func() { s.grpc.GracefulStop(); close(stopped) }()
		select {
		case <-stopped:
		case <-ctx.Done():
		case <-time.After(2 * time.Second): // a client that watches forever
		}
		s.grpc.Stop()
		s.group.Wait()
		err = errors.Join(s.broker.Close(ctx), s.closeParts())
		close(s.done)
	})
	<-s.done
	return err
}

func (s *Server) closeParts() error {
	var errs []error
	for _, d := range []*exchangeclient.Dialer{s.exchanges, s.relays} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if s.views != nil {
		errs = append(errs, s.views.close(ctx))
	}
	for _, e := range s.sinks {
		errs = append(errs, e.stop(ctx))
	}
	for _, c := range s.catalogs {
		if c.catalog != nil {
			errs = append(errs, c.catalog.Close())
		}
	}
	if s.cfg != nil && s.journal != nil { // rows that nobody can ask for any more; the lock of the journal still says whose they are
		errs = append(errs, os.RemoveAll(resultsDir(s.cfg.DataDir)))
	}
	return errors.Join(append(errs, s.journal.Close())...)
}

func (s *Server) job(id string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[id]
}

// jobsNewestFirst relies on job ids being ordered by time.
func (s *Server) jobsNewestFirst() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Sorted(maps.Keys(s.jobs))
	slices.Reverse(ids)
	out := make([]*job, len(ids))
	for i, id := range ids {
		out[i] = s.jobs[id]
	}
	return out
}

func (s *Server) catalogNames() []string { return slices.Sorted(maps.Keys(s.catalogs)) }
