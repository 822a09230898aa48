package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/cli/format"
)

// run is one statement from its submission to its last printed row.
type run struct {
	app       *app
	session   *session
	flags     sqlFlags
	statement statement
	base      string
	key       string

	progress *progress
	jobID    atomic.Pointer[string]
	known    chan struct{} // closed with the job's id
	stop     bool          // Ctrl-C came: run no further statement, even if this one succeeded
	broken   error         // why the embedded cluster cannot go on
}

func (r *run) execute(ctx context.Context) error {
	res, err := r.submit(ctx)
	if err != nil {
		return err
	}
	for _, w := range res.Job.GetWarnings() {
		fmt.Fprintf(r.app.streams.Err, "warning: %s\n", w)
	}
	if res.Existing && r.key != "" {
		fmt.Fprintf(r.app.streams.Err, "job %s ran under this key before; this is its result\n", res.Job.GetJobId())
	}
	printing, stopWatching := r.app.untilInterrupted(ctx)
	err = r.print(printing, res)
	if stopWatching() && err != nil {
		return fmt.Errorf("%w: the statement succeeded, but not all rows were printed", errInterrupted)
	}
	return err
}

// submit runs the statement to its end, with Ctrl-C as the package comment says.
func (r *run) submit(ctx context.Context) (*client.Result, error) {
	ctx, force := context.WithCancelCause(ctx)
	defer force(nil)
	r.known = make(chan struct{})
	r.progress = newProgress(r.app.streams, r.flags.quiet)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		r.watch(ctx, ended, force)
	}()
	res, err := r.session.Exec(ctx, r.statement.text, r.options()...)
	cause := context.Cause(ctx)
	close(ended)
	<-watched
	r.progress.close()
	if err != nil {
		return nil, r.outcome(cause, err)
	}
	return res, nil
}

func (r *run) options() []client.StatementOption {
	opts := []client.StatementOption{
		client.WithDefaults(r.flags.catalog, r.flags.schema), client.WithBaseDir(r.base),
		client.WithProgress(r.progress.update),
		client.WithSubmitted(func(id string, _ bool) {
			r.jobID.Store(&id)
			close(r.known)
		}),
	}
	if len(r.flags.settings) > 0 {
		opts = append(opts, client.WithSettings(r.flags.settings))
	}
	if r.key != "" {
		opts = append(opts, client.WithIdempotencyKey(r.key))
	}
	if r.statement.plan != nil {
		opts = append(opts, r.statement.plan)
	}
	return opts
}

// outcome adds what only the command knows to how a statement ended.
func (r *run) outcome(cause, err error) error {
	switch {
	case r.broken != nil && !errors.Is(err, client.ErrPending):
		return withHint(ExitUnreachable, fmt.Errorf("the embedded cluster cannot run the statement: %w", r.broken), "nothing of the statement is visible")
	case errors.Is(err, client.ErrCancelled):
		return fmt.Errorf("%w: nothing of the statement is visible", err)
	case errors.Is(err, client.ErrPending):
		return err
	case errors.Is(cause, errForced): // before anything was sent
		return fmt.Errorf("%w: nothing was submitted", errInterrupted)
	}
	return err
}

// watch waits for Ctrl-C, for the embedded cluster's failure, or for the end.
func (r *run) watch(ctx context.Context, ended <-chan struct{}, force context.CancelCauseFunc) {
	select {
	case <-ended:
		return
	case r.broken = <-r.session.broken:
	case <-r.app.signals:
		r.stop = true
		r.progress.say("cancelling (Ctrl-C again leaves at once)")
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		r.cancel(ctx, ended)
	}()
	select {
	case <-ended:
	case <-r.app.signals:
		force(errForced)
		<-ended
	}
	<-told
}

// cancelTimeout bounds the wait for a scheduler that no longer answers.
const cancelTimeout = 10 * time.Second

// cancel asks for the job's end and says what came of it.
func (r *run) cancel(ctx context.Context, ended <-chan struct{}) {
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	select {
	case <-r.known:
	case <-ended:
		return
	}
	ok, message, err := r.session.Cancel(ctx, *r.jobID.Load())
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // forced: the outcome says so
	case err != nil:
		r.progress.say("the cancel did not reach the scheduler: %v", err)
	case !ok:
		r.progress.say("not cancelled: %s", message)
	}
}

// print writes the rows.
func (r *run) print(ctx context.Context, res *client.Result) error {
	rows, err := res.Rows(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Schema() == nil {
		return nil
	}
	w, err := format.New(r.flags.output, r.app.streams.Out)
	if err != nil {
		return err
	}
	if res.Job.GetKind() == "explain" && r.flags.output == "table" {
		w = format.NewText(r.app.streams.Out)
	}
	if err := w.Begin(rows.Schema()); err != nil {
		return err
	}
	for rows.Next() {
		if err := w.Batch(rows.RecordBatch()); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_, err = w.End()
	return err
}
