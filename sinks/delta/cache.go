package delta

import (
	"slices"
	"sync"

	"github.com/signet-io/signet/sinks/delta/log"
)

// The cache keeps the snapshots of so many tables, and of fewer if they have more than so many files together. The newest one always stays.
const (
	cacheTables = 64
	cacheFiles  = 2_000_000
)

// cached is a snapshot with the tag of its version's commit file.
type cached struct {
	snapshot *log.Snapshot
	tag      string
}

// cache keeps the newest snapshots by location, the least recently used first to go.
type cache struct {
	mu    sync.Mutex
	items map[string]cached
	order []string
}

func newCache() *cache { return &cache{items: map[string]cached{}} }

func (c *cache) get(location string) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[location]
	if ok {
		c.touch(location)
	}
	return e, ok
}

func (c *cache) put(location string, e cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items[location] = e
	c.touch(location)
	files := 0
	for i, l := range slices.Backward(c.order) {
		if files += c.items[l].snapshot.NumFiles(); i < len(c.order)-1 && (files > cacheFiles || len(c.order)-i > cacheTables) {
			for _, gone := range c.order[:i+1] {
				delete(c.items, gone)
			}
			c.order = slices.Delete(c.order, 0, i+1)
			return
		}
	}
}

func (c *cache) touch(location string) {
	c.order = append(slices.DeleteFunc(c.order, func(l string) bool { return l == location }), location)
}

func (c *cache) drop(location string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.items, location)
	c.order = slices.DeleteFunc(c.order, func(l string) bool { return l == location })
}
