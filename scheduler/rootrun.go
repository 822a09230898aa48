package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/root"
)

// Option adds to a scheduler what its configuration cannot say.
type Option func(*Server)

// rootOption is an operator that this scheduler runs itself.
type rootOption struct {
	match plan.Predicate
	root  root.Root
}

// WithRoot makes the operators that match run on the scheduler where they are the root of a plan, by r (S2). A commit always does, and by its
// own coordinator: no predicate changes that (S56). Of several options the first that matches runs.
func WithRoot(match plan.Predicate, r root.Root) Option {
	return func(s *Server) { s.roots = append(s.roots, rootOption{match, r}) }
}

// rootPredicate selects what this scheduler runs itself, whatever a session adds to it.
func (s *Server) rootPredicate() plan.Predicate {
	return func(n *plan.Node) bool {
		if plan.DefaultRoot(n) {
			return true
		}
		for _, o := range s.roots {
			if o.match(n) {
				return true
			}
		}
		return false
	}
}

// rootFor is what runs an operator that was split off. One that only a session named gives its rows as the result.
func (s *Server) rootFor(n *plan.Node) root.Root {
	for _, o := range s.roots {
		if o.match(n) {
			return o.root
		}
	}
	return root.Rows
}

// rootRun is a scheduler root that is no commit. It may be abandoned at any moment.
type rootRun struct {
	l      *loop
	op     *plan.Node
	root   root.Root
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	begun bool
	ended chan struct{} // closed when Run has returned
}

// running tells whether the root has begun and not returned.
func (r *rootRun) running() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ended:
		return false
	default:
		return r.begun
	}
}

func (r *rootRun) stop(reason string) {
	if r != nil && r.cancel != nil {
		r.cancel(errors.New(reason))
	}
}

var errRootTimeout = errors.New("it took longer than timeouts.root allows")

// rootTimeout is for configurations that do not say.
const rootTimeout = 10 * time.Minute

// maxInline caps the result of a root.
func (s *Server) maxInline() int64 {
	return int64(cmp.Or(s.cfg.Limits.MaxInlineBytes, config.MaxInline))
}

// runWithRoot runs a query whose root runs here (S20, S22).
func (s *Server) runWithRoot(l *loop, p *query, op *plan.Node) error {
	l.root = &rootRun{l: l, op: op, root: s.rootFor(op), ended: make(chan struct{})}
	if err := l.execute(p.first); err != nil {
		l.root.stop("the job has ended")
		return err
	}
	if mutant.On("scheduler/result-forgotten") {
		l.result = nil
	}
	l.j.update(func() { l.j.rec.Result = l.result })
	return nil
}

// runRoot starts the root, off the event loop (S17). Check and take are one step (S18, S19).
func (l *loop) runRoot() error {
	if l.j.ctx.Err() != nil {
		return context.Cause(l.j.ctx)
	}
	if err := l.g.TakeRoot(); err != nil {
		return err
	}
	if err := l.s.rootBegins(l.j); err != nil {
		return err
	}
	in, err := l.input(l.planner.Plan().Columns)
	if err != nil {
		return err
	}
	r := l.root
	limit := cmp.Or(l.s.cfg.Timeouts.Root, rootTimeout)
	if mutant.On("scheduler/root-untimed") {
		limit = rootTimeout
	}
	ctx, cancel := context.WithCancelCause(l.j.ctx)
	r.cancel, l.j.root = cancel, r
	r.mu.Lock()
	r.begun = true
	r.mu.Unlock()
	l.j.setPhase(jobRunning, "root", "")
	spawn := l.s.spawn
	if mutant.On("scheduler/root-in-the-loop") {
		spawn = func(f func()) { f() }
	}
	spawn(func() {
		defer close(r.ended)
		defer cancel(nil)
		timed, stop := context.WithTimeoutCause(ctx, limit, errRootTimeout)
		defer stop()
		result, err := l.s.rootResult(timed, r, in)
		if err != nil {
			f := asFailure(err)
			l.j.send(graph.RootFailed{Failure: graph.Failure{Code: f.Code, Message: f.Message, Hint: f.Hint}})
			return
		}
		l.j.send(graph.RootSucceeded{Result: result})
	})
	return nil
}

// rootsDir holds a directory for each root, or cache, that reads.
func rootsDir(dataDir string) string { return filepath.Join(dataDir, "roots") }

// input is the output of the final stage, complete: one attempt of each task (T1, S10).
func (l *loop) input(columns []*planv1.Column) (root.Input, error) {
	last := int32(len(l.stages) - 1) //nolint:gosec // few
	tasks := l.stages[last].tasks
	for i := range tasks {
		if _, _, ok := l.g.Winner(graph.TaskID{Stage: last, Task: int32(i)}); !ok { //nolint:gosec // as many as were planned
			return nil, fmt.Errorf("task %d of stage %d has no output", i, last)
		}
	}
	clear(l.rows)
	return root.NewParts(root.Parts{
		Job: l.j.id, Tasks: len(tasks), Columns: columns, Parts: l.parts(last)[0], Fetch: l.s.fetchPart(l.j.id), Dir: filepath.Join(rootsDir(l.s.cfg.DataDir), l.j.id),
	})
}

// rootBegins makes it durable that a root may have taken effect: it is not run again after a restart (S24).
func (s *Server) rootBegins(j *job) error {
	if err := fault.Hit("scheduler.root.start"); err != nil {
		return err
	}
	return s.journal.Update(func(tx *journal.Tx) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.rec.CancelledBy != "" {
			return errCancelled
		}
		j.rec.RootBegun = !mutant.On("scheduler/root-begun-forgotten")
		rec := j.rec
		return tx.PutJob(&rec)
	})
}

// errRootInterrupted is the end of a job whose root had begun before a restart.
func errRootInterrupted() error {
	return fail(codeLost, "look whether it took effect, then submit the statement again", "Error running the job's scheduler root: the scheduler restarted while it ran")
}

// rootResult runs the root when the pool has room for it (S58).
func (s *Server) rootResult(ctx context.Context, r *rootRun, in root.Input) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // a defect of one root must not take the other jobs along
			s.log.Error("scheduler root panicked", "job", in.JobID(), "panic", p, "stack", stack())
			err = fail(codeInternal, "this is a defect of the root; the scheduler's log has the stack", "internal error: %v", p)
		}
		if ctx.Err() != nil && err != nil {
			err = rootStopped(ctx, err)
		}
	}()
	if err := s.rootPool.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.rootPool.Release(1)
	start := time.Now()
	defer func() { r.l.j.timed("root", start) }()
	out := &root.Result{Max: s.maxInline(), Setting: "limits.max_inline_bytes"}
	if err := r.root.Run(ctx, in, out); err != nil {
		if errors.Is(err, root.ErrTooLarge) {
			return nil, fail(codeResource, "select less, raise the setting, or leave "+plan.SettingRoot+" unset, so that the rows are fetched instead", "%w", err)
		}
		return nil, err
	}
	return out.Bytes()
}

func rootStopped(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errRootTimeout) {
		return fail(codeResource, "raise timeouts.root", "%w", errRootTimeout)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}
