package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// StatementOption configures one statement.
type StatementOption func(*statement)

type statement struct {
	req      *schedulerv1.SubmitRequest
	onUpdate func(*schedulerv1.Job)
	onSubmit func(jobID string, existing bool)
}

// WithIdempotencyKey names what must happen once: the same key returns the same job.
func WithIdempotencyKey(key string) StatementOption {
	return func(s *statement) { s.req.IdempotencyKey = key }
}

// WithDefaults are the catalog and the schema of names that give neither.
func WithDefaults(catalog, schema string) StatementOption {
	return func(s *statement) { s.req.DefaultCatalog, s.req.DefaultSchema = catalog, schema }
}

// WithBaseDir is the absolute directory against which relative file names in the statement are resolved.
func WithBaseDir(dir string) StatementOption {
	return func(s *statement) { s.req.BaseDir = dir }
}

// WithSettings are session settings by name.
func WithSettings(m map[string]string) StatementOption {
	return func(s *statement) {
		s.req.Settings = maps.Clone(m)
	}
}

// WithProgress is called with each status that arrives, in order, from the calling goroutine.
func WithProgress(f func(*schedulerv1.Job)) StatementOption {
	return func(s *statement) { s.onUpdate = f }
}

// WithSubmitted is called once, as soon as the job has an id. Existing: the key was known and this is the job it names.
func WithSubmitted(f func(jobID string, existing bool)) StatementOption {
	return func(s *statement) { s.onSubmit = f }
}

// ExecPlan is Exec for what a logical plan says.
func (c *Client) ExecPlan(ctx context.Context, p *planv1.LogicalPlan, opts ...StatementOption) (*Result, error) {
	return c.Exec(ctx, "", append(opts[:len(opts):len(opts)], WithLogicalPlan(p))...)
}

// ExecPhysicalPlan is Exec for a query that the caller has cut into stages and divided into tasks.
func (c *Client) ExecPhysicalPlan(ctx context.Context, p *planv1.PhysicalPlan, opts ...StatementOption) (*Result, error) {
	return c.Exec(ctx, "", append(opts[:len(opts):len(opts)], WithPhysicalPlan(p))...)
}

// WithLogicalPlan takes the place of the statement's text, which has to be empty.
func WithLogicalPlan(p *planv1.LogicalPlan) StatementOption {
	return func(s *statement) { s.req.LogicalPlan = p }
}

// WithPhysicalPlan takes the place of the statement's text, which has to be empty.
func WithPhysicalPlan(p *planv1.PhysicalPlan) StatementOption {
	return func(s *statement) { s.req.PhysicalPlan = p }
}

// Result is a job that ended Successful.
type Result struct {
	Job      *schedulerv1.Job
	Existing bool // the idempotency key was known: the statement did not run again
	client   *Client
}

// Exec submits one statement and waits for its end. When ctx ends first the job goes on, and the error is a *PendingError with its id.
func (c *Client) Exec(ctx context.Context, sql string, opts ...StatementOption) (_ *Result, err error) {
	ctx, end := startSpan(ctx)
	defer func() { end(err) }()
	st := &statement{req: &schedulerv1.SubmitRequest{Sql: sql}}
	for _, o := range opts {
		o(st)
	}
	if st.req.IdempotencyKey == "" {
		st.req.IdempotencyKey = "client:" + uuid.NewString()
	}
	sub, err := c.submit(ctx, st.req)
	if err != nil {
		return nil, err
	}
	spanJob(ctx, sub.GetJobId())
	if st.onSubmit != nil {
		st.onSubmit(sub.GetJobId(), sub.GetExisting())
	}
	job, err := c.Wait(ctx, sub.GetJobId(), st.onUpdate)
	if errors.Is(err, ErrNotFound) { // the scheduler took it and has forgotten it, journal and all: it may have committed
		return nil, &PendingError{JobID: sub.GetJobId(), IdempotencyKey: st.req.GetIdempotencyKey(), Cause: err}
	}
	if err != nil {
		return nil, err
	}
	if err := jobError(job); err != nil {
		return nil, err
	}
	return &Result{Job: job, Existing: sub.GetExisting(), client: c}, nil
}

// submit repeats a submission whose answer was lost: under its key it names one job however often it arrives. A scheduler that cannot be
// reached at all is reported at once, since then nothing can have been submitted.
func (c *Client) submit(ctx context.Context, req *schedulerv1.SubmitRequest) (*schedulerv1.SubmitResponse, error) {
	var sent atomic.Bool // some try may have reached the scheduler
	rctx := context.WithValue(ctx, sentKey{}, &sent)
	op := func() (*schedulerv1.SubmitResponse, error) {
		r, err := c.rpc.Submit(rctx, req)
		if err == nil {
			return r, nil
		}
		if status.Code(err) == codes.Unavailable && sent.Load() {
			return nil, callError(err)
		}
		return nil, backoff.Permanent(callError(err))
	}
	opts := []backoff.RetryOption{backoff.WithBackOff(newBackOff()), backoff.WithMaxElapsedTime(c.set.retryFor)}
	if c.set.retryFor <= 0 {
		opts = append(opts, backoff.WithMaxTries(1))
	}
	r, err := backoff.Retry(ctx, op, opts...)
	if err == nil {
		return r, nil
	}
	if permanent := (*backoff.PermanentError)(nil); errors.As(err, &permanent) {
		err = permanent.Err
	}
	var refused *Error
	if sent.Load() && !errors.As(err, &refused) {
		return nil, &PendingError{IdempotencyKey: req.GetIdempotencyKey(), Cause: err}
	}
	if errors.Is(err, ErrUnreachable) {
		return nil, fmt.Errorf("%s: %w", c.addr, err)
	}
	return nil, err
}

func newBackOff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = 50*time.Millisecond, 2*time.Second, 1.7
	return b
}

// sentKey marks the context of a call that wants to know whether its request left.
type sentKey struct{}

// sentHandler sets the mark. A call that failed before any payload went out cannot have had an effect.
type sentHandler struct{}

func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (sentHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutPayload); !ok {
		return
	}
	if b, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		b.Store(true)
	}
}

func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (sentHandler) HandleConn(context.Context, stats.ConnStats) {}
