package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/write"
)

// sharedUses is after how many tasks a shared instance is replaced, so that whatever DuckDB keeps per statement stays small.
const sharedUses = 256

// shared keeps instances for write tasks that read nothing, such as INSERT … VALUES. They are locked as every other one, to no input
// and to a scratch directory of their own, and one task has one at a time; but the next task may get it again: opening and closing
// DuckDB costs several times what such a task does. Nothing can pass from one task to the next: a task runs one SELECT or VALUES statement, the
// configuration is locked, and its directory is empty before and after. An instance in which anything failed is not used again.
type shared struct {
	e  *Executor
	mu sync.Mutex
	n  int

	idle   []*sharedInstance
	closed bool
}

type sharedInstance struct {
	*duckdb.Instance
	dir  string
	uses int
}

// fits tells whether a task may run in a shared instance.
func (s *shared) fits(task *planv1.Task) bool {
	return task.GetWrite() != nil && len(task.GetSources()) == 0 && !write.KeepOrder(task)
}

func (s *shared) take(ctx context.Context, task *planv1.Task) (*sharedInstance, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		inst := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return inst, nil
	}
	s.n++
	dir := filepath.Join(s.e.scratch.Path, fmt.Sprintf("shared-%d", s.n))
	s.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	inst, err := s.e.pool.Open(ctx, s.e.access(task, dir))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &sharedInstance{Instance: inst, dir: dir}, nil
}

// giveBack keeps the instance for the next task, or closes it in the background.
func (s *shared) giveBack(inst *sharedInstance, healthy bool) {
	inst.uses++
	s.mu.Lock()
	defer s.mu.Unlock()
	if healthy && !s.closed && inst.uses < sharedUses && len(s.idle) < s.e.cfg.Slots {
		s.idle = append(s.idle, inst)
		return
	}
	s.e.work.Go(func() { s.e.drop(inst.Instance, inst.dir) })
}

// close closes the idle instances.
func (s *shared) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, inst := range s.idle {
		s.e.drop(inst.Instance, inst.dir)
	}
	s.idle = nil
}

func (e *Executor) drop(inst *duckdb.Instance, dir string) {
	if err := errors.Join(inst.Close(), os.RemoveAll(dir)); err != nil {
		e.log.Warn("cannot close DuckDB", "error", err)
	}
}
