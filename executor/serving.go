package executor

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/internal/fault"
)

// serving is this executor's exchange: what its tasks leave for others, and the server that hands it out.
type serving struct {
	store    *exchange.Store
	address  string // by which others reach it
	listener net.Listener
	server   *grpc.Server
	done     chan struct{}
}

func newServing(at exchange.Endpoint, scratch string) (*serving, error) {
	l, address, err := at.Open()
	if err != nil {
		return nil, err
	}
	var opts []grpc.ServerOption
	if at.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(at.TLS)))
	}
	store := exchange.NewStore(filepath.Join(scratch, "outputs"))
	return &serving{store: store, address: address, listener: l, server: exchange.NewServer(store, opts...), done: make(chan struct{})}, nil
}

func (s *serving) start() {
	go func() {
		defer close(s.done)
		_ = s.server.Serve(s.listener) // ends with stop; a listener that fails shows at those who fetch
	}()
}

func (s *serving) stop() {
	s.server.Stop()
	<-s.done
}

// runExchange writes a task's output and keeps it. It is kept before its attempt's end is reported, so that whoever hears of it finds it.
func (e *Executor) runExchange(a *attempt, inst *duckdb.Instance, opts exchange.Options) (*planv1.ExchangeOutput, error) {
	dir, out, err := exchange.Run(a.ctx, inst, a.task, opts)
	if err != nil {
		return nil, err
	}
	return out, e.keepOutput(a, func() error {
		return e.serving.store.Put(a.ref, a.task.GetExchange().GetTicket(), dir, out.GetPartitions())
	})
}

// keepOutput puts an output into the store.
func (e *Executor) keepOutput(a *attempt, put func() error) error {
	if err := a.ctx.Err(); err != nil { // cancelled at the last moment
		return err
	}
	if err := put(); err != nil {
		return err
	}
	err := fault.Hit("executor.exchange.after-keep")
	if err == nil && a.unwanted.Load() {
		err = fmt.Errorf("%w: nobody needs its output", errKilled)
		a.cancel(err)
	}
	if err != nil {
		e.freeIf("its attempt failed", func(ref *executorv1.AttemptRef) bool { return ref.GetAttemptId() == a.ref.GetAttemptId() })
	}
	return err
}

// free lets go of outputs, also of those that attempts are still making.
func (e *Executor) free(req *executorv1.FreeOutputs) {
	ids := req.GetAttemptIds()
	named := func(ref *executorv1.AttemptRef) bool {
		return ref.GetJobId() == req.GetJobId() && (len(ids) == 0 || slices.Contains(ids, ref.GetAttemptId()))
	}
	for _, a := range e.all() {
		if a.task.GetWrite() == nil && named(a.ref) {
			a.unwanted.Store(true) // before the store is looked at: runExchange does it the other way round
		}
	}
	if err := fault.Hit("executor.free.before"); err != nil {
		e.log.Warn("outputs not freed", "job", req.GetJobId(), "error", err)
		return
	}
	e.freeIf("nobody needs them", named)
}

// freeIf lets go of outputs; their files go in the background. An attempt whose success has not been acknowledged yet fails with its output.
func (e *Executor) freeIf(reason string, unwanted func(*executorv1.AttemptRef) bool) {
	gone := e.serving.store.Take(unwanted)
	if len(gone) == 0 {
		return
	}
	for _, ref := range gone.Attempts() {
		if a := e.lookup(ref.GetAttemptId()); a != nil {
			a.unwanted.Store(true) // if its end is not recorded yet, it will be as a failure
			e.reconsider(a, reason)
		}
	}
	e.log.Debug("outputs freed", "outputs", len(gone), "reason", reason)
	e.work.Go(func() {
		if err := gone.Remove(); err != nil {
			e.log.Warn("cannot remove freed outputs; they go with this process", "error", err)
		}
	})
}

// reconsider takes back a success that has been reported but not acknowledged.
func (e *Executor) reconsider(a *attempt, reason string) {
	e.mu.Lock()
	succeeded := a.status != nil && a.status.GetError() == nil
	e.mu.Unlock()
	if succeeded {
		e.end(a, &executorv1.TaskStatus{Error: freedError(reason)})
	}
}

func freedError(reason string) *planv1.Error {
	return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_KILLED, Message: "its output was freed: " + reason}
}
