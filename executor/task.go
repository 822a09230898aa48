package executor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
	"github.com/signet-io/signet/internal/bounded"
	"github.com/signet-io/signet/internal/fault"
)

// launch starts an attempt. One of another epoch than the session's is refused (S65); one that is here already is a repeated message.
func (e *Executor) launch(l *executorv1.Launch, epoch uint64) {
	task := l.GetTask()
	a, leaving := e.add(task, l.GetPolled())
	if leaving {
		e.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: &executorv1.TaskStatus{
			Attempt: refOf(task), Error: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_KILLED, Message: "the executor takes no new tasks: it is leaving"},
		}}})
	}
	if a == nil {
		return
	}
	e.work.Go(func() {
		defer close(a.done)
		if err := checkTask(task, epoch); err != nil {
			e.end(a, &executorv1.TaskStatus{Error: unfit(err)})
			return
		}
		e.runAttempt(a)
	})
}

func checkTask(task *planv1.Task, epoch uint64) error {
	if task.GetEpoch() != epoch {
		return fmt.Errorf("attempt %s is of epoch %d and came in a session of epoch %d", task.GetAttemptId(), task.GetEpoch(), epoch)
	}
	if err := upload.CheckName(task.GetAttemptId()); err != nil {
		return fmt.Errorf("attempt id: %w", err)
	}
	if w := task.GetWrite(); w != nil {
		return checkPrefix(w.GetPrefix(), refOf(task))
	}
	if x := task.GetExchange(); x != nil {
		return exchange.Check(x)
	}
	if task.GetResult() == nil && task.GetCheck().GetWrite() == nil {
		return fmt.Errorf("attempt %s has work of a kind that this executor does not know", task.GetAttemptId())
	}
	return nil
}

// runAttempt waits for a slot, does the work, and reports it. The slot is free when DuckDB's memory is.
func (e *Executor) runAttempt(a *attempt) {
	select {
	case e.slots <- struct{}{}:
	case <-a.ctx.Done():
		e.fail(a, planError(a.ctx, nil, e.scratch.Path, a.ctx.Err()))
		return
	}
	release := func() { <-e.slots }
	a.running.Store(true)
	start, end := time.Now(), traced(a.task, e.id)
	done, perr := e.guarded(a, release)
	end(perr)
	e.notRunning(a)
	switch {
	case perr != nil:
		e.fail(a, perr)
	case a.task.GetWrite() != nil:
		e.about(a).Info("attempt has written", "files", len(done.files), "replaced", len(done.replaced),
			"received", a.traffic.Received.Load(), "sent", a.traffic.Sent.Load(), "copied", a.traffic.Copied.Load(), "took", time.Since(start))
		e.report(a, done.files, done.replaced)
	case a.task.GetCheck() != nil:
		e.about(a).Info("attempt has checked", "rows", a.rows.Load(), "files", len(done.files), "took", time.Since(start))
		e.end(a, a.checked(done))
	default:
		e.about(a).Info("attempt is done", "rows", a.rows.Load(), "bytes", a.bytes.Load(), "took", time.Since(start))
		e.end(a, &executorv1.TaskStatus{Rows: a.rows.Load(), Bytes: a.bytes.Load(), Output: done.output})
	}
}

func (e *Executor) notRunning(a *attempt) {
	a.running.Store(false)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed()
}

// fail cleans up after an attempt that has reported nothing, and reports its end.
func (e *Executor) fail(a *attempt, perr *planv1.Error) {
	perr = bounded.Error(perr)
	e.about(a).Info("attempt failed", "class", perr.GetClass(), "error", perr.GetMessage())
	if w := a.task.GetWrite(); w != nil && !a.reported.Load() {
		if _, err := e.storeFor(a.ref, w.GetPrefix()).RemovePrefix(context.WithoutCancel(a.ctx), w.GetPrefix()); err != nil {
			e.about(a).Warn("cannot remove the files of a failed attempt; the scheduler will", "prefix", w.GetPrefix(), "error", err)
		}
	}
	e.end(a, &executorv1.TaskStatus{Error: perr, Rows: a.rows.Load(), Bytes: a.bytes.Load()})
}

// outcome is what a task that succeeded leaves: data files, or an output for others, or neither.
type outcome struct {
	files    []*planv1.DataFile
	replaced []*planv1.ReplacedFile // of the table
	output   *planv1.ExchangeOutput
}

// guarded turns a panic of the work into an error of the task.
func (e *Executor) guarded(a *attempt, release func()) (done outcome, perr *planv1.Error) {
	defer func() {
		if r := recover(); r != nil {
			e.about(a).Error("panic in a task", "panic", r, "stack", string(debug.Stack()))
			perr = &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: fmt.Sprintf("the executor met a defect in its own code: %v", r)}
		}
	}()
	return e.workOn(a, release)
}

// workOn runs the task in a DuckDB and a scratch directory of its own; a task that reads nothing in a shared one, and one that writes a few constants
// in none.
func (e *Executor) workOn(a *attempt, release func()) (outcome, *planv1.Error) {
	if done, files, perr := e.workPlainly(a); done {
		release()
		return outcome{files: files}, perr
	}
	if e.shared.fits(a.task) {
		return e.workShared(a, release)
	}
	return e.workAlone(a, release)
}

// workPlainly writes constants; done: it has, or has failed at it.
func (e *Executor) workPlainly(a *attempt) (done bool, files []*planv1.DataFile, perr *planv1.Error) {
	if !e.shared.fits(a.task) {
		return false, nil, nil
	}
	err := e.checkSpace()
	if err == nil {
		name := filepath.Join(e.scratch.Path, a.ref.GetAttemptId()+".parquet")
		files, done, err = write.Constants(a.ctx, a.task, name, write.Options{Store: e.storeOf(a), Written: func(rows, bytes int64) {
			a.rows.Store(rows)
			a.bytes.Store(bytes)
		}})
	}
	if err != nil {
		return true, nil, planError(a.ctx, nil, e.scratch.Path, err)
	}
	return done, files, nil
}

func (e *Executor) workShared(a *attempt, release func()) (done outcome, perr *planv1.Error) {
	err := fault.Hit("executor.task.start")
	if err == nil {
		err = e.checkSpace()
	}
	var inst *sharedInstance
	if err == nil {
		inst, err = e.shared.take(a.ctx, a.task)
	}
	if err != nil {
		release()
		return outcome{}, planError(a.ctx, nil, e.scratch.Path, err)
	}
	dir := filepath.Join(inst.dir, a.ref.GetAttemptId())
	healthy := false
	defer func() {
		// Its report need not wait for this; its slot does.
		e.work.Go(func() {
			defer release()
			err := os.RemoveAll(dir)
			if err != nil {
				e.log.Warn("cannot remove scratch", "directory", dir, "error", err)
			}
			e.shared.giveBack(inst, healthy && err == nil)
		})
	}()
	if err = os.Mkdir(dir, 0o700); err == nil {
		done, err = e.execute(a, inst.Instance, dir)
	}
	if err != nil {
		return outcome{}, planError(a.ctx, inst.Instance, dir, err)
	}
	healthy = true
	return done, nil
}

// workAlone runs the task in an instance that nobody else uses. It and its directory are gone when it is answered, DuckDB soon after.
func (e *Executor) workAlone(a *attempt, release func()) (done outcome, perr *planv1.Error) {
	var inst *duckdb.Instance
	defer func() {
		if inst == nil {
			release()
			return
		}
		// Closing takes milliseconds that the report need not wait for; the memory belongs to the slot until then.
		e.work.Go(func() {
			defer release()
			if err := inst.Close(); err != nil {
				e.log.Warn("cannot close DuckDB", "error", err)
			}
		})
	}()
	dir := e.scratch.attemptDir(a.ref.GetAttemptId())
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			e.log.Warn("cannot remove scratch", "directory", dir, "error", err)
		}
	}()
	err := fault.Hit("executor.task.start")
	if err == nil {
		err = e.prepare(dir)
	}
	if err == nil {
		err = e.stage(a, dir)
	}
	if err == nil && exchange.HasParts(a.task.GetSources()) { // before DuckDB takes its memory
		err = exchange.FetchParts(a.ctx, e.dialer, a.task.GetSources(), partsDir(dir), e.cfg.MinFreeBytes)
	}
	if err == nil {
		inst, err = e.pool.Open(a.ctx, e.access(a.task, dir))
	}
	if err == nil {
		done, err = e.execute(a, inst, dir)
	}
	if err != nil {
		return outcome{}, planError(a.ctx, inst, dir, err)
	}
	return done, nil
}

// partsDir is where an attempt's fetched inputs lie.
func partsDir(dir string) string { return filepath.Join(dir, "parts") }

func (e *Executor) checkSpace() error {
	if e.cfg.MinFreeBytes > 0 {
		return upload.CheckSpace(e.scratch.Path, e.cfg.MinFreeBytes)
	}
	return nil
}

func (e *Executor) prepare(dir string) error {
	if err := e.checkSpace(); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// access is all that the task's DuckDB may see (S70).
func (e *Executor) access(task *planv1.Task, dir string) duckdb.Access {
	acc := duckdb.Access{
		ReadFiles: duckdb.ReadFiles(task.GetSources()), TempDir: filepath.Join(dir, "spill"),
		MemoryBytes: e.cfg.MemoryBytes / int64(e.cfg.Slots), Threads: e.cfg.Threads,
	}
	if parts := duckdb.PartFiles(partsDir(dir), task.GetSources()); len(parts) > 0 {
		acc.PartsDir, acc.ReadFiles = partsDir(dir), append(acc.ReadFiles, parts...)
	}
	switch x := task.GetExchange(); {
	case writeOf(task) != nil:
		acc.WriteDirs, acc.KeepOrder = []string{dir}, keepOrder(task)
	case x != nil:
		acc.WriteDirs, acc.KeepOrder, acc.OpenFiles = []string{dir}, exchange.KeepOrder(x), exchange.OpenFiles(x, e.cfg.Slots)
	default:
		acc.KeepOrder = true
	}
	return acc
}

func (e *Executor) execute(a *attempt, inst *duckdb.Instance, dir string) (done outcome, err error) {
	stop := interrupt(a.ctx, inst)
	defer stop()
	if writeOf(a.task).GetAdd() == nil { // whose files are looked at one by one
		if err := inst.BindSources(a.ctx, a.task.GetSources()); err != nil {
			return outcome{}, err
		}
	}
	written := func(rows, bytes int64) {
		a.rows.Store(rows)
		a.bytes.Store(bytes)
	}
	switch {
	case a.task.GetWrite().GetRewrite() != nil:
		done.files, done.replaced, err = write.Rewrite(a.ctx, inst, a.task, write.Options{Scratch: dir, Store: e.storeOf(a), Left: a.left, Written: written})
	case a.task.GetWrite().GetAdd() != nil:
		done.files, err = write.Add(a.ctx, inst, a.task, write.Options{Scratch: dir, Written: written})
	case a.task.GetWrite() != nil:
		done.files, err = write.Run(a.ctx, inst, a.task, write.Options{Scratch: dir, Store: e.storeOf(a), Left: a.left, Written: written})
	case a.task.GetCheck() != nil:
		done, err = e.runCheck(a, inst, dir, written)
	case a.task.GetExchange() != nil:
		done.output, err = e.runExchange(a, inst, exchange.Options{Scratch: dir, Written: written})
	default:
		done.output, err = e.runResult(a, inst, dir)
	}
	return done, err
}

// interruptEvery is how often an interrupt is repeated until the task has stopped: DuckDB forgets one that comes between two of its steps.
const interruptEvery = 20 * time.Millisecond

// interrupt stops DuckDB when ctx ends, until stop is called.
func interrupt(ctx context.Context, inst *duckdb.Instance) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		tick := time.NewTicker(interruptEvery)
		defer tick.Stop()
		for {
			inst.Interrupt()
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// dirBytes is what a directory holds now, for progress; what cannot be read counts nothing.
func dirBytes(dir string) int64 {
	var n int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // files come and go under the walk
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			n += info.Size()
		}
		return nil
	})
	return n
}
