package scheduler

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/sinks/iceberg/scope"
)

const jobRunning = schedulerv1.JobState_JOB_STATE_RUNNING

func stack() string { return string(debug.Stack()) }

func writeRecord(p *planned) (*journal.Write, error) {
	b, err := proto.Marshal(p.spec)
	if err != nil {
		return nil, err
	}
	t := p.target
	n := len(t.ident) - 1
	return &journal.Write{
		Catalog: t.entry.name, Schema: t.ident[:n], Table: t.ident[n], Mode: int32(p.mode), Spec: b, Plan: p.text, Location: p.location,
	}, nil
}

// attemptTask is an attempt of a planned task.
func (w *writeState) attemptTask(task *planv1.Task, id string) *planv1.Task {
	out := &planv1.Task{JobId: task.JobId, Stage: task.Stage, Task: task.Task, AttemptId: id, Epoch: w.s.journal.Epoch(), Sql: task.Sql, Sources: task.Sources}
	wt := task.GetWrite()
	out.Work = &planv1.Task_Write{Write: &planv1.WriteTask{
		Columns: wt.GetColumns(), Spec: wt.GetSpec(), SortForPartitions: wt.GetSortForPartitions(),
		Rewrite: wt.GetRewrite(), RowLineage: wt.GetRowLineage(), Splice: wt.GetSplice(), Add: wt.GetAdd(),
		Prefix: attemptPrefix(w.spec, w.job.id, task.Stage, task.Task, id),
	}}
	w.s.setCopies(w.job.ctx, w.target, out)
	return out
}

func (w *writeState) attemptRecord(t *planv1.Task) *journal.Attempt {
	return &journal.Attempt{
		Job: t.JobId, Stage: t.Stage, Task: t.Task, ID: t.AttemptId, Epoch: t.Epoch, Prefix: t.GetWrite().Prefix,
		Location: w.spec.DataLocation, Catalog: w.target.entry.name, Ident: w.target.ident, Launched: time.Now().UTC(),
	}
}

// newAttempt journals and opens a further attempt of a task. Once the commit is decided there are none: the job's end lists what is left to
// clean up, and nothing may come after it.
func (w *writeState) newAttempt(task *planv1.Task) (*planv1.Task, error) {
	t := w.attemptTask(task, uuid.NewString())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.machine.State().Final() {
		return nil, errDecided
	}
	if err := w.s.journal.Update(func(tx *journal.Tx) error { return tx.PutAttempt(w.attemptRecord(t)) }); err != nil {
		return nil, err
	}
	w.s.openAttempt(&attempt{ref: refOf(t), job: w.job, task: t})
	return t, nil
}

var errDecided = errors.New("the commit of this job is decided")

// attemptEpoch is the epoch under which an attempt was journalled, if it is open.
func (s *Server) attemptEpoch(h *planv1.ManifestHeader) (uint64, bool) {
	a := s.attempt(h.AttemptId)
	if a == nil || a.ref.JobId != h.JobId || a.ref.Task != h.Task || a.ref.Stage != h.Stage {
		return 0, false
	}
	return a.ref.Epoch, true
}

// commitLease is what a commit call of the sink may do. adopted are the objects that staging created.
func (w *writeState) commitLease(ctx context.Context, adopted []string) (broker.LeaseSpec, error) {
	spec := broker.LeaseSpec{
		JobID: w.job.id, Table: w.target.ref(), TableUUID: w.spec.TableUuid, Mode: w.mode, Gate: gate{w}, Catalog: w.target.entry.catalog, Ident: w.target.ident,
		MarkerProperty: w.s.markerProperty(), Markers: []string{w.job.rec.Marker}, KeepMarkers: w.s.openMarkers(w), Totals: w.totals(), Adopted: adopted,
		AllowCreate: w.mode == sinkv1.WriteMode_WRITE_MODE_CREATE, Plugin: w.target.entry.sink, Location: w.rec.Location, Branch: w.spec.Branch, WapID: w.spec.WapId,
		Summary: []map[string]string{w.summary()}, AddsFiles: w.spec.GetAddsFiles(),
	}
	if w.mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL || w.mode == sinkv1.WriteMode_WRITE_MODE_REWRITE {
		var err error
		if spec.Replaced, spec.Deleted, err = w.replaced(); err != nil {
			return spec, err
		}
		spec.Deletes = w.spec.RowChanges > planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE
	}
	if w.mode == sinkv1.WriteMode_WRITE_MODE_PICK { // no task has written anything: the broker reads what the snapshot did
		spec.Totals, spec.Pick = nil, w.spec.GetPick()
	}
	if w.mode == sinkv1.WriteMode_WRITE_MODE_OVERWRITE && w.target.entry.catalog != nil {
		var err error
		if spec.Scope, err = w.scope(); err != nil {
			return spec, err
		}
	}
	if w.target.entry.catalog == nil {
		spec.Location = w.target.entry.location(w.target.ident)
		var err error
		if spec.Store, err = w.target.entry.store(ctx, w.target.ident, spec.Location); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// scope is what the statement covers, with the partitions that the accepted task manifests write to.
func (w *writeState) scope() (broker.Scope, error) {
	sc, err := scope.New(w.spec)
	if err != nil || !w.spec.GetScope().GetPartitions() {
		return sc, err
	}
	return sc, w.eachAccepted(func(files *planv1.DataFiles) error {
		for _, f := range files.GetFiles() {
			if err := sc.Wrote(f.GetPartition()); err != nil {
				return err
			}
		}
		return nil
	})
}

// replaced are the files of the table that the accepted task manifests replace, and those of which they delete rows.
func (w *writeState) replaced() (replaced, deleted map[string]struct{}, err error) {
	replaced, deleted = map[string]struct{}{}, map[string]struct{}{}
	err = w.eachAccepted(func(files *planv1.DataFiles) error {
		for _, f := range files.GetReplaced() {
			replaced[f.GetPath()] = struct{}{}
		}
		for _, f := range files.GetFiles() {
			if f.GetContent() != planv1.FileContent_FILE_CONTENT_UNSPECIFIED {
				deleted[f.GetReferencedDataFile()] = struct{}{}
			}
		}
		return nil
	})
	return replaced, deleted, err
}

// eachAccepted decodes the accepted task manifests, chunk by chunk.
func (w *writeState) eachAccepted(do func(*planv1.DataFiles) error) error {
	return w.s.journal.View(func(tx *journal.Tx) error {
		return tx.Manifests(w.job.id, func(m *journal.Manifest) error {
			for _, b := range m.Chunks {
				c, files := &planv1.ManifestChunk{}, &planv1.DataFiles{}
				if err := proto.Unmarshal(b, c); err != nil {
					return err
				}
				if err := proto.Unmarshal(c.GetFiles(), files); err != nil {
					return err
				}
				if err := do(files); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
