package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
	signet "github.com/signet-io/signet/scheduler/flightsql"
	"github.com/signet-io/signet/test/harness"
)

// residentMiB is the memory of a process; 0 if it has ended.
func residentMiB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB")) // it is a number
			return kb >> 10
		}
	}
	return 0
}

// watchMemory samples a process; the function that it answers ends that and tells the peak.
func watchMemory(pid int) func() int {
	stop, peak := make(chan struct{}), make(chan int)
	go func() {
		high := 0
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				peak <- high
				return
			case <-tick.C:
				high = max(high, residentMiB(pid))
			}
		}
	}()
	return func() int { close(stop); return <-peak }
}

// A large result streams: neither a slow reader nor its size takes memory of the scheduler's, and it stays readable while it is read.
func TestFlight_LargeResult(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1, Config: "limits:\n  max_result_bytes: 1GiB\n"})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	info, err := cl.Execute(ctx, "SELECT i, repeat('x', 100) AS s FROM range(2500000) r(i)")
	require.NoError(t, err)
	require.Greater(t, info.TotalBytes, int64(250<<20))
	before := residentMiB(c.Scheduler.PID())
	peak := watchMemory(c.Scheduler.PID())
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	var rows int64
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err())
	require.EqualValues(t, 2_500_000, rows)
	grown := peak() - before
	require.Positive(t, before)
	t.Logf("%d MiB fetched, the scheduler grew by %d MiB", info.TotalBytes>>20, grown)
	require.Less(t, grown, 100)
}

// S36, S39: a result above the cap fails with the setting's name.
func TestFlight_ResultAboveTheCap(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1, Config: "limits:\n  max_result_bytes: 1MiB\n"})
	_, err := flightDial(t, addr).Execute(harness.Context(t), "SELECT i FROM range(10000000) r(i)")
	require.ErrorContains(t, err, "max_result_bytes")
}

func pollUntil(ctx context.Context, t *testing.T, cl *flightsql.Client, info *flight.PollInfo, query string) (*flight.PollInfo, error) {
	t.Helper()
	for info.FlightDescriptor != nil {
		next, err := cl.ExecutePoll(ctx, query, info.FlightDescriptor)
		if err != nil {
			return nil, err
		}
		info = next
	}
	return info, nil
}

func TestFlight_Polling(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	const query = "SELECT count(*) AS n FROM range(2000000000) r(i)"
	info, err := cl.ExecutePoll(ctx, query, nil)
	require.NoError(t, err)
	info, err = pollUntil(ctx, t, cl, info, query)
	require.NoError(t, err)
	require.InEpsilon(t, 1, info.GetProgress(), 0)
	require.Equal(t, []string{`{"n":2000000000}`}, flightRows(ctx, t, cl, info.Info))
	_, err = cl.ExecutePoll(ctx, query, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte("made up")})
	require.Equal(t, codes.NotFound, status.Code(err))
	info, err = cl.ExecutePoll(ctx, "SELECT CAST('x' AS INT)", nil)
	if err == nil {
		_, err = pollUntil(ctx, t, cl, info, "")
	}
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

const forever = "SELECT count(*) AS n FROM range(100000000000) a(i), range(1000000) b(j)"

func requireIdle(t *testing.T, c *harness.Cluster) {
	t.Helper()
	harness.Eventually(t, "the executor is idle", func() bool {
		info, err := c.Client().Info(harness.Context(t))
		require.NoError(t, err)
		return len(info.GetExecutors()) == 1 && info.GetExecutors()[0].GetRunning() == 0
	})
}

func running(t *testing.T, c *harness.Cluster) {
	t.Helper()
	harness.Eventually(t, "it runs", func() bool {
		jobs, err := c.Client().Jobs(harness.Context(t), 1)
		require.NoError(t, err)
		return len(jobs) == 1 && jobs[0].GetProgress().GetRunning() == 1
	})
}

// X21: a cancel before the seal is done within 2 s, and leaves an idle executor and no file; the connection serves the next statement.
func TestFlight_CancelBeforeTheSeal(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.h")
	flightUpdate(t, cl, "CREATE TABLE lake.h.t (n BIGINT)")
	for _, statement := range []string{forever, "INSERT INTO lake.h.t " + forever} {
		for _, cancel := range []func(*flight.FlightInfo) bool{
			func(i *flight.FlightInfo) bool {
				res, err := cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: i})
				require.NoError(t, err)
				return res.Status == flight.CancelStatusCancelled
			},
			func(i *flight.FlightInfo) bool {
				res, err := cl.CancelQuery(ctx, i) //nolint:staticcheck // older clients know only this
				require.NoError(t, err)
				return res == flightsql.CancelResultCancelled
			},
		} {
			info, err := cl.ExecutePoll(ctx, statement, nil)
			require.NoError(t, err)
			require.NotNil(t, info.FlightDescriptor)
			running(t, c)
			began := time.Now()
			require.True(t, cancel(info.Info))
			require.Less(t, time.Since(began), 3*time.Second)
			_, err = pollUntil(ctx, t, cl, info, statement)
			require.Equal(t, codes.Canceled, status.Code(err))
			requireIdle(t, c)
			require.Equal(t, []string{`{"n":1}`}, flightQuery(t, cl, "SELECT 1 AS n"))
		}
	}
	h := &held{Cluster: c, t: t}
	h.requireNothing()
	_, err := cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: &flight.FlightInfo{AppMetadata: []byte("made up")}})
	require.Equal(t, codes.NotFound, status.Code(err))
}

// X21, S21: after the seal the client is told so, and the commit lands.
func TestFlight_CancelAfterTheSeal(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	c, addr := flightCluster(t, harness.Options{Executors: 1, SchedulerEnv: []string{fault.Env + "=catalog.commit.after-swap=1*pause(" + gate + ")"}})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.h")
	flightUpdate(t, cl, "CREATE TABLE lake.h.t (n BIGINT)")
	const statement = "INSERT INTO lake.h.t SELECT 1"
	info, err := cl.ExecutePoll(ctx, statement, nil)
	require.NoError(t, err)
	harness.Eventually(t, "it is sealed, and more", func() bool { return c.Table("h", "t").Snapshots == 1 })
	var trailer metadata.MD
	res, err := cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info.Info}, grpc.Trailer(&trailer))
	require.NoError(t, err)
	require.Equal(t, flight.CancelStatusNotCancellable, res.Status)
	require.Contains(t, trailer.Get(signet.MessageHeader)[0], "sealed")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	info, err = pollUntil(ctx, t, cl, info, statement)
	require.NoError(t, err)
	require.Contains(t, flightRows(ctx, t, cl, info.Info)[0], `"rows":1`)
	require.Equal(t, 1, c.Table("h", "t").Snapshots)
}

// X21: a connection that breaks stops its statement: the SELECT and, before the seal, the INSERT. What became of it can be asked by the job's id.
func TestFlight_BrokenConnection(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.h")
	flightUpdate(t, cl, "CREATE TABLE lake.h.t (n BIGINT)")
	for name, call := range map[string]func(context.Context, *flightsql.Client) error{
		"SELECT": func(ctx context.Context, cl *flightsql.Client) error { _, err := cl.Execute(ctx, forever); return err },
		"INSERT": func(ctx context.Context, cl *flightsql.Client) error {
			_, err := cl.ExecuteUpdate(ctx, "INSERT INTO lake.h.t "+forever)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			own, err := newFlightClient(addr)
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- call(context.Background(), own) }()
			running(t, c)
			require.NoError(t, own.Close())
			require.Error(t, <-ended)
			requireIdle(t, c)
			job := c.Jobs()[0]
			harness.Eventually(t, "the job is cancelled", func() bool {
				j, err := c.Client().Job(harness.Context(t), job.ID)
				return err == nil && j.GetJob().GetState() == schedulerv1.JobState_JOB_STATE_CANCELLED
			})
		})
	}
	(&held{Cluster: c, t: t}).requireNothing()
}

// Two calls wait for one job: one of them going away does not end it. A job of somebody else's client is never cancelled.
func TestFlight_ACallThatEndsSparesTheJobOfOthers(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	key := func() context.Context {
		return metadata.AppendToOutgoingContext(harness.Context(t), signet.KeyHeader, "shared")
	}
	flightUpdate(t, flightDial(t, addr), "CREATE SCHEMA lake.h")
	flightUpdate(t, flightDial(t, addr), "CREATE TABLE lake.h.t (n BIGINT)")
	const insert = "INSERT INTO lake.h.t SELECT count(*) AS n FROM range(3000000000) r(i)"
	stay := flightDial(t, addr)
	rows := make(chan int64, 1)
	failed := make(chan error, 1)
	go func() {
		n, err := stay.ExecuteUpdate(key(), insert)
		failed <- err
		rows <- n
	}()
	running(t, c)
	ctx, cancel := context.WithCancel(key())
	leaves, err := flightDial(t, addr).Client.DoPut(ctx)
	require.NoError(t, err)
	cmd, err := anypb.New(&pb.CommandStatementUpdate{Query: insert})
	require.NoError(t, err)
	b, err := proto.Marshal(cmd)
	require.NoError(t, err)
	require.NoError(t, leaves.Send(&flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}}))
	header, err := leaves.Header() // comes as soon as the job is known, long before its end
	require.NoError(t, err)
	require.Equal(t, c.Jobs()[0].ID, header.Get(signet.JobHeader)[0])
	cancel()
	_, err = leaves.Recv()
	require.Equal(t, codes.Canceled, status.Code(err))
	require.NoError(t, <-failed)
	require.EqualValues(t, 1, <-rows)
	require.Equal(t, 1, c.Table("h", "t").Snapshots)
	require.Len(t, c.JobsAbout("3000000000"), 1)
}
