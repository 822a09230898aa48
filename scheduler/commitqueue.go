package scheduler

import (
	"context"
	"sync"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// commitQueue lets the jobs of this scheduler commit to one table in turn, first come, first served. Without it they would only meet each
// other's conflicts, each with a request of its own to build again, and a job without luck would run out of tries (C25). Those that may share a
// snapshot and wait when a turn comes have it together. Writers elsewhere are met as conflicts all the same: the queue is for speed and fairness,
// and no rule of the commit leans on it.
type commitQueue struct {
	// run commits for the jobs of one turn, each of which it tells how that went. It is not called twice at a time for one table.
	run   func([]*queuedCommit)
	spawn func(func())

	mu     sync.Mutex
	tables map[string][]*queuedCommit // those that wait; an entry without any has its turn now
}

// What one turn takes at most.
const (
	maxGroup      = 64
	maxGroupBytes = 4 << 20 // of staged references: they travel in one message
)

// queuedCommit is one job's commit that waits for its turn.
type queuedCommit struct {
	w      *writeState
	staged *sinkv1.StageResponse
	key    string // commits of one key may share a snapshot; empty: alone
	bytes  int    // of its references
	since  time.Time
	ctx    context.Context //nolint:containedctx // it ends when the job does not want to commit any more
	done   chan struct{}
	err    error // once done is closed

	mu    sync.Mutex
	alone bool // its own commit call is under way
	gone  bool // nobody waits for it any more
}

// commit waits for the table's turn and for what came of it. A context that ends takes the commit out of the queue, or its unit out of the group
// that has the turn; a call that is for this job alone is ended by it, and waited for.
func (q *commitQueue) commit(c *queuedCommit, table string) error {
	q.enter(c, table)
	select {
	case <-c.done:
		return c.err
	case <-c.ctx.Done():
	}
	q.remove(c, table)
	c.mu.Lock()
	c.gone = !c.alone
	gone := c.gone
	c.mu.Unlock()
	if gone {
		return context.Cause(c.ctx)
	}
	<-c.done
	return c.err
}

func (q *commitQueue) enter(c *queuedCommit, table string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tables == nil {
		q.tables = map[string][]*queuedCommit{}
	}
	waiting, busy := q.tables[table]
	q.tables[table] = append(waiting, c)
	if !busy {
		q.spawn(func() { q.serve(table) })
	}
}

func (q *commitQueue) remove(c *queuedCommit, table string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.tables[table]
	for i, o := range waiting {
		if o == c {
			q.tables[table] = append(waiting[:i:i], waiting[i+1:]...)
			return
		}
	}
}

// serve gives turns for a table as long as somebody waits.
func (q *commitQueue) serve(table string) {
	for turn := q.next(table); turn != nil; turn = q.next(table) {
		q.run(turn)
	}
}

// next takes the first that waits, with those behind it that may share its snapshot.
func (q *commitQueue) next(table string) []*queuedCommit {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.tables[table]
	if len(waiting) == 0 {
		delete(q.tables, table)
		return nil
	}
	first := waiting[0]
	turn, rest, bytes := []*queuedCommit{first}, waiting[:0:0], first.bytes
	for _, c := range waiting[1:] {
		if first.key == "" || c.key != first.key || len(turn) == maxGroup || bytes+c.bytes > maxGroupBytes {
			rest = append(rest, c)
			continue
		}
		turn, bytes = append(turn, c), bytes+c.bytes
	}
	q.tables[table] = rest
	return turn
}

// begin tells whether the job still waits, whose commit is now to be made by itself.
func (c *queuedCommit) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alone = !c.gone
	return c.alone
}

func (c *queuedCommit) finish(err error) {
	c.err = err
	close(c.done)
}
