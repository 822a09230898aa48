package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// Rows reads a result batch by batch. The caller closes it. It is not safe for concurrent use.
type Rows struct {
	reader *ipc.Reader // nil: the statement has no rows
	cancel context.CancelFunc
	local  bool
}

// Query runs one statement and returns its rows. A statement without rows (DDL) gives empty Rows with no columns.
func (c *Client) Query(ctx context.Context, sql string, opts ...StatementOption) (*Rows, error) {
	res, err := c.Exec(ctx, sql, opts...)
	if err != nil {
		return nil, err
	}
	return res.Rows(ctx)
}

// Rows opens the result. An inline result is decoded from the status at hand (S29); the rows of a SELECT are streamed from the scheduler.
func (r *Result) Rows(ctx context.Context) (*Rows, error) {
	return r.client.Rows(ctx, r.Job)
}

// Rows opens the result of a job that ended Successful.
func (c *Client) Rows(ctx context.Context, job *schedulerv1.Job) (*Rows, error) {
	if err := jobError(job); err != nil {
		return nil, err
	}
	if b := job.GetInlineResult(); len(b) > 0 {
		rd, err := newReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if mutant.On("client/inline-fetched") {
			if st, err := c.rpc.FetchResult(ctx, &schedulerv1.FetchResultRequest{JobId: job.GetJobId()}); err == nil {
				_, _ = st.Recv()
			}
		}
		return &Rows{reader: rd, cancel: func() {}, local: true}, nil
	}
	if !job.GetHasRows() {
		return &Rows{cancel: func() {}}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.rpc.FetchResult(ctx, &schedulerv1.FetchResultRequest{JobId: job.GetJobId()})
	if err != nil {
		cancel()
		return nil, callError(err)
	}
	rd, err := newReader(&chunkReader{stream: stream})
	if err != nil {
		cancel()
		return nil, err
	}
	return &Rows{reader: rd, cancel: cancel}, nil
}

// newReader reads the schema. The stream's own error is kept: it says more than the decoder's.
func newReader(r io.Reader) (*ipc.Reader, error) {
	rd, err := ipc.NewReader(r, ipc.WithAllocator(memory.DefaultAllocator))
	if err != nil {
		return nil, fmt.Errorf("result: %w", streamError(r, err))
	}
	return rd, nil
}

func streamError(r io.Reader, err error) error {
	if c, ok := r.(*chunkReader); ok && c.err != nil && !errors.Is(c.err, io.EOF) {
		return c.err
	}
	return err
}

// Schema is nil for a statement that has no rows.
func (r *Rows) Schema() *arrow.Schema {
	if r.reader == nil {
		return nil
	}
	return r.reader.Schema()
}

// Inline says that the rows came with the job's status.
func (r *Rows) Inline() bool { return r.local }

// Next reads the next batch. The batch of RecordBatch is valid until the next call.
func (r *Rows) Next() bool { return r.reader != nil && r.reader.Next() }

// RecordBatch is the batch that Next read. Retain it to keep it.
func (r *Rows) RecordBatch() arrow.RecordBatch { return r.reader.RecordBatch() }

// Err is what ended the rows early, nil at their proper end.
func (r *Rows) Err() error {
	if r.reader == nil {
		return nil
	}
	if err := r.reader.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// Close frees the rows, read or not.
func (r *Rows) Close() {
	if r.reader != nil {
		r.reader.Release()
		r.reader = nil
	}
	r.cancel()
}

// chunkReader makes one byte stream of a stream of messages.
type chunkReader struct {
	stream grpc.ServerStreamingClient[schedulerv1.FetchResultResponse]
	buf    []byte
	err    error
}

func (c *chunkReader) Read(p []byte) (int, error) {
	for len(c.buf) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		m, err := c.stream.Recv()
		if err != nil {
			c.err = io.EOF
			if !errors.Is(err, io.EOF) {
				c.err = callError(err)
			}
			continue
		}
		c.buf = m.GetData()
	}
	n := copy(p, c.buf)
	c.buf = c.buf[n:]
	return n, nil
}
