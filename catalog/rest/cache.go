package rest

import (
	"bytes"
	"container/list"
	"sync"

	"github.com/signet-io/signet/catalog"
)

const defaultCacheBytes = 64 << 20

// entry is the newest that is known of one table. It is never changed once it is in the cache.
type entry struct {
	key   string // of the name
	etag  string // of the answer; "": the server gave none
	table *catalog.Table
}

// cache keeps the tables used last, by their names. It saves transfer, where the server has ETags, and parsing; what it holds is used only when the
// server has said, or the bytes show, that it is the newest.
type cache struct {
	mu    sync.Mutex
	limit int64
	bytes int64
	order *list.List // of *entry, newest first
	byKey map[string]*list.Element
}

func newCache(limit int64) *cache {
	if limit <= 0 {
		limit = defaultCacheBytes
	}
	return &cache{limit: limit, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(key string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry)
}

func (c *cache) put(v *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[v.key]; e != nil {
		c.drop(e)
	}
	c.byKey[v.key] = c.order.PushFront(v)
	c.bytes += int64(len(v.table.Raw))
	for c.bytes > c.limit && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	v := c.order.Remove(e).(*entry)
	delete(c.byKey, v.key)
	c.bytes -= int64(len(v.table.Raw))
}

// same returns the cached table if it is of these very bytes.
func (c *cache) same(key, location string, raw []byte) *catalog.Table {
	if e := c.get(key); e != nil && e.table.MetadataLocation == location && bytes.Equal(e.table.Raw, raw) {
		return e.table
	}
	return nil
}
