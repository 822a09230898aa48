package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/journal"
)

// sweepEvery is how often duties are looked at; a new one wakes the loop at once.
const sweepEvery = 5 * time.Second

// oweSweeps writes a duty for every attempt of a job whose files nobody will read: losers always, winners where the job did not
// commit them (S61, S72). It is part of the transaction that ends the job, so that no crash forgets one.
func (s *Server) oweSweeps(tx *journal.Tx, rec *journal.Job) error {
	winners, err := committedAttempts(tx, rec.ID)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	return tx.Attempts(rec.ID, func(a *journal.Attempt) error {
		if a.Prefix == "" || winners[a.ID] || mutant.On("scheduler/losers-unswept") {
			return nil
		}
		return tx.PutDuty(&journal.Duty{
			Prefix: a.Prefix, Catalog: a.Catalog, Location: a.Location, Ident: a.Ident, Job: a.Job, Attempt: a.ID, NotBefore: now,
			Confirmed: s.attemptEnded(a.ID), Until: s.accessEnds(a, now),
		})
	})
}

// committedAttempts are the attempts whose files the table references.
func committedAttempts(tx *journal.Tx, job string) (map[string]bool, error) {
	out := map[string]bool{}
	c, err := tx.Commit(job)
	if errors.Is(err, journal.ErrMissing) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var rec coordinator.Record
	if err := json.Unmarshal(c.Record, &rec); err != nil {
		return nil, err
	}
	if rec.Result == nil || rec.Result.Unreferenced {
		return out, nil
	}
	for _, a := range rec.Accepted {
		out[a.Attempt] = true
	}
	return out, nil
}

// attemptEnded tells whether no executor can still write for an attempt: it was reported ended, or never reached an executor.
func (s *Server) attemptEnded(id string) bool {
	s.endedMu.Lock()
	defer s.endedMu.Unlock()
	_, ok := s.ended[id]
	return ok
}

// endedKept is how long an ended attempt is remembered. A duty that comes later is swept twice instead of once.
const endedKept = time.Hour

// dutyConfirmed notes that an executor has said that an attempt is over.
func (s *Server) dutyConfirmed(id string) {
	now := time.Now()
	s.endedMu.Lock()
	s.ended[id] = now
	if now.Sub(s.pruned) > endedKept/10 {
		s.pruned = now
		maps.DeleteFunc(s.ended, func(_ string, at time.Time) bool { return now.Sub(at) > endedKept })
	}
	s.endedMu.Unlock()
	s.wakeSweeper()
}

func (s *Server) wakeSweeper() {
	select {
	case s.sweepNow <- struct{}{}:
	default:
	}
}

func (s *Server) sweepLoop(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		s.sweepOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.sweepNow:
		}
	}
}

// sweepOnce does what is due. A prefix is swept at once, and again after its executor has confirmed the attempt's end or can be
// taken to be gone; only then is the duty done.
func (s *Server) sweepOnce(ctx context.Context) {
	var due []journal.Duty
	now := time.Now()
	err := s.journal.View(func(tx *journal.Tx) error {
		return tx.Duties(func(d *journal.Duty) error {
			d.Confirmed = d.Confirmed || s.attemptEnded(d.Attempt)
			if d.Expiry != nil && s.expiryWaits(d) {
				return nil
			}
			if s.sweepDue(d, now) {
				due = append(due, *d)
			}
			return nil
		})
	})
	if err != nil {
		s.log.Error("cannot read the clean-up duties", "error", err)
		return
	}
	for _, d := range due {
		if ctx.Err() != nil {
			return
		}
		if err := s.sweep(ctx, d); err != nil {
			s.sweepFailed(ctx, d, err)
		}
	}
}

func (s *Server) sweep(ctx context.Context, d journal.Duty) error {
	if d.Expiry != nil {
		_, err := s.removeExpired(ctx, d)
		return err
	}
	if err := fault.Hit("scheduler.sweep.before"); err != nil {
		return err
	}
	entry := s.catalogs[d.Catalog]
	if entry == nil {
		return fail(codeNotFound, "", "the catalog %s is not configured any more", d.Catalog)
	}
	store, err := entry.store(ctx, d.Ident, d.Location)
	if err != nil {
		return err
	}
	n, err := store.RemoveAll(ctx, d.Prefix)
	if err != nil {
		return err
	}
	if n > 0 {
		s.log.Info("swept an attempt", "job", d.Job, "attempt", d.Attempt, "files", n)
	}
	s.tidy(entry, d.Location, d.Prefix)
	d.Sweeps++
	d.Failures, d.FailingSince = 0, time.Time{}
	return s.journal.Update(func(tx *journal.Tx) error {
		if err := s.auditSwept(tx, &d, int64(n)); err != nil {
			return err
		}
		now := time.Now()
		switch over := d.Confirmed || d.Sweeps > 1 || mutant.On("scheduler/swept-once"); {
		case over && (now.After(d.Until) || mutant.On("scheduler/swept-before-access-ends")):
			return tx.DropDuty(d.Prefix)
		case over: // who has access, and who it was taken from, may write until it runs out
			d.NotBefore = d.Until.Add(time.Second)
			return tx.PutDuty(&d)
		}
		// The executor may still be alive somewhere: by then it has been told, or is taken to be lost.
		d.NotBefore = time.Now().Add(2 * max(s.cfg.Timeouts.ExecutorLoss, time.Minute)).UTC()
		return tx.PutDuty(&d)
	})
}

// sweepDue tells whether a prefix is to be swept now: when its time has come, and once more as soon as its executor has confirmed the attempt's end. What has failed waits.
func (s *Server) sweepDue(d *journal.Duty, now time.Time) bool {
	return !now.Before(d.NotBefore) || d.Failures == 0 && d.Confirmed && (d.Until.IsZero() || d.Sweeps == 0)
}

// accessGrace is what clocks may be apart by, and how long a request that was sent before its access ran out may take.
const accessGrace = 5 * time.Minute

// accessEnds is when nobody can write below the prefix of an attempt any more that has ended now: it gets no further access.
func (s *Server) accessEnds(a *journal.Attempt, now time.Time) time.Time {
	if !isRemote(a.Prefix) {
		return time.Time{}
	}
	life := credentials.Lifetime
	if e := s.catalogs[a.Catalog]; e == nil || e.sessions != nil {
		life = credentials.MaxSession
	}
	return now.Add(life + accessGrace)
}
