package iceberg

import "sync"

// cache keeps the newest value per key, each with the name of the immutable object it was read from, and drops the oldest keys above its size.
type cache[V any] struct {
	mu    sync.Mutex
	size  int
	items map[string]cached[V]
	order []string
}

type cached[V any] struct {
	object string
	value  V
}

func newCache[V any](size int) *cache[V] {
	return &cache[V]{size: size, items: map[string]cached[V]{}}
}

func (c *cache[V]) latest(key string) (object string, value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	return e.object, e.value, ok
}

func (c *cache[V]) put(key, object string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
	c.items[key] = cached[V]{object, value}
	c.order = append(c.order, key)
	if len(c.order) > c.size {
		c.remove(c.order[0])
	}
}

func (c *cache[V]) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

func (c *cache[V]) remove(key string) {
	if _, ok := c.items[key]; !ok {
		return
	}
	delete(c.items, key)
	for i, k := range c.order {
		if k == key {
			c.order = append(c.order[:i], c.order[i+1:]...)
			return
		}
	}
}
