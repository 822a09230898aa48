package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/lineage"
	"github.com/signet-io/signet/scheduler/outbox"
	"github.com/signet-io/signet/scheduler/plan"
)

// Receivers of messages, as the journal names them.
const (
	toLineage = "lineage"
	toReports = "commit-reports" // and toAudit
)

// tellTimeout is for configurations that do not say.
const tellTimeout = 10 * time.Second

// told is what others are told of jobs: lineage events, and reports of commits. It decides nothing; where nothing is configured, it is nothing.
type told struct {
	build   lineage.Builder
	lineage *outbox.Outbox // nil: off
	reports *outbox.Outbox // nil: off
	audit   *outbox.Outbox // nil: off
}

// openTold comes after the journal is open and secrets are known to the redactor.
func (s *Server) openTold() error {
	t := &s.told
	t.build = lineage.Builder{
		Producer: "https://github.com/signet-io/signet/tree/" + s.opts.Version, Version: s.opts.Version, Namespace: s.cfg.Lineage.Namespace, IncludeSQL: s.cfg.Lineage.IncludeSQL, TypeText: plan.TypeText,
	}
	if t.build.Namespace == "" {
		t.build.Namespace = "signet-" + s.cfg.Cluster
	}
	var err error
	if t.lineage, err = s.openOutbox(toLineage, "lineage", s.cfg.Lineage.Receiver()); err != nil {
		return err
	}
	if t.reports, err = s.openOutbox(toReports, "commit_reports", s.cfg.CommitReports); err != nil {
		return err
	}
	t.audit, err = s.openAudit()
	return err
}

// openAudit opens the audit log. What it tells of commits is never dropped: it waits in the journal for as long as the file cannot be written.
func (s *Server) openAudit() (*outbox.Outbox, error) {
	if s.cfg.Audit.File == "" {
		return nil, s.forgetOutgoing(toAudit)
	}
	f, err := outbox.NewLedger(s.cfg.Audit.File)
	if err != nil {
		return nil, fmt.Errorf("audit.file: %w", err)
	}
	return outbox.New(outbox.Config{To: toAudit, Name: "audit", Target: f, Journal: s.journal, Pending: math.MaxInt32, Logger: s.log})
}

func (s *Server) openOutbox(to, key string, r config.Receiver) (*outbox.Outbox, error) {
	if !r.Enabled() {
		return nil, s.forgetOutgoing(to)
	}
	var target outbox.Target
	if r.File != "" {
		f, err := outbox.NewFile(r.File)
		if err != nil {
			return nil, fmt.Errorf("%s.file: %w", key, err)
		}
		target = f
	} else {
		timeout := r.Timeout
		if timeout == 0 {
			timeout = tellTimeout
		}
		target = outbox.NewHTTP(r.URL, timeout, s.headers(key, r.Headers), s.log)
	}
	return outbox.New(outbox.Config{To: to, Name: key, Target: target, Journal: s.journal, Pending: r.MaxPending, Logger: s.log})
}

// headers reads secrets when they are needed.
func (s *Server) headers(key string, secrets map[string]config.Secret) func() (map[string]string, error) {
	return func() (map[string]string, error) {
		out := map[string]string{}
		for name, secret := range secrets {
			v, err := secret.Resolve()
			if err != nil {
				return nil, fmt.Errorf("%s.headers.%s: %w", key, name, err)
			}
			s.views.redact.Add(v, strings.TrimPrefix(v, "Bearer "))
			out[name] = v
		}
		return out, nil
	}
}

// forgetOutgoing lets go of what waits for a receiver that is not configured any more.
func (s *Server) forgetOutgoing(to string) error {
	for {
		var list []*journal.Outgoing
		err := s.journal.View(func(tx *journal.Tx) (err error) {
			list, err = tx.Outgoing(to, 1000)
			return err
		})
		if err != nil || len(list) == 0 {
			return err
		}
		s.log.Warn("messages are dropped: their receiver is not configured any more", "for", to, "messages", len(list))
		if err := s.journal.Update(func(tx *journal.Tx) error { return tx.DropOutgoing(list) }); err != nil {
			return err
		}
	}
}

// tell begins to tell.
func (s *Server) tell() {
	for _, o := range []*outbox.Outbox{s.told.lineage, s.told.reports, s.told.audit} {
		if o != nil {
			s.spawn(func() { o.Run(s.ctx) })
		}
	}
}

// flush gives what waits a little time, so that a command that ends does not leave it to the next one.
func (t *told) flush(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for name, o := range map[string]*outbox.Outbox{"lineage": t.lineage, "commit_reports": t.reports, "audit": t.audit} {
		if err := o.Flush(ctx); err != nil {
			log.Warn("messages wait for the next start", "for", name, "messages", o.Stats().Pending)
		}
	}
}
