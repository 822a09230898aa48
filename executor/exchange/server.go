package exchange

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/rpc"
)

const (
	// chunk is what a message carries. With its frame it fits into one of the buffers that gRPC keeps, which are of 1 MiB, 32 KiB and less.
	chunk = rpc.Chunk - 1024
	// smallChunk is what it carries where there are more than fewStreams: each stream has three messages or so, being made, marshalled and queued.
	smallChunk = 32<<10 - 1024
	fewStreams = 32
	// maxStreams is how many there may be; more are told to come back.
	maxStreams = 2048
	// maxPerConnection bounds the streams of one connection; further ones wait at the client.
	maxPerConnection = 256
	// maxRequest is far more than a FetchRequest has: nobody has shown a ticket before it is read.
	maxRequest = 16 << 10
)

// server answers Exchange.Fetch from a store.
type server struct {
	executorv1.UnimplementedExchangeServer
	store   *Store
	active  atomic.Int64
	flights atomic.Int64 // of active, those to clients
}

// NewServer makes a gRPC server that serves the outputs of a store: to tasks, and results to clients by Arrow Flight.
func NewServer(store *Store, opts ...grpc.ServerOption) *grpc.Server {
	all := append(rpc.ServerOptions(), grpc.MaxConcurrentStreams(maxPerConnection), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(math.MaxInt32), // a row of a result can be larger than a message of ours
		grpc.ConnectionTimeout(10*time.Second))
	s := grpc.NewServer(append(all, opts...)...)
	impl := &server{store: store}
	executorv1.RegisterExchangeServer(s, impl)
	flight.RegisterFlightServiceServer(s, &flightServer{server: impl})
	return s
}

// Fetch streams a partition from an offset. gRPC's flow control holds it back where the reader is slow.
func (s *server) Fetch(req *executorv1.FetchRequest, stream grpc.ServerStreamingServer[executorv1.FetchResponse]) (err error) {
	defer survive(&err)
	if err := s.enter(); err != nil {
		return err
	}
	defer s.active.Add(-1)
	if err := fault.Hit("executor.exchange.serve"); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	f, size, freed, err := s.store.open(req.GetAttemptId(), req.GetPartition(), req.GetTicket())
	if errors.Is(err, errUnknown) {
		return unknown()
	}
	if err != nil {
		return status.Error(codes.Internal, "the output cannot be opened")
	}
	defer f.Close()
	if req.GetOffset() < 0 || req.GetOffset() > size {
		return status.Errorf(codes.OutOfRange, "offset %d of %d bytes", req.GetOffset(), size)
	}
	return s.send(f, io.NewSectionReader(f, req.GetOffset(), size-req.GetOffset()), freed, stream)
}

// survive keeps a defect here from ending the tasks of this process.
func survive(err *error) {
	if r := recover(); r != nil {
		slog.Error("panic in an exchange", "panic", r, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the executor met a defect in its own code")
	}
}

// enter counts a stream, if there is room for it.
func (s *server) enter() error {
	if s.active.Add(1) > maxStreams {
		s.active.Add(-1)
		return status.Error(codes.ResourceExhausted, "too many fetches at a time")
	}
	return nil
}

func unknown() error { return status.Error(codes.NotFound, errUnknown.Error()) }

func (s *server) send(f *os.File, in *io.SectionReader, freed <-chan struct{}, stream grpc.ServerStreamingServer[executorv1.FetchResponse]) error {
	var buf []byte
	for left := in.Size(); left > 0; {
		select {
		case <-freed:
			return unknown()
		case <-stream.Context().Done():
			return stream.Context().Err()
		default:
		}
		if err := fault.Hit("executor.exchange.chunk"); err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		n := min(left, s.next())
		if int64(cap(buf)) < n || int64(cap(buf)) > 2*n {
			buf = make([]byte, n)
		}
		buf = buf[:n] // Send has marshalled the last message when it returns
		if _, err := io.ReadFull(in, buf); err != nil {
			return status.Error(codes.DataLoss, "the file of this output is damaged")
		}
		if err := stream.Send(&executorv1.FetchResponse{Data: buf}); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// next is how much the next message may have.
func (s *server) next() int64 {
	if s.active.Load() > fewStreams {
		return smallChunk
	}
	return chunk
}
