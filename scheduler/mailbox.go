package scheduler

import "sync"

// mailbox holds the events of one job's loop. Putting one in never waits: whoever reports something about many jobs, such as the loss of an
// executor, must not stand still because one of them is busy. What is in it is bounded by what executors run and keep for the job.
type mailbox struct {
	mu    sync.Mutex
	queue []any
	wake  chan struct{} // holds one token while there may be something
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(ev any) {
	m.mu.Lock()
	m.queue = append(m.queue, ev)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take empties it.
func (m *mailbox) take() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.queue
	m.queue = nil
	return out
}
