package journal

import (
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/signet-io/signet/internal/fault"
)

// maxShared is how many updates share a transaction at most.
const maxShared = 64

// update is one call of Update that waits.
type update struct {
	f      func(*Tx) error
	done   chan struct{} // closed when it has an answer
	err    error
	panics any // what f panicked with: it goes on where Update was called
}

// queue holds the updates that wait.
type queue struct {
	mu   sync.Mutex
	list []*update
}

func (q *queue) push(u *update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, u)
}

func (q *queue) take() (batch []*update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.list), maxShared)
	batch, q.list = q.list[:n:n], q.list[n:]
	return batch
}

// Update runs f in a synced transaction and returns when that is durable. After damage was found it does nothing: what it would build upon may be gone.
//
// Updates that wait while another one is being synced share the next transaction, in the order in which they came: one sync makes all of them durable.
// Each is all there or not at all by itself: where f fails, or panics, or the transaction cannot be written, nothing of that transaction stays and each of
// its updates runs again in one of its own. So f may run twice, on a state in which nothing of its first run is left; it must not rely on what that run has
// put into variables. It may run in another goroutine than the caller's.
//
// bbolt's own DB.Batch waits for company before it begins, also where nobody else comes; here a lone update begins at once, and damage that was found
// stops all of them.
func (j *Journal) Update(f func(*Tx) error) (err error) {
	if j.observe != nil {
		defer func(begun time.Time) { j.observe(time.Since(begun), err) }(time.Now())
	}
	u := &update{f: f, done: make(chan struct{})}
	j.queue.push(u)
	select {
	case <-u.done:
	case j.writing <- struct{}{}:
		for !u.answered() {
			j.together(j.queue.take())
		}
		<-j.writing
	}
	if u.panics != nil {
		panic(u.panics)
	}
	return u.err
}

func (u *update) answered() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

func (u *update) answer(err error) {
	u.err = err
	close(u.done)
}

// together runs updates in one transaction, or each in its own where that fails. Called by who writes.
func (j *Journal) together(batch []*update) {
	if len(batch) > 1 {
		if err := j.attempt(batch); err == nil {
			for _, u := range batch {
				u.answer(nil)
			}
			return
		}
	}
	for _, u := range batch {
		u.panics = nil
		u.answer(j.attempt([]*update{u}))
	}
}

// attempt runs updates in one transaction. A panic of theirs is kept, and fails it.
func (j *Journal) attempt(batch []*update) (err error) {
	defer func() { j.noteFull(err) }()
	now := batch[0]
	defer func() {
		if r := recover(); r != nil {
			now.panics, err = r, errPanicked
		}
	}()
	return j.transact(func(tx *bolt.Tx) error {
		for _, u := range batch {
			now = u
			if err := u.f(&Tx{tx}); err != nil {
				return err
			}
			if err := fault.Hit("journal.write.before-commit"); err != nil {
				return writeError(j.path, err)
			}
		}
		return nil
	})
}
