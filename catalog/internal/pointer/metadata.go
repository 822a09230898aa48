package pointer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/fault"
)

// maxMetadata bounds a metadata.json, decompressed: a small file must not fill the memory.
const maxMetadata = 512 << 20

// readVersion reads a metadata.json, from the cache if the file is still the one that was cached.
func (c *Engine) readVersion(ctx context.Context, location string) (*version, error) {
	store, err := c.stores.Open(ctx, parent(location))
	if err != nil {
		return nil, fmt.Errorf("metadata %s: %w: %w", location, catalog.ErrPermanent, err)
	}
	info, err := store.Stat(ctx, location)
	if err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	if v := c.cache.get(location, info.ETag); v != nil {
		return v, nil
	}
	raw, etag, err := readAll(ctx, store, location)
	if err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	meta, err := table.ParseMetadataBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("metadata %s: %w: %w", location, catalog.ErrUnreadable, err)
	}
	v := &version{location: location, etag: etag, raw: raw, meta: meta}
	c.cache.put(v)
	return v, nil
}

func readAll(ctx context.Context, store storage.Store, uri string) ([]byte, string, error) {
	obj, err := store.Open(ctx, uri)
	if err != nil {
		return nil, "", err
	}
	defer obj.Close()
	if obj.Size() > maxMetadata {
		return nil, "", fmt.Errorf("%s has %d bytes, at most %d are read", uri, obj.Size(), maxMetadata)
	}
	raw := make([]byte, obj.Size())
	if _, err := io.ReadFull(io.NewSectionReader(obj, 0, obj.Size()), raw); err != nil {
		return nil, "", fmt.Errorf("%s: %w", uri, err)
	}
	raw, err = decompress(raw)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", uri, err)
	}
	return raw, obj.ETag(), nil
}

// decompress goes by the first bytes: engines disagree about the names (x.gz.metadata.json, x.metadata.json.gz).
func decompress(raw []byte) ([]byte, error) {
	var r io.Reader
	switch {
	case bytes.HasPrefix(raw, []byte{0x1f, 0x8b}):
		gz, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		r = gz
	case bytes.HasPrefix(raw, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		zr, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer zr.Close()
		r = zr
	default:
		return raw, nil
	}
	out, err := io.ReadAll(io.LimitReader(r, maxMetadata+1))
	if err == nil && len(out) > maxMetadata {
		err = fmt.Errorf("more than %d bytes when decompressed", maxMetadata)
	}
	return out, err
}

// Properties of a table that this package honours.
const (
	propMetadataPath = "write.metadata.path"
	propCompression  = "write.metadata.compression-codec"
	propDeleteOld    = "write.metadata.delete-after-commit.enabled"
)

// writeVersion writes metadata, encoded as raw, as the successor of base (nil: as the first) and returns it as the version it will be. The file and
// its name are synced when this returns.
func (c *Engine) writeVersion(ctx context.Context, meta table.Metadata, raw []byte, base *version) (*version, error) {
	if err := fault.Hit("catalog.commit.before-metadata"); err != nil {
		return nil, err
	}
	dir, err := c.metadataDir(meta, base)
	if err != nil {
		return nil, err
	}
	body, ext, err := compress(raw, meta.Properties()[propCompression])
	if err != nil {
		return nil, err
	}
	number := 0
	if base != nil {
		number = versionNumber(base.location) + 1
	}
	location := storage.Join(dir, fmt.Sprintf("%05d-%s%s.metadata.json", number, uuid.NewString(), ext))
	if c.maxLocation > 0 && len(location) > c.maxLocation {
		return nil, fmt.Errorf("metadata location %s: %d bytes, at most %d: %w", location, len(location), c.maxLocation, catalog.ErrPermanent)
	}
	store, err := c.stores.Open(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	info, err := store.PutIfAbsent(ctx, location, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("write metadata: %w", err)
	}
	v := &version{location: location, etag: info.ETag, raw: raw, meta: meta}
	return v, fault.Hit("catalog.commit.after-metadata")
}

// encode calls the encoder of the metadata directly where there is one: json.Marshal would read all of its output once more.
func encode(meta table.Metadata) (raw []byte, err error) {
	if m, ok := meta.(json.Marshaler); ok {
		raw, err = m.MarshalJSON()
	} else {
		raw, err = json.Marshal(meta)
	}
	if err != nil {
		return nil, fmt.Errorf("encode metadata: %w: %w", catalog.ErrPermanent, err)
	}
	return raw, nil
}

// metadataDir is where the table says. A property may have been set by anybody who may change the table, and this process writes
// where it points: so it must point into the table, into the warehouse, or to where the metadata is already.
func (c *Engine) metadataDir(meta table.Metadata, base *version) (string, error) {
	dir := meta.Properties()[propMetadataPath]
	if dir == "" {
		return storage.Join(meta.Location(), "metadata"), nil
	}
	dir = strings.TrimRight(dir, "/")
	allowed := []string{meta.Location(), c.warehouse}
	if base != nil {
		allowed = append(allowed, parent(base.location))
	}
	for _, a := range allowed {
		if _, err := storage.Below(a, dir); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("property %s = %q: not below the table or the warehouse: %w", propMetadataPath, dir, catalog.ErrPermanent)
}

func compress(raw []byte, codec string) (body []byte, ext string, err error) {
	var buf bytes.Buffer
	var w io.WriteCloser
	switch strings.ToLower(codec) {
	case "", "none":
		return raw, "", nil
	case "gzip":
		w, ext = gzip.NewWriter(&buf), ".gz"
	case "zstd":
		if w, err = zstd.NewWriter(&buf); err != nil {
			return nil, "", err
		}
		ext = ".zstd"
	default:
		return nil, "", fmt.Errorf("property %s = %q: want none, gzip or zstd: %w", propCompression, codec, catalog.ErrPermanent)
	}
	_, err = w.Write(raw)
	err = errors.Join(err, w.Close())
	return buf.Bytes(), ext, err
}

var numbered = regexp.MustCompile(`^v?(\d+)[-.]`)

// versionNumber reads the counter that starts a metadata file's name; names of other shapes count as -1, as in Java.
func versionNumber(location string) int {
	m := numbered.FindStringSubmatch(path.Base(location))
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return -1
	}
	return n
}

func parent(location string) string {
	i := strings.LastIndexByte(location, '/')
	if i <= 0 {
		return location
	}
	return location[:i]
}

// discard removes a metadata file that no row points to and none ever will. It goes on when the caller gave up.
func (c *Engine) discard(ctx context.Context, location string) {
	store, err := c.stores.Open(ctx, parent(location))
	if err == nil {
		if p, ok := store.(storage.Prober); ok { // an account that may not read can clean up, too
			err = p.Forget(context.WithoutCancel(ctx), location)
		} else {
			err = store.Remove(context.WithoutCancel(ctx), location)
		}
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		c.log.Warn("metadata file of a commit that did not land stays", "file", location, "error", err)
	}
}

// discardOld removes what fell out of the metadata log, where the table asks for it.
func (c *Engine) discardOld(ctx context.Context, base, now *version) {
	if base == nil || !strings.EqualFold(now.meta.Properties()[propDeleteOld], "true") {
		return
	}
	kept := map[string]bool{now.location: true, base.location: true}
	for e := range now.meta.PreviousFiles() {
		kept[e.MetadataFile] = true
	}
	for e := range base.meta.PreviousFiles() {
		// Only the table's own: a log is text that any engine wrote.
		if _, err := storage.Below(now.meta.Location(), e.MetadataFile); err == nil && !kept[e.MetadataFile] {
			c.discard(ctx, e.MetadataFile)
		}
	}
}
