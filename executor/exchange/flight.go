package exchange

import (
	"crypto/sha256"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/flightrows"
)

// flightServer hands large results to the clients of the scheduler's Flight SQL, who have a ticket for them. There is nothing else to be had here.
type flightServer struct {
	flight.BaseFlightServer
	*server
}

// maxFlights is how many results are sent at a time: each has a batch in memory.
const maxFlights = 64

// DoGet streams the rows of a ticket.
func (s *flightServer) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) (err error) {
	defer survive(&err)
	if err := s.enter(); err != nil {
		return err
	}
	defer s.active.Add(-1)
	if s.flights.Add(1) > maxFlights {
		s.flights.Add(-1)
		return status.Error(codes.ResourceExhausted, "too many results are being fetched at a time")
	}
	defer s.flights.Add(-1)
	if err := fault.Hit("executor.flight.serve"); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	q, err := fsql.GetStatementQueryTicket(ticket)
	if err != nil {
		return unknown()
	}
	t, err := flightrows.Decode(q.GetStatementHandle())
	if err != nil {
		return unknown()
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	_, token, _ := flightrows.Shown(md)
	f, size, err := s.store.openRows(t.Attempt, t.Secret, sha256.Sum256([]byte(token)))
	if errors.Is(err, errUnknown) {
		return unknown()
	}
	if err != nil {
		return status.Error(codes.Internal, "the rows cannot be opened")
	}
	defer f.Close()
	return sendRows(io.LimitReader(f, size), stream)
}

func sendRows(in io.Reader, stream flight.FlightService_DoGetServer) error {
	damaged := status.Error(codes.DataLoss, "the file of this result is damaged")
	r, err := ipc.NewReader(in)
	if err != nil {
		return damaged
	}
	defer r.Release()
	w := flight.NewRecordWriter(stream, ipc.WithSchema(r.Schema()))
	for r.Next() {
		if err := fault.Hit("executor.flight.batch"); err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		// Send blocks while the client does not read, so that one batch is in memory.
		if err := flightrows.EachPiece(r.RecordBatch(), w.Write); err != nil {
			return err
		}
	}
	if r.Err() != nil {
		return damaged
	}
	return w.Close()
}

// Handshake turns basic authentication into the bearer token that it carries, as the scheduler does: drivers ask every location for one. It checks
// nothing; DoGet does.
func (s *flightServer) Handshake(stream flight.FlightService_HandshakeServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	_, token, _ := flightrows.Shown(md)
	if token == "" {
		return status.Error(codes.Unauthenticated, "no token: show the one that the scheduler takes")
	}
	return stream.SendHeader(metadata.Pairs("authorization", "Bearer "+token))
}
