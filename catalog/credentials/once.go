package credentials

import "sync"

// onceOK does something until it has succeeded once.
type onceOK[T any] struct {
	mu   sync.Mutex
	done bool
	v    T
}

func (o *onceOK[T]) do(f func() (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		v, err := f()
		if err != nil {
			return v, err
		}
		o.v, o.done = v, true
	}
	return o.v, nil
}
