package flightsql

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// DoPut runs updates, binds parameters and ingests. arrow-go's own routing is not used: it takes any amount of memory for a compressed
// message, and a missing descriptor for a defect.
func (s *Service) DoPut(stream flight.FlightService_DoPutServer) error {
	first, err := stream.Recv()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return invalid("the stream ended before its first message, which has the command")
		}
		return err
	}
	var wrapped anypb.Any
	if err := proto.Unmarshal(first.GetFlightDescriptor().GetCmd(), &wrapped); err != nil {
		return invalid("the command cannot be read: %v", err)
	}
	cmd, err := wrapped.UnmarshalNew()
	if err != nil {
		return invalid("the command is none of Flight SQL's: %v", err)
	}
	in := &upload{stream: stream, first: first, limit: 4 * int64(s.s.MaxMessage)}
	answer, err := s.s.put(stream.Context(), cmd, in)
	if err != nil {
		return asStatus(err)
	}
	out := &flight.PutResult{}
	if out.AppMetadata, err = proto.Marshal(answer); err != nil {
		return err
	}
	return stream.Send(out)
}

func (s *server) put(ctx context.Context, cmd proto.Message, in *upload) (proto.Message, error) {
	var n int64
	var err error
	switch cmd := cmd.(type) {
	case *pb.CommandStatementUpdate:
		if err = noTransaction(cmd.GetTransactionId()); err == nil {
			n, err = s.update(ctx, s.statement(ctx, cmd.GetQuery()))
		}
	case *pb.CommandPreparedStatementQuery:
		if err := s.bind(ctx, cmd.GetPreparedStatementHandle(), in); err != nil {
			return nil, err
		}
		return &pb.DoPutPreparedStatementResult{PreparedStatementHandle: cmd.GetPreparedStatementHandle()}, nil
	case *pb.CommandPreparedStatementUpdate:
		n, err = s.updatePrepared(ctx, cmd.GetPreparedStatementHandle(), in)
	case *pb.CommandStatementIngest:
		n, err = s.ingest(ctx, cmd, in)
	case *pb.CommandStatementSubstraitPlan:
		err = errSubstrait
	default:
		err = invalid("the command %s cannot be put", cmd.ProtoReflect().Descriptor().FullName())
	}
	if err != nil {
		return nil, err
	}
	return &pb.DoPutUpdateResult{RecordCount: n}, nil
}

var errSubstrait = unsupported("Substrait plans are not supported; send SQL")

// maxHeader bounds the flatbuffer of one message: what is nested in it is read by recursion.
const maxHeader = 4 << 20

// upload is what a client puts, as Arrow batches.
type upload struct {
	stream interface {
		Recv() (*flight.FlightData, error)
	}
	first *flight.FlightData
	limit int64 // of the memory for one message, once it is uncompressed

	reader *flight.Reader
	want   layout // of every batch; known with the schema
}

// Recv implements flight.DataStreamReader.
func (u *upload) Recv() (*flight.FlightData, error) {
	m := u.first
	if u.first = nil; m == nil {
		var err error
		if m, err = u.stream.Recv(); err != nil {
			return nil, err
		}
	}
	if len(m.GetDataHeader()) > maxHeader {
		return nil, invalid("a message has %d bytes of Arrow metadata; at most %d are taken", len(m.GetDataHeader()), maxHeader)
	}
	if len(m.GetDataHeader()) > 0 { // the first message may have nothing but the command
		if err := checkMessage(m.GetDataHeader(), len(m.GetDataBody()), u.want); err != nil {
			return nil, invalid("the Arrow stream is broken: a message is no valid one: %v", err)
		}
	}
	return m, nil
}

// schema reads the schema; nil if the client sent none.
func (u *upload) schema() (out *arrow.Schema, err error) {
	err = guarded("schema", func() error {
		if u.reader, err = flight.NewRecordReader(u, ipc.WithAllocator(&boundedAllocator{limit: u.limit}), ipc.WithDelayReadSchema(true)); err != nil {
			return err
		}
		if out = u.reader.Schema(); out == nil && !errors.Is(u.reader.Err(), io.EOF) {
			return u.reader.Err()
		}
		return nil
	})
	if err != nil || out == nil {
		return nil, streamError(err)
	}
	for _, f := range out.Fields() {
		if err := checkDictionaries(f.Type); err != nil {
			return nil, invalid("column %s: %v", f.Name, err)
		}
	}
	u.want = layoutOf(out)
	return out, nil
}

// each hands on every batch. A stream that ends otherwise than by its end is an error.
func (u *upload) each(f func(arrow.RecordBatch) error) error {
	for {
		var rec arrow.RecordBatch
		err := guarded("batch", func() error {
			if !u.reader.Next() {
				return u.reader.Err()
			}
			rec = u.reader.RecordBatch()
			for _, col := range rec.Columns() { // offsets and indices are the client's word too
				if err := validate(col); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return streamError(err)
		}
		if rec == nil {
			return nil
		}
		if err := guarded("batch", func() error { return f(rec) }); err != nil {
			return err
		}
	}
}

func validate(a arrow.Array) error {
	if a.DataType().ID() == arrow.NULL {
		return nil // nothing in it can be wrong, and arrow-go misses a buffer that it never has
	}
	if hasNull(a.DataType()) {
		return typeError(a.DataType())
	}
	return array.ValidateFull(a)
}

func hasNull(t arrow.DataType) bool {
	nested, ok := t.(arrow.NestedType)
	return t.ID() == arrow.NULL || ok && slices.ContainsFunc(nested.Fields(), func(f arrow.Field) bool { return hasNull(f.Type) })
}

func (u *upload) close() {
	if u.reader != nil {
		u.reader.Release()
	}
}

// streamError keeps the codes of gRPC and says of all else that the client's stream is broken.
func streamError(err error) error {
	if err == nil {
		return nil
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return invalid("the Arrow stream is broken: %v", err)
}
