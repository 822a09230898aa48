package broker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/apache/iceberg-go"

	"github.com/signet-io/signet/catalog/storage"
)

// maxList caps a manifest list that the broker reads, in bytes. A list entry has some 200 bytes, so that this is a hundred
// thousand manifests.
const maxList = 64 << 20

// manifestList is one parsed manifest list: immutable, like the file.
type manifestList struct {
	entries []iceberg.ManifestFile
	byPath  map[string]iceberg.ManifestFile // by objectKey
}

// listCache keeps the newest lists: the one that a commit adds is the parent of the next.
type listCache struct {
	mu    sync.Mutex
	byURI map[string]*manifestList
	order []string
}

const listCacheSize = 64

func newListCache() *listCache { return &listCache{byURI: map[string]*manifestList{}} }

func (c *listCache) get(uri string) *manifestList {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byURI[uri]
}

func (c *listCache) put(uri string, l *manifestList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byURI[uri] != nil {
		return
	}
	if len(c.order) == listCacheSize {
		delete(c.byURI, c.order[0])
		c.order = c.order[1:]
	}
	c.byURI[uri] = l
	c.order = append(c.order, uri)
}

// manifests reads a manifest list of the lease's table. The table's UUID is part of the key, since a location may be used again.
func (l *Lease) manifests(ctx context.Context, s storage.Store, tableUUID, uri string) (*manifestList, error) {
	key := tableUUID + "\x00" + objectKey(uri)
	if m := l.b.lists.get(key); m != nil {
		return m, nil
	}
	raw, err := readAll(ctx, s, uri, maxList)
	if err != nil {
		return nil, err
	}
	if l.owns(uri) { // a plugin wrote it
		if err := checkContainer(raw); err != nil {
			return nil, invalid("manifest list: %v", err)
		}
	}
	m, err := parseManifestList(raw)
	if err != nil {
		return nil, invalid("manifest list: %v", err)
	}
	l.b.lists.put(key, m)
	return m, nil
}

// parseManifestList reads a list that a plugin may have written in any way: a reader that gives up by panicking only refuses it.
func parseManifestList(raw []byte) (m *manifestList, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("unreadable: %v", p)
		}
	}()
	entries, err := iceberg.ReadManifestList(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	m = &manifestList{entries: entries, byPath: make(map[string]iceberg.ManifestFile, len(entries))}
	for _, e := range entries {
		key := objectKey(e.FilePath())
		if m.byPath[key] != nil {
			return nil, fmt.Errorf("manifest %q stands twice", e.FilePath())
		}
		m.byPath[key] = e
	}
	return m, nil
}

func readAll(ctx context.Context, s storage.Store, uri string, limit int64) ([]byte, error) {
	o, err := s.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if o.Size() > limit {
		return nil, invalid("object %q has %d bytes, limit %d", uri, o.Size(), limit)
	}
	buf := make([]byte, o.Size())
	n, err := o.ReadAt(buf, 0)
	if err == io.EOF && int64(n) == o.Size() { //nolint:errorlint // io.ReaderAt promises it bare
		err = nil
	}
	return buf[:n], err
}
