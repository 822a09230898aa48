package client

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// watchTries is how many subscriptions may break without a single status before Wait polls instead.
const watchTries = 3

// Wait follows a job until it ends and returns its last status. It subscribes, reconnects by job id when the subscription breaks, and polls
// when subscriptions do not work. A job that failed is not an error of Wait: see its state. onUpdate may be nil.
func (c *Client) Wait(ctx context.Context, id string, onUpdate func(*schedulerv1.Job)) (*schedulerv1.Job, error) {
	w := &waiter{c: c, id: id, onUpdate: onUpdate, poll: c.set.polling, pause: newBackOff(), lastAnswer: time.Now()}
	for {
		job, err := w.round(ctx)
		if job != nil {
			return job, nil
		}
		if err := w.giveUp(ctx, err); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, &PendingError{JobID: id, Phase: w.phase, Cause: context.Cause(ctx)}
		case <-time.After(w.next()):
		}
	}
}

type waiter struct {
	c        *Client
	id       string
	onUpdate func(*schedulerv1.Job)

	poll       bool
	broken     int // subscriptions in a row that brought nothing
	pause      backoff.BackOff
	lastAnswer time.Time
	phase      string
}

// round is one subscription, or one poll. A job is returned only in its terminal state.
func (w *waiter) round(ctx context.Context) (*schedulerv1.Job, error) {
	if w.poll {
		r, err := w.c.rpc.GetJob(ctx, &schedulerv1.GetJobRequest{JobId: w.id})
		if err != nil {
			return nil, err
		}
		if mutant.On("client/poll-drops-the-result") {
			r.GetJob().InlineResult = nil
		}
		return w.saw(r.GetJob()), nil
	}
	stream, err := w.c.rpc.Watch(ctx, &schedulerv1.WatchRequest{JobId: w.id})
	if err != nil {
		w.broken++
		return nil, err
	}
	w.broken++
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, nil // ended without a terminal status, as when the scheduler shuts down
		}
		if err != nil {
			return nil, err
		}
		w.broken = 0
		if mutant.On("client/watch-drops-the-result") {
			r.GetJob().InlineResult = nil
		}
		if job := w.saw(r.GetJob()); job != nil {
			return job, nil
		}
	}
}

// saw passes a status on; it returns the job only when it has ended.
func (w *waiter) saw(job *schedulerv1.Job) *schedulerv1.Job {
	w.lastAnswer, w.phase = time.Now(), job.GetPhase()
	if w.onUpdate != nil {
		w.onUpdate(job)
	}
	if Terminal(job.GetState()) {
		return job
	}
	return nil
}

// giveUp decides whether an error ends the waiting.
func (w *waiter) giveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &PendingError{JobID: w.id, Phase: w.phase, Cause: context.Cause(ctx)}
	}
	switch status.Code(err) {
	case codes.OK: // a quiet round
		return nil
	case codes.Unimplemented:
		if !w.poll {
			w.poll = true
			return nil
		}
		return callError(err)
	case codes.Unavailable, codes.Unknown, codes.Internal, codes.ResourceExhausted, codes.Canceled, codes.Aborted:
		// The transport, a proxy, or a scheduler that restarts.
	default:
		return callError(err)
	}
	if w.broken >= watchTries {
		w.poll = true
	}
	if time.Since(w.lastAnswer) >= w.c.set.retryFor {
		return &PendingError{JobID: w.id, Phase: w.phase, Cause: callError(err)}
	}
	return nil
}

// next is the pause before the next round: short while the scheduler answers polls, growing while it does not.
func (w *waiter) next() time.Duration {
	if time.Since(w.lastAnswer) < 50*time.Millisecond {
		w.pause.Reset()
	}
	return w.pause.NextBackOff()
}
