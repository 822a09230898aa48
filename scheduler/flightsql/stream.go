package flightsql

import (
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/internal/flightrows"
)

// DoGet streams the rows of a statement's ticket; all other tickets name metadata.
func (s *Service) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	t, err := fsql.GetStatementQueryTicket(ticket)
	if err != nil {
		return s.FlightServer.DoGet(ticket, stream)
	}
	return s.s.stream(t.GetStatementHandle(), stream)
}

func (s *server) stream(handle []byte, stream flight.FlightService_DoGetServer) error {
	who := s.Principal(stream.Context())
	id, ok := s.openTicket(who, handle)
	if !ok {
		return unknownHandle("ticket")
	}
	job, _, err := s.backend.Job(who, id)
	if err != nil {
		return unknownHandle("ticket")
	}
	rows, err := s.open(who, job)
	if err != nil {
		return err
	}
	defer rows.Close()
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rows.Schema()), ipc.WithAllocator(s.mem))
	for rows.Next() {
		// Send blocks while the client does not read, so that one batch is in memory.
		if err := flightrows.EachPiece(rows.RecordBatch(), w.Write); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		if status.Code(err) == codes.Unavailable { // they come from an executor
			return err
		}
		return status.Errorf(codes.DataLoss, "job %s: its rows cannot be read to their end: %v", id, err)
	}
	return w.Close() // writes the schema if there was no row
}
