package scheduler

import (
	"context"
	"sync"
)

// flights lets those who ask for the same thing at one time share an answer. Nobody gets an answer whose making began before he asked: what is new to him
// is new in it. One answer for a key is made at a time, and those who ask meanwhile share the next.
type flights[V any] struct {
	spawn func(func())

	mu   sync.Mutex
	keys map[string]*flightKey[V]
}

type flightKey[V any] struct {
	next *flight[V] // that has not begun; nil: nobody waits for one
}

type flight[V any] struct {
	make  func() (V, error)
	done  chan struct{}
	value V
	err   error
}

// do gives the answer of make, or of another's with the same key that begins after this call.
func (f *flights[V]) do(ctx context.Context, key string, make func() (V, error)) (V, error) {
	own := f.join(key, make)
	select {
	case <-own.done:
		return own.value, own.err
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
}

func (f *flights[V]) join(key string, answer func() (V, error)) *flight[V] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = map[string]*flightKey[V]{}
	}
	k := f.keys[key]
	if k == nil {
		k = &flightKey[V]{}
		f.keys[key] = k
		f.spawn(func() { f.serve(key, k) })
	}
	if k.next == nil {
		k.next = &flight[V]{make: answer, done: make(chan struct{})}
	}
	return k.next
}

func (f *flights[V]) serve(key string, k *flightKey[V]) {
	for {
		f.mu.Lock()
		now := k.next
		k.next = nil
		if now == nil {
			delete(f.keys, key)
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		now.value, now.err = now.make()
		close(now.done)
	}
}
