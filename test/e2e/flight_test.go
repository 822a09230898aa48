package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/signet-io/signet/test/harness"
)

// flightCluster starts a cluster that serves Flight SQL, and dials it.
func flightCluster(t *testing.T, opts harness.Options) (*harness.Cluster, string) {
	t.Helper()
	return flightClusterWith(t, opts, "")
}

// flightClusterWith adds keys to the section flight.
func flightClusterWith(t *testing.T, opts harness.Options, keys string) (*harness.Cluster, string) {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	opts.Config += fmt.Sprintf("flight:\n  listen: %s\n%s", addr, keys)
	return harness.New(t, opts), addr
}

func flightDial(t *testing.T, addr string, opts ...grpc.DialOption) *flightsql.Client {
	t.Helper()
	opts = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)
	c, err := flightsql.NewClient(addr, nil, nil, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newFlightClient dials with client middleware.
func newFlightClient(addr string, with ...flight.ClientMiddleware) (*flightsql.Client, error) {
	return flightsql.NewClient(addr, nil, with, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// flightRows fetches all rows of a FlightInfo, as lines of JSON, and checks that their schema is the one that was promised.
func flightRows(ctx context.Context, t require.TestingT, c *flightsql.Client, info *flight.FlightInfo) []string {
	var out []string
	promised, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	for _, e := range info.Endpoint {
		r, err := c.DoGet(ctx, e.Ticket)
		require.NoError(t, err)
		require.True(t, promised.Equal(r.Schema()), "promised: %s\nsent: %s", promised, r.Schema())
		for r.Next() {
			var b bytes.Buffer
			require.NoError(t, array.RecordToJSON(r.RecordBatch(), &b))
			for line := range strings.Lines(b.String()) {
				out = append(out, strings.TrimSpace(line))
			}
		}
		require.NoError(t, r.Err())
		r.Release()
	}
	return out
}

// readAll fetches all rows as one batch.
func readAll(ctx context.Context, t require.TestingT, c *flightsql.Client, ticket *flight.Ticket) arrow.RecordBatch {
	r, err := c.DoGet(ctx, ticket)
	require.NoError(t, err)
	defer r.Release()
	var all []arrow.RecordBatch
	for r.Next() {
		rec := r.RecordBatch()
		rec.Retain()
		all = append(all, rec)
	}
	require.NoError(t, r.Err())
	if len(all) == 1 {
		return all[0]
	}
	table := array.NewTableFromRecords(r.Schema(), all)
	defer table.Release()
	cols := make([]arrow.Array, table.NumCols())
	for i := range cols {
		if len(all) == 0 {
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, r.Schema().Field(i).Type, 0)
			continue
		}
		cols[i], err = array.Concatenate(table.Column(i).Data().Chunks(), memory.DefaultAllocator)
		require.NoError(t, err)
	}
	return array.NewRecordBatch(r.Schema(), cols, table.NumRows())
}

func flightQuery(t *testing.T, c *flightsql.Client, query string) []string {
	t.Helper()
	ctx := harness.Context(t)
	info, err := c.Execute(ctx, query)
	require.NoError(t, err, query)
	return flightRows(ctx, t, c, info)
}

func flightUpdate(t *testing.T, c *flightsql.Client, statement string) int64 {
	t.Helper()
	n, err := c.ExecuteUpdate(harness.Context(t), statement)
	require.NoError(t, err, statement)
	return n
}

// batch makes a record of a JSON array.
func batch(t require.TestingT, schema *arrow.Schema, json string) arrow.RecordBatch {
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(json))
	require.NoError(t, err)
	return rec
}

var flightTypes = []string{
	"true", "1::TINYINT", "1::SMALLINT", "1::INTEGER", "1::BIGINT", "1::UTINYINT", "1::USMALLINT", "1::UINTEGER", "1::UBIGINT", "1::HUGEINT", "1::UHUGEINT",
	"1.5::FLOAT", "1.5::DOUBLE", "1.25::DECIMAL(4,2)", "1.25::DECIMAL(38,2)", "DATE '2024-02-29'", "TIME '10:11:12.5'", "TIMESTAMP '1969-12-31 23:59:59.5'",
	"TIMESTAMP_S '2024-01-01'", "TIMESTAMP_MS '2024-01-01'", "TIMESTAMP_NS '2024-01-01'", "TIMESTAMPTZ '2024-01-01'", "'ü'", `'\xAA'::BLOB`,
	"'6f9619ff-8b86-d011-b42d-00c04fc964ff'::UUID", "'a'::ENUM('a','b')", "INTERVAL 3 DAY", "'101'::BIT", "[1,NULL]", "[[1]]", "{'a': 1, 'b': [{'c': 'x'}]}",
	"MAP {'k': 1}", "[1,2]::INT[2]", `'{"a":1}'::JSON`, "union_value(a := 1)", "'10:00:00+02'::TIMETZ", "NULL", "[]", "row(1, 'x')", "1::VARINT",
}

// The schema that is promised without running a query is exactly the one of its rows, for every type.
func TestFlight_SchemasAreExact(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	c := flightDial(t, addr)
	ctx := harness.Context(t)
	var list []string
	for i, e := range flightTypes {
		list = append(list, fmt.Sprintf("%s AS c%d", e, i))
	}
	for _, tail := range []string{"", " WHERE false"} {
		query := "SELECT " + strings.Join(list, ", ") + tail
		info, err := c.Execute(ctx, query)
		require.NoError(t, err)
		rows, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		res, err := c.GetExecuteSchema(ctx, query)
		require.NoError(t, err)
		analysed, err := flight.DeserializeSchema(res.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		for i, f := range rows.Fields() {
			if !f.Equal(analysed.Field(i)) {
				t.Errorf("%s: analysed %v, sent %v", flightTypes[i], analysed.Field(i), f)
			}
		}
		flightRows(ctx, t, c, info)
	}
}
