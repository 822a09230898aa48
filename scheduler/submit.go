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

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
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
	// The lock spans the journal write: a second request with the same key must find the first one's job in memory too.
	s.mu.Lock()
	defer s.mu.Unlock()
	existing := ""
	err := s.journal.Update(func(tx *journal.Tx) error {
		if rec.Key != "" {
			if id := tx.KeyJob(rec.Principal, rec.Key); id != "" {
				existing = id
				return nil
			}
			if err := tx.TakeKey(rec.Principal, rec.Key, rec.ID); err != nil {
				return err
			}
		}
		return tx.PutJob(&rec)
	})
	if err != nil {
		return nil, false, fmt.Errorf("journal: %w", err)
	}
	if err := fault.Hit("scheduler.submit.after-journal"); err != nil {
		return nil, false, err
	}
	if existing != "" {
		j := s.jobs[existing]
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
	s.jobs[rec.ID] = j
	s.observeEntered(j)
	s.spawn(func() { s.run(j) })
	return j, false, nil
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
	if key != "" {
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
	j.mu.Unlock()
	if rec.State.Terminal() {
		return
	}
	rec.State, rec.Finished = state, time.Now().UTC()
	if failure != nil {
		rec.Error = &failure.JobError
	}
	err := s.journal.Update(func(tx *journal.Tx) error {
		if have, err := tx.Job(rec.ID); err == nil && have.State.Terminal() { // the commit ended it a moment ago, and is about to show that
			rec = *have
			return nil
		}
		if who := j.cancelledBy(); who != "" { // it was told so; what came too late is dropped (S21)
			rec.State, rec.Error, rec.Result, rec.CancelledBy = journal.StateCancelled, &cancelledBy(who).JobError, nil, who
		}
		return s.putFinished(tx, &rec)
	})
	if err != nil {
		// The job stays open in the journal and is taken up again at the next start; showing an end that is not durable would be a lie.
		s.log.Error("cannot journal the end of a job", "job", j.id, "error", err)
		j.setPhase(schedulerv1.JobState_JOB_STATE_RUNNING, "stages", "the journal cannot be written: "+err.Error())
		return
	}
	s.show(j, rec)
}

// putFinished writes a terminal record and what follows from it. What a write leaves behind is in its duties by then.
func (s *Server) putFinished(tx *journal.Tx, rec *journal.Job) error {
	if err := tx.PutJob(rec); err != nil {
		return err
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
		}
	})
	if shown {
		return
	}
	s.observeEnded(j, rec)
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
