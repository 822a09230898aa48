package scheduler

import "sync"

// entering are the idempotency keys of which a submission is being journalled.
type entering struct {
	mu   sync.Mutex
	keys map[[2]string]*enteringKey
}

type enteringKey struct {
	mu    sync.Mutex
	users int
}

// hold waits for the key, and keeps it until the answer is called. Without a key there is nothing to wait for.
func (e *entering) hold(principal, key string) (release func()) {
	if key == "" {
		return func() {}
	}
	id := [2]string{principal, key}
	e.mu.Lock()
	k := e.keys[id]
	if k == nil {
		if e.keys == nil {
			e.keys = map[[2]string]*enteringKey{}
		}
		k = &enteringKey{}
		e.keys[id] = k
	}
	k.users++
	e.mu.Unlock()
	k.mu.Lock()
	return func() {
		k.mu.Unlock()
		e.mu.Lock()
		defer e.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(e.keys, id)
		}
	}
}
