package client

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// Client talks to one scheduler. It is safe for concurrent use.
type Client struct {
	addr string
	set  settings
	conn *grpc.ClientConn
	rpc  schedulerv1.SchedulerClient
}

// Dial prepares a connection to the scheduler at addr (host:port). It does not wait for the scheduler; the first call does.
func Dial(addr string, opts ...Option) (*Client, error) {
	if err := checkAddr(addr); err != nil {
		return nil, err
	}
	set := newSettings(opts)
	dial, err := set.dialOptions(addr)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(addr, dial...)
	if err != nil {
		return nil, fmt.Errorf("scheduler address %q: %w", addr, err)
	}
	return &Client{addr: addr, set: set, conn: conn, rpc: schedulerv1.NewSchedulerClient(conn)}, nil
}

// Close ends the connection. Jobs that were submitted go on.
func (c *Client) Close() error { return c.conn.Close() }

// Addr is the address that was dialled.
func (c *Client) Addr() string { return c.addr }

// Raw is the generated client, for calls that this package does not wrap (external write sessions).
func (c *Client) Raw() schedulerv1.SchedulerClient { return c.rpc }

// Job returns one job with its plan and tasks.
func (c *Client) Job(ctx context.Context, id string) (*schedulerv1.GetJobResponse, error) {
	r, err := c.rpc.GetJob(ctx, &schedulerv1.GetJobRequest{JobId: id})
	return r, callError(err)
}

// Jobs returns the newest jobs, newest first. Limit 0: the scheduler's default.
func (c *Client) Jobs(ctx context.Context, limit int) ([]*schedulerv1.Job, error) {
	r, err := c.rpc.ListJobs(ctx, &schedulerv1.ListJobsRequest{Limit: int32(min(limit, 1<<20))})
	if err != nil {
		return nil, callError(err)
	}
	return r.GetJobs(), nil
}

// Cancel asks for a job's end. False: the job has committed, has ended, or can no longer be stopped; message says which.
func (c *Client) Cancel(ctx context.Context, id string) (cancelled bool, message string, err error) {
	r, err := c.rpc.CancelJob(ctx, &schedulerv1.CancelJobRequest{JobId: id})
	if err != nil {
		return false, "", callError(err)
	}
	return r.GetCancelled(), r.GetMessage(), nil
}

// DrainExecutor gives an executor, named by its id or the beginning of it, no more tasks: it leaves once nobody needs what it has. A limit above 0
// ends the waiting; what is still needed then is made again elsewhere. The full id is returned.
func (c *Client) DrainExecutor(ctx context.Context, id, reason string, limit time.Duration) (string, error) {
	r, err := c.rpc.DrainExecutor(ctx, &schedulerv1.DrainExecutorRequest{ExecutorId: id, Reason: reason, LimitMillis: limit.Milliseconds()})
	if err != nil {
		return "", callError(err)
	}
	return r.GetExecutorId(), nil
}

// Info describes the scheduler and its executors.
func (c *Client) Info(ctx context.Context) (*schedulerv1.GetInfoResponse, error) {
	r, err := c.rpc.GetInfo(ctx, &schedulerv1.GetInfoRequest{})
	return r, callError(err)
}
