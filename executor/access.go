package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

const (
	// accessAtATime bounds the requests for access that are under way; the scheduler answers no more than 64 of one session at a time.
	accessAtATime = 16
	// accessPatience is how long one answer may take, before it is asked for again.
	accessPatience = time.Minute
	// accessTries bounds how often the scheduler may say that it cannot give access now.
	accessTries = 8
	// accessBatch bounds what one request asks for: a signed request takes about 1 KiB.
	accessBatch = 256
)

// access is how an attempt or an analysis gets at object stores: by asking the scheduler, over the session. What it gets are credentials. They are held by who sends the
// requests, for as long as that takes, and are not logged.
type access struct {
	e        *Executor
	attempt  *executorv1.AttemptRef
	analysis string
}

// errNoAccess: the scheduler has refused.
var errNoAccess = errors.New("the scheduler gives no access")

// errNeverAccess: it will go on refusing, whoever asks, until somebody changes the store's configuration or its own.
var errNeverAccess = errors.New("the scheduler can give no access")

// Reads gets a GET for each URI of a file of the task, in their order.
func (x access) Reads(ctx context.Context, uris []string) ([]*executorv1.SignedRequest, error) {
	var out []*executorv1.SignedRequest
	for len(uris) > 0 {
		n := min(len(uris), accessBatch)
		a, err := x.ask(ctx, &executorv1.AccessRequest{Reads: uris[:n]})
		if err != nil {
			return nil, err
		}
		if len(a.GetReads()) != n {
			return nil, fmt.Errorf("%w: it answered %d requests for %d files", errNoAccess, len(a.GetReads()), n)
		}
		out, uris = append(out, a.GetReads()...), uris[n:]
	}
	return out, nil
}

// Puts gets what writes, or looks at, files of the attempt.
func (x access) Puts(ctx context.Context, puts []*executorv1.PutRequest) ([]*executorv1.SignedRequest, error) {
	var out []*executorv1.SignedRequest
	for len(puts) > 0 {
		n := min(len(puts), accessBatch)
		a, err := x.ask(ctx, &executorv1.AccessRequest{Puts: puts[:n]})
		if err != nil {
			return nil, err
		}
		if len(a.GetPuts()) != n {
			return nil, fmt.Errorf("%w: it answered %d requests for %d files", errNoAccess, len(a.GetPuts()), n)
		}
		out, puts = append(out, a.GetPuts()...), puts[n:]
	}
	return out, nil
}

// ask sends one request, again after a session broke, and until the scheduler has an answer.
func (x access) ask(ctx context.Context, r *executorv1.AccessRequest) (*executorv1.Access, error) {
	select {
	case x.e.asking <- struct{}{}:
		defer func() { <-x.e.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	pause := backoff{x.e.cfg.MinBackoff, x.e.cfg.MaxBackoff, 0}
	for tries := 0; ; {
		r.Attempt, r.Analysis, r.RequestId = x.attempt, x.analysis, uuid.NewString()
		a, err := x.e.askOnce(ctx, r)
		if err != nil {
			return nil, err
		}
		switch perr := a.GetError(); {
		case a == nil: // the session broke
		case perr == nil:
			return a, nil
		case perr.GetClass() == planv1.ErrorClass_ERROR_CLASS_USER:
			return nil, fmt.Errorf("%w: %s", errNeverAccess, perr.GetMessage())
		case perr.GetClass() != planv1.ErrorClass_ERROR_CLASS_IO:
			return nil, fmt.Errorf("%w: %s", errNoAccess, perr.GetMessage())
		default:
			if tries++; tries == accessTries {
				return nil, fmt.Errorf("%w: %s", errNoAccess, perr.GetMessage())
			}
		}
		if !sleep(ctx, pause.next()) {
			return nil, ctx.Err()
		}
	}
}

// askOnce sends a request and waits for its answer; nil: there was no session, or it broke.
func (e *Executor) askOnce(ctx context.Context, r *executorv1.AccessRequest) (*executorv1.Access, error) {
	ch := make(chan *executorv1.Access, 1)
	e.mu.Lock()
	s := e.session
	if s != nil {
		e.accesses[r.GetRequestId()] = ch
	}
	e.mu.Unlock()
	if s == nil {
		return nil, ctx.Err()
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.accesses, r.GetRequestId())
	}()
	s.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_AccessRequest{AccessRequest: r}})
	timer := time.NewTimer(accessPatience)
	defer timer.Stop()
	select {
	case a := <-ch:
		return a, nil
	case <-s.over:
		return nil, ctx.Err()
	case <-timer.C:
		return nil, ctx.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accessGiven hands an answer to who waits for it. What nobody waits for is dropped.
func (e *Executor) accessGiven(a *executorv1.Access) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ch := e.accesses[a.GetRequestId()]; ch != nil {
		delete(e.accesses, a.GetRequestId())
		ch <- a
	}
}
