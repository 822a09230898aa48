package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
)

// commitTries bounds how often a sink is asked again after it died or sent nothing. Conflicts are retried inside one call.
const commitTries = 8

// runCommit is the scheduler root of a write: it runs once, after every task has an accepted manifest, and returns when the commit is
// decided (S12–S24). A nil error means that the machine is Committed and the job's end is journalled.
func (s *Server) runCommit(w *writeState) error {
	j := w.job
	j.setPhase(schedulerv1.JobState_JOB_STATE_RUNNING, "root", "")
	if err := fault.Hit("scheduler.root.start"); err != nil {
		return err
	}
	if w.nothing() {
		return w.settle(coordinator.Skip{Version: w.spec.BaseVersion}) // C16: no rows, no snapshot
	}
	ctx, stop := s.untilSealed(w)
	defer stop()
	for try := 0; ; try++ {
		err := s.commitOnce(ctx, w)
		done, end := w.decided(err)
		if late := (*jobFailure)(nil); done && end != nil && errors.As(context.Cause(ctx), &late) {
			return late
		}
		if done {
			return end
		}
		if j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		if try+1 >= commitTries {
			return s.failWrite(w, fail(codeInternal, "the table is unchanged; run the statement again", "gave up after %d commit calls: %w", try+1, err))
		}
		s.log.Warn("commit is tried again", "job", j.id, "try", try+1, "error", err)
		pause(j.ctx, time.Duration(50<<min(try, 6))*time.Millisecond)
	}
}

// nothing reports whether a commit would change nothing. An overwrite also removes: with nothing written it empties what its scope covers, but for one of
// the partitions that are written.
func (w *writeState) nothing() bool {
	if t := w.totals(); t.Files > 0 || t.ReplacedFiles > 0 {
		return false
	}
	switch w.mode {
	case sinkv1.WriteMode_WRITE_MODE_CREATE, sinkv1.WriteMode_WRITE_MODE_REPLACE, sinkv1.WriteMode_WRITE_MODE_PICK:
		return false
	case sinkv1.WriteMode_WRITE_MODE_OVERWRITE:
		return w.spec.GetScope().GetPartitions()
	case sinkv1.WriteMode_WRITE_MODE_REWRITE: // manifests: only the sink can tell
		return !w.rewritesManifests()
	}
	return true
}

// untilSealed bounds how long a commit may take to be let through: never how long it takes after that (S58). The coordinator decides which of the
// two came first.
func (s *Server) untilSealed(w *writeState) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(w.job.ctx)
	limit := cmp.Or(s.cfg.Timeouts.Root, rootTimeout)
	t := time.AfterFunc(limit, func() {
		late := fail(codeResource, "the table is unchanged; run the statement again, or raise timeouts.root", "the commit to %s was not let through within %s", w.target, limit)
		if _, err := w.step(coordinator.Fail{Reason: late.Message}, nil); err == nil {
			cancel(late)
		}
	})
	return ctx, func() {
		t.Stop()
		cancel(nil)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// decided waits until no attempt is sealed, and tells whether the commit is decided, and how.
func (w *writeState) decided(err error) (bool, error) {
	for {
		w.mu.Lock()
		state, failure, changed := w.machine.State(), w.machine.Failure(), w.changed
		w.mu.Unlock()
		switch state {
		case coordinator.Committed:
			return true, nil
		case coordinator.Aborted:
			if failure.Cancelled {
				return true, errCancelled
			}
			if err == nil {
				err = fail(codeRefused, "", "%s", failure.Reason)
			}
			return true, err
		case coordinator.Sealed, coordinator.Resolving:
			select { // the broker sends the frozen request until it has an end; nothing else may end the job
			case <-changed:
				continue
			case <-w.s.ctx.Done():
				return true, context.Cause(w.s.ctx)
			}
		}
		if err == nil {
			err = fmt.Errorf("the sink said that it committed, and no attempt landed")
		}
		return false, err
	}
}

// commitOnce has the job's commit made once, in the table's turn. Its error says why nothing is decided yet.
func (s *Server) commitOnce(ctx context.Context, w *writeState) error {
	j := w.job
	start := time.Now()
	staged, err := w.stage().finish(ctx)
	j.timed("stage", start)
	if err != nil {
		if f := permanentFailure(s.sinkFailure(ctx, w.target, err)); f != nil {
			return s.failWrite(w, f)
		}
		return fmt.Errorf("stage: %w", err)
	}
	if _, err := w.step(coordinator.Start{}, nil); err != nil && w.isFinal() {
		return err
	}
	p, err := s.plugin(ctx, w.target)
	if err != nil {
		return err
	}
	if err := fault.Hit("scheduler.root.before-commit"); err != nil {
		return err
	}
	c := &queuedCommit{w: w, here: w.here, staged: staged, key: w.groupKey(p.Describe(), staged), bytes: refBytes(staged), since: time.Now(), ctx: ctx, done: make(chan struct{})}
	return s.commits.commit(c, w.target.String())
}

// commitAlone calls the sink's Commit for one job.
func (s *Server) commitAlone(c *queuedCommit) error {
	ctx, w := c.ctx, c.w
	w.keepCreated(w.lease)
	spec, err := w.commitLease(ctx, w.adopted())
	if err != nil {
		return err
	}
	lease, res, err := s.callCommit(ctx, spec, []*queuedCommit{c})
	if lease != nil {
		lease.Close()
		w.keepCreated(lease)
	}
	if err != nil {
		return err
	}
	return s.judge(w, res)
}

// callCommit calls the sink's Commit once, for the units of one or more jobs. The caller closes the lease, which is nil if nothing was called.
func (s *Server) callCommit(ctx context.Context, spec broker.LeaseSpec, units []*queuedCommit) (*broker.Lease, *sinkv1.CommitResponse, error) {
	w := units[0].w
	p, err := s.plugin(ctx, w.target)
	if err != nil {
		return nil, nil, err
	}
	spec.Sink = p.Describe()
	lease, err := s.broker.Lease(spec)
	if err != nil {
		return nil, nil, err
	}
	req := &sinkv1.CommitRequest{
		Lease: lease.Token(), Table: w.target.ref(), Mode: w.mode, Spec: w.spec, MarkerProperty: s.markerProperty(),
		KeepMarkers: spec.KeepMarkers, MaxAttempts: int32(s.cfg.Limits.CommitRetries) + 1, //nolint:gosec // small number
	}
	start := time.Now()
	for _, c := range units {
		c.w.mu.Lock()
		c.w.commitStart = start
		c.w.mu.Unlock()
		req.Units = append(req.Units, c.unit())
	}
	s.log.Info("the sink commits", "job", w.job.id, "jobs", len(units), "table", w.target.String(), "plugin", p.PID())
	res, err := p.Client().Commit(ctx, req)
	if err != nil {
		for _, c := range units {
			c.w.stage().reset() // the process that staged may be gone, and with it what it remembered
		}
	}
	return lease, res, err
}

// unit is the job's share of a commit.
func (c *queuedCommit) unit() *sinkv1.Unit {
	j := c.w.job
	return &sinkv1.Unit{
		JobId: j.id, CommitKey: j.rec.CommitKey, Marker: j.rec.Marker, Refs: c.staged.Refs, Totals: c.w.totals(), Digest: c.w.digest(),
		Properties: c.w.summary(),
	}
}

// judge takes the sink's word where the coordinator has not decided. A sink can not make a job succeed by its word alone: the marker
// must be in the table.
func (s *Server) judge(w *writeState, res *sinkv1.CommitResponse) error {
	if w.isFinal() {
		return nil
	}
	reason := res.Message
	switch res.Outcome {
	case sinkv1.Outcome_OUTCOME_COMMITTED, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED:
		version, location, err := s.findMarker(w)
		if err != nil {
			return err
		}
		if version == "" && w.rewritesManifests() && w.totals().GetFiles() == 0 { // they are as they should be
			return w.settle(coordinator.Skip{Version: res.Version})
		}
		if version == "" {
			return fmt.Errorf("the sink says %s at version %q, and the table has no marker of this job", outcomeText(res.Outcome), res.Version)
		}
		return w.settle(coordinator.Found{Version: version, Location: location})
	case sinkv1.Outcome_OUTCOME_PERMANENT:
		return s.failWrite(w, fail(codeRefused, "", "the commit to %s was refused: %s", w.target, reason))
	case sinkv1.Outcome_OUTCOME_CONFLICT:
		return s.failWrite(w, fail(codeConflict, "others commit to this table faster; run the statement again or raise limits.commit_retries", "the commit to %s met a conflict %d times: %s", w.target, res.Attempts, reason))
	case sinkv1.Outcome_OUTCOME_RETRYABLE:
		return fmt.Errorf("nothing was sent: %s", reason)
	}
	return fmt.Errorf("%s: %s", outcomeText(res.Outcome), reason)
}

func outcomeText(o sinkv1.Outcome) string {
	switch o {
	case sinkv1.Outcome_OUTCOME_COMMITTED:
		return "committed"
	case sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED:
		return "already committed"
	case sinkv1.Outcome_OUTCOME_UNKNOWN:
		return "the outcome is unknown"
	default:
		return o.String()
	}
}

// failWrite ends the commit as failed, unless it is decided otherwise, and returns the failure to report.
func (s *Server) failWrite(w *writeState, f *jobFailure) error {
	if _, err := w.step(coordinator.Fail{Reason: f.Message}, nil); err != nil && !w.isFinal() {
		return fmt.Errorf("%w (%s)", err, f.Message)
	}
	return f
}

// permanentFailure is err if trying again can not help.
func permanentFailure(err error) *jobFailure {
	if f := asFailure(err); f.Code != codeInternal && f.Code != codeCancelled {
		return f
	}
	return nil
}

// successRecord is the job's terminal record for a machine that has just committed.
func (w *writeState) successRecord(m *coordinator.Machine) (*journal.Job, error) {
	w.job.mu.Lock()
	rec := w.job.rec
	stages := int(w.job.progress.Stages)
	w.job.mu.Unlock()
	res, err := commitResult(m, committed{
		table: w.target.String(), job: w.job.id, marker: rec.Marker, branch: w.spec.GetBranch(), mode: w.mode, snapshots: w.target.entry.catalog != nil,
		attempt: w.machine.Open(), // m is the machine as it will be
	})
	if w.mode == sinkv1.WriteMode_WRITE_MODE_REWRITE {
		res, err = w.rewriteResult(m)
	}
	if w.mode == sinkv1.WriteMode_WRITE_MODE_PICK {
		res, err = w.pickResult(m)
	}
	if err != nil {
		return nil, err
	}
	t := m.Totals()
	rec.State, rec.Result, rec.Finished = journal.StateSuccessful, w.analyzed(res), time.Now().UTC()
	rec.Progress = journal.Progress{Stages: stages, Tasks: len(w.tasks), Rows: t.Rows, Bytes: t.Bytes}
	return &rec, nil
}

// openMarkers are the markers of other jobs on the same table whose outcome is not journalled yet.
func (s *Server) openMarkers(own *writeState) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, j := range s.jobs {
		j.mu.Lock()
		w, marker := j.write, j.rec.Marker
		j.mu.Unlock()
		if w != nil && w != own && !w.isFinal() && w.target.String() == own.target.String() {
			out = append(out, marker)
		}
	}
	return out
}

// findMarker looks for the job's marker in the table itself.
func (s *Server) findMarker(w *writeState) (version, location string, err error) {
	t := w.target
	if t.entry.catalog == nil {
		lease, sink, err := s.readLease(w.job.ctx, w.job.id, t)
		if err != nil {
			return "", "", err
		}
		defer lease.Close()
		res, err := sink.Lookup(w.job.ctx, &sinkv1.LookupRequest{Lease: lease.Token(), Table: t.ref(), Marker: w.job.rec.Marker, MarkerProperty: s.markerProperty()})
		if err != nil || !res.Found {
			return "", "", err
		}
		return res.Version, "", nil
	}
	tbl, err := t.entry.catalog.Load(w.job.ctx, t.ident)
	if err != nil {
		return "", "", err
	}
	for item := range strings.SplitSeq(tbl.Metadata.Properties()[s.markerProperty()], ",") {
		if marker, id, ok := strings.Cut(item, ":"); ok && marker == w.job.rec.Marker {
			return id, tbl.MetadataLocation, nil
		}
	}
	return "", "", nil
}
