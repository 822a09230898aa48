package root

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/signet-io/signet/internal/mutant"
)

// ErrTooLarge is a result above its cap.
var ErrTooLarge = errors.New("the result is too large")

// Result collects a root's output as an Arrow IPC stream of at most Max bytes.
type Result struct {
	Max     int64
	Setting string // the name under which the cap is configured

	buf bytes.Buffer
	w   *ipc.Writer
}

// Schema implements Output.
func (r *Result) Schema(s *arrow.Schema) error {
	if r.w != nil {
		return errors.New("a result has one schema")
	}
	r.w = ipc.NewWriter((*capped)(r), ipc.WithSchema(s))
	return nil
}

// Write implements Output.
func (r *Result) Write(b arrow.RecordBatch) error {
	if r.w == nil {
		return errors.New("the result has no schema yet")
	}
	return r.w.Write(b)
}

// Bytes ends the stream and returns it; nil where the root had no result.
func (r *Result) Bytes() ([]byte, error) {
	if r.w == nil {
		return nil, nil
	}
	if err := r.w.Close(); err != nil {
		return nil, err
	}
	if mutant.On("root/cap-at-the-end") && int64(r.buf.Len()) > r.Max {
		return nil, fmt.Errorf("%w: the cap of %s", ErrTooLarge, r.Setting)
	}
	return r.buf.Bytes(), nil
}

// capped refuses what would make the stream larger than the cap.
type capped Result

func (c *capped) Write(p []byte) (int, error) {
	n := int64(c.buf.Len()) + int64(len(p))
	if mutant.On("root/cap-ignored") || mutant.On("root/cap-at-the-end") {
		n = 0
	}
	if mutant.On("root/cap-refuses-its-value") {
		n++
	}
	if n > c.Max {
		return 0, fmt.Errorf("%w: more than %d bytes (%d so far), the cap of %s", ErrTooLarge, c.Max, n, c.Setting)
	}
	return c.buf.Write(p)
}
