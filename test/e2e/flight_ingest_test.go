package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	signet "github.com/signet-io/signet/scheduler/flightsql"
	"github.com/signet-io/signet/test/harness"
)

const (
	appendTo, createNew, createOrAppend, replaceIt = "append", "create", "create_append", "replace"
)

func ingestInto(mode, schema, table string) *flightsql.ExecuteIngestOpts {
	o := &flightsql.TableDefinitionOptions{IfNotExist: flightsql.TableDefinitionOptionsTableNotExistOptionFail, IfExists: flightsql.TableDefinitionOptionsTableExistsOptionAppend}
	switch mode {
	case createNew:
		o.IfNotExist, o.IfExists = flightsql.TableDefinitionOptionsTableNotExistOptionCreate, flightsql.TableDefinitionOptionsTableExistsOptionFail
	case createOrAppend:
		o.IfNotExist = flightsql.TableDefinitionOptionsTableNotExistOptionCreate
	case replaceIt:
		o.IfNotExist, o.IfExists = flightsql.TableDefinitionOptionsTableNotExistOptionCreate, flightsql.TableDefinitionOptionsTableExistsOptionReplace
	}
	return &flightsql.ExecuteIngestOpts{TableDefinitionOptions: o, Table: table, Schema: &schema}
}

func reader(t require.TestingT, schema *arrow.Schema, batches ...arrow.RecordBatch) array.RecordReader {
	r, err := array.NewRecordReader(schema, batches)
	require.NoError(t, err)
	return r
}

// requireNoInputs: files of ingests are gone when their jobs are.
func requireNoInputs(t *testing.T, c *harness.Cluster) {
	t.Helper()
	harness.Eventually(t, "the files of ingests are removed", func() bool {
		left, _ := os.ReadDir(filepath.Join(c.Dir, "data", "inputs")) // it may never have been made
		return len(left) == 0
	})
}

// An ingest is one job with one commit, by the names of the columns, in each mode that there is.
func TestFlight_IngestModes(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 2})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	rows := func() array.RecordReader {
		return reader(t, schema, batch(t, schema, `[{"s":"a","id":1},{"s":null,"id":2}]`), batch(t, schema, `[]`), batch(t, schema, `[{"s":"c","id":null}]`))
	}
	ingest := func(mode, table string) (int64, error) {
		return cl.ExecuteIngest(ctx, rows(), ingestInto(mode, "f", table))
	}
	_, err := ingest(appendTo, "t")
	require.Equal(t, codes.NotFound, status.Code(err))
	n, err := ingest(createNew, "t")
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	_, err = ingest(createNew, "t")
	require.Equal(t, codes.AlreadyExists, status.Code(err))
	_, err = ingest(replaceIt, "t")
	require.Equal(t, codes.Unimplemented, status.Code(err))
	for _, mode := range []string{appendTo, createOrAppend} {
		n, err = ingest(mode, "t")
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
	}
	n, err = ingest(createOrAppend, "new table")
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	require.Equal(t, 3, c.Table("f", "t").Snapshots)
	require.EqualValues(t, 9, c.Table("f", "t").Records)
	require.Equal(t, []string{`{"n":9,"s":"9"}`}, flightQuery(t, cl, "SELECT count(*) AS n, sum(id) AS s FROM lake.f.t"))
	require.Len(t, flightQuery(t, cl, `SELECT * FROM lake.f."new table"`), 3)

	// The table's columns are filled by name; others are refused, and so is what cannot be had.
	flightUpdate(t, cl, "CREATE TABLE lake.f.wide (id INTEGER, more DATE, s VARCHAR)")
	n, err = ingest(appendTo, "wide")
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	require.Equal(t, `{"id":1,"more":null,"s":"a"}`, flightQuery(t, cl, "SELECT * FROM lake.f.wide WHERE id = 1")[0])
	flightUpdate(t, cl, "CREATE TABLE lake.f.narrow (id BIGINT)")
	_, err = ingest(appendTo, "narrow")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "column s")
	temporary := ingestInto(createNew, "f", "temp")
	temporary.Temporary = true
	_, err = cl.ExecuteIngest(ctx, rows(), temporary)
	require.Equal(t, codes.Unimplemented, status.Code(err))
	odd := ingestInto(appendTo, "f", "t")
	odd.Options = map[string]string{"speed": "high"}
	_, err = cl.ExecuteIngest(ctx, rows(), odd)
	require.ErrorContains(t, err, "speed")

	// No rows make a table without rows.
	n, err = cl.ExecuteIngest(ctx, reader(t, schema, batch(t, schema, `[]`)), ingestInto(createNew, "f", "empty"))
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, flightQuery(t, cl, "SELECT * FROM lake.f.empty"))
	requireNoInputs(t, c)
	for _, j := range c.Jobs() {
		require.NotContains(t, j.Statement, c.Dir, "a statement shows no path of the scheduler's")
	}
	_, err = cl.Execute(ctx, "SELECT * FROM '"+signet.InputName+"'")
	require.Error(t, err, "nobody reads an ingest's file by its name")
}

// Values of every type arrive as they were sent.
func TestFlight_IngestTypes(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	var fields []arrow.Field
	var values, nulls []string
	for i, v := range boundValues {
		switch v.typ.ID() {
		case arrow.DURATION, arrow.TIMESTAMP:
			if v.typ.ID() == arrow.DURATION || strings.HasPrefix(v.engine, "TIMESTAMP_NS") {
				continue // no table has them by default
			}
		}
		if v.json == `"a\u0000b"` {
			continue // DuckDB's reader of Parquet takes no NUL character in text
		}
		fields = append(fields, arrow.Field{Name: "c" + strconv.Itoa(i), Type: v.typ, Nullable: true})
		values = append(values, fmt.Sprintf("%q:%s", "c"+strconv.Itoa(i), v.json))
		nulls = append(nulls, fmt.Sprintf("%q:null", "c"+strconv.Itoa(i)))
	}
	schema := arrow.NewSchema(fields, nil)
	rec := batch(t, schema, "[{"+strings.Join(values, ",")+"},{"+strings.Join(nulls, ",")+"}]")
	n, err := cl.ExecuteIngest(ctx, reader(t, schema, rec), ingestInto(createNew, "f", "t"))
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	info, err := cl.Execute(ctx, "SELECT * FROM lake.f.t ORDER BY c0 NULLS LAST")
	require.NoError(t, err)
	got := readAll(ctx, t, cl, info.Endpoint[0].Ticket)
	for col, f := range got.Schema().Fields() {
		i, err := strconv.Atoi(f.Name[1:])
		require.NoError(t, err)
		v, want := boundValues[i], boundValues[i].back
		if want == "" {
			want = v.json
		}
		switch v.typ.ID() {
		case arrow.TIMESTAMP:
			want = strings.Replace(want, " ", "T", 1)
		case arrow.UINT64: // a decimal in tables
			want = strconv.Quote(want)
		}
		require.True(t, got.Column(col).IsNull(1), f.Name)
		if b, ok := got.Column(col).(*array.Binary); ok && v.json == `""` {
			require.True(t, b.IsValid(0) && b.ValueLen(0) == 0)
			continue
		}
		text, err := got.Column(col).MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, "["+want+",null]", string(text), "%s as %s", v.typ, f.Type)
	}
}

// Nanoseconds: kept where the table keeps them, taken where nothing is lost, refused with the column where something would be.
func TestFlight_IngestNanoseconds(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	schema := arrow.NewSchema([]arrow.Field{{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_ns, Nullable: true}, {Name: "n", Type: arrow.Null, Nullable: true}}, nil)
	whole := batch(t, schema, `[{"ts":"2024-02-29T01:02:03.000001Z","n":null},{"ts":null,"n":null}]`)
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (ts TIMESTAMPTZ, n VARCHAR)")
	_, err := cl.ExecuteIngest(ctx, reader(t, schema, whole), ingestInto(appendTo, "f", "t"))
	require.NoError(t, err)
	require.Equal(t, []string{`{"n":null,"ts":"2024-02-29T01:02:03.000001Z"}`}, flightQuery(t, cl, "SELECT * FROM lake.f.t WHERE ts IS NOT NULL"))
	_, err = cl.ExecuteIngest(ctx, reader(t, schema, batch(t, schema, `[{"ts":"2024-02-29T01:02:03.000001001Z","n":null}]`)), ingestInto(appendTo, "f", "t"))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "column ts")
	_, err = cl.ExecuteIngest(ctx, reader(t, schema, whole), ingestInto(createNew, "f", "u"))
	require.ErrorContains(t, err, "column n", "a table cannot be created from a column without a type")
}

// S64: the same ingest under the same key commits once, also when the table was created by it.
func TestFlight_IngestTwiceUnderOneKey(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, mode := range []string{createNew, createOrAppend, appendTo} {
		table := "t_" + mode
		if mode == appendTo {
			flightUpdate(t, cl, "CREATE TABLE lake.f."+table+" (id BIGINT)")
		}
		ctx := metadata.AppendToOutgoingContext(harness.Context(t), signet.KeyHeader, "ingest-"+mode)
		for range 3 {
			n, err := cl.ExecuteIngest(ctx, reader(t, schema, batch(t, schema, `[{"id":1},{"id":2}]`)), ingestInto(mode, "f", table))
			require.NoError(t, err, mode)
			require.EqualValues(t, 2, n)
		}
		require.Equal(t, 1, c.Table("f", table).Snapshots, mode)
		_, err := cl.ExecuteIngest(ctx, reader(t, schema, batch(t, schema, `[{"id":1}]`)), ingestInto(mode, "f", table))
		require.ErrorContains(t, err, "another statement", "other rows under the same key")
	}
	requireNoInputs(t, c)
}

// endless gives batches until its context is done, and fails then.
type endless struct {
	schema *arrow.Schema
	rec    arrow.RecordBatch
	left   int
	err    error
}

func (e *endless) Retain()                        {}
func (e *endless) Release()                       {}
func (e *endless) Schema() *arrow.Schema          { return e.schema }
func (e *endless) RecordBatch() arrow.RecordBatch { return e.rec }
func (e *endless) Record() arrow.RecordBatch      { return e.rec }
func (e *endless) Err() error                     { return e.err }
func (e *endless) Next() bool {
	if e.left == 0 {
		e.err = errors.New("the source broke")
		return false
	}
	e.left--
	return true
}

// A stream that breaks off commits nothing and leaves nothing.
func TestFlight_IngestOfABrokenStream(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT)")
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	ctx, cancel := context.WithCancel(harness.Context(t))
	_, err := cl.ExecuteIngest(ctx, &endless{schema: schema, rec: batch(t, schema, `[{"id":1},{"id":2}]`), left: 1000}, ingestInto(appendTo, "f", "t"))
	require.ErrorContains(t, err, "the source broke")
	cancel() // the client lets go of the stream without having ended it
	requireNoInputs(t, c)
	require.Zero(t, c.Table("f", "t").Snapshots)
	require.Len(t, c.Jobs(), 2, "no job was made of it")
}

// A large ingest takes little memory of the scheduler's.
func TestFlight_LargeIngest(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 2})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	const rows, batches = 8192, 400
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("%0100d", i))
	}
	src := &endless{schema: schema, rec: b.NewRecordBatch(), left: batches}
	before := residentMiB(c.Scheduler.PID())
	peak := watchMemory(c.Scheduler.PID())
	n, err := cl.ExecuteIngest(ctx, &ended{src}, ingestInto(createNew, "f", "t"))
	require.NoError(t, err)
	require.EqualValues(t, rows*batches, n)
	grown := peak() - before
	t.Logf("%d MiB ingested, the scheduler grew by %d MiB", rows*batches*112>>20, grown)
	require.Less(t, grown, 250)
	require.Equal(t, 1, c.Table("f", "t").Snapshots)
	require.Equal(t, []string{fmt.Sprintf(`{"n":%d}`, rows*batches)}, flightQuery(t, cl, "SELECT count(*) AS n FROM lake.f.t"))
	requireNoInputs(t, c)
}

// ended is endless without its error.
type ended struct{ *endless }

func (e *ended) Err() error { return nil }

// Schemas of many columns come through both ways; one of none is refused, as is the transaction that an ingest names.
func TestFlight_WideAndEmptySchemas(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	fields := make([]arrow.Field, 1500)
	row := make([]string, len(fields))
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprintf("column %d", i), Type: arrow.PrimitiveTypes.Int64, Nullable: true}
		row[i] = fmt.Sprintf("%q:%d", fields[i].Name, i)
	}
	wide := arrow.NewSchema(fields, nil)
	n, err := cl.ExecuteIngest(ctx, reader(t, wide, batch(t, wide, "[{"+strings.Join(row, ",")+"}]")), ingestInto(createNew, "f", "wide"))
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	info, err := cl.Execute(ctx, "SELECT * FROM lake.f.wide")
	require.NoError(t, err)
	got := readAll(ctx, t, cl, info.Endpoint[0].Ticket)
	require.EqualValues(t, len(fields), got.NumCols())
	for i, c := range got.Columns() {
		require.Equal(t, fields[i].Name, got.Schema().Field(i).Name)
		require.EqualValues(t, i, c.(*array.Int64).Value(0))
	}
	none := arrow.NewSchema(nil, nil)
	for _, mode := range []string{createNew, appendTo} {
		table := map[string]string{createNew: "none", appendTo: "wide"}[mode]
		_, err = cl.ExecuteIngest(ctx, reader(t, none, array.NewRecordBatch(none, nil, 1)), ingestInto(mode, "f", table))
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
		require.ErrorContains(t, err, "column")
	}
	begun := ingestInto(appendTo, "f", "wide")
	begun.TransactionId = []byte("t")
	_, err = cl.ExecuteIngest(ctx, reader(t, wide, batch(t, wide, "[]")), begun)
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.ErrorContains(t, err, "transactions are not supported")
}
