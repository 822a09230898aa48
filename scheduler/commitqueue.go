package scheduler

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// commitQueue lets the jobs of this scheduler commit to one table in turn, first come, first served. Without it they would only meet each
// other's conflicts, each with a request of its own to build again, and a job without luck would run out of tries (C25). Writers
// elsewhere are met as conflicts all the same: the queue is for speed and fairness, and no rule of the commit leans on it.
type commitQueue struct {
	mu     sync.Mutex
	tables map[string]*queued
}

type queued struct {
	turn *semaphore.Weighted // serves in order
	jobs int                 // in the queue, the one whose turn it is among them
}

// enter waits for the table's turn and returns the function that passes it on; its error is that of ctx.
func (q *commitQueue) enter(ctx context.Context, table string) (leave func(), err error) {
	q.mu.Lock()
	t := q.tables[table]
	if t == nil {
		t = &queued{turn: semaphore.NewWeighted(1)}
		if q.tables == nil {
			q.tables = map[string]*queued{}
		}
		q.tables[table] = t
	}
	t.jobs++
	q.mu.Unlock()
	done := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if t.jobs--; t.jobs == 0 {
			delete(q.tables, table)
		}
	}
	if err := t.turn.Acquire(ctx, 1); err != nil {
		done()
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() { t.turn.Release(1); done() }), nil
}
