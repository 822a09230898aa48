package scheduler

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
)

// A large result of a client that can be sent elsewhere stays on the executor that made it, as an Arrow IPC stream beside the outputs of other tasks
// (S32, S42). Whoever cannot go there gets it by way of the scheduler.

// located is where such a result lies.
type located struct {
	part    *planv1.ExchangePart
	columns []*planv1.Column
	free    func() // lets the executor go of it
}

// locate makes what an attempt has kept the job's output, unless another attempt's is there already.
func (o *output) locate(at *located) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != "" || o.at != nil || o.gone || o.given {
		return false
	}
	o.at = at
	o.wake()
	return true
}

// located is where the rows are; nil: not on an executor.
func (o *output) located() *located {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

// located is where the job's rows are, if they are on an executor.
func (j *job) located() *located {
	j.mu.Lock()
	out := j.output
	j.mu.Unlock()
	return out.located()
}

// keeps tells whether an output has to stay although its job is over.
func (j *job) keeps(attempt string) bool {
	at := j.located()
	return at != nil && at.part.AttemptId == attempt
}

// keepRows tells the task of a query's rows which of them stay.
func (l *loop) keepRows(task *planv1.ResultTask) {
	l.j.mu.Lock()
	keep, kind := l.j.rec.Keep, l.j.rec.Kind
	l.j.mu.Unlock()
	if keep == nil || kind == kindExplain || l.j.settings().Pipelined { // nobody fetches the one; the other is read while it comes
		return
	}
	task.KeepAbove, task.Readers, task.Ticket = keep.Above, keep.Readers, newTicket()
}

// locate notes where the rows of a query are. What nobody will ask for goes.
func (l *loop) locate(ev taskDone, task *planv1.Task) {
	parts := ev.output.GetPartitions()
	if len(parts) == 0 {
		return
	}
	s, id := l.s, l.j.id
	at := &located{
		part: &planv1.ExchangePart{
			Task: task.Task, AttemptId: ev.attempt, ExecutorId: ev.executor, Address: s.pool.Address(ev.executor), Ticket: task.GetResult().GetTicket(),
			Rows: parts[0].Rows, Bytes: parts[0].Bytes, Sha256: parts[0].Sha256,
		},
		columns: l.planner.Plan().Columns,
		free:    func() { s.pool.FreeJob(id) },
	}
	l.j.stored.Store(true)
	if l.j.output == nil || l.g.Verdict(ev.attempt) != nil || !l.j.output.locate(at) {
		s.pool.Free(ev.executor, id, []string{ev.attempt})
	}
}

// relaysAtOnce bounds the memory that results on their way through the scheduler take: a few messages each.
const relaysAtOnce = 64

// relay reads rows from the executor that has them.
func (s *Server) relay(job string, part *planv1.ExchangePart) io.ReadCloser {
	ctx, cancel := context.WithCancel(s.ctx)
	r, w := io.Pipe()
	s.spawn(func() {
		err := exchangeclient.Fetch(ctx, s.relays, part, w)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("rows cannot be fetched for a client", "job", job, "attempt", part.AttemptId, "executor", part.ExecutorId, "error", err)
		}
		w.CloseWithError(relayError(job, err))
	})
	return &relayed{r, cancel}
}

func relayError(job string, err error) error {
	var lost *exchangeclient.LostError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &lost):
		return status.Errorf(codes.Unavailable, "the rows of job %s are gone with their executor, or it cannot be reached; run the query again, under a new key if it has one", job)
	case errors.Is(err, exchangeclient.ErrNoTLS):
		return status.Errorf(codes.FailedPrecondition, "the rows of job %s: %v; name the certificate authority of the executors in tls.ca", job, err)
	}
	return status.Errorf(codes.Unavailable, "the rows of job %s: %v", job, err)
}

type relayed struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the fetch.
func (r *relayed) Close() error {
	r.cancel()
	return r.PipeReader.Close()
}
