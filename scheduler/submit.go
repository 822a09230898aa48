package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

const (
	maxStatement = 12 << 20 // bytes; below the message cap
	maxKey       = 256
)

var errCancelled = errors.New("cancelled")

// submit makes a job durable and starts it. With a known key it returns the job that the key names (S64).
func (s *Server) submit(principal string, r *schedulerv1.SubmitRequest, with ...func(*journal.Job)) (*job, bool, error) {
	r, err := s.asStatement(r)
	if err != nil {
		return nil, false, err
	}
	if err := checkSubmit(r); err != nil {
		return nil, false, err
	}
	rec, err := newRecord(principal, s.cfg.Cluster, r)
	if err != nil {
		return nil, false, err
	}
	for _, f := range with {
		f(&rec)
	}
	return s.enter(rec)
}

// enter journals a new job and starts it, or returns the one that holds its key.
func (s *Server) enter(rec journal.Job) (*job, bool, error) {
	select {
	case <-s.stopping:
		return nil, false, fail(codeNoExec, "try again in a moment", "the scheduler is stopping")
	default:
	}
	// The key is held until its job is in memory: a second request with the same key must find the first one's job there, too. Others do not wait for it:
	// their submissions share the journal's next transaction.
	defer s.entering.hold(rec.Principal, rec.Key)()
	place, err := s.admitted.claim(rec.Principal)
	if err != nil && rec.Key == "" { // one with a key may be known already
		return nil, false, err
	}
	full, existing := err, ""
	defer func() { s.admitted.leave(place) }() // nil once it is the job's
	err = s.journal.Update(func(tx *journal.Tx) error {
		existing = ""
		if rec.Key != "" {
			id, err := tx.KeyJob(rec.Principal, rec.Key)
			if err != nil {
				return err
			}
			if id != "" && !mutant.On("scheduler/key-unknown") {
				existing = id
				return nil
			}
			if full != nil {
				return full
			}
			if err := tx.TakeKey(rec.Principal, rec.Key, rec.ID); err != nil {
				return err
			}
		}
		return tx.PutJob(&rec)
	})
	if err != nil {
		return nil, false, err
	}
	if err := fault.Hit("scheduler.submit.after-journal"); err != nil {
		return nil, false, err
	}
	if existing != "" {
		j := s.job(existing)
		if j == nil {
			return nil, false, fail(codeInternal, "", "the job %s that holds this key is not known any more", existing)
		}
		j.mu.Lock()
		have := j.rec
		j.mu.Unlock()
		if have.StatementHash != rec.StatementHash {
			return nil, false, otherStatement(&have, &rec)
		}
		return j, true, nil
	}
	j := newJob(s.ctx, rec)
	s.mu.Lock()
	s.jobs[rec.ID] = j
	if j.upkeep {
		s.scheduled++
	}
	s.observeEntered(j)
	j.turn, place = place, nil
	s.mu.Unlock()
	s.spawn(func() { s.run(j) })
	return j, false, nil
}

// asStatement turns a logical plan into its statement, and checks a physical one.
func (s *Server) asStatement(r *schedulerv1.SubmitRequest) (*schedulerv1.SubmitRequest, error) {
	given := 0
	for _, is := range []bool{r.Sql != "", r.LogicalPlan != nil, r.PhysicalPlan != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		return nil, fail(codeUser, "send one of them", "a submission is a statement, a logical plan or a physical plan")
	}
	if p := r.LogicalPlan; p != nil {
		text, err := plan.Statement(p)
		if err != nil {
			return nil, planFailure(err)
		}
		r = proto.CloneOf(r)
		r.Sql, r.LogicalPlan = text, nil
	}
	if p := r.PhysicalPlan; p != nil {
		if err := plan.CheckPhysical(p, s.limits(0)); err != nil {
			return nil, planFailure(err)
		}
		if n := proto.Size(p); n > maxStatement {
			return nil, fail(codeUser, "divide the work more coarsely", "the physical plan has %d bytes; at most %d are allowed", n, maxStatement)
		}
		r = &schedulerv1.SubmitRequest{
			Sql: physicalText(p), IdempotencyKey: r.IdempotencyKey, DefaultCatalog: r.DefaultCatalog, DefaultSchema: r.DefaultSchema, BaseDir: r.BaseDir,
			Settings: r.Settings, PhysicalPlan: p,
		}
	}
	return r, nil
}

func checkSubmit(r *schedulerv1.SubmitRequest) error {
	switch {
	case strings.TrimSpace(r.Sql) == "":
		return fail(codeUser, "", "the statement is empty")
	case len(r.Sql) > maxStatement:
		return fail(codeUser, "read large data from files instead of literals", "the statement has %d bytes; at most %d are allowed", len(r.Sql), maxStatement)
	case len(r.IdempotencyKey) > maxKey || strings.ContainsRune(r.IdempotencyKey, 0):
		return fail(codeUser, "", "an idempotency key has at most %d bytes and no NUL", maxKey)
	}
	_, err := plan.ParseSettings(r.Settings)
	return planFailure(err)
}

func newRecord(principal, cluster string, r *schedulerv1.SubmitRequest) (journal.Job, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return journal.Job{}, err
	}
	rec := journal.Job{
		ID: id.String(), Principal: principal, Key: r.IdempotencyKey, SQL: r.Sql, DefaultCatalog: r.DefaultCatalog, DefaultSchema: r.DefaultSchema,
		BaseDir: r.BaseDir, Settings: r.Settings, State: journal.StateOpen, Submitted: time.Now().UTC(),
	}
	if r.PhysicalPlan != nil {
		rec.Kind = kindPlan
		if rec.Plan, err = (proto.MarshalOptions{Deterministic: true}).Marshal(r.PhysicalPlan); err != nil {
			return journal.Job{}, err
		}
	}
	rec.StatementHash = statementHash(&rec)
	rec.CommitKey, rec.Marker = commitKey(cluster, principal, r.IdempotencyKey, rec.ID)
	return rec, nil
}

func flatten(m map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k, m[k])
	}
	return out
}

// hashParts is unambiguous in where one part ends and the next begins.
func hashParts(domain string, parts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "signet-%s", domain)
	for _, p := range parts {
		fmt.Fprintf(h, "\x00%d\x00%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// commitKey names what must happen once. It derives from the client's key where there is one, so that even a lost journal finds
// the marker (S64); the marker is its short hash as tables record it.
func commitKey(cluster, principal, key, jobID string) (commitKey, marker string) {
	if key != "" && !mutant.On("scheduler/commit-key-of-the-job") {
		commitKey = hashParts("commit-key", cluster, principal, "key", key)
	} else {
		commitKey = hashParts("commit-key", cluster, principal, "job", jobID)
	}
	sum := sha256.Sum256([]byte(commitKey))
	return commitKey, hex.EncodeToString(sum[:])[:24]
}

// finish ends a job: the journal first, then what clients see. Failed and cancelled jobs free their key.
func (s *Server) finish(j *job, state journal.State, failure *jobFailure) {
	j.mu.Lock()
	rec := j.rec
	p := &j.progress
	rec.Progress = journal.Progress{Stages: int(p.Stages), Tasks: int(p.Tasks), Rows: p.Rows, Bytes: p.Bytes}
	j.mu.Unlock()
	if rec.State.Terminal() {
		return
	}
	rec.State, rec.Finished = state, time.Now().UTC()
	if failure != nil {
		rec.Error = &failure.JobError
	}
	for {
		var end journal.Job
		err := s.journal.Update(func(tx *journal.Tx) error {
			if have, err := tx.Job(rec.ID); err == nil && have.State.Terminal() { // the commit ended it a moment ago, and is about to show that
				end = *have
				return nil
			}
			// Writing it takes away what is kept for its end alone, and may be done twice.
			end = rec
			if who := j.cancelledBy(); who != "" { // it was told so; what came too late is dropped (S21)
				end.State, end.Error, end.Result, end.CancelledBy = journal.StateCancelled, &cancelledBy(who).JobError, nil, who
			}
			return s.putFinished(tx, &end)
		})
		if err == nil {
			s.show(j, end)
			return
		}
		// Showing an end that is not durable would be a lie. A full disk gets room; where that does not help, the next start takes the job up again.
		s.log.Error("cannot journal the end of a job; it is tried again", "job", j.id, "error", err)
		j.setPhase(schedulerv1.JobState_JOB_STATE_RUNNING, "stages", "its end cannot be recorded: "+err.Error())
		if pause(s.ctx, journalRetry); s.ctx.Err() != nil {
			return
		}
	}
}

// journalRetry is how often a write is tried that cannot be given up.
const journalRetry = time.Second

// putFinished writes a terminal record and what follows from it. What a write leaves behind is in its duties by then.
func (s *Server) putFinished(tx *journal.Tx, rec *journal.Job) error {
	rec.Plan = nil // it may be large, and nobody will run it again
	if err := errors.Join(s.tellEnd(tx, rec), s.auditEnd(tx, rec)); err != nil {
		return err
	}
	rec.Untidy = untidy(rec)
	if err := tx.PutJob(rec); err != nil {
		return err
	}
	if rec.Untidy { // its key stays
		return nil
	}
	if rec.State != journal.StateSuccessful {
		if err := tx.FreeKey(rec.Principal, rec.Key, rec.ID); err != nil {
			return err
		}
	}
	if err := s.oweSweeps(tx, rec); err != nil {
		return err
	}
	return tx.DropWork(rec.ID)
}

// show makes a durable end visible, once.
func (s *Server) show(j *job, rec journal.Job) {
	s.wakeSweeper()
	s.forgetAttempts(j.id)
	shown := false
	j.update(func() {
		if shown = isTerminal(j.state); shown {
			return
		}
		j.rec, j.state, j.phase, j.message = rec, terminal(rec.State), "", ""
		j.progress.Running = 0
		clear(j.running)
		if rec.State == journal.StateSuccessful {
			j.progress.StagesDone, j.progress.TasksDone = j.progress.Stages, j.progress.Tasks
			j.progress.Rows, j.progress.Bytes = rec.Progress.Rows, rec.Progress.Bytes // of tasks that ended before a restart, too
		}
	})
	if shown {
		return
	}
	if rec.Untidy {
		s.spawn(func() { s.tidyWork(j) })
	}
	s.observeEnded(j, rec)
	s.noteCommitted(&rec)
	attrs := []any{"job", j.id, "kind", rec.Kind, "state", string(rec.State), "millis", rec.Finished.Sub(rec.Submitted).Milliseconds()}
	if rec.Error != nil {
		attrs = append(attrs, "code", rec.Error.Code, "error", rec.Error.Message)
	}
	s.log.Info("job ended", attrs...)
}

func stateName(s schedulerv1.JobState) string {
	switch s {
	case schedulerv1.JobState_JOB_STATE_SUCCESSFUL:
		return "successful"
	case schedulerv1.JobState_JOB_STATE_CANCELLED:
		return "cancelled"
	case schedulerv1.JobState_JOB_STATE_FAILED:
		return "failed"
	default:
		return "running"
	}
}

// stoppedByShutdown tells a job that ends with the process from one that was cancelled.
func (s *Server) stoppedByShutdown(j *job) bool {
	return j.ctx.Err() != nil && !errors.Is(context.Cause(j.ctx), errCancelled)
}
