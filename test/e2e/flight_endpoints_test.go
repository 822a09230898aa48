package e2e_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/flightrows"
	"github.com/signet-io/signet/test/harness"
)

// largeQuery gives some 40 MB.
const largeQuery = "SELECT i, repeat('x', 100) AS s, [i] AS l FROM range(300000) r(i) ORDER BY i DESC"

// smallEndpoints has results from 1 MiB on stay on their executors.
const smallEndpoints = "  endpoint_bytes: 1MiB\n"

// location is where the executor serves an endpoint: host:port.
func location(t *testing.T, info *flight.FlightInfo) string {
	t.Helper()
	require.Len(t, info.Endpoint, 1)
	require.Len(t, info.Endpoint[0].Location, 2, "the executor, and the scheduler for those who cannot reach it")
	require.Equal(t, flight.LocationReuseConnection, info.Endpoint[0].Location[1].Uri)
	u, err := url.Parse(info.Endpoint[0].Location[0].Uri)
	require.NoError(t, err)
	require.Equal(t, "grpc+tcp", u.Scheme)
	return u.Host
}

// keptFiles are the results that executors have.
func keptFiles(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Dir, "scratch-*", "*", "outputs", "*", "*.arrow"))
	require.NoError(t, err)
	return files
}

func sumRows(ctx context.Context, t require.TestingT, cl *flightsql.Client, ticket *flight.Ticket) int64 {
	r, err := cl.DoGet(ctx, ticket)
	require.NoError(t, err)
	defer r.Release()
	var rows int64
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err())
	return rows
}

// S32, S42: a large result is served by the executor that made it, without the scheduler, and by the scheduler with the same ticket; its rows, their
// order and their schema are those that the query gave. Small results and those of roots come from the scheduler (S31).
func TestFlight_LargeResultsAreServedByExecutors(t *testing.T) {
	c, addr := flightClusterWith(t, harness.Options{Executors: 2}, smallEndpoints)
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	info, err := cl.Execute(ctx, largeQuery)
	require.NoError(t, err)
	require.EqualValues(t, 300000, info.TotalRecords)
	require.Greater(t, info.TotalBytes, int64(30<<20))
	require.Len(t, keptFiles(t, c), 1)
	spooled, err := filepath.Glob(filepath.Join(c.Dir, "data", "results", "*", "*"))
	require.NoError(t, err)
	require.Empty(t, spooled)

	other := flightDial(t, location(t, info))
	require.NoError(t, syscall.Kill(c.Scheduler.PID(), syscall.SIGSTOP))
	direct := flightRows(ctx, t, other, info)
	require.NoError(t, syscall.Kill(c.Scheduler.PID(), syscall.SIGCONT))
	require.Len(t, direct, 300000)
	require.Equal(t, direct, flightRows(ctx, t, cl, info), "the scheduler hands the same on")
	for n, row := range direct {
		require.Equal(t, fmt.Sprintf(`{"i":%d,"l":[%[1]d],"s":%q}`, 299999-n, strings.Repeat("x", 100)), row)
	}
	rows, err := c.Client().Rows(ctx, c.JobsAbout("repeat")[0]) // whoever asks for the job's rows by other ways has them too
	require.NoError(t, err)
	var n int64
	for rows.Next() {
		n += rows.RecordBatch().NumRows()
	}
	require.NoError(t, rows.Err())
	rows.Close()
	require.EqualValues(t, 300000, n)

	for _, small := range []string{"SELECT 1 AS n", "SHOW CATALOGS", "SELECT i FROM range(1000) r(i)"} {
		info, err := cl.Execute(ctx, small)
		require.NoError(t, err)
		require.Empty(t, info.Endpoint[0].Location, small)
		require.NotEmpty(t, flightRows(ctx, t, cl, info))
	}

	types := "SELECT " + strings.Join(flightTypes, ", ") + ", repeat('x', 10000) AS s FROM range(2000)"
	info, err = cl.Execute(ctx, types)
	require.NoError(t, err)
	require.Len(t, flightRows(ctx, t, flightDial(t, location(t, info)), info), 2000, "and have the schema that was promised")
	require.Len(t, keptFiles(t, c), 2)

	p, err := cl.Prepare(ctx, largeQuery)
	require.NoError(t, err)
	info, err = p.Execute(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 300000, sumRows(ctx, t, flightDial(t, location(t, info)), info.Endpoint[0].Ticket))
	poll, err := cl.ExecutePoll(ctx, largeQuery, nil)
	require.NoError(t, err)
	poll, err = pollUntil(ctx, t, cl, poll, largeQuery)
	require.NoError(t, err)
	require.EqualValues(t, 300000, sumRows(ctx, t, flightDial(t, location(t, poll.Info)), poll.Info.Endpoint[0].Ticket))
	require.Len(t, keptFiles(t, c), 4)

	c.SQL("EXPLAIN ANALYZE " + largeQuery)
	require.Len(t, keptFiles(t, c), 4)
	_, err = cl.Execute(ctx, "EXPLAIN ANALYZE "+largeQuery)
	require.NoError(t, err)
	require.Len(t, keptFiles(t, c), 4, "nobody fetches what is only measured")
}

// The tickets of executors are the principal's, need its token, and give nothing but the rows.
func TestFlight_TicketsOfExecutors(t *testing.T) {
	alice, bob := file(t, "alice", "al1ce"), file(t, "bob", "b0b")
	_, addr := flightClusterWith(t, harness.Options{
		Executors: 1, ClientArgs: []string{"--token-file", alice},
		Config: fmt.Sprintf("auth:\n  tokens:\n    - {principal: alice, token: {file: %s}}\n    - {principal: bob, token: {file: %s}}\n", alice, bob),
	}, smallEndpoints)
	cl := flightDial(t, addr)
	as := func(header string) context.Context {
		if header == "" {
			return harness.Context(t)
		}
		return metadata.AppendToOutgoingContext(harness.Context(t), "authorization", header)
	}
	info, err := cl.Execute(as("Bearer al1ce"), largeQuery)
	require.NoError(t, err)
	at, ticket := location(t, info), info.Endpoint[0].Ticket
	executor := flightDial(t, at)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:al1ce"))
	for _, good := range []string{"Bearer al1ce", "bearer al1ce", basic} {
		require.EqualValues(t, 300000, sumRows(as(good), t, executor, ticket))
	}
	ctx, err := executor.Client.AuthenticateBasicToken(harness.Context(t), "alice", "al1ce")
	require.NoError(t, err)
	require.EqualValues(t, 300000, sumRows(ctx, t, executor, ticket))

	refused := map[string]bool{}
	refuse := func(header string, handle []byte) {
		t.Helper()
		_, err := executor.DoGet(as(header), &flight.Ticket{Ticket: handle})
		require.Equal(t, codes.NotFound, status.Code(err), "%v", err)
		refused[err.Error()] = true
	}
	for _, header := range []string{"", "Bearer ", "Bearer wrong", "Bearer b0b", "Basic !", "al1ce"} {
		refuse(header, ticket.Ticket)
	}
	q, err := flightsql.GetStatementQueryTicket(ticket)
	require.NoError(t, err)
	mine, err := flightrows.Decode(q.GetStatementHandle())
	require.NoError(t, err)
	for _, bad := range []flightrows.Ticket{
		{Attempt: mine.Attempt, Secret: "wrong"}, {Attempt: "wrong", Secret: mine.Secret}, {Attempt: "../" + mine.Attempt, Secret: mine.Secret}, {Sealed: mine.Sealed},
	} {
		handle, err := flightsql.CreateStatementQueryTicket(bad.Encode())
		require.NoError(t, err)
		refuse("Bearer al1ce", handle)
	}
	for _, garbage := range [][]byte{nil, {0}, []byte("garbage"), q.GetStatementHandle()} {
		refuse("Bearer al1ce", garbage)
	}
	require.Len(t, refused, 1, "%v", refused)
	_, err = executor.Execute(as("Bearer al1ce"), "SELECT 1")
	require.Equal(t, codes.Unimplemented, status.Code(err), "an executor takes no statements")
	_, err = cl.DoGet(as("Bearer b0b"), ticket)
	require.Equal(t, codes.NotFound, status.Code(err))

	// What the ticket has does not open the exchange, where tasks need no token.
	cc, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer cc.Close()
	stream, err := executorv1.NewExchangeClient(cc).Fetch(harness.Context(t), &executorv1.FetchRequest{AttemptId: mine.Attempt, Ticket: mine.Secret})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.NotFound, status.Code(err))
}

// A result is gone with its executor, which is said; the next query works. It is gone with the scheduler too, and then leaves no file.
func TestFlight_ResultsOfExecutorsThatEnd(t *testing.T) {
	c, addr := flightClusterWith(t, harness.Options{Executors: 1}, smallEndpoints)
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	info, err := cl.Execute(ctx, largeQuery)
	require.NoError(t, err)
	c.Executors[0].Kill()
	c.Executors[0].Wait(t)
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err == nil {
		for r.Next() { //nolint:revive // to its end
		}
		err = r.Err()
		r.Release()
	}
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "run the query again")

	c.RestartExecutor(0)
	c.AwaitExecutors(1)
	info, err = cl.Execute(ctx, largeQuery)
	require.NoError(t, err)
	require.EqualValues(t, 300000, sumRows(ctx, t, cl, info.Endpoint[0].Ticket))
	require.Len(t, keptFiles(t, c), 1)
	c.Scheduler.Kill()
	c.StartScheduler()
	c.AwaitExecutors(1)
	harness.Eventually(t, "the executor has let go of it", func() bool { return len(keptFiles(t, c)) == 0 })
}

// Cancelling, failing and capped queries leave nothing on executors.
func TestFlight_NothingStaysOfQueriesThatDoNotSucceed(t *testing.T) {
	c, addr := flightClusterWith(t, harness.Options{Executors: 1, Config: "limits:\n  max_result_bytes: 8MiB\n"}, smallEndpoints)
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	_, err := cl.Execute(ctx, largeQuery)
	require.ErrorContains(t, err, "max_result_bytes")
	_, err = cl.Execute(ctx, "SELECT CASE WHEN i < 29000 THEN repeat('x', 100) ELSE error('late') END AS s FROM range(30000) r(i)")
	require.ErrorContains(t, err, "late")
	info, err := cl.ExecutePoll(ctx, "SELECT count(*) AS n FROM range(10000000) a(i), range(10000000) b(k) WHERE i + k < 0", nil)
	require.NoError(t, err)
	if info.FlightDescriptor != nil {
		_, err = cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info.Info})
		require.NoError(t, err)
	}
	requireIdle(t, c)
	require.Empty(t, keptFiles(t, c))
	left, err := filepath.Glob(filepath.Join(c.Dir, "scratch-*", "*", "*"))
	require.NoError(t, err)
	for _, f := range left {
		fi, err := os.Stat(f)
		require.True(t, os.IsNotExist(err) || fi.Name() == "outputs" || !strings.Contains(f, "files"), f)
	}
}

// An executor that fails while it sends: the client sees an error, never a short result; the scheduler's way is another one.
func TestFlight_AnExecutorThatBreaksOff(t *testing.T) {
	opts := harness.Options{Executors: 0}
	c, addr := flightClusterWith(t, opts, smallEndpoints)
	c.StartExecutor(fault.Env + "=executor.flight.batch=1*off->1*error")
	c.AwaitExecutors(1)
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	info, err := cl.Execute(ctx, largeQuery)
	require.NoError(t, err)
	r, err := flightDial(t, location(t, info)).DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	for r.Next() { //nolint:revive // to its end
	}
	require.Equal(t, codes.Unavailable, status.Code(r.Err()), "%v", r.Err())
	r.Release()
	require.EqualValues(t, 300000, sumRows(ctx, t, cl, info.Endpoint[0].Ticket))
}

func TestFlight_EndpointsOnTheSchedulerOnly(t *testing.T) {
	c, addr := flightClusterWith(t, harness.Options{Executors: 1}, smallEndpoints+"  endpoints: scheduler\n")
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	info, err := cl.Execute(ctx, largeQuery)
	require.NoError(t, err)
	require.Empty(t, info.Endpoint[0].Location)
	require.Empty(t, keptFiles(t, c))
	require.EqualValues(t, 300000, sumRows(ctx, t, cl, info.Endpoint[0].Ticket))
}

// An executor that was out of reach for a while still has its results when it is back.
func TestFlight_ResultsSurviveAnExecutorThatComesBack(t *testing.T) {
	c, addr := flightClusterWith(t, harness.Options{Executors: 1}, smallEndpoints)
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	info, err := cl.Execute(ctx, largeQuery)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(c.Executors[0].PID(), syscall.SIGSTOP))
	harness.Eventually(t, "it is lost", func() bool { return c.Registered() == 0 })
	require.NoError(t, syscall.Kill(c.Executors[0].PID(), syscall.SIGCONT))
	c.AwaitExecutors(1)
	require.EqualValues(t, 300000, sumRows(ctx, t, flightDial(t, location(t, info)), info.Endpoint[0].Ticket))
	require.EqualValues(t, 300000, sumRows(ctx, t, cl, info.Endpoint[0].Ticket))
}
