package flightsql

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// prepared is a prepared statement. It holds a text and values; nothing of it is kept by the engine.
type prepared struct {
	*template
	principal string
	defaults  Statement

	mu    sync.Mutex
	bound *binding
}

// CreatePreparedStatement checks the statement and, for queries, analyses it: an error shows now, and the result's columns are known.
func (s *server) CreatePreparedStatement(ctx context.Context, req fsql.ActionCreatePreparedStatementRequest) (res fsql.ActionCreatePreparedStatementResult, err error) {
	if err := noTransaction(req.GetTransactionId()); err != nil {
		return res, err
	}
	t, err := parseTemplate(req.GetQuery())
	if err != nil {
		return res, err
	}
	p := &prepared{template: t, principal: s.Principal(ctx), defaults: s.statement(ctx, "")}
	update := isUpdate(t.stmt)
	if !update {
		if res.DatasetSchema, err = s.preparedSchema(ctx, p); err != nil {
			return res, err
		}
	}
	if t.count > 0 {
		res.ParameterSchema = s.parameterSchema(ctx, p)
	}
	res.IsUpdate = &update
	res.Handle, err = s.prepared.add(p)
	return res, err
}

// preparedSchema is the result's. With parameters it is that for NULLs: types that depend on the values are known when they are bound. A query
// that takes no NULL there has none yet.
func (s *server) preparedSchema(ctx context.Context, p *prepared) (*arrow.Schema, error) {
	st := p.defaults
	st.SQL = p.untyped()
	schema, err := s.schemaOf(ctx, st)
	if err != nil && p.count > 0 && status.Code(err) == codes.InvalidArgument {
		return nil, nil
	}
	return schema, err
}

func (s *server) preparedBy(ctx context.Context, handle []byte) (*prepared, error) {
	p := s.prepared.get(s.Principal(ctx), handle)
	if p == nil {
		return nil, unknownHandle("prepared statement")
	}
	return p, nil
}

// ClosePreparedStatement forgets it. Jobs that it began go on.
func (s *server) ClosePreparedStatement(ctx context.Context, req fsql.ActionClosePreparedStatementRequest) error {
	if !s.prepared.remove(s.Principal(ctx), req.GetPreparedStatementHandle()) {
		return unknownHandle("prepared statement")
	}
	return nil
}

// bind keeps values for the next executions.
func (s *server) bind(ctx context.Context, handle []byte, in *upload) error {
	p, err := s.preparedBy(ctx, handle)
	if err != nil {
		return err
	}
	b, err := p.readBinding(in)
	if err != nil {
		return err
	}
	if err := s.prepared.resize(handle, len(p.text)+b.bytes()); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound = b
	return nil
}

// updatePrepared runs a write with the values that come with the call, all rows as one statement.
func (s *server) updatePrepared(ctx context.Context, handle []byte, in *upload) (int64, error) {
	p, err := s.preparedBy(ctx, handle)
	if err != nil {
		return 0, err
	}
	if !isUpdate(p.stmt) {
		return 0, invalid("this statement returns rows; execute it as a query")
	}
	b, err := p.readBinding(in)
	if err != nil {
		return 0, err
	}
	text, ok, err := p.sql(b)
	if err != nil || !ok {
		return 0, err
	}
	return s.update(ctx, s.execution(ctx, p, text))
}

func (s *server) execution(ctx context.Context, p *prepared, text string) Statement {
	st := p.defaults
	st.SQL, st.Key = text, header(ctx, KeyHeader)
	return st
}

// bound is the statement to run as a query. The values of a write are used once, so that executing it again writes nothing twice.
func (s *server) bound(ctx context.Context, handle []byte, run bool) (Statement, error) {
	p, err := s.preparedBy(ctx, handle)
	if err != nil {
		return Statement{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text, ok, err := p.sql(p.bound)
	switch {
	case err != nil:
		return Statement{}, err
	case !ok && isUpdate(p.stmt):
		return Statement{}, invalid("no row of values is bound; there is nothing to write")
	case !ok:
		text = p.empty()
	}
	if run && isUpdate(p.stmt) {
		p.bound = nil
	}
	return s.execution(ctx, p, text), nil
}

// GetFlightInfoPreparedStatement runs it.
func (s *server) GetFlightInfoPreparedStatement(ctx context.Context, cmd fsql.PreparedStatementQuery, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	st, err := s.bound(ctx, cmd.GetPreparedStatementHandle(), true)
	if err != nil {
		return nil, err
	}
	return s.runForInfo(ctx, st, desc)
}

// GetSchemaPreparedStatement analyses it, with the values that are bound.
func (s *server) GetSchemaPreparedStatement(ctx context.Context, cmd fsql.PreparedStatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	p, err := s.preparedBy(ctx, cmd.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	st := p.defaults
	p.mu.Lock()
	text, ok, err := p.sql(p.bound)
	p.mu.Unlock()
	if st.SQL = text; err != nil || !ok {
		st.SQL = p.untyped()
	}
	return s.schemaResult(ctx, st)
}

// DoGetPreparedStatement refuses: a FlightInfo has tickets of its own, and fetching runs nothing.
func (s *server) DoGetPreparedStatement(context.Context, fsql.PreparedStatementQuery) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return nil, nil, invalid("a prepared statement is no ticket: ask for its FlightInfo, which runs it, and take the ticket in it")
}

// CreatePreparedSubstraitPlan refuses.
func (s *server) CreatePreparedSubstraitPlan(context.Context, fsql.ActionCreatePreparedSubstraitPlanRequest) (res fsql.ActionCreatePreparedStatementResult, err error) {
	return res, errSubstrait
}
