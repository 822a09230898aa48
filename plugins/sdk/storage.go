package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/internal/rpc"
)

// maxGet is the largest object that Get reads into memory. Larger ones are read with Open.
const maxGet = 256 << 20

// Get reads a whole object.
func (h *Host) Get(ctx context.Context, uri string) ([]byte, error) {
	b, size, err := h.read(ctx, uri, 0, 0, maxGet)
	if err == nil && int64(len(b)) != size {
		return nil, fmt.Errorf("get %s: %d of %d bytes: %w", uri, len(b), size, io.ErrUnexpectedEOF)
	}
	return b, err
}

// read reads length bytes from offset, or all from there where length is 0, and fails above limit.
func (h *Host) read(ctx context.Context, uri string, offset, length, limit int64) (data []byte, size int64, err error) {
	ctx, cancel := context.WithCancel(h.bind(ctx))
	defer cancel()
	stream, err := h.storage.Get(ctx, &hostv1.GetRequest{Uri: uri, Offset: offset, Length: length})
	if err != nil {
		return nil, 0, FromStatus(err)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, size, nil
		}
		if err != nil {
			return nil, 0, FromStatus(err)
		}
		size = max(size, m.GetSize())
		if data == nil && offset == 0 && length == 0 && size <= limit {
			data = make([]byte, 0, size)
		}
		if int64(len(data)+len(m.GetData())) > limit {
			return nil, 0, fmt.Errorf("get %s: larger than %d bytes; use Open", uri, limit)
		}
		data = append(data, m.GetData()...)
	}
}

// Object is an open object: ReadAt fetches ranges from the host. It stays valid while the context it was opened with lives.
type Object struct {
	h    *Host
	ctx  context.Context
	uri  string
	size int64
}

// Open finds the object's size and returns a reader over it.
func (h *Host) Open(ctx context.Context, uri string) (*Object, error) {
	head, err := h.Head(ctx, uri)
	if err != nil {
		return nil, err
	}
	return &Object{h: h, ctx: ctx, uri: uri, size: head.GetSize()}, nil
}

// Size is the object's size in bytes.
func (o *Object) Size() int64 { return o.size }

// ReadAt implements io.ReaderAt.
func (o *Object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s: negative offset", o.uri)
	}
	if off >= o.size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), o.size-off)
	if want == 0 {
		return 0, nil
	}
	b, _, err := o.h.read(o.ctx, o.uri, off, want, want)
	if err != nil {
		return 0, err
	}
	n := copy(p, b)
	switch {
	case int64(n) < want:
		return n, io.ErrUnexpectedEOF
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

// Close releases nothing; it is there so that an Object is an io.Closer.
func (o *Object) Close() error { return nil }

// Head gives size, modification time and ETag. A missing object is ErrNotFound.
func (h *Host) Head(ctx context.Context, uri string) (*hostv1.HeadResponse, error) {
	resp, err := h.storage.Head(h.bind(ctx), &hostv1.HeadRequest{Uri: uri})
	return resp, FromStatus(err)
}

// List gives the objects below a directory of the table, in no promised order. A missing directory is empty.
func (h *Host) List(ctx context.Context, prefix string) ([]*hostv1.ObjectInfo, error) {
	ctx, cancel := context.WithCancel(h.bind(ctx))
	defer cancel()
	stream, err := h.storage.List(ctx, &hostv1.ListRequest{Prefix: prefix})
	var out []*hostv1.ObjectInfo
	for err == nil {
		var m *hostv1.ListResponse
		if m, err = stream.Recv(); err == nil {
			out = append(out, m.GetObjects()...)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, FromStatus(err)
	}
	return out, nil
}

// PutOption changes one PutIfAbsent.
type PutOption func(*hostv1.PutIfAbsentRequest)

// AsCommitPoint says that creating this object makes the commit visible: the host takes the seal first. Version orders the commits.
func AsCommitPoint(version, parent string, markers ...string) PutOption {
	return func(r *hostv1.PutIfAbsentRequest) {
		r.CommitPoint = &hostv1.CommitPoint{Version: version, Parent: parent, Markers: markers}
	}
}

// PutIfAbsent creates an object from bytes; an existing one is ErrExists, or ErrConflict at a commit point.
func (h *Host) PutIfAbsent(ctx context.Context, uri string, body []byte, opts ...PutOption) (*hostv1.PutIfAbsentResponse, error) {
	return h.PutReader(ctx, uri, bytes.NewReader(body), opts...)
}

// PutReader is PutIfAbsent from a stream. Nothing exists under the name until it has returned nil.
func (h *Host) PutReader(ctx context.Context, uri string, body io.Reader, opts ...PutOption) (*hostv1.PutIfAbsentResponse, error) {
	w, err := h.Create(ctx, uri, opts...)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, body); err != nil {
		w.Abort()
		return nil, err
	}
	return w.Commit()
}

// Writer creates one object. Nothing exists under the name until Close has returned nil. Not safe for concurrent use.
type Writer struct {
	h      *Host
	uri    string
	cancel context.CancelFunc
	stream hostv1.Storage_PutIfAbsentClient
	req    *hostv1.PutIfAbsentRequest // the message being filled
	point  *hostv1.CommitPoint
	sent   bool
	resp   *hostv1.PutIfAbsentResponse
	err    error
	ended  bool
}

var errAborted = errors.New("put was aborted")

// Create opens a Writer. Close it or abort it.
func (h *Host) Create(ctx context.Context, uri string, opts ...PutOption) (*Writer, error) {
	ctx, cancel := context.WithCancel(h.bind(ctx))
	stream, err := h.storage.PutIfAbsent(ctx)
	if err != nil {
		cancel()
		return nil, FromStatus(err)
	}
	req := &hostv1.PutIfAbsentRequest{Uri: uri}
	for _, o := range opts {
		o(req)
	}
	return &Writer{h: h, uri: uri, cancel: cancel, stream: stream, req: req, point: req.CommitPoint}, nil
}

// Write buffers up to a chunk and sends.
func (w *Writer) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && w.err == nil && !w.ended {
		k := min(len(p), rpc.Chunk-len(w.req.Data))
		w.req.Data = append(w.req.Data, p[:k]...)
		p, n = p[k:], n+k
		if len(w.req.Data) == rpc.Chunk {
			w.flush()
		}
	}
	if w.ended && w.err == nil {
		return n, errAborted
	}
	return n, w.err
}

func (w *Writer) flush() {
	if err := w.stream.Send(w.req); err != nil {
		_, w.err = w.stream.CloseAndRecv() // Send only says that the stream has ended
		if w.err == nil {
			w.err = io.ErrUnexpectedEOF
		}
		w.err = FromStatus(w.err)
	}
	// What was sent may still be looked at, so that its buffer is not used again. After a chunk another one is likely.
	w.req, w.sent = &hostv1.PutIfAbsentRequest{Data: make([]byte, 0, cap(w.req.GetData()))}, true
}

// Close ends the object. It may be called again and returns the same.
func (w *Writer) Close() error {
	_, err := w.Commit()
	return err
}

// Commit is Close with the host's answer.
func (w *Writer) Commit() (*hostv1.PutIfAbsentResponse, error) {
	if w.ended {
		return w.resp, w.err
	}
	w.ended = true
	defer w.cancel()
	if w.err != nil {
		return nil, w.err
	}
	if !w.sent || len(w.req.Data) > 0 {
		w.flush()
	}
	if w.err != nil {
		return nil, w.err
	}
	if w.point != nil {
		// The object exists only if the stream ends well, so this is the moment from which the outcome may be unknown.
		if w.err = w.h.track.ask(); w.err != nil {
			return nil, w.err
		}
	}
	w.resp, w.err = w.stream.CloseAndRecv()
	w.err = FromStatus(w.err)
	if w.point != nil {
		w.err = w.h.track.answer(w.point.GetVersion(), w.uri, w.err)
	}
	return w.resp, w.err
}

// Abort gives up: nothing will exist under the name. After Close it does nothing.
func (w *Writer) Abort() {
	if !w.ended {
		w.ended, w.err = true, errAborted
		w.cancel()
	}
}

// ReplaceIf replaces a hint object whose ETag is still etag; empty: that does not exist yet. At most 1 MiB.
func (h *Host) ReplaceIf(ctx context.Context, uri, etag string, body []byte) (newETag string, err error) {
	resp, err := h.storage.ReplaceIf(h.bind(ctx), &hostv1.ReplaceIfRequest{Uri: uri, Etag: etag, Data: body})
	return resp.GetEtag(), FromStatus(err)
}
