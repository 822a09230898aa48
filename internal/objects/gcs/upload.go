package gcs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/signet-io/signet/internal/objects"
)

// spool is an upload whose parts wait in a temporary file until they are sent as one request: uploads in parts know no conditions here.
type spool struct {
	c       *client
	key, id string

	mu    sync.Mutex
	file  *os.File // without a name; nil: ended
	size  int64
	parts map[int]span
}

// span is where a part is.
type span struct{ from, size int64 }

func (c *client) Begin(_ context.Context, key string) (objects.Upload, error) {
	f, err := os.CreateTemp("", "signet-upload-")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return nil, &objects.Error{Op: "begin upload", URI: c.URI(key), Err: err, Hint: "TMPDIR names the directory where uploads wait"}
	}
	return &spool{c: c, key: key, id: rand.Text(), file: f, parts: map[int]span{}}, nil
}

func (s *spool) ID() string { return s.id }

func (s *spool) Part(ctx context.Context, n int, b objects.Body) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := context.Cause(ctx)
	switch {
	case s.file == nil:
		err = objects.ErrNotFound
	case n < 1 || n > 10_000:
		err = fmt.Errorf("part %d: uploads have parts 1 to 10000", n)
	}
	if err == nil {
		var copied int64
		copied, err = io.Copy(io.NewOffsetWriter(s.file, s.size), io.NewSectionReader(b, 0, b.Size()))
		if err == nil && copied != b.Size() {
			err = fmt.Errorf("the body has %d bytes, not %d", copied, b.Size())
		}
	}
	if err != nil {
		return &objects.Error{Op: "upload part", URI: s.c.URI(s.key), Err: err}
	}
	s.parts[n] = span{s.size, b.Size()}
	s.size += b.Size()
	return nil
}

// Complete sends the parts, in order.
func (s *spool) Complete(ctx context.Context, o objects.PutOptions) (objects.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return objects.Info{}, &objects.Error{Op: "complete upload", URI: s.c.URI(s.key), Err: objects.ErrNotFound}
	}
	body := &joined{file: s.file}
	for n, left := 1, len(s.parts); left > 0; n++ {
		if at, ok := s.parts[n]; ok {
			body.spans = append(body.spans, at)
			body.size += at.size
			left--
		}
	}
	info, err := s.c.Put(ctx, s.key, body, o)
	if err == nil {
		err = s.file.Close()
		s.file = nil
	}
	return info, err
}

func (s *spool) Abort(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// joined reads parts as one body.
type joined struct {
	file  *os.File
	spans []span
	size  int64
}

func (j *joined) Size() int64 { return j.size }

func (j *joined) ReadAt(p []byte, off int64) (n int, err error) {
	for _, s := range j.spans {
		if off >= s.size {
			off -= s.size
			continue
		}
		if n == len(p) {
			return n, nil
		}
		k, err := j.file.ReadAt(p[n:min(int64(len(p)), int64(n)+s.size-off)], s.from+off)
		n += k
		if err != nil && (!errors.Is(err, io.EOF) || int64(k) < s.size-off) && n < len(p) {
			return n, err
		}
		off = 0
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
