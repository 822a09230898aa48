package storage

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// window is how much is read at once of a file that is read in small pieces, in bytes.
const window = 4 << 20

// remoteObject reads an object by ranges, all of the version that was opened. Its requests end with the context of Open.
type remoteObject struct {
	ctx  context.Context
	r    *remote
	key  string
	info Info

	mu     sync.Mutex
	at     int64 // where held begins
	held   []byte
	closed bool
}

func (r *remote) Open(ctx context.Context, file string) (Object, error) {
	key, err := r.key(file)
	if err != nil {
		return nil, err
	}
	body, i, err := r.client.Get(ctx, key, 0, window, "")
	if err != nil {
		return nil, translate(file, err)
	}
	defer body.Close()
	o := &remoteObject{ctx: ctx, r: r, key: key, info: r.info(i), held: make([]byte, min(i.Size, window))}
	if _, err := io.ReadFull(body, o.held); err != nil {
		return nil, translate(file, err)
	}
	return o, nil
}

func (o *remoteObject) Size() int64        { return o.info.Size }
func (o *remoteObject) ModTime() time.Time { return o.info.ModTime }
func (o *remoteObject) ETag() string       { return o.info.ETag }

func (o *remoteObject) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held, o.closed = nil, true
	return nil
}

// ReadAt reads by whole windows where a piece is smaller, so that reading on sends few requests.
func (o *remoteObject) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: offset %d", o.info.URI, off)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, fmt.Errorf("%s: is closed", o.info.URI)
	}
	n := 0
	for n < len(p) {
		if off >= o.info.Size {
			return n, io.EOF
		}
		if off >= o.at && off < o.at+int64(len(o.held)) {
			c := copy(p[n:], o.held[off-o.at:])
			n, off = n+c, off+int64(c)
			continue
		}
		rest := p[n:]
		if left := o.info.Size - off; int64(len(rest)) > left {
			rest = rest[:left]
		}
		if len(rest) >= window {
			c, err := o.fetch(rest, off)
			n, off = n+c, off+int64(c)
			if err != nil {
				return n, err
			}
			continue
		}
		start := off - off%window
		buf := make([]byte, min(window, o.info.Size-start))
		if _, err := o.fetch(buf, start); err != nil {
			return n, err
		}
		o.at, o.held = start, buf
	}
	return n, nil
}

// fetch fills p from off on.
func (o *remoteObject) fetch(p []byte, off int64) (int, error) {
	body, _, err := o.r.client.Get(o.ctx, o.key, off, int64(len(p)), o.info.ETag)
	if err != nil {
		return 0, translate(o.info.URI, err)
	}
	defer body.Close()
	n, err := io.ReadFull(body, p)
	if err != nil {
		err = translate(o.info.URI, err)
	}
	return n, err
}

var _ Object = (*remoteObject)(nil)
