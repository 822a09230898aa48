package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/scheduler/flightsql"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/sql"
)

// flightListener serves Flight SQL on its own address.
type flightListener struct {
	service *flightsql.Service
	grpc    *grpc.Server
	addr    string
}

// defaultFlightMessage is the largest message that a Flight client may send.
const defaultFlightMessage = 64 << 20

// listenFlight starts the listener, if the configuration has one.
func (s *Server) listenFlight(g *guard) error {
	if s.cfg.Flight.Listen == "" {
		return nil
	}
	if err := checkListen(s.cfg, "flight.listen", s.cfg.Flight.Listen, false); err != nil {
		return err
	}
	creds, err := s.serverTLS()
	if err != nil {
		return err
	}
	limit := int(cmp.Or(s.cfg.Flight.MaxMessageBytes, defaultFlightMessage))
	opts := append(append(rpc.ServerOptions(), s.survive()...), g.flightOptions()...)
	// A row can be larger than a message of ours, and what a client takes is its own business.
	opts = append(opts, grpc.MaxRecvMsgSize(limit), grpc.MaxSendMsgSize(math.MaxInt32))
	if creds != nil {
		opts = append(opts, grpc.Creds(creds))
	}
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", s.cfg.Flight.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with flight.listen in the configuration", s.cfg.Flight.Listen, err)
	}
	f := &flightListener{grpc: grpc.NewServer(opts...), addr: l.Addr().String()}
	f.service = flightsql.New(flightsql.Config{
		Backend: &flightBackend{s, g}, Principal: principal, Version: s.opts.Version, MaxMessage: limit, Kept: outputKept, Logger: s.log,
		Handshake: g.handshake,
	})
	f.service.Register(f.grpc)
	s.flight = f
	s.spawn(func() {
		if err := f.grpc.Serve(l); err != nil {
			s.log.Error("Flight SQL listener ended", "error", err)
		}
	})
	s.log.Info("Flight SQL ready", "address", f.addr)
	return nil
}

// FlightAddr is where Flight SQL is served; "" if it is not.
func (s *Server) FlightAddr() string {
	if s.flight == nil {
		return ""
	}
	return s.flight.addr
}

// stopFlight ends calls without cancelling their jobs, which go on with the next start.
func (s *Server) stopFlight(ctx context.Context) {
	f := s.flight
	if f == nil {
		return
	}
	f.service.Close()
	stopped := make(chan struct{})
	go func() { f.grpc.GracefulStop(); close(stopped) }()
	select {
	case <-stopped:
	case <-ctx.Done():
	case <-time.After(2 * time.Second): // a client that reads slowly
	}
	f.grpc.Stop()
}

// flightBackend gives Flight SQL the jobs of this scheduler.
type flightBackend struct {
	s     *Server
	guard *guard
}

var _ flightsql.Backend = (*flightBackend)(nil)

// Submit implements flightsql.Backend.
func (b *flightBackend) Submit(who string, st flightsql.Statement) (string, bool, error) {
	req := &schedulerv1.SubmitRequest{Sql: st.SQL, IdempotencyKey: st.Key, DefaultCatalog: st.Catalog, DefaultSchema: st.Schema, Settings: st.Settings}
	if st.Input == "" {
		j, existing, err := b.s.submit(who, req, func(rec *journal.Job) { rec.Keep = b.keepRows(who) })
		if err != nil {
			return "", false, grpcError(err)
		}
		return j.id, existing, nil
	}
	j, existing, err := b.s.submit(who, req, func(rec *journal.Job) {
		rec.Input, rec.StatementHash = st.Input, hashParts("ingest", append([]string{st.Catalog, st.Schema}, st.InputIdentity...)...)
	})
	if err != nil {
		b.s.dropInput(st.Input)
		return "", false, grpcError(err)
	}
	if existing {
		b.s.dropInput(st.Input)
	} else {
		b.s.spawn(func() { b.s.watchInput(j) })
	}
	return j.id, existing, nil
}

func (b *flightBackend) lookup(who, id string) (*job, error) {
	j := b.s.job(id)
	if j == nil || j.owner != who {
		return nil, status.Errorf(codes.NotFound, "no job %q", id)
	}
	return j, nil
}

// Job implements flightsql.Backend.
func (b *flightBackend) Job(who, id string) (*schedulerv1.Job, <-chan struct{}, error) {
	j, err := b.lookup(who, id)
	if err != nil {
		return nil, nil, err
	}
	snap, changed := j.snapshot()
	return snap, changed, nil
}

// Cancel implements flightsql.Backend.
func (b *flightBackend) Cancel(who, id string) (bool, string, error) {
	j, err := b.lookup(who, id)
	if err != nil {
		return false, "", err
	}
	ok, msg := b.s.cancelJob(b.s.ctx, j, who)
	return ok, msg, nil
}

// Columns implements flightsql.Backend.
func (b *flightBackend) Columns(ctx context.Context, who string, st flightsql.Statement) ([]*planv1.Column, error) {
	stmt, err := sql.Parse(st.SQL)
	if err != nil {
		return nil, grpcError(syntaxFailure(err))
	}
	sel, ok := stmt.(*sql.Select)
	if !ok {
		return inlineColumns(stmt, st.Schema), nil
	}
	j, err := b.unborn(ctx, who, st)
	if err != nil {
		return nil, err
	}
	defer j.cancel(nil)
	a, err := b.s.analyze(j.ctx, j, sel.Query.Text)
	if err != nil {
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, grpcError(asFailure(b.s.mayNot(who, err)))
	}
	return a.result.GetColumns(), nil
}

// Parameters implements flightsql.Backend.
func (b *flightBackend) Parameters(ctx context.Context, who string, st flightsql.Statement) ([]string, error) {
	j, err := b.unborn(ctx, who, st)
	if err != nil {
		return nil, err
	}
	defer j.cancel(nil)
	a, err := b.s.analyzeFor(j.ctx, j, st.SQL, true)
	if err != nil {
		return nil, grpcError(asFailure(b.s.mayNot(who, err)))
	}
	return a.result.GetParameters(), nil
}

// unborn is a job that only lends its name and defaults to an analysis: it is nowhere recorded.
func (b *flightBackend) unborn(ctx context.Context, who string, st flightsql.Statement) (*job, error) {
	rec, err := newRecord(who, b.s.cfg.Cluster, &schedulerv1.SubmitRequest{Sql: st.SQL, DefaultCatalog: st.Catalog, DefaultSchema: st.Schema})
	if err != nil {
		return nil, err
	}
	return newJob(ctx, rec), nil
}

// inlineColumns are those of the results that the scheduler makes itself.
func inlineColumns(stmt sql.Statement, schema string) []*planv1.Column {
	var names []string
	switch st := stmt.(type) {
	case *sql.Insert, *sql.AddFiles:
		names = commitColumns
	case *sql.CreateTable:
		names = []string{"result"}
		if st.Query != nil || st.Replace {
			names = commitColumns
		}
	case *sql.Truncate:
		names = commitColumns
	case *sql.Validate:
		names = validateColumns
	case *sql.ShowCatalogs:
		names = []string{"catalog"}
	case *sql.ShowSchemas:
		names = []string{"schema"}
	case *sql.ShowTables:
		names = []string{"schema", "table"}
		if st.Schema != nil || schema != "" {
			names = names[1:]
		}
	case *sql.Describe:
		names = []string{"column", "type", "null", "partition", "comment"}
	case *sql.Explain:
		names = []string{"plan"}
	default:
		names = []string{"result"}
	}
	return columnsNamed(names)
}
