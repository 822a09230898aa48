package iceberg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

const defaultAttempts = 30

// Commit implements sdk.Sink.
func (s *Sink) Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	return s.commit(ctx, sdk.HostFrom(ctx), req)
}

// commit tries until the batch has landed, is found, or is refused. The errors it returns are the host's own, so that their kind tells the outcome.
func (s *Sink) commit(ctx context.Context, h Host, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	resp := &sinkv1.CommitResponse{Timings: &sinkv1.Timings{}}
	b, err := newBatch(req)
	if err != nil {
		return resp, permanent(req.GetTable(), err)
	}
	a := &attempt{sink: s, host: h, batch: b, resp: resp, nonce: nonce()}
	defer func() { // nothing is created after the call
		if a.created != nil {
			_ = a.created()
		}
	}()
	attempts := int(req.GetMaxAttempts())
	if attempts < 1 {
		attempts = defaultAttempts
	}
	for n := 1; ; n++ {
		a.n, resp.Attempts = n, int32(n)
		err := a.run(ctx)
		already := new(sdk.RefusalError)
		switch {
		case err == nil:
			return resp, nil
		case errors.As(err, &already) && already.Kind == sdk.Already:
			resp.Outcome, resp.Version, resp.Location, resp.Message = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, already.Version, already.Location, already.Message
			return resp, nil
		case !again(err):
			return resp, err
		case n >= attempts:
			return resp, fmt.Errorf("gave up after %d attempts: %w", n, err)
		}
		if err := s.pause(ctx, n); err != nil {
			return resp, err
		}
	}
}

// again reports whether the attempt definitely did not land and another one may. What is not known to be so is not tried again.
func again(err error) bool {
	return errors.Is(err, sdk.ErrConflict) || errors.Is(err, sdk.ErrRetryable)
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

// Lookup implements sdk.Sink.
func (s *Sink) Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	return s.lookup(ctx, sdk.HostFrom(ctx), req)
}

func (s *Sink) lookup(ctx context.Context, h Host, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	t, err := s.load(ctx, h, req.GetTable(), true)
	if errors.Is(err, sdk.ErrNotFound) || err == nil && t.missing {
		return &sinkv1.LookupResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	id, found, err := t.findMarker(req.GetMarkerProperty(), req.GetMarker())
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	return &sinkv1.LookupResponse{Found: found, Version: versionOf(id)}, nil
}
