package scheduler

import (
	"cmp"
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/flightrows"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/flightsql"
	"github.com/signet-io/signet/scheduler/journal"
)

// defaultEndpointBytes is from which size on results stay on their executors.
const defaultEndpointBytes = 16 << 20

// Rows implements flightsql.Backend. The rows stay readable even if their time is over meanwhile.
func (b *flightBackend) Rows(who, id string) (io.ReadCloser, int64, error) {
	j, err := b.lookup(who, id)
	if err != nil {
		return nil, 0, err
	}
	j.mu.Lock()
	out := j.output
	j.mu.Unlock()
	if at := out.located(); at != nil {
		return b.s.relay(id, at.part), at.part.GetBytes(), nil
	}
	gone := status.Errorf(codes.FailedPrecondition, "the rows of job %s are gone: they are kept for %s, and not over a restart; run the query again, under a new key if it has one", id, outputKept)
	f, size, err := out.open()
	if errors.Is(err, errOutputGone) {
		return nil, 0, gone
	}
	if err != nil {
		return nil, 0, err
	}
	return &section{io.NewSectionReader(f, 0, size), f}, size, nil
}

// keepRows says from which size on results stay on their executors.
func (b *flightBackend) keepRows(who string) *journal.KeepRows {
	if b.s.cfg.Flight.Endpoints == config.EndpointsScheduler {
		return nil
	}
	keep := &journal.KeepRows{Above: int64(cmp.Or(b.s.cfg.Flight.EndpointBytes, defaultEndpointBytes))}
	for _, c := range b.guard.clients {
		if c.principal == who {
			keep.Readers = append(keep.Readers, c.sum[:])
		}
	}
	if len(keep.Readers) == 0 && !b.guard.open() { // known by a certificate, which executors do not ask for
		return nil
	}
	return keep
}

// Location implements flightsql.Backend. An executor that only its own machine reaches is named to clients of that machine: others would take their
// token to whatever listens there on theirs.
func (b *flightBackend) Location(who, id string) (*flightsql.Location, error) {
	j, err := b.lookup(who, id)
	if err != nil {
		return nil, err
	}
	rows := j.located()
	if rows == nil {
		return nil, nil
	}
	part := rows.part
	at := &flightsql.Location{
		Attempt: part.AttemptId, Secret: flightrows.Secret(part.Ticket), Columns: rows.columns, Rows: part.Rows, Bytes: part.Bytes,
	}
	switch local := exchangeclient.IsLoopback(part.Address); {
	case local && exchangeclient.IsLoopback(b.s.flight.addr): // executors speak plain text there, and only there
		at.URI = "grpc+tcp://" + part.Address
	case !local && part.Address != "":
		at.URI = "grpc+tls://" + part.Address
	}
	return at, nil
}

type section struct {
	io.Reader
	io.Closer
}
