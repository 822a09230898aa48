package scheduler

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
)

// writeState is what a job that writes holds besides its graph. The machine is stepped under mu, and every step is journalled
// before anything follows from it.
type writeState struct {
	s      *Server
	job    *job
	target *target
	mode   sinkv1.WriteMode
	spec   *planv1.WriteSpec
	tasks  []*planv1.Task // those that write, planned; attempts are copies
	store  storage.Store

	mu      sync.Mutex
	machine *coordinator.Machine
	staged  *stager
	changed chan struct{} // closed and replaced when the machine's state changes
	settled chan struct{} // closed when the machine is final
	lease   *broker.Lease // of staging

	rec      *journal.Write
	restored []*executorv1.AttemptRef // attempts of an earlier incarnation
	resumed  bool                     // an earlier incarnation began it
	before   []stageRun               // of an earlier incarnation: all stages
	outputs  []*journal.Output        // what they had left on executors
	created  map[string]bool          // metadata files that the sink has made
	leases   []*broker.Lease          // those under which it could
	stagings int

	generations map[string]int // by attempt of an earlier incarnation

	commitStart time.Time // of the newest commit call
	here        func()    // tells the table's queue that the commit has come, or will not; nil: it was not announced
}

func newWriteState(s *Server, j *job, t *target, mode sinkv1.WriteMode, spec *planv1.WriteSpec, m *coordinator.Machine) (*writeState, error) {
	store, err := t.entry.store(j.ctx, t.ident, spec.DataLocation)
	if err != nil {
		return nil, fail(codeUser, "set write.data.path to a location that this scheduler can reach", "table %s: data location %s: %w", t, spec.DataLocation, err)
	}
	return &writeState{s: s, job: j, target: t, mode: mode, spec: spec, store: store, machine: m, changed: make(chan struct{}), settled: make(chan struct{})}, nil
}

// step journals one step of the machine together with what extra writes, and keeps the machine only if that went well.
func (w *writeState) step(ev coordinator.Event, extra func(*journal.Tx, *coordinator.Machine) error) (coordinator.Effects, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stepLocked(ev, extra)
}

func (w *writeState) stepLocked(ev coordinator.Event, extra func(*journal.Tx, *coordinator.Machine) error) (coordinator.Effects, error) {
	next := *w.machine
	eff, err := next.StepApart(ev)
	if err != nil {
		return eff, err
	}
	if _, volatile := ev.(coordinator.Start); eff.Record != nil && !volatile { // a restart makes Ready of Committing anyway
		err := w.s.journal.Update(func(tx *journal.Tx) error {
			if err := putCommit(tx, eff.Record, eff.Accepted); err != nil {
				return err
			}
			if extra != nil {
				return extra(tx, &next)
			}
			return nil
		})
		if err != nil {
			return coordinator.Effects{State: w.machine.State()}, err
		}
	}
	w.become(&next)
	return eff, nil
}

// become keeps a machine whose record is durable. Called with mu held.
func (w *writeState) become(next *coordinator.Machine) {
	was := w.machine.State()
	w.machine = next
	if next.State() != was {
		close(w.changed)
		w.changed = make(chan struct{})
	}
	if next.State().Final() && !was.Final() {
		close(w.settled)
	}
}

// putCommit writes a commit state, whose list of accepted manifests grows by one entry at a time.
func putCommit(tx *journal.Tx, r *coordinator.Record, entry *coordinator.Accepted) error {
	b, err := json.Marshal(r.Apart())
	if err != nil {
		return err
	}
	if entry != nil {
		e, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		if err := tx.PutAccepted(&journal.Accepted{Job: r.JobID, Task: entry.Task, Entry: e}); err != nil {
			return err
		}
	}
	return tx.PutCommit(&journal.Commit{Job: r.JobID, Record: b})
}

// commitState reads a job's commit state; journal.ErrMissing.
func commitState(tx *journal.Tx, job string) (rec coordinator.Record, err error) {
	c, err := tx.Commit(job)
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(c.Record, &rec); err != nil {
		return rec, fmt.Errorf("%w: commit state: %w", journal.ErrDamaged, err)
	}
	if err := fillGroup(tx, &rec); err != nil {
		return rec, err
	}
	if len(rec.Accepted) > 0 { // it is final, or of a journal that listed them in it
		have := map[int]bool{}
		for _, a := range rec.Accepted {
			have[a.Task] = true
		}
		return rec, eachAccepted(tx, job, func(a coordinator.Accepted) {
			if !have[a.Task] {
				rec.Accepted = append(rec.Accepted, a)
			}
		})
	}
	return rec, eachAccepted(tx, job, func(a coordinator.Accepted) { rec.Accepted = append(rec.Accepted, a) })
}

func eachAccepted(tx *journal.Tx, job string, f func(coordinator.Accepted)) error {
	return tx.EachAccepted(job, func(e *journal.Accepted) error {
		var a coordinator.Accepted
		if err := json.Unmarshal(e.Entry, &a); err != nil {
			return fmt.Errorf("%w: accepted manifest: %w", journal.ErrDamaged, err)
		}
		f(a)
		return nil
	})
}

// acceptManifest checks a task manifest and makes it durable (S66, S71). Reports repeat, so that a manifest that won before is
// accepted again, also after the job's end.
func (s *Server) acceptManifest(ctx context.Context, r *manifest.Reader) (accepted bool, reason string, err error) {
	h := r.Header()
	j := s.job(h.JobId)
	if j == nil {
		return false, "no such job", nil
	}
	s.observeHolder(s.attempt(h.AttemptId), s.pool.Holder(h.AttemptId))
	j.mu.Lock()
	w := j.write
	j.mu.Unlock()
	if w == nil {
		return s.wonBefore(h)
	}
	return w.accept(ctx, r)
}

// wonBefore answers a late report by the job's commit record.
func (s *Server) wonBefore(h *planv1.ManifestHeader) (bool, string, error) {
	won := false
	err := s.journal.View(func(tx *journal.Tx) error {
		rec, err := commitState(tx, h.JobId)
		if err != nil {
			return err
		}
		for _, a := range rec.Accepted {
			won = won || a.Attempt == h.AttemptId && a.Task == int(h.Task)
		}
		return nil
	})
	if errors.Is(err, journal.ErrMissing) {
		return false, "the job does not write", nil
	}
	if err != nil {
		return false, "", err
	}
	if won {
		return true, "", nil
	}
	return false, "the job has ended and another attempt was accepted", nil
}

func (w *writeState) accept(ctx context.Context, r *manifest.Reader) (bool, string, error) {
	h, t := r.Header(), r.Trailer()
	task := w.task(h.Stage, h.Task)
	if task == nil {
		return false, fmt.Sprintf("the job has no task %d of stage %d", h.Task, h.Stage), nil
	}
	winner, won := w.winner(h.Task)
	if won && winner.Attempt == h.AttemptId && winner.Digest == hex.EncodeToString(t.Sha256) {
		return true, "", nil
	}
	epoch, known := w.s.attemptEpoch(h)
	if !known {
		return false, errNotOpen.Error(), nil
	}
	expect := coordinator.Expectation{
		JobID: w.job.id, Stage: h.Stage, Task: h.Task, AttemptID: h.AttemptId, Epoch: epoch, TableUUID: w.spec.TableUuid, SchemaID: w.spec.SchemaId,
		SpecID: w.spec.SpecId, Prefix: attemptPrefix(w.spec, w.job.id, h.Stage, h.Task, h.AttemptId), Partition: len(w.spec.Partition),
		SortOrders: []int32{0, w.spec.SortOrderId}, Seen: w.hasPath,
		Replaces: w.mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL || w.mode == sinkv1.WriteMode_WRITE_MODE_REWRITE,
		Deletes:  w.spec.RowChanges > planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE,
	}
	if w.spec.GetAddsFiles() {
		expect.Given = givenTo(task)
	}
	if expect.Replaces {
		expect.About = aboutFiles(task)
	}
	files, err := w.check(ctx, expect, r)
	if ctx.Err() != nil { // says nothing about the manifest; its executor reports again
		return false, "", context.Cause(ctx)
	}
	if errors.Is(err, errUnseen) {
		w.s.log.Warn("the files of a task manifest cannot be looked at; its executor reports it again", "job", w.job.id, "task", h.Task, "attempt", h.AttemptId, "error", err)
		return false, "", err
	}
	if err != nil {
		w.s.log.Warn("task manifest refused", "job", w.job.id, "task", h.Task, "attempt", h.AttemptId, "error", err)
		w.job.send(taskFailed{attempt: h.AttemptId, err: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: err.Error()}})
		return false, err.Error(), nil
	}
	if err := fault.Hit("scheduler.manifest.before-journal"); err != nil {
		return false, "", err
	}
	ev := coordinator.Accept{
		Task: int(h.Task), Attempt: h.AttemptId, Epoch: epoch, Digest: hex.EncodeToString(t.Sha256), Totals: coordinator.TotalsOf(t),
	}
	for _, f := range files {
		ev.Paths = append(ev.Paths, coordinator.FileKey(f))
	}
	rec, err := manifestRecord(r)
	if err != nil {
		return false, "", err
	}
	if err := w.acceptOpen(h, ev, rec); err != nil {
		var lost *coordinator.LostError
		if errors.As(err, &lost) || errors.Is(err, coordinator.ErrFenced) || errors.Is(err, errNotOpen) {
			return false, err.Error(), nil
		}
		return false, "", err
	}
	w.job.held(h.AttemptId, w.s.pool.Holder(h.AttemptId))
	w.stage().add(int(h.Task), rec.Chunks)
	w.job.send(taskAccepted{attempt: h.AttemptId, task: h.Task, rows: t.Rows, bytes: t.Bytes})
	return true, "", nil
}

var errNotOpen = errors.New("the attempt is not open: it was replaced, or its job has ended")

// acceptOpen makes a manifest the winner of its task if its attempt is still open. The check of the files took time, in which the loop may have
// given the attempt up; whether it has, the step and closing the attempt are one decision, which giveUp takes part in. Otherwise the coordinator
// could accept an attempt that its executor was told to drop.
func (w *writeState) acceptOpen(h *planv1.ManifestHeader, ev coordinator.Accept, rec *journal.Manifest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch, open := w.s.attemptEpoch(h); !open || epoch != ev.Epoch {
		return errNotOpen
	}
	if _, err := w.stepLocked(ev, func(tx *journal.Tx, _ *coordinator.Machine) error { return tx.PutManifest(rec) }); err != nil {
		return err
	}
	w.s.closeAttempt(h.AttemptId)
	return nil
}

// giveUp closes an attempt. nil: it was not open; it may have won, and then nobody may touch its files.
func (w *writeState) giveUp(id string) *attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.s.attempt(id)
	w.s.closeAttempt(id)
	return a
}

type taskAccepted struct {
	attempt     string
	task        int32
	rows, bytes int64
}

// stageLease is nil until the job runs.
func (w *writeState) stageLease() *broker.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease
}

func (w *writeState) winner(task int32) (coordinator.Accepted, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.Winner(int(task))
}

func (w *writeState) hasPath(attempt, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.HasPath(attempt, path)
}

// check decides whether the manifest says the truth as far as this process can see: ids, paths, counts, and that every file is
// there with the size it claims.
func (w *writeState) check(ctx context.Context, e coordinator.Expectation, r *manifest.Reader) ([]*planv1.DataFile, error) {
	if err := coordinator.CheckHeader(e, r.Header()); err != nil {
		return nil, err
	}
	files, replaced, err := r.Everything()
	if err != nil {
		return nil, err
	}
	if err := coordinator.CheckManifest(e, r.Header(), files, r.Trailer(), replaced...); err != nil {
		return nil, err
	}
	if e.Given != nil { // what was planned is still there, as it was
		return files, w.stillGiven(ctx, e.Task)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statsAtATime)
	for _, f := range files {
		group.Go(func() error { return w.checkFile(ctx, f) })
	}
	return files, group.Wait()
}

func manifestRecord(r *manifest.Reader) (*journal.Manifest, error) {
	h, t := r.Header(), r.Trailer()
	chunks, err := r.Chunks()
	if err != nil {
		return nil, err
	}
	rec := &journal.Manifest{Job: h.JobId, Stage: h.Stage, Task: h.Task, Attempt: h.AttemptId, Files: t.Files, Rows: t.Rows, Bytes: t.Bytes}
	for _, c := range chunks {
		b, err := proto.Marshal(c)
		if err != nil {
			return nil, err
		}
		rec.Chunks = append(rec.Chunks, b)
	}
	return rec, nil
}

// task finds a task that writes; nil: there is none.
func (w *writeState) task(stage, task int32) *planv1.Task {
	if task < 0 || int(task) >= len(w.tasks) || w.tasks[task].Stage != stage {
		return nil
	}
	return w.tasks[task]
}

// aboutFiles are the files of the table that a task was given to change or to write anew.
func aboutFiles(t *planv1.Task) map[string]struct{} {
	rewrite, out := t.GetWrite().GetRewrite(), map[string]struct{}{}
	for _, src := range t.GetSources() {
		if src.GetView() != rewrite.GetView() {
			continue
		}
		for _, f := range src.GetTable().GetFiles() {
			out[f.GetName()] = struct{}{}
		}
	}
	for _, f := range rewrite.GetWhole() {
		out[f.GetPath()] = struct{}{}
	}
	return out
}

func attemptPrefix(spec *planv1.WriteSpec, job string, stage, task int32, attempt string) string {
	return fmt.Sprintf("%s/%s/%d/%d/%s", spec.DataLocation, job, stage, task, attempt)
}

// cancelWrite asks the coordinator: before the seal a cancel is final, after it the commit decides (S21).
func (s *Server) cancelWrite(w *writeState) (bool, string) {
	_, err := w.step(coordinator.Cancel{Reason: "cancelled by the client"}, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	var already *coordinator.AlreadyError
	switch {
	case errors.As(err, &already):
		return false, fmt.Sprintf("the job has committed: %s has version %s", w.target, already.Version)
	case err != nil && w.machine.Failure() != nil:
		return false, "the job has failed: " + w.machine.Failure().Reason
	case err != nil:
		return false, err.Error()
	case w.machine.CancelPending():
		return false, "the commit is sealed and may have landed; the job ends with its outcome"
	}
	return true, ""
}

// isFinal tells whether the commit is decided.
func (w *writeState) isFinal() bool {
	select {
	case <-w.settled:
		return true
	default:
		return false
	}
}

// gate is the job's coordinator as the broker sees it.
type gate struct{ w *writeState }

// Seal implements broker.Gate: the check for cancel and the synced record are one step (S68).
func (g gate) Seal(_ context.Context, a coordinator.Attempt) (int, error) {
	a.Epoch = g.w.s.journal.Epoch()
	if err := fault.Hit("scheduler.seal.before-journal"); err != nil {
		return 0, err
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	eff, err := g.w.stepLocked(coordinator.Seal{Attempt: a}, nil)
	if err != nil {
		return 0, err
	}
	if err := fault.Hit("scheduler.seal.after-journal"); err != nil {
		return 0, err
	}
	return eff.Record.Open.Seq, nil
}

// Settle implements broker.Gate. A commit that landed ends the job in the very transaction that records the landing.
func (g gate) Settle(_ context.Context, seq int, o coordinator.Outcome) error {
	ev, err := o.Event(seq)
	if err != nil {
		return err
	}
	g.w.job.view.outcome(o)
	if err := fault.Hit("scheduler.settle.before-journal"); err != nil {
		return err
	}
	return g.w.settle(ev)
}

// settle steps the machine with an outcome; a final one is journalled together with the job's end.
func (w *writeState) settle(ev coordinator.Event) error {
	var ended *journal.Job
	eff, err := w.step(ev, func(tx *journal.Tx, m *coordinator.Machine) error {
		if m.State() != coordinator.Committed {
			return nil
		}
		rec, err := w.successRecord(m)
		if err != nil {
			return err
		}
		if err := w.noteLanding(tx, rec, m, w.machine.Open(), landing(m, w.machine.Open())); err != nil {
			return err
		}
		ended = rec
		return w.s.putFinished(tx, rec)
	})
	if err != nil {
		return err
	}
	if err := fault.Hit("scheduler.settle.after-journal"); err != nil {
		return err
	}
	w.settledAs(eff.State, ended)
	return nil
}

// settledAs shows what a durable outcome has made of the job; ended is its terminal record.
func (w *writeState) settledAs(state coordinator.State, ended *journal.Job) {
	switch {
	case ended != nil:
		w.mu.Lock()
		start := w.commitStart
		w.mu.Unlock()
		if !start.IsZero() {
			w.job.timed("commit", start)
		}
		w.s.show(w.job, *ended)
	case state == coordinator.Resolving:
		w.job.setPhase(schedulerv1.JobState_JOB_STATE_RUNNING, "resolving", "a commit request was sent and has no definite answer; it is sent again until it lands or can never land")
	}
}

// digest names the content of the job's unit.
func (w *writeState) digest() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.machine.Digest())
}
