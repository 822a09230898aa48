package flightsql

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/sql"
)

// GetFlightInfoStatement runs the statement. It answers when the statement has ended, so that errors come from here and the schema is that of
// the rows.
func (s *server) GetFlightInfoStatement(ctx context.Context, cmd fsql.StatementQuery, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	if err := noTransaction(cmd.GetTransactionId()); err != nil {
		return nil, err
	}
	return s.runForInfo(ctx, s.statement(ctx, cmd.GetQuery()), desc)
}

func (s *server) runForInfo(ctx context.Context, st Statement, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	job, err := s.run(ctx, st)
	if err != nil {
		return nil, err
	}
	return s.info(s.Principal(ctx), job, desc)
}

// GetSchemaStatement analyses the statement and runs nothing.
func (s *server) GetSchemaStatement(ctx context.Context, cmd fsql.StatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	if err := noTransaction(cmd.GetTransactionId()); err != nil {
		return nil, err
	}
	return s.schemaResult(ctx, s.statement(ctx, cmd.GetQuery()))
}

func (s *server) schemaResult(ctx context.Context, st Statement) (*flight.SchemaResult, error) {
	schema, err := s.schemaOf(ctx, st)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: flight.SerializeSchema(schema, s.mem)}, nil
}

func (s *server) schemaOf(ctx context.Context, st Statement) (*arrow.Schema, error) {
	cols, err := s.backend.Columns(ctx, s.Principal(ctx), st)
	if err != nil {
		return nil, asStatus(err)
	}
	return resultSchema(cols)
}

// info describes the rows of a job that succeeded.
func (s *server) info(who string, job *schedulerv1.Job, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	schema, at, count, size, err := s.describe(who, job)
	if err != nil {
		return nil, err
	}
	expires := time.UnixMilli(job.GetFinishedMillis()).Add(s.Kept)
	ticket, err := s.ticket(who, job.GetJobId(), expires, at)
	if err != nil {
		return nil, err
	}
	endpoint := &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}, ExpirationTime: timestamppb.New(expires)}
	if at != nil && at.URI != "" { // the scheduler hands them on for clients that cannot reach the executor
		endpoint.Location = []*flight.Location{{Uri: at.URI}, {Uri: flight.LocationReuseConnection}}
	}
	return &flight.FlightInfo{
		Schema: flight.SerializeSchema(schema, s.mem), FlightDescriptor: desc, TotalRecords: count, TotalBytes: size, Ordered: true,
		Endpoint: []*flight.FlightEndpoint{endpoint}, AppMetadata: []byte(job.GetJobId()),
	}, nil
}

// describe tells about rows without fetching them.
func (s *server) describe(who string, job *schedulerv1.Job) (schema *arrow.Schema, at *Location, count, size int64, err error) {
	if job.GetHasRows() {
		if at, err = s.backend.Location(who, job.GetJobId()); err != nil {
			return nil, nil, 0, 0, asStatus(err)
		}
	}
	if at != nil {
		schema, err = resultSchema(at.Columns)
		return schema, at, at.Rows, at.Bytes, err
	}
	rows, err := s.open(who, job)
	if err != nil {
		return nil, nil, 0, 0, err
	}
	defer rows.Close()
	return rows.Schema(), nil, rows.count, rows.size, nil
}

// rows are the rows of a job, being read.
type rows struct {
	*ipc.Reader
	from  io.Closer
	size  int64
	count int64 // -1: not known
}

func (r *rows) Close() {
	r.Release()
	_ = r.from.Close() // nothing was written
}

// open reads the rows of a job: its inline result, a root's for instance (S31), or what is spooled. A job that has neither has no columns.
func (s *server) open(who string, job *schedulerv1.Job) (*rows, error) {
	out := &rows{count: -1, size: int64(len(job.GetInlineResult())), from: io.NopCloser(nil)}
	var from io.Reader
	switch {
	case job.GetHasRows() && !mutant.On("flightsql/rows-unserved"):
		f, size, err := s.backend.Rows(who, job.GetJobId())
		if err != nil {
			return nil, asStatus(err)
		}
		from, out.from, out.size = f, f, size
	case len(job.GetInlineResult()) > 0 && !mutant.On("flightsql/inline-unserved"):
		n, err := countRows(job.GetInlineResult())
		if err != nil {
			return nil, status.Errorf(codes.Internal, "job %s: its result cannot be read: %v", job.GetJobId(), err)
		}
		from, out.count = bytes.NewReader(job.GetInlineResult()), n
	default:
		from, out.count = bytes.NewReader(flight.SerializeSchema(arrow.NewSchema(nil, nil), s.mem)), 0
	}
	var err error
	if out.Reader, err = ipc.NewReader(from, ipc.WithAllocator(s.mem)); err != nil {
		_ = out.from.Close()
		if status.Code(err) == codes.Unavailable { // they come from an executor
			return nil, err
		}
		return nil, status.Errorf(codes.Internal, "job %s: its rows cannot be read: %v", job.GetJobId(), err)
	}
	return out, nil
}

func countRows(inline []byte) (n int64, err error) {
	r, err := ipc.NewReader(bytes.NewReader(inline))
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	return n, r.Err()
}

// affected is the number of rows that a write reports: 0 for statements that write none, -1 if it is not known.
func affected(job *schedulerv1.Job) (int64, error) {
	if len(job.GetInlineResult()) == 0 {
		return 0, nil
	}
	r, err := ipc.NewReader(bytes.NewReader(job.GetInlineResult()))
	if err != nil {
		return 0, status.Errorf(codes.Internal, "job %s: its result cannot be read: %v", job.GetJobId(), err)
	}
	defer r.Release()
	at := r.Schema().FieldIndices("rows")
	if len(at) != 1 || !r.Next() || r.RecordBatch().NumRows() == 0 {
		return 0, nil
	}
	col, ok := r.RecordBatch().Column(at[0]).(*array.Int64)
	if !ok || col.IsNull(0) { // committed by an earlier run under this key, whose numbers are not known any more
		return -1, nil
	}
	return col.Value(0), nil
}

// update runs a statement that returns no rows and tells how many it wrote.
func (s *server) update(ctx context.Context, st Statement) (int64, error) {
	stmt, err := sql.Parse(st.SQL)
	if err != nil {
		return 0, invalid("%v", err)
	}
	if !isUpdate(stmt) {
		return 0, invalid("this statement returns rows; execute it as a query")
	}
	job, err := s.run(ctx, st)
	if err != nil {
		return 0, err
	}
	return affected(job)
}

// isUpdate tells statements that change something from those that return rows.
func isUpdate(stmt sql.Statement) bool {
	switch stmt.(type) {
	case *sql.Insert, *sql.AddFiles, *sql.CreateTable, *sql.CreateSchema, *sql.DropTable:
		return true
	}
	return false
}
