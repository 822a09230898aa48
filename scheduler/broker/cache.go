package broker

import (
	"container/list"
	"sync"
)

// byteCache keeps immutable files in memory, least recently used first out.
type byteCache struct {
	mu    sync.Mutex
	limit int64
	size  int64
	order *list.List // of *cached, newest in front
	byKey map[string]*list.Element
}

type cached struct {
	key   string
	bytes []byte
}

func newByteCache(limit int64) *byteCache {
	return &byteCache{limit: limit, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *byteCache) get(key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).bytes, true
}

func (c *byteCache) put(key string, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; ok || int64(len(b)) > c.limit {
		return
	}
	c.byKey[key] = c.order.PushFront(&cached{key: key, bytes: b})
	c.size += int64(len(b))
	for c.size > c.limit {
		last := c.order.Back()
		old := c.order.Remove(last).(*cached)
		delete(c.byKey, old.key)
		c.size -= int64(len(old.bytes))
	}
}
