package flightsql

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// calls counts who waits for which job, so that a job is cancelled when the last call that wanted it has gone.
type calls struct {
	s *server

	mu     sync.Mutex
	closed bool
	jobs   map[string]*wanted
}

type wanted struct {
	principal string
	waiting   int
	own       bool        // begun by a call here: others' jobs are not cancelled
	lease     *time.Timer // a client that polls counts as a call until it stops polling
}

// pollLease is how long a job waits for the next poll.
const pollLease = time.Minute

func newCalls(s *server) *calls { return &calls{s: s, jobs: map[string]*wanted{}} }

func (c *calls) join(principal, id string, existing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.jobs[id]
	if w == nil {
		w = &wanted{principal: principal}
		c.jobs[id] = w
	}
	w.waiting++
	w.own = w.own || !existing
}

// leave ends one call's interest. ended: the job has ended.
func (c *calls) leave(id string, ended bool) {
	c.mu.Lock()
	w := c.jobs[id]
	if w == nil {
		c.mu.Unlock()
		return
	}
	w.waiting--
	last := w.waiting == 0
	if last {
		delete(c.jobs, id)
	}
	cancel := last && w.own && !ended && !c.closed
	c.mu.Unlock()
	if cancel {
		done, msg, err := c.s.backend.Cancel(w.principal, id)
		c.s.Logger.Info("a Flight call ended before its job", "job", id, "cancelled", done, "message", msg, "error", err)
	}
}

// polled keeps a job for the client's next poll; ended gives it up.
func (c *calls) polled(principal, id string, existing, ended bool) {
	c.mu.Lock()
	w := c.jobs[id]
	held := w != nil && w.lease != nil
	switch {
	case held && ended:
		w.lease.Stop()
		w.lease = nil
	case held:
		w.lease.Reset(pollLease)
	case !ended && !c.closed:
		if w == nil {
			w = &wanted{principal: principal, own: !existing}
			c.jobs[id] = w
		}
		w.own = w.own || !existing
		w.waiting++
		w.lease = time.AfterFunc(pollLease, func() { c.expire(id) })
	}
	c.mu.Unlock()
	if held && ended {
		c.leave(id, true)
	}
}

func (c *calls) expire(id string) {
	c.mu.Lock()
	w := c.jobs[id]
	held := w != nil && w.lease != nil
	if held {
		w.lease = nil
	}
	c.mu.Unlock()
	if held {
		c.leave(id, false)
	}
}

func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, w := range c.jobs {
		if w.lease != nil {
			w.lease.Stop()
		}
	}
}

var errStopping = status.Error(codes.Unavailable, "the scheduler is stopping; the job goes on when it is back, and the same idempotency key finds it then")

// run runs a statement to its end. A job is returned only if it succeeded.
func (s *server) run(ctx context.Context, st Statement) (*schedulerv1.Job, error) {
	who := s.Principal(ctx)
	for try := 0; ; try++ {
		id, existing, err := s.backend.Submit(who, st)
		if err != nil {
			return nil, asStatus(err)
		}
		_ = grpc.SendHeader(ctx, metadata.Pairs(JobHeader, id)) // fails the second time and outside of gRPC; the call goes on
		s.calls.join(who, id, existing)
		job, err := s.await(ctx, who, id)
		s.calls.leave(id, err == nil)
		if err != nil {
			return nil, err
		}
		// The key was held by a job that was being cancelled, by the broken call that this one repeats for instance. It is free now.
		if existing && job.GetState() == schedulerv1.JobState_JOB_STATE_CANCELLED && st.Input == "" && try < 3 {
			continue
		}
		if job.GetState() != schedulerv1.JobState_JOB_STATE_SUCCESSFUL {
			return nil, jobStatus(job)
		}
		return job, nil
	}
}

// await waits for a job's end.
func (s *server) await(ctx context.Context, who, id string) (*schedulerv1.Job, error) {
	for {
		job, changed, err := s.backend.Job(who, id)
		if err != nil {
			return nil, asStatus(err)
		}
		if terminal(job) {
			return job, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-s.closing:
			return nil, errStopping
		}
	}
}

func terminal(job *schedulerv1.Job) bool {
	switch job.GetState() {
	case schedulerv1.JobState_JOB_STATE_SUCCESSFUL, schedulerv1.JobState_JOB_STATE_FAILED, schedulerv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}
