package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/host"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/sources"
	"github.com/signet-io/signet/scheduler/telemetry"
)

// sinkEntry is one installed sink.
type sinkEntry struct {
	supervisor *host.Supervisor
}

func (e *sinkEntry) stop(ctx context.Context) error { return e.supervisor.Stop(ctx) }

// pluginDir is where sinks are installed.
func pluginDir(cfg *config.Config) (string, error) {
	if cfg.Plugins.Dir != "" {
		return cfg.Plugins.Dir, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(exe), "plugins"), nil
}

// openSinks reads plugins.lock and prepares a supervisor for every sink that a catalog needs; the processes start with their first use.
func (s *Server) openSinks() error {
	dir, err := pluginDir(s.cfg)
	if err != nil {
		return err
	}
	isolation, text := host.DetectIsolation()
	s.isolationText = text
	s.log.Info("plugin isolation", "is", text)
	lock, err := host.ReadLock(dir)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && !s.cfg.Plugins.AllowUnlocked:
		return fmt.Errorf("plugins: %w; `signet sink lock --dir %s` writes the lock, after you have made sure that the plugins there are the right ones", err, dir)
	case err != nil && !missing:
		return fmt.Errorf("plugins: %w", err)
	}
	run := filepath.Join(s.cfg.DataDir, "plugins")
	if err := host.Sweep(run); err != nil { // at once: this scheduler may end before a plugin starts
		s.log.Warn("cannot remove what plugins of a former scheduler left", "directory", run, "error", err)
	}
	s.sinks = map[string]*sinkEntry{}
	for _, c := range s.catalogs {
		if s.sinks[c.sink] != nil {
			continue
		}
		pc := host.Config{
			Name: c.sink, Path: filepath.Join(dir, "signet-sink-"+c.sink), Dir: run, Register: s.broker.Register,
			AllowRead: s.cfg.Plugins.Read[c.sink], Logger: s.log, Isolation: isolation, Unlocked: s.cfg.Plugins.AllowUnlocked, StartTimeout: s.cfg.Timeouts.PluginStart, DrainTimeout: s.cfg.Timeouts.Drain,
			DialOptions: telemetry.PluginCalls(s.views.metrics, s.views.tracer, c.sink), ServerOptions: telemetry.HostCalls(s.views.tracer, c.sink),
		}
		if lock != nil {
			if l, ok := lock.Find(c.sink); ok {
				pc.SHA256 = l.SHA256[host.Platform()]
			}
		}
		if c.implied && (pc.SHA256 == "" && !pc.Unlocked || notThere(pc.Path)) {
			s.log.Warn("a catalog that nothing configures is left out: its sink is not installed", "catalog", c.name, "sink", c.sink, "directory", dir)
			delete(s.catalogs, c.name)
			continue
		}
		if pc.SHA256 == "" && !pc.Unlocked {
			return fmt.Errorf("the sink %q of catalog %s is not in %s; `signet sink lock --dir %s` enters it, after you have made sure that it is the right one", c.sink, c.name, filepath.Join(dir, "plugins.lock"), dir)
		}
		s.sinks[c.sink] = &sinkEntry{host.NewSupervisor(pc, host.DefaultBackoff())}
	}
	return nil
}

func notThere(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// warmSinks starts the sinks, so that the first statement does not wait for them.
func (s *Server) warmSinks() {
	for name, e := range s.sinks {
		s.spawn(func() {
			if _, err := e.supervisor.Get(s.ctx); err != nil && s.ctx.Err() == nil {
				s.log.Error("sink does not start", "sink", name, "error", err)
			}
		})
	}
}

// brokerConfig is what plugins may ask the host for.
func brokerConfig(cfg *config.Config, epoch uint64, log *slog.Logger) broker.Config {
	out := broker.Config{Epoch: epoch, Logger: log, Dials: cfg.Plugins.Dial, Bodies: filepath.Join(cfg.DataDir, "commits"), Secrets: map[string]map[string]func() ([]byte, error){}}
	for plugin, secrets := range cfg.Plugins.Secrets {
		out.Secrets[plugin] = map[string]func() ([]byte, error){}
		for name, secret := range secrets {
			out.Secrets[plugin][name] = func() ([]byte, error) {
				v, err := secret.Resolve()
				return []byte(v), err
			}
		}
	}
	return out
}

// newSources says what statements may read: what the configuration allows, and never Signet's own files.
func newSources(cfg *config.Config, log *slog.Logger) (*sources.Resolver, error) {
	for _, root := range cfg.Sources.Roots {
		if st, err := os.Stat(root); err != nil || !st.IsDir() {
			log.Warn("sources.roots: no such directory; nothing can be read below it", "directory", root)
		}
	}
	rules := sources.Rules{
		Roots: cfg.Sources.Roots, Deny: cfg.Sources.Deny, Own: cfg.OwnPaths(), MaxFiles: cfg.Limits.MaxSourceFiles, Tables: cfg.RestrictedPaths(),
		RemoteTables: cfg.RestrictedPlaces(),
	}
	for i, r := range cfg.Sources.Remote {
		remote, err := remoteSource(r)
		if err != nil {
			return nil, fmt.Errorf("sources.remote[%d]: %w", i, err)
		}
		rules.Remote = append(rules.Remote, remote)
	}
	return sources.New(rules)
}

// sourceFailure gives a source's error the form that clients see.
func sourceFailure(err error) error {
	code := codeUser
	switch {
	case errors.Is(err, sources.ErrNotFound):
		code = codeNotFound
	case wanting(err): // of descriptors, to read a directory
		code = codeResource
	}
	return &jobFailure{journal.JobError{Code: code, Message: err.Error()}, err}
}

// plugin is the running process of a catalog's sink.
func (s *Server) plugin(ctx context.Context, t *target) (*host.Plugin, error) {
	e := s.sinks[t.entry.sink]
	if e == nil {
		return nil, fail(codeNotFound, "signet sink list shows what is installed", "catalog %s needs the sink %q, which is not installed", t.entry.name, t.entry.sink)
	}
	p, err := e.supervisor.Get(ctx)
	if err != nil {
		return nil, &jobFailure{journal.JobError{Code: codeInternal, Message: fmt.Sprintf("sink %s: %v", t.entry.sink, err)}, err}
	}
	return p, nil
}

// lease binds calls of a table's sink to that table. The caller closes it.
func (s *Server) lease(ctx context.Context, t *target, spec broker.LeaseSpec) (*broker.Lease, sinkv1.SinkClient, error) {
	p, err := s.plugin(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	spec.Table, spec.Catalog, spec.Ident, spec.Sink, spec.Plugin = t.ref(), t.entry.catalog, t.ident, p.Describe(), t.entry.sink
	spec.MarkerProperty, spec.DataPath = s.markerProperty(), s.dataPathRule(t.entry)
	if t.entry.catalog == nil {
		if t.isPlace() { // the configuration may be another since the statement was planned
			if _, err := s.placed(t.entry, t.ident[0]); err != nil {
				return nil, nil, err
			}
		}
		spec.Location = t.entry.location(t.ident)
		if spec.Store, err = t.entry.store(ctx, t.ident, spec.Location); err != nil {
			return nil, nil, fmt.Errorf("table %s: %w", t, err)
		}
	}
	l, err := s.broker.Lease(spec)
	if err != nil {
		return nil, nil, err
	}
	return l, p.Client(), nil
}

func (s *Server) readLease(ctx context.Context, job string, t *target) (*broker.Lease, sinkv1.SinkClient, error) {
	return s.lease(ctx, t, broker.LeaseSpec{JobID: job, ReadOnly: true})
}

// markerProperty is the table property that holds this cluster's markers.
func (s *Server) markerProperty() string { return "signet.landed." + s.cfg.Cluster }

// sinkFailure gives a sink's error the form that clients see.
func (s *Server) sinkFailure(ctx context.Context, t *target, err error) error {
	st := status.Convert(err)
	said := func(text string) string { return strings.TrimPrefix(text, "table "+t.String()+": ") } // sinks name the table themselves
	for _, d := range st.Details() {
		r, ok := d.(*hostv1.Refusal)
		if !ok {
			continue
		}
		switch r.Kind {
		case hostv1.RefusalKind_REFUSAL_KIND_NOT_FOUND:
			if t.entry.catalog != nil || t.entry.log != "" {
				return s.noSuchTable(ctx, t)
			}
			return fail(codeNotFound, "CREATE TABLE makes it", "table %s does not exist", t)
		case hostv1.RefusalKind_REFUSAL_KIND_EXISTS:
			return fail(codeExists, "", "table %s exists already", t)
		case hostv1.RefusalKind_REFUSAL_KIND_PERMANENT:
			return fail(codeUser, "", "table %s: %s", t, said(r.Message))
		case hostv1.RefusalKind_REFUSAL_KIND_CONFLICT:
			return fail(codeConflict, "run the statement again", "table %s: %s", t, said(r.Message))
		case hostv1.RefusalKind_REFUSAL_KIND_UNKNOWN:
			return fail(codeLost, "look at the table before the statement is run again", "table %s: %s", t, said(r.Message))
		}
		return fail(codeInternal, "", "table %s: %s", t, said(r.Message))
	}
	if st.Code() == codes.Canceled && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if st.Code() == codes.Unimplemented {
		return fail(codeUser, "", "table %s: the sink %s of catalog %s does not implement %s", t, t.entry.sink, t.entry.name, statementOf(st.Message()))
	}
	var he *host.Error
	if errors.As(err, &he) {
		return &jobFailure{journal.JobError{Code: codeInternal, Message: fmt.Sprintf("table %s: %v", t, he)}, err}
	}
	return &jobFailure{journal.JobError{Code: codeInternal, Message: fmt.Sprintf("table %s: sink %s: %s", t, t.entry.sink, st.Message())}, err}
}

// statementOf is the statement behind a call that gRPC says is not there: "method DropTable not implemented".
func statementOf(message string) string {
	for call, statement := range map[string]string{"CreateTable": "CREATE TABLE", "DropTable": "DROP TABLE", "DescribeTable": "DESCRIBE", "PlanScan": "SELECT", "AlterTable": "ALTER TABLE"} {
		if strings.Contains(message, "method "+call+" ") {
			return statement
		}
	}
	return "this: " + message
}
