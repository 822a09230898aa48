package flightsql

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/scheduler/sql"
)

// tableKind is the only type that tables have.
const tableKind = "TABLE"

// chunks is what arrow-go's routing sends to the client.
type chunks = <-chan flight.StreamChunk

// listing describes a metadata result: its ticket is the command itself.
func (s *server) listing(desc *flight.FlightDescriptor, schema *arrow.Schema) (*flight.FlightInfo, error) {
	return &flight.FlightInfo{
		Schema: flight.SerializeSchema(schema, s.mem), FlightDescriptor: desc, TotalRecords: -1, TotalBytes: -1,
		Endpoint: []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: desc.GetCmd()}}},
	}, nil
}

// batch is a stream of one batch, which fill builds.
func (s *server) batch(schema *arrow.Schema, fill func(*array.RecordBuilder)) (*arrow.Schema, chunks, error) {
	b := array.NewRecordBuilder(s.mem, schema)
	defer b.Release()
	fill(b)
	ch := make(chan flight.StreamChunk, 1)
	if rec := b.NewRecordBatch(); rec.NumRows() > 0 {
		ch <- flight.StreamChunk{Data: rec}
	}
	close(ch)
	return schema, ch, nil
}

// text appends to a column of text.
func text(b *array.RecordBuilder, column int, v string) {
	if f, ok := b.Field(column).(*array.StringBuilder); ok {
		f.Append(v)
	}
}

// GetFlightInfoCatalogs implements Flight SQL.
func (s *server) GetFlightInfoCatalogs(_ context.Context, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.Catalogs)
}

// DoGetCatalogs implements Flight SQL.
func (s *server) DoGetCatalogs(ctx context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.batch(schema_ref.Catalogs, func(b *array.RecordBuilder) {
		for _, c := range s.catalogs(ctx, nil) {
			text(b, 0, c)
		}
	})
}

// catalogs are those that a filter leaves. The filter is a name, not a pattern; the empty one asks for tables without a catalog: there are none.
func (s *server) catalogs(ctx context.Context, filter *string) []string {
	all := slices.Sorted(slices.Values(s.backend.Catalogs(s.Principal(ctx))))
	if filter == nil {
		return all
	}
	return slices.DeleteFunc(all, func(c string) bool { return c != *filter })
}

// GetFlightInfoSchemas implements Flight SQL.
func (s *server) GetFlightInfoSchemas(_ context.Context, _ fsql.GetDBSchemas, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.DBSchemas)
}

// namespace is one schema of a catalog.
type namespace struct {
	catalog, name string
	parts         []string
}

// namespaces are the schemas that the filters leave, in order.
func (s *server) namespaces(ctx context.Context, catalog, pattern *string) ([]namespace, error) {
	var out []namespace
	for _, c := range s.catalogs(ctx, catalog) {
		all, err := s.backend.Schemas(ctx, s.Principal(ctx), c)
		if err != nil {
			return nil, asStatus(err)
		}
		first := len(out)
		for _, parts := range all {
			if name := sql.JoinName(parts); matches(pattern, name) || len(parts) == 1 && matches(pattern, parts[0]) {
				out = append(out, namespace{c, name, parts})
			}
		}
		slices.SortFunc(out[first:], func(a, b namespace) int { return compareText(a.name, b.name) })
	}
	return out, nil
}

// DoGetDBSchemas implements Flight SQL.
func (s *server) DoGetDBSchemas(ctx context.Context, cmd fsql.GetDBSchemas) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	all, err := s.namespaces(ctx, cmd.GetCatalog(), cmd.GetDBSchemaFilterPattern())
	if err != nil {
		return nil, nil, err
	}
	return s.batch(schema_ref.DBSchemas, func(b *array.RecordBuilder) {
		for _, n := range all {
			text(b, 0, n.catalog)
			text(b, 1, n.name)
		}
	})
}

// GetFlightInfoTableTypes implements Flight SQL.
func (s *server) GetFlightInfoTableTypes(_ context.Context, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.TableTypes)
}

// DoGetTableTypes implements Flight SQL.
func (s *server) DoGetTableTypes(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.batch(schema_ref.TableTypes, func(b *array.RecordBuilder) { text(b, 0, tableKind) })
}

func tablesSchema(cmd fsql.GetTables) *arrow.Schema {
	if cmd.GetIncludeSchema() {
		return schema_ref.TablesWithIncludedSchema
	}
	return schema_ref.Tables
}

// GetFlightInfoTables implements Flight SQL.
func (s *server) GetFlightInfoTables(_ context.Context, cmd fsql.GetTables, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, tablesSchema(cmd))
}

// tablesPerBatch bounds what is in memory of a long list.
const tablesPerBatch = 200

// DoGetTables implements Flight SQL. With schemas each table is described by its sink, so that the list comes piece by piece.
func (s *server) DoGetTables(ctx context.Context, cmd fsql.GetTables) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	schema := tablesSchema(cmd)
	var all []namespace
	if types := cmd.GetTableTypes(); len(types) == 0 || slices.Contains(types, tableKind) {
		var err error
		if all, err = s.namespaces(ctx, cmd.GetCatalog(), cmd.GetDBSchemaFilterPattern()); err != nil {
			return nil, nil, err
		}
	}
	ch := make(chan flight.StreamChunk)
	l := &tableList{s: s, ctx: ctx, who: s.Principal(ctx), cmd: cmd, out: ch, b: array.NewRecordBuilder(s.mem, schema)}
	go l.run(all)
	return schema, ch, nil
}

type tableList struct {
	s   *server
	ctx context.Context //nolint:containedctx // of the call that reads the list
	who string
	cmd fsql.GetTables
	out chan<- flight.StreamChunk
	b   *array.RecordBuilder
	n   int
}

func (l *tableList) run(all []namespace) {
	defer close(l.out)
	defer l.b.Release()
	err := guarded("list of tables", func() error {
		for _, n := range all {
			if err := l.namespace(n); err != nil {
				return err
			}
		}
		return l.flush()
	})
	if err != nil {
		l.send(flight.StreamChunk{Err: asStatus(err)})
	}
}

func (l *tableList) send(c flight.StreamChunk) {
	select {
	case l.out <- c:
	case <-l.ctx.Done():
		if c.Data != nil {
			c.Data.Release()
		}
	}
}

func (l *tableList) flush() error {
	if l.n > 0 {
		l.send(flight.StreamChunk{Data: l.b.NewRecordBatch()})
		l.n = 0
	}
	return l.ctx.Err()
}

func (l *tableList) namespace(n namespace) error {
	tables, err := l.s.backend.Tables(l.ctx, l.who, n.catalog, n.parts)
	if status.Code(err) == codes.NotFound {
		return nil // dropped meanwhile
	}
	if err != nil {
		return err
	}
	slices.Sort(tables)
	for _, t := range tables {
		if !matches(l.cmd.GetTableNameFilterPattern(), t) {
			continue
		}
		if err := l.table(n, t); err != nil {
			return err
		}
		if l.n++; l.n == tablesPerBatch {
			if err := l.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *tableList) table(n namespace, table string) error {
	var schema []byte
	if l.cmd.GetIncludeSchema() {
		var err error
		if schema, err = l.schema(n, table); err != nil {
			return err
		}
	}
	text(l.b, 0, n.catalog)
	text(l.b, 1, n.name)
	text(l.b, 2, table)
	text(l.b, 3, tableKind)
	if f, ok := l.b.Field(len(l.b.Fields()) - 1).(*array.BinaryBuilder); ok {
		f.Append(schema)
	}
	return nil
}

// schema of a table that cannot be described has no columns: one such table does not hide all others.
func (l *tableList) schema(n namespace, table string) ([]byte, error) {
	name := append(append([]string{n.catalog}, n.parts...), table)
	desc, err := l.s.backend.Table(l.ctx, l.who, name, Statement{})
	if l.ctx.Err() != nil {
		return nil, l.ctx.Err()
	}
	out := arrow.NewSchema(nil, nil)
	if err == nil {
		out, err = tableSchema(n.catalog, n.name, table, desc)
	}
	if err != nil {
		l.s.Logger.Warn("a table in a list cannot be described", "table", sql.JoinName(name), "error", err)
		out = arrow.NewSchema(nil, nil)
	}
	return flight.SerializeSchema(out, l.s.mem), nil
}
