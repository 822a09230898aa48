package pointer

import (
	"container/list"
	"sync"

	"github.com/apache/iceberg-go/table"
)

const defaultCacheBytes = 64 << 20

// version is one metadata.json: its bytes and what they mean. It is never changed once it is in the cache.
type version struct {
	location string
	etag     string
	raw      []byte
	meta     table.Metadata
	row      Row // that pointed to it when it was loaded; none in the cache
}

func (v *version) next() Next { return Next{Location: v.location, Metadata: v.meta} }

// cache keeps the versions used last.
type cache struct {
	mu    sync.Mutex
	limit int64
	bytes int64
	order *list.List // of *version, newest first
	byLoc map[string]*list.Element
}

func newCache(limit int64) *cache {
	if limit <= 0 {
		limit = defaultCacheBytes
	}
	return &cache{limit: limit, order: list.New(), byLoc: map[string]*list.Element{}}
}

func (c *cache) get(location, etag string) *version {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byLoc[location]
	if e == nil {
		return nil
	}
	v := e.Value.(*version)
	if v.etag != etag {
		return nil
	}
	c.order.MoveToFront(e)
	return v
}

func (c *cache) put(v *version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byLoc[v.location]; e != nil {
		c.drop(e)
	}
	c.byLoc[v.location] = c.order.PushFront(v)
	c.bytes += int64(len(v.raw))
	for c.bytes > c.limit && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	v := c.order.Remove(e).(*version)
	delete(c.byLoc, v.location)
	c.bytes -= int64(len(v.raw))
}
