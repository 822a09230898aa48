package inputs

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/upload"
)

// Cache keeps fetched objects. Safe for concurrent use.
type Cache struct {
	Dir     string // made when it is needed; nobody else writes there
	Limit   int64  // bytes that are kept for later tasks; 0: nothing is kept
	MinFree int64  // bytes of the file system that stay free; 0: no check
	Client  *signed.Client
	Retry   signed.Retry

	mu      sync.Mutex
	entries map[string]*list.Element // of entry, by key
	used    list.List                // the one that was used last in front
	bytes   int64
	flights map[string]chan struct{} // closed when a fetch has ended
}

type entry struct {
	key  string
	size int64
}

// key is equal for the same version of an object.
func (f *file) key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %s", f.uri, f.etag, f.size, f.once))
	return hex.EncodeToString(sum[:])
}

// place names an object as path. It is fetched, unless it is there already; several who want it at a time wait for one of them.
func (c *Cache) place(ctx context.Context, reads *signer, f *file, path string) error {
	key := f.key()
	if f.footer {
		if done, err := c.taken(key, path); done || err != nil { // all of it is more than enough
			return err
		}
		key += ".footer"
	}
	for {
		done, wait, err := c.take(key, path)
		if done || err != nil {
			return err
		}
		if wait == nil {
			break
		}
		select {
		case <-wait: // if that went wrong, it is this one's turn
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	tmp := filepath.Join(c.Dir, key+".part")
	fetch := c.fetch
	if f.footer {
		fetch = c.fetchFooter
	}
	err := fetch(ctx, reads, f, tmp)
	if err == nil {
		err = link(tmp, path)
	}
	c.landed(key, tmp, err == nil)
	return err
}

// take names what is cached. Otherwise there is a fetch to wait for, or it is begun by the caller.
func (c *Cache) take(key, path string) (done bool, wait <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, err := c.has(key, path); done || err != nil {
		return done, nil, err
	}
	if flight := c.flights[key]; flight != nil {
		return false, flight, nil
	}
	if c.entries == nil {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return false, nil, err
		}
		c.entries, c.flights = map[string]*list.Element{}, map[string]chan struct{}{}
	}
	c.flights[key] = make(chan struct{})
	return false, nil, nil
}

// taken names what is cached, if it is.
func (c *Cache) taken(key, path string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.has(key, path)
}

// has is taken with mu held.
func (c *Cache) has(key, path string) (bool, error) {
	at := c.entries[key]
	if at == nil {
		return false, nil
	}
	err := link(filepath.Join(c.Dir, key), path)
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed it
		c.forget(at)
		return false, nil
	}
	c.used.MoveToFront(at)
	return err == nil, err
}

// landed ends a fetch: the object is kept, if it may be, and what was not used for longest makes room.
func (c *Cache) landed(key, tmp string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.flights[key])
	delete(c.flights, key)
	if size, err := onDisk(tmp); ok && err == nil && size <= c.Limit && os.Rename(tmp, filepath.Join(c.Dir, key)) == nil {
		c.entries[key] = c.used.PushFront(entry{key, size})
		c.bytes += size
	} else {
		_ = os.Remove(tmp) // the scratch directory goes as a whole
	}
	for c.bytes > c.Limit {
		c.evict(c.used.Back())
	}
}

// onDisk is what a file takes, which of a sparse one is less than its size.
func onDisk(name string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return 0, err
	}
	return st.Blocks * 512, nil
}

func (c *Cache) forget(at *list.Element) entry {
	e := c.used.Remove(at).(entry) //nolint:forcetypeassert // there is nothing else in it
	delete(c.entries, e.key)
	c.bytes -= e.size
	return e
}

func (c *Cache) evict(at *list.Element) {
	_ = os.Remove(filepath.Join(c.Dir, c.forget(at).key)) // who has it linked keeps it
}

// room makes sure that a file of a size leaves enough free; what is only kept for later goes first.
func (c *Cache) room(size int64) error {
	if c.MinFree <= 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		err := upload.CheckSpace(c.Dir, c.MinFree+size)
		if err == nil || c.used.Len() == 0 {
			return err
		}
		c.evict(c.used.Back())
	}
}
