package delta

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

const defaultAttempts = 30

// Commit implements sdk.Sink. It tries until the batch has landed, is found, or is refused. The errors it returns are the host's own, so that their kind tells the outcome.
func (s *Sink) Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	resp := &sinkv1.CommitResponse{Timings: &sinkv1.Timings{}}
	b, err := newBatch(req)
	if err != nil {
		return resp, permanent(req.GetTable(), err)
	}
	a := &attempt{sink: s, batch: b, resp: resp}
	attempts := int(req.GetMaxAttempts())
	if attempts < 1 {
		attempts = defaultAttempts
	}
	for n := 1; ; n++ {
		resp.Attempts = int32(n)
		err := a.run(ctx)
		already := new(sdk.RefusalError)
		switch {
		case err == nil:
			return resp, nil
		case errors.As(err, &already) && already.Kind == sdk.Already:
			resp.Outcome, resp.Version, resp.Location, resp.Message = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, already.Version, already.Location, already.Message
			return resp, nil
		case !errors.Is(err, sdk.ErrConflict) && !errors.Is(err, sdk.ErrRetryable):
			return resp, err
		case n >= attempts:
			return resp, fmt.Errorf("gave up after %d attempts: %w", n, err)
		}
		if err := s.pause(ctx, n); err != nil {
			return resp, err
		}
	}
}

const (
	pauseBase = 4 * time.Millisecond
	pauseMax  = 500 * time.Millisecond
)

// backoff waits before attempt n+1: exponentially, half of it by chance.
func backoff(ctx context.Context, n int) error {
	d := min(pauseBase<<min(n-1, 10), pauseMax)
	timer := time.NewTimer(d/2 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// attempt is one try of a commit: load, look, check, build, send.
type attempt struct {
	sink  *Sink
	batch *batch
	resp  *sinkv1.CommitResponse
	base  *log.Snapshot // that the statement was planned on, once it was needed
}

func (a *attempt) run(ctx context.Context) error {
	ref, t0 := a.batch.req.GetTable(), a.sink.now()
	t, err := a.sink.load(ctx, ref)
	a.lap(&a.resp.Timings.LoadMicros, &t0)
	if err != nil {
		return err
	}
	if done, err := a.look(t); done || err != nil {
		return err
	}
	tx, err := a.transaction(ctx, t)
	if err != nil {
		return refused(ref, err)
	}
	version := int64(0)
	if !t.missing {
		version = t.Version + 1
	}
	tx.Txns = a.batch.txns(version)
	head, err := tx.Head(t.Snapshot, a.sink.now(), uuid.NewString())
	if err != nil {
		return refused(ref, err)
	}
	body, err := newBody(head, a.batch)
	a.lap(&a.resp.Timings.BuildMicros, &t0)
	if err != nil {
		return permanent(ref, err)
	}
	err = a.send(ctx, t, version, body)
	a.lap(&a.resp.Timings.CommitMicros, &t0)
	if err != nil {
		return err
	}
	a.resp.Metrics = a.batch.metrics(tx)
	a.sink.landedBody(ctx, t, version, body)
	return nil
}

func (a *attempt) lap(micros *int64, since *time.Time) {
	now := a.sink.now()
	*micros += now.Sub(*since).Microseconds()
	*since = now
}

// refused makes errors of a transaction final: its outcome would be another one on the table as it is now, or no table may take it.
func refused(ref *sinkv1.TableRef, err error) error {
	conflict := new(transaction.Conflict)
	for _, is := range []error{transaction.ErrInvalid, transaction.ErrAppendOnly, log.ErrCorrupt, log.ErrUnsupported, log.ErrNoVersion} {
		if errors.Is(err, is) {
			return permanent(ref, err)
		}
	}
	if errors.As(err, &conflict) {
		return permanent(ref, err)
	}
	return err
}

// look decides what the state of the table means for the batch: landed before, refused, or to be built.
func (a *attempt) look(t *table) (done bool, err error) {
	b, ref := a.batch, a.batch.req.GetTable()
	create, id := b.plan.GetCreatesTable(), b.plan.GetTableUuid()
	switch {
	case t.missing && create:
		return false, nil
	case t.missing:
		return false, sdk.Refuse(sdk.Permanent, "table %s has been dropped since the job was planned", tableName(ref))
	case t.Metadata.ID != id && create:
		return false, sdk.Refuse(sdk.Permanent, "table %s was created by someone else since the job was planned", tableName(ref))
	case t.Metadata.ID != id:
		return false, sdk.Refuse(sdk.Permanent, "table %s was dropped and created again since the job was planned: it has id %s, the files were written for %s", tableName(ref), t.Metadata.ID, id)
	}
	found := 0
	for _, m := range b.markers {
		if txn, ok := t.Txn(markerApp + m); ok {
			found, a.resp.Version = found+1, versionOf(txn.Version)
		}
	}
	switch {
	case found == len(b.markers):
		a.resp.Outcome, a.resp.Location = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, t.location
		return true, nil
	case found > 0 || create: // a table of this id can only be the one that this job created
		return false, sdk.Refuse(sdk.Permanent, "table %s: %d of %d jobs of this commit have been committed before; commit the others without them", tableName(ref), found, len(b.markers))
	}
	if b.plan.Define == nil {
		if err := b.plan.landable(&t.Metadata); err != nil {
			return false, permanent(ref, err)
		}
	}
	if b.nothing() {
		a.resp.Outcome, a.resp.Version, a.resp.Location = sinkv1.Outcome_OUTCOME_COMMITTED, versionOf(t.Version), t.location
		a.resp.Message = "no files: the table was not changed"
		return true, nil
	}
	return false, nil
}

// txns are the actions that say that the jobs have landed, and where.
func (b *batch) txns(version int64) []log.Txn {
	out := make([]log.Txn, len(b.markers))
	for i, m := range b.markers {
		out[i] = log.Txn{AppID: markerApp + m, Version: version}
	}
	return out
}

// send asks for the commit point.
func (a *attempt) send(ctx context.Context, t *table, version int64, body *body) error {
	if err := hit("delta.commit.before-send"); err != nil {
		return err
	}
	parent := ""
	if !t.missing {
		parent = versionOf(t.Version)
	}
	uri := t.store.uri(log.CommitName(version))
	w, err := t.store.host.Create(ctx, uri, sdk.AsCommitPoint(versionOf(version), parent, a.batch.markers...))
	if err != nil {
		return err
	}
	if err := body.write(w); err != nil {
		w.Abort()
		if errors.Is(err, errRef) || errors.Is(err, log.ErrCorrupt) {
			err = permanent(a.batch.req.GetTable(), err)
		}
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	a.resp.Outcome, a.resp.Version, a.resp.Location = sinkv1.Outcome_OUTCOME_COMMITTED, versionOf(version), uri
	return fault.Hit("delta.commit.after-send")
}

// Lookup implements sdk.Sink.
func (s *Sink) Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	t, err := s.load(ctx, req.GetTable())
	if err != nil || t.missing {
		return &sinkv1.LookupResponse{}, err
	}
	txn, found := t.Txn(markerApp + req.GetMarker())
	if !found {
		return &sinkv1.LookupResponse{}, nil
	}
	return &sinkv1.LookupResponse{Found: true, Version: versionOf(txn.Version)}, nil
}
