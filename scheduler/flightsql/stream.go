package flightsql

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxBatch is how large a batch is sent if its rows can be divided: below the 4 MiB that many clients take without being told.
const maxBatch = 2 << 20

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
	id, ok := s.seal.open(kindTicket, who, handle)
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
		if err := eachPiece(rows.RecordBatch(), w.Write); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return status.Errorf(codes.DataLoss, "job %s: its rows cannot be read to their end: %v", id, err)
	}
	return w.Close() // writes the schema if there was no row
}

// eachPiece hands a batch on in pieces that are small enough, as far as rows can be divided.
func eachPiece(rec arrow.RecordBatch, f func(arrow.RecordBatch) error) error {
	if rec.NumRows() <= 1 || batchSize(rec) <= maxBatch {
		return f(rec)
	}
	return halve(rec, 0, rec.NumRows(), f)
}

func halve(rec arrow.RecordBatch, from, to int64, f func(arrow.RecordBatch) error) error {
	if to-from > 1 && rangeSize(rec, from, to) > maxBatch {
		middle := from + (to-from)/2
		if err := halve(rec, from, middle, f); err != nil {
			return err
		}
		return halve(rec, middle, to, f)
	}
	piece := rec.NewSlice(from, to)
	defer piece.Release()
	return f(piece)
}

// rangeSize estimates the bytes of some rows: exactly for text and bytes, in proportion for all else.
func rangeSize(rec arrow.RecordBatch, from, to int64) int64 {
	var n int64
	for _, col := range rec.Columns() {
		switch a := col.(type) {
		case array.BinaryLike:
			for i := from; i < to; i++ {
				n += int64(a.ValueLen(int(i)))
			}
		default:
			n += dataSize(col.Data()) * (to - from) / max(rec.NumRows(), 1)
		}
	}
	return n
}

// batchSize is what the buffers of a batch take; those of a slice count whole.
func batchSize(rec arrow.RecordBatch) (n int64) {
	for _, col := range rec.Columns() {
		n += dataSize(col.Data())
	}
	return n
}

func dataSize(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += dataSize(c)
	}
	return n
}
