package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/signet-io/signet/internal/redact"
	"github.com/signet-io/signet/internal/tracing"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/rest"
	"github.com/signet-io/signet/scheduler/telemetry"
)

// views are what others see of the scheduler: REST, event log, metrics, traces, logs. They observe and decide nothing; every hook in the
// scheduler's other files is one call of a function in views*.go.
type views struct {
	s       *Server
	log     *slog.Logger
	redact  *redact.Redactor
	events  *eventlog.Log
	metrics *telemetry.Metrics
	tracer  trace.Tracer
	http    *rest.Server
	started time.Time

	repaired chan struct{} // closed when the event log is in line with the journal
}

// openViews comes before everything that logs, since logs are redacted too (T7).
func (s *Server) openViews() error {
	v := &views{s: s, redact: &redact.Redactor{}, metrics: telemetry.New(s.opts.Version), started: time.Now().UTC(), repaired: make(chan struct{})}
	v.learnSecrets(s.cfg)
	s.log = slog.New(v.redact.Handler(s.opts.Logger.Handler()))
	v.log, s.opts.Logger = s.log, s.log
	provider := s.opts.Tracing
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	v.tracer = provider.Tracer(tracing.Name, trace.WithInstrumentationVersion(s.opts.Version))
	s.journal.Observe(v.metrics.JournalWrite)
	v.metrics.Watch(v.snapshot)
	var err error
	s.views = v
	v.events, err = eventlog.New(eventlog.Config{Dir: filepath.Join(s.cfg.DataDir, "events"), MaxBytes: int64(s.cfg.Limits.MaxEventLogBytes), Redact: v.redact.Text, Logger: s.log})
	return err
}

// learnSecrets makes the values of all configured secrets known to the redactor, and the headers that are sent to a collector.
func (v *views) learnSecrets(cfg *config.Config) {
	v.redact.Add(cfg.SecretValues()...)
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(os.Getenv(name), ",") {
			_, text, _ := strings.Cut(pair, "=")
			v.redact.Add(text)
			if plain, err := url.PathUnescape(text); err == nil {
				v.redact.Add(plain, strings.TrimPrefix(plain, "Bearer "))
			}
		}
	}
}

// watchSecrets also learns what a secret's file says later: secrets are read when they are needed.
func (v *views) watchSecrets(c broker.Config) broker.Config {
	for _, secrets := range c.Secrets {
		for name, read := range secrets {
			secrets[name] = func() ([]byte, error) {
				b, err := read()
				v.redact.Add(string(b))
				return b, err
			}
		}
	}
	return c
}

// serve begins what needs the recovered jobs: the HTTP listener, and the repair of the event log.
func (v *views) serve(g *guard) error {
	v.s.spawn(v.repairEvents)
	addr := v.s.cfg.HTTP.Listen
	if addr == "" {
		return nil
	}
	if err := checkListen(v.s.cfg, "http.listen", v.s.cfg.HTTP.Listen, false); err != nil {
		return err
	}
	tls, err := tlsConfig(v.s.cfg, v.log)
	if err != nil {
		return err
	}
	v.http, err = rest.Listen(v.s.ctx, addr, rest.Config{
		Backend: &restBackend{v}, Authenticate: g.request, Open: g.open() && tls == nil, Metrics: v.metrics.Handler(), Count: v.metrics.Request, TLS: tls, Logger: v.log,
	})
	if err == nil {
		v.log.Info("HTTP ready", "address", v.http.Addr())
	}
	return err
}

// repairEvents brings the event log in line with the journal after a start.
func (v *views) repairEvents() {
	defer close(v.repaired)
	var ended []string
	for _, j := range v.s.jobsNewestFirst() {
		if j.view.endedBefore() {
			ended = append(ended, j.id)
		}
	}
	known := func(id string) (func() eventlog.Record, bool) {
		j := v.s.job(id)
		if j == nil {
			return nil, false
		}
		if !j.view.endedBefore() {
			return nil, true
		}
		return func() eventlog.Record { return v.endOf(j) }, true
	}
	if err := v.events.Repair(known, ended); err != nil {
		v.log.Warn("event log", "error", err)
	}
}

// endOf is the end record of a job of which only the journal tells.
func (v *views) endOf(j *job) eventlog.Record {
	j.mu.Lock()
	rec := j.rec
	j.mu.Unlock()
	out := endRecord(j.id, rec)
	out.Plan = planOf("", rec)
	out.Principal, out.Statement = rec.Principal, clip(rec.SQL, maxLogged)
	out.Rows, out.Bytes = rec.Progress.Rows, rec.Progress.Bytes
	return out
}

func (v *views) close(ctx context.Context) error {
	var err error
	if v.http != nil {
		err = v.http.Close(ctx)
	}
	if v.events != nil {
		err = errors.Join(err, v.events.Close(ctx))
	}
	return err
}

// HTTPAddr is the address of the REST API; empty if there is none.
func (s *Server) HTTPAddr() string {
	if s.views.http == nil {
		return ""
	}
	return s.views.http.Addr()
}

// grpcOptions let calls carry their callers' traces.
func (v *views) grpcOptions() []grpc.ServerOption { return tracing.ServerOptions() }

// observeForgotten removes the histories of jobs that are not kept any longer.
func (s *Server) observeForgotten(old []*job) {
	ids := make([]string, len(old))
	for i, j := range old {
		ids[i] = j.id
	}
	s.views.events.Forget(ids...)
}

// planOf is a job's plan where the job itself has none: after a restart.
func planOf(plan string, rec journal.Job) string {
	if plan == "" && rec.Write != nil {
		return rec.Write.Plan
	}
	return plan
}

// snapshot counts for the metrics.
func (v *views) snapshot() telemetry.Snapshot {
	out := telemetry.Snapshot{Jobs: map[string]int{}}
	for _, s := range []string{"queued", "planning", "running", "successful", "failed", "cancelled"} {
		out.Jobs[s] = 0
	}
	for _, j := range v.s.jobsNewestFirst() {
		j.mu.Lock()
		state, phase := j.state, j.phase
		j.mu.Unlock()
		out.Jobs[stateText(state)]++
		if isTerminal(state) {
			continue
		}
		out.QueuedTasks += v.s.pool.Queued(j.id)
		if phase == "root" || phase == "resolving" {
			out.RunningRoots++
		}
	}
	for _, e := range v.s.pool.Executors() {
		out.RunningTasks += e.Running
		if e.Connected {
			out.Executors++
			out.Slots += e.Slots
		}
	}
	st := v.events.Stats()
	out.EventsDropped, out.EventsWritten, out.EventsQueued = st.Dropped, st.Written, st.Queued
	return out
}
