package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/bounded"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/journal"
)

// Codes of JobError. They are stable: clients branch on them.
const (
	codeUser      = "user"        // the statement or the data is wrong
	codeDenied    = "denied"      // the principal may not
	codeNotFound  = "not-found"   // a table, schema, catalog or file does not exist
	codeExists    = "exists"      // it exists already
	codeConflict  = "conflict"    // gave up after conflicts
	codeRefused   = "refused"     // the commit was definitely refused
	codeCancelled = "cancelled"   //
	codeNoExec    = "no-executor" //
	codeResource  = "resource"    // scratch full, memory, limits
	codeLost      = "restart"     // the scheduler stopped while a statement ran that cannot be taken up again
	codeInternal  = "internal"
)

// jobFailure is an error that carries what the client is to see.
type jobFailure struct {
	journal.JobError
	cause error
}

func (f *jobFailure) Error() string { return f.Message }
func (f *jobFailure) Unwrap() error { return f.cause }

func fail(code, hint, format string, args ...any) *jobFailure {
	err := fmt.Errorf(format, args...)
	return &jobFailure{journal.JobError{Code: code, Message: bounded.Text(err.Error(), bounded.Message), Hint: bounded.Text(hint, bounded.Message)}, errors.Unwrap(err)}
}

// asFailure gives every error the form that clients see.
func asFailure(err error) *jobFailure {
	var f *jobFailure
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(err, context.Canceled) {
		return fail(codeCancelled, "", "the job was cancelled")
	}
	if errors.Is(err, journal.ErrFull) {
		return &jobFailure{journal.JobError{Code: codeResource, Message: bounded.Text(err.Error(), bounded.Message)}, err}
	}
	return &jobFailure{journal.JobError{Code: codeInternal, Message: bounded.Text(err.Error(), bounded.Message)}, err}
}

// job is one job in memory. Its record is guarded by mu; the commit state by write.mu.
type job struct {
	id     string
	owner  string          // principal
	ctx    context.Context //nolint:containedctx // the job's life, ended by cancel and by shutdown
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the job's goroutine has ended
	events *mailbox      // to the job's loop
	again  bool          // an earlier incarnation had begun it
	upkeep bool          // it is a schedule's
	calls  string        // procedure that it calls; of the job's goroutine
	dry    bool          // EXPLAIN, VALIDATE: nothing may change; of the job's goroutine
	stored atomic.Bool   // some of its tasks keep their rows on executors
	turn   *turn         // in the queue; of the job's goroutine
	root   *rootRun      // a scheduler root that is no commit, once it has begun; of the job's goroutine

	mu       sync.Mutex
	rec      journal.Job
	state    schedulerv1.JobState
	phase    string
	message  string
	progress schedulerv1.Progress
	plan     string
	timings  map[string]int64
	changed  chan struct{}
	cancelBy string      // who asked for the cancel
	write    *writeState // while the job writes
	output   *output     // rows of a SELECT
	running  map[string]taskCount
	tasks    []*schedulerv1.TaskInfo
	attempts []string          // of tasks, those that are shown
	holders  map[string]string // executors of attempts
	view     jobView           // what views.go has seen of it
	reads    reads             // what its planning has learned of its inputs
}

type taskCount struct{ rows, bytes int64 }

func newJob(parent context.Context, rec journal.Job) *job {
	ctx, cancel := context.WithCancelCause(traced(parent, rec))
	j := &job{id: rec.ID, owner: rec.Principal, ctx: ctx, cancel: cancel, done: make(chan struct{}), events: newMailbox(), rec: rec, upkeep: rec.Upkeep != nil, changed: make(chan struct{}), timings: map[string]int64{}, running: map[string]taskCount{}}
	j.state = schedulerv1.JobState_JOB_STATE_QUEUED
	if rec.State.Terminal() {
		j.state = terminal(rec.State)
		close(j.done)
	}
	return j
}

func terminal(s journal.State) schedulerv1.JobState {
	switch s {
	case journal.StateSuccessful:
		return schedulerv1.JobState_JOB_STATE_SUCCESSFUL
	case journal.StateCancelled:
		return schedulerv1.JobState_JOB_STATE_CANCELLED
	default:
		return schedulerv1.JobState_JOB_STATE_FAILED
	}
}

func isTerminal(s schedulerv1.JobState) bool {
	return s == schedulerv1.JobState_JOB_STATE_SUCCESSFUL || s == schedulerv1.JobState_JOB_STATE_FAILED || s == schedulerv1.JobState_JOB_STATE_CANCELLED
}

// update changes the job and wakes its watchers.
func (j *job) update(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *job) setPhase(state schedulerv1.JobState, phase, message string) {
	j.update(func() {
		if mutant.On("scheduler/ended-before-its-root") && phase == "root" {
			state = schedulerv1.JobState_JOB_STATE_SUCCESSFUL
		}
		if !isTerminal(j.state) || mutant.On("scheduler/ends-change") {
			j.state, j.phase, j.message = state, phase, message
			j.view.phase(phase)
		}
	})
}

func (j *job) warn(w ...string) {
	j.update(func() {
		for _, s := range w {
			if !slices.Contains(j.rec.Warnings, s) {
				j.rec.Warnings = append(j.rec.Warnings, s)
			}
		}
	})
}

func (j *job) timed(step string, since time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.timings[step] += time.Since(since).Microseconds()
	j.view.step(step, since)
}

// snapshot is the job as clients see it, and a channel that is closed at its next change.
func (j *job) snapshot() (*schedulerv1.Job, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.describe(), j.changed
}

// ended tells whether clients see the job as ended, and gives the channel that is closed at its next change.
func (j *job) ended() (bool, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return isTerminal(j.state), j.changed
}

// describe is called with mu held.
func (j *job) describe() *schedulerv1.Job {
	out := &schedulerv1.Job{
		JobId: j.id, Principal: j.rec.Principal, Statement: clip(j.rec.SQL, 1024), State: j.state, Message: j.message, Kind: j.rec.Kind,
		Warnings: slices.Clone(j.rec.Warnings), SubmittedMillis: j.rec.Submitted.UnixMilli(), HasRows: j.rec.HasRows,
		Progress: &schedulerv1.Progress{
			Stages: j.progress.Stages, StagesDone: j.progress.StagesDone, Tasks: j.progress.Tasks, TasksDone: j.progress.TasksDone,
			Rows: j.progress.Rows, Bytes: j.progress.Bytes, Running: j.progress.Running,
		},
		TimingsMicros: map[string]int64{},
	}
	for k, v := range j.timings {
		out.TimingsMicros[k] = v
	}
	if j.state == schedulerv1.JobState_JOB_STATE_RUNNING {
		if !mutant.On("scheduler/phase-hidden") {
			out.Phase = j.phase
		}
		for _, c := range j.running {
			out.Progress.Rows += c.rows
			out.Progress.Bytes += c.bytes
		}
	}
	if isTerminal(j.state) {
		out.Message, out.FinishedMillis, out.InlineResult = "", j.rec.Finished.UnixMilli(), j.rec.Result
		if mutant.On("scheduler/result-in-every-end") && len(out.InlineResult) == 0 {
			out.InlineResult = []byte("nothing")
		}
		if mutant.On("scheduler/result-not-sent") {
			out.InlineResult = nil
		}
		if e := j.rec.Error; e != nil {
			out.Error = &schedulerv1.JobError{Code: e.Code, Message: e.Message, Hint: e.Hint}
		}
	}
	return out
}

// clip cuts text to at most n bytes, at a rune's start.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
