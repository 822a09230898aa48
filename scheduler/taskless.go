package scheduler

import (
	"context"
	"encoding/json"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
)

// runTaskless runs a write that no executor has a part in: TRUNCATE, CREATE OR REPLACE TABLE without a query. It is journalled, sealed and resolved as
// every other write.
func (s *Server) runTaskless(j *job, p *planned) error {
	w, err := newWriteState(s, j, p.target, p.mode, p.spec, coordinator.New(j.id, s.journal.Epoch()))
	if err != nil {
		return err
	}
	if w.rec, err = writeRecord(p); err != nil {
		return err
	}
	j.warn(p.spec.GetWarnings()...)
	j.update(func() { j.plan = p.text })
	if err := fault.Hit("scheduler.plan.before-journal"); err != nil {
		return err
	}
	told, kept := s.lineageOfWrite(w, nil), json.RawMessage(nil)
	_, err = w.step(coordinator.Begin{TableUUID: w.spec.TableUuid}, func(tx *journal.Tx, _ *coordinator.Machine) error {
		j.mu.Lock()
		rec := j.rec
		j.mu.Unlock()
		if rec.CancelledBy != "" {
			return errCancelled
		}
		rec.Write = w.rec
		if err := s.tellStart(tx, &rec, told); err != nil {
			return err
		}
		kept = rec.Lineage
		return tx.PutJob(&rec)
	})
	if err != nil {
		return err
	}
	j.update(func() { j.write, j.rec.Write, j.rec.Lineage = w, w.rec, kept })
	return s.commitTaskless(w)
}

// taskless tells a write that was planned without tasks.
func (w *writeState) taskless() bool {
	return w.machine.State() != coordinator.Planned && w.rec.Tasks == 0 && !w.isSession()
}

// commitTaskless commits what runTaskless has journalled, in this incarnation or an earlier one.
func (s *Server) commitTaskless(w *writeState) error {
	var lease *broker.Lease
	if err := s.stillPermitted(w.job.owner, w.job.does()); err != nil {
		return s.endWrite(w, err)
	}
	err := s.overCrashes(w.job.ctx, "start", func() (err error) {
		lease, _, err = s.lease(w.job.ctx, w.target, broker.LeaseSpec{JobID: w.job.id, TableUUID: w.spec.TableUuid, Mode: w.mode, Branch: w.spec.Branch, AllowCreate: w.spec.CreatesTable, Location: w.rec.Location})
		return err
	})
	if err != nil {
		return s.endWrite(w, err)
	}
	w.mu.Lock()
	w.lease = lease
	w.mu.Unlock()
	defer func() {
		lease.Close()
		w.keepCreated(lease)
		s.spawn(func() { s.sweepMetadata(w) })
	}()
	if w.job.ctx.Err() != nil {
		return s.endWrite(w, context.Cause(w.job.ctx))
	}
	w.job.update(func() { w.job.progress.Stages = 1 }) // the scheduler's own
	return s.endWrite(w, rootFailure(s.runCommit(w)))
}
