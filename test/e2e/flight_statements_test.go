package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/flightsql"
	"github.com/signet-io/signet/test/harness"
)

// S31, S53: what a root answers is a result like every other; updates tell how many rows they wrote.
// Numbers in docs/semantics.md: S32.
func TestFlight_StatementsAndRootResults(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 2})
	cl := flightDial(t, addr)
	require.EqualValues(t, 0, flightUpdate(t, cl, "CREATE SCHEMA lake.f"))
	require.EqualValues(t, 0, flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT, s VARCHAR)"))
	require.EqualValues(t, 3, flightUpdate(t, cl, "INSERT INTO lake.f.t VALUES (1, 'a'), (2, NULL), (3, 'c')"))
	require.EqualValues(t, 10, flightUpdate(t, cl, "CREATE TABLE lake.f.u AS SELECT i FROM range(10) r(i)"))
	require.EqualValues(t, 0, flightUpdate(t, cl, "INSERT INTO lake.f.t SELECT 1, 'x' WHERE false"))
	require.Equal(t, []string{`{"id":1,"s":"a"}`, `{"id":2,"s":null}`, `{"id":3,"s":"c"}`}, flightQuery(t, cl, "SELECT * FROM lake.f.t ORDER BY id"))

	// A commit's own result.
	ctx := harness.Context(t)
	var header metadata.MD
	info, err := cl.Execute(ctx, "INSERT INTO lake.f.t VALUES (4, 'd')", grpc.Header(&header))
	require.NoError(t, err)
	require.EqualValues(t, 1, info.TotalRecords)
	require.Equal(t, string(info.AppMetadata), header.Get(flightsql.JobHeader)[0])
	require.Contains(t, c.Run("jobs").Out, string(info.AppMetadata))
	first := flightRows(ctx, t, cl, info)
	require.Contains(t, first[0], `"rows":1`)
	require.Contains(t, first[0], `"table":"lake.f.t"`)
	require.Equal(t, first, flightRows(ctx, t, cl, info), "fetching runs nothing")
	require.Equal(t, 2, c.Table("f", "t").Snapshots, "of the two INSERTs that had rows")

	require.Equal(t, []string{`{"table":"t"}`, `{"table":"u"}`}, flightQuery(t, cl, "SHOW TABLES FROM lake.f"))
	require.EqualValues(t, 0, flightUpdate(t, cl, "DROP TABLE lake.f.u"))
}

func TestFlight_ErrorsHaveCodesAndReasons(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT)")
	for statement, want := range map[string]struct {
		code codes.Code
		text string
	}{
		"SELEKT 1":                           {codes.InvalidArgument, "SELECT"},
		"SELECT * FROM lake.f.none":          {codes.NotFound, "lake.f.none does not exist"},
		"SELECT nope FROM lake.f.t":          {codes.InvalidArgument, "nope"},
		"SELECT CAST('x' AS INT)":            {codes.InvalidArgument, "'x'"},
		"CREATE TABLE lake.f.t (id BIGINT)":  {codes.AlreadyExists, "exists"},
		"INSERT INTO lake.f.t SELECT 'text'": {codes.InvalidArgument, "does not fit BIGINT"},
		"SELECT ?":                           {codes.InvalidArgument, "parameters"},
		"SELECT 1; SELECT 2":                 {codes.InvalidArgument, "one statement"},
		"":                                   {codes.InvalidArgument, "empty"},
	} {
		_, err := cl.Execute(ctx, statement)
		require.Equal(t, want.code, status.Code(err), "%s: %v", statement, err)
		require.ErrorContains(t, err, want.text, statement)
	}
	_, err := cl.Execute(ctx, "SELECT nope FROM lake.f.t")
	require.IsType(t, &schedulerv1.JobError{}, status.Convert(err).Details()[0])
	_, err = cl.ExecuteUpdate(ctx, "SELECT 1")
	require.Equal(t, codes.InvalidArgument, status.Code(err), "an update returns no rows")
	_, err = cl.BeginTransaction(ctx)
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.ErrorContains(t, err, "autocommit")
}

// What is said about the results of statements that need no executor, without running them, is right too.
func TestFlight_SchemasOfInlineResultsAreExact(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT)")
	for _, statement := range []string{
		"SHOW CATALOGS", "SHOW SCHEMAS", "SHOW TABLES", "SHOW TABLES FROM lake.f", "DESCRIBE lake.f.t", "EXPLAIN SELECT 1", "INSERT INTO lake.f.t VALUES (1)",
		"CREATE TABLE lake.f.u AS SELECT 1 AS a", "CREATE TABLE lake.f.v (a INT)", "DROP TABLE lake.f.v", "CREATE SCHEMA lake.g",
	} {
		res, err := cl.GetExecuteSchema(ctx, statement)
		require.NoError(t, err, statement)
		said, err := flight.DeserializeSchema(res.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		info, err := cl.Execute(ctx, statement)
		require.NoError(t, err, statement)
		sent, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		require.True(t, said.Equal(sent), "%s\nsaid: %s\nsent: %s", statement, said, sent)
	}
}

// S64: a key that comes again, at once or later, runs nothing twice.
func TestFlight_IdempotencyKeyHeader(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT)")
	ctx := metadata.AppendToOutgoingContext(harness.Context(t), flightsql.KeyHeader, "load-1")
	const insert = "INSERT INTO lake.f.t SELECT i FROM range(100) r(i)"
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			n, err := cl.ExecuteUpdate(ctx, insert)
			if err != nil || n != 100 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
	wg.Wait()
	info, err := cl.Execute(ctx, insert)
	require.NoError(t, err)
	require.Contains(t, flightRows(ctx, t, cl, info)[0], `"rows":100`)
	require.Equal(t, 1, c.Table("f", "t").Snapshots)
	_, err = cl.ExecuteUpdate(ctx, "INSERT INTO lake.f.t VALUES (7)")
	require.ErrorContains(t, err, "another statement")
}

// X18: a row of 8 MiB, and a statement of 6 MiB. The default limit of clients (4 MiB) does for rows that can be divided.
func TestFlight_LargeValuesAndStatements(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	rows := flightQuery(t, cl, "SELECT repeat('x', 8 << 20) AS s")
	require.Len(t, rows[0], 8<<20+len(`{"s":""}`))
	require.Len(t, flightQuery(t, cl, "SELECT length('"+strings.Repeat("y", 6<<20)+"') AS n"), 1)
	narrow := flightDial(t, addr)
	require.Len(t, flightQuery(t, narrow, "SELECT repeat('x', 10000) AS s FROM range(2000)"), 2000)
}

func TestFlight_SessionsAndDefaults(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t AS SELECT 1 AS id")
	ctx := harness.Context(t)
	_, err := cl.Execute(ctx, "SELECT * FROM t")
	require.Equal(t, codes.NotFound, status.Code(err))
	info, err := cl.Execute(metadata.AppendToOutgoingContext(ctx, flightsql.SchemaHeader, "f", flightsql.CatalogHeader, "lake"), "SELECT * FROM t")
	require.NoError(t, err)
	require.Len(t, flightRows(ctx, t, cl, info), 1)

	withCookies, err := newFlightClient(addr, flight.NewClientCookieMiddleware())
	require.NoError(t, err)
	defer withCookies.Close()
	values, err := flight.NewSessionOptionValues(map[string]any{"schema": "f", "nonsense": "x", "catalog": int64(7)})
	require.NoError(t, err)
	res, err := withCookies.SetSessionOptions(ctx, &flight.SetSessionOptionsRequest{SessionOptions: values})
	require.NoError(t, err)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidName, res.Errors["nonsense"].Value)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidValue, res.Errors["catalog"].Value)
	info, err = withCookies.Execute(ctx, "SELECT * FROM t")
	require.NoError(t, err)
	require.Len(t, flightRows(ctx, t, withCookies, info), 1)
	got, err := withCookies.GetSessionOptions(ctx, &flight.GetSessionOptionsRequest{})
	require.NoError(t, err)
	require.Len(t, got.SessionOptions, 1)
	require.Equal(t, "f", got.SessionOptions["schema"].GetStringValue())
	_, err = withCookies.CloseSession(ctx, &flight.CloseSessionRequest{})
	require.NoError(t, err)
	_, err = withCookies.Execute(ctx, "SELECT * FROM t")
	require.Equal(t, codes.NotFound, status.Code(err))
}

func TestFlight_ConcurrentClients(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 2})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (who BIGINT, n BIGINT)")
	const clients, each = 8, 5
	ctx := harness.Context(t)
	var wg sync.WaitGroup
	for who := range clients {
		wg.Go(func() {
			own, err := newFlightClient(addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer own.Close()
			for n := range each {
				if _, err := own.ExecuteUpdate(ctx, fmt.Sprintf("INSERT INTO lake.f.t VALUES (%d, %d)", who, n)); err != nil {
					t.Error(err)
				}
				info, err := own.Execute(ctx, fmt.Sprintf("SELECT %d AS who, i FROM range(1000) r(i)", who))
				if err != nil {
					t.Error(err)
					return
				}
				for _, row := range flightRows(ctx, t, own, info) {
					if !strings.Contains(row, fmt.Sprintf(`"who":%d`, who)) {
						t.Errorf("client %d got %s", who, row)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{fmt.Sprintf(`{"n":%d}`, clients*each)}, flightQuery(t, cl, "SELECT count(*) AS n FROM (SELECT DISTINCT * FROM lake.f.t)"))
	require.EqualValues(t, clients*each, c.Table("f", "t").Records)
}
