package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/journal"
)

// How long a sweep that failed waits before it is tried again: at first, and at most.
const (
	sweepAgain   = time.Minute
	sweepAtLeast = time.Hour
)

// sweepGivenUp is how long nothing has to have led to a place of a table that is gone until its sweep is given up.
const sweepGivenUp = 24 * time.Hour

// sweepFailed puts a duty off, ever longer, or gives it up where nothing leads to the place any more.
func (s *Server) sweepFailed(ctx context.Context, d journal.Duty, cause error) {
	now := time.Now()
	if d.Failures++; d.FailingSince.IsZero() {
		d.FailingSince = now.UTC()
	}
	if now.Sub(d.FailingSince) > sweepGivenUp && now.After(d.Until) && s.unreachable(ctx, &d, cause) && !mutant.On("scheduler/sweep-without-end") {
		s.log.Error("clean-up is given up: the table is gone, and its catalog gives nothing that leads to the place; remove by hand what lies there",
			"catalog", d.Catalog, "table", catalog.Ident(d.Ident), "prefix", d.Prefix, "job", d.Job, "attempt", d.Attempt, "tried", d.Failures, "since", d.FailingSince, "error", cause)
		err := s.journal.Update(func(tx *journal.Tx) error {
			return errors.Join(tx.DropDuty(d.Prefix), s.auditIn(tx, &auditEvent{
				Event: auditLeft, Job: d.Job, Attempt: d.Attempt, Catalog: d.Catalog, Prefix: d.Prefix, Message: cause.Error(),
			}))
		})
		if err == nil {
			return
		}
	}
	pause := sweepAtLeast
	if d.Failures < 7 { // 1, 2, 4 … 32 minutes
		pause = sweepAgain << (d.Failures - 1)
	}
	d.NotBefore = now.Add(pause).UTC()
	s.log.Warn("clean-up failed and is tried again", "prefix", d.Prefix, "tried", d.Failures, "again", d.NotBefore, "error", cause)
	_ = s.journal.Update(func(tx *journal.Tx) error { return tx.PutDuty(&d) }) // it is due anyway if this fails
}

// unreachable says whether a catalog gave nothing for the place of a duty because the place is no table's any more.
func (s *Server) unreachable(ctx context.Context, d *journal.Duty, cause error) bool {
	entry := s.catalogs[d.Catalog]
	if d.Expiry != nil || entry == nil || entry.catalog == nil || len(d.Ident) == 0 {
		return false
	}
	if !errors.Is(cause, rest.ErrNotVended) && !errors.Is(cause, catalog.ErrNotFound) && !errors.Is(cause, catalog.ErrPermanent) {
		return false
	}
	t, err := entry.catalog.Load(ctx, d.Ident)
	if errors.Is(err, catalog.ErrNotFound) {
		return true
	}
	if err != nil {
		return false
	}
	_, outside := storage.Below(t.Location, d.Location) // a table of that name was made anew, elsewhere
	return outside != nil
}
