package scheduler

import (
	"context"
	"slices"
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
	tables map[string]*tableQueue
}

// tableQueue is one table's queue.
type tableQueue struct {
	waiting []*queuedCommit
	serving bool // turns are being given
	// coming is how many appends run whose commits will come here.
	coming  int
	arrived chan struct{} // closed and replaced when waiting or coming changes
	// The last turn.
	size int
	took time.Duration
}

// table is a table's queue. Called with mu held.
func (q *commitQueue) table(name string) *tableQueue {
	if q.tables == nil {
		q.tables = map[string]*tableQueue{}
	}
	t := q.tables[name]
	if t == nil {
		t = &tableQueue{arrived: make(chan struct{})}
		q.tables[name] = t
	}
	return t
}

// changed wakes who gathers, and forgets a table that nobody commits to. Called with mu held.
func (q *commitQueue) changed(name string, t *tableQueue) {
	close(t.arrived)
	t.arrived = make(chan struct{})
	if len(t.waiting) == 0 && !t.serving && t.coming == 0 {
		delete(q.tables, name)
	}
}

// expect announces the commit of an append that runs. The answer is to be called when it has come, or will not come; it may be called twice.
func (q *commitQueue) expect(name string) (here func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.table(name).coming++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		t := q.table(name)
		t.coming--
		q.changed(name, t)
	})
}

// crowded tells whether several appends to a table run, or wait for it.
func (q *commitQueue) crowded(name string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tables[name]
	return t != nil && t.coming+len(t.waiting) > 2
}

// What one turn takes at most.
const (
	maxGroup      = 64
	maxGroupBytes = 4 << 20 // of staged references: they travel in one message
)

// queuedCommit is one job's commit that waits for its turn.
type queuedCommit struct {
	w      *writeState
	here   func() // tells that it has come; nil: it was not announced
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
	if c.here != nil {
		c.here()
	}
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

func (q *commitQueue) enter(c *queuedCommit, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.table(name)
	t.waiting = append(t.waiting, c)
	if !t.serving {
		t.serving = true
		q.spawn(func() { q.serve(name, t) })
	}
	q.changed(name, t)
}

func (q *commitQueue) remove(c *queuedCommit, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.table(name)
	if i := slices.Index(t.waiting, c); i >= 0 {
		t.waiting = append(t.waiting[:i:i], t.waiting[i+1:]...)
	}
	q.changed(name, t)
}

// serve gives turns for a table as long as somebody waits.
func (q *commitQueue) serve(name string, t *tableQueue) {
	for {
		q.gather(t)
		turn := q.next(name, t)
		if turn == nil {
			return
		}
		start := time.Now()
		q.run(turn)
		q.mu.Lock()
		t.size, t.took = len(turn), time.Since(start)
		q.mu.Unlock()
	}
}

// How long a turn waits for those that are on their way, at most: for the next of them, and in all.
const (
	maxGap    = 50 * time.Millisecond
	maxGather = 200 * time.Millisecond
)

// gather waits a little for appends that will be ready soon, where many come: the last turn was shared. What a commit costs is nearly the same for one and
// for many, so that who waits no longer than a commit takes is served sooner than in turns of their own. Each that comes is a reason to wait for the next:
// the more of them share a commit, the less each costs. Where they come one at a time nobody waits.
func (q *commitQueue) gather(t *tableQueue) {
	q.mu.Lock()
	gap, limit := min(t.took, maxGap), min(4*t.took, maxGather)
	if t.size < 2 {
		gap = 0
	}
	q.mu.Unlock()
	if gap <= 0 {
		return
	}
	next, all := time.NewTimer(gap), time.NewTimer(limit)
	defer next.Stop()
	defer all.Stop()
	for here := 0; ; {
		q.mu.Lock()
		arrived, n, enough := t.arrived, len(t.waiting), t.coming == 0 || len(t.waiting) == 0 || len(t.waiting) >= maxGroup
		q.mu.Unlock()
		if enough {
			return
		}
		if n > here {
			next.Reset(gap)
		}
		here = n
		select {
		case <-arrived:
		case <-next.C:
			return
		case <-all.C:
			return
		}
	}
}

// next takes the first that waits, with those behind it that may share its snapshot; nil: nobody waits any more.
func (q *commitQueue) next(name string, t *tableQueue) []*queuedCommit {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(t.waiting) == 0 {
		t.serving = false
		q.changed(name, t)
		return nil
	}
	first := t.waiting[0]
	turn, rest, bytes := []*queuedCommit{first}, t.waiting[:0:0], first.bytes
	for _, c := range t.waiting[1:] {
		if first.key == "" || c.key != first.key || len(turn) == maxGroup || bytes+c.bytes > maxGroupBytes {
			rest = append(rest, c)
			continue
		}
		turn, bytes = append(turn, c), bytes+c.bytes
	}
	t.waiting = rest
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
