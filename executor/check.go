package executor

import (
	"context"
	"os"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// writeOf is the write that a task does, or that it checks; nil: neither.
func writeOf(t *planv1.Task) *planv1.WriteTask {
	if c := t.GetCheck(); c != nil {
		return c.GetWrite()
	}
	return t.GetWrite()
}

// asWrite is the task that a check task checks.
func asWrite(t *planv1.Task) *planv1.Task {
	return &planv1.Task{
		JobId: t.GetJobId(), Stage: t.GetStage(), Task: t.GetTask(), AttemptId: t.GetAttemptId(), Epoch: t.GetEpoch(), Sql: t.GetSql(), Sources: t.GetSources(),
		Work: &planv1.Task_Write{Write: t.GetCheck().GetWrite()},
	}
}

func keepOrder(t *planv1.Task) bool {
	if t.GetCheck() != nil {
		t = asWrite(t)
	}
	return write.KeepOrder(t)
}

// runCheck writes as the write task would, to scratch, and keeps nothing of it.
func (e *Executor) runCheck(a *attempt, inst *duckdb.Instance, dir string, written func(rows, bytes int64)) (outcome, error) {
	task, opts := asWrite(a.task), write.Options{Scratch: dir, Store: nowhere{}, Written: written}
	var done outcome
	var err error
	switch {
	case task.GetWrite().GetAdd() != nil:
		done.files, err = write.Add(a.ctx, inst, task, opts)
	case task.GetWrite().GetRewrite() != nil:
		done.files, done.replaced, err = write.Rewrite(a.ctx, inst, task, opts)
	default:
		done.files, err = write.Run(a.ctx, inst, task, opts)
	}
	return done, err
}

// checked is the status of a check task that has ended well.
func (a *attempt) checked(done outcome) *executorv1.TaskStatus {
	return &executorv1.TaskStatus{Rows: a.rows.Load(), Bytes: a.bytes.Load(), Files: int64(len(done.files))}
}

// nowhere is a store that keeps nothing.
type nowhere struct{}

func (nowhere) Writer(context.Context, string) (upload.Writer, error) { return nowhere{}, nil }

func (nowhere) RemovePrefix(context.Context, string) (int, error) { return 0, nil }

func (nowhere) Place(_ context.Context, local, name string) (string, int64, error) {
	info, err := os.Stat(local)
	if err != nil {
		return "", 0, err
	}
	return "nowhere:" + name, info.Size(), nil
}

func (nowhere) Finish(context.Context) error { return nil }
