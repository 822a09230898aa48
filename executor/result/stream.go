package result

import (
	"context"
	"errors"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	bindings "github.com/duckdb/duckdb-go-bindings"
	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/internal/fault"
)

// MaxChunk is the most that one call of send gets, in bytes.
const MaxChunk = 1 << 20

// interruptEvery is how often an interrupt is repeated until DuckDB has stopped: it forgets one that comes between two of its steps.
const interruptEvery = 50 * time.Millisecond

// Stream runs one SELECT in inst and hands its Arrow IPC stream to send, in order. maxBytes caps the stream; 0 means no cap. It answers the number
// of rows. The slice that send gets is reused after it returns.
func Stream(ctx context.Context, inst *duckdb.Instance, sql string, maxBytes int64, send func([]byte) error) (int64, error) {
	sql, err := textColumns(ctx, inst, sql)
	if err != nil {
		return 0, err
	}
	s := &stream{ctx: ctx, out: &splitter{max: maxBytes, send: send}}
	if err = s.query(inst, sql); unexplained(ctx, inst, err) {
		err = explain(ctx, inst, sql)
	}
	if err == nil {
		err = fault.Hit("executor.result.before-check")
	}
	if err == nil {
		err = inst.CheckPins()
	}
	if err == nil {
		err = s.out.flush()
	}
	if err != nil && ctx.Err() != nil {
		return s.rows, context.Cause(ctx) // DuckDB only says that it was interrupted
	}
	return s.rows, err
}

// query runs the statement once.
func (s *stream) query(inst *duckdb.Instance, sql string) error {
	return inst.WithSelect(s.ctx, sql, func(conn bindings.Connection, stmt bindings.PreparedStatement) error {
		stop := interruptOnDone(s.ctx, conn)
		defer stop()
		return s.run(stmt)
	})
}

// unexplained reports an interrupt that nobody asked for: where one thread of a streamed query fails, DuckDB 1.5.6 now and then reports that another
// was interrupted, in place of the error.
func unexplained(ctx context.Context, inst *duckdb.Instance, err error) bool {
	var de *driver.Error
	return errors.As(err, &de) && de.Type == driver.ErrorTypeInterrupt && ctx.Err() == nil && !inst.Interrupted()
}

// explain runs a failed statement again, for its error only.
func explain(ctx context.Context, inst *duckdb.Instance, sql string) error {
	for range 10 {
		again := &stream{ctx: ctx, out: &splitter{send: func([]byte) error { return nil }}}
		if err := again.query(inst, sql); err != nil && !unexplained(ctx, inst, err) {
			return err
		}
	}
	return errors.New("DuckDB stopped the query without a reason")
}

// interruptOnDone interrupts the connection while ctx is done, until stop is called.
func interruptOnDone(ctx context.Context, conn bindings.Connection) (stop func()) {
	finished, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-finished:
			return
		case <-ctx.Done():
		}
		tick := time.NewTicker(interruptEvery)
		defer tick.Stop()
		for {
			bindings.Interrupt(conn)
			select {
			case <-finished:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(finished)
		<-ended // a late interrupt would hit the connection's next query
	}
}

type stream struct {
	ctx  context.Context
	out  *splitter
	rows int64
}

func (s *stream) run(stmt bindings.PreparedStatement) error {
	var pending bindings.PendingResult
	defer bindings.DestroyPending(&pending)
	if bindings.PendingPreparedStreaming(stmt, &pending) == bindings.StateError {
		return duckdb.ErrorFromText(bindings.PendingError(pending))
	}
	var res bindings.Result
	defer bindings.DestroyResult(&res)
	if bindings.ExecutePending(pending, &res) == bindings.StateError {
		return resultError(&res)
	}
	options := bindings.ResultGetArrowOptions(&res)
	defer bindings.DestroyArrowOptions(&options)
	schema, err := schemaOf(options, &res)
	if err != nil {
		return err
	}
	w := ipc.NewWriter(s.out, ipc.WithSchema(schema))
	if err := s.copyRows(&res, options, schema, w); err != nil {
		return err
	}
	return s.out.failed(w.Close()) // writes the schema if there was no row
}

func (s *stream) copyRows(res *bindings.Result, options bindings.ArrowOptions, schema *arrow.Schema, w *ipc.Writer) error {
	for {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		chunk := bindings.FetchChunk(*res)
		if chunk.Ptr == nil { // the end, or an error in the middle
			return resultError(res)
		}
		err := s.writeChunk(chunk, options, schema, w)
		bindings.DestroyDataChunk(&chunk)
		if err != nil {
			return err
		}
	}
}

func (s *stream) writeChunk(chunk bindings.DataChunk, options bindings.ArrowOptions, schema *arrow.Schema, w *ipc.Writer) error {
	batch, err := arrowBatch(options, schema, chunk)
	if err != nil {
		return err
	}
	defer batch.Release()
	s.rows += batch.NumRows()
	return s.out.failed(w.Write(batch))
}

func schemaOf(options bindings.ArrowOptions, res *bindings.Result) (*arrow.Schema, error) {
	n := bindings.ColumnCount(res)
	types, names := make([]bindings.LogicalType, n), make([]string, n)
	for i := range n {
		types[i], names[i] = bindings.ColumnLogicalType(res, i), bindings.ColumnName(res, i)
	}
	defer func() {
		for i := range types {
			bindings.DestroyLogicalType(&types[i])
		}
	}()
	return arrowSchema(options, types, names)
}

func resultError(res *bindings.Result) error {
	msg := bindings.ResultError(res)
	if msg == "" {
		return nil
	}
	return &driver.Error{Type: driver.ErrorType(bindings.ResultErrorType(res)), Msg: msg}
}
