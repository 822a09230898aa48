package flightsql_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/flightsql"
)

// logged is a log whose text tests look at.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type world struct {
	*scheduler.Server
	dir string
	log *logged
	cl  *fsql.Client
}

// start runs a scheduler in this process, without executors and plugins, and dials its Flight SQL.
func start(t testing.TB, dir, flightAddr string) *world {
	t.Helper()
	cfg := config.Embedded(dir)
	cfg.Listen, cfg.Flight.Listen = "127.0.0.1:0", flightAddr
	cfg.Plugins.Dir, cfg.Plugins.AllowUnlocked = t.TempDir(), true // nothing here needs one
	w := &world{dir: dir, log: &logged{}}
	var err error
	w.Server, err = scheduler.Start(context.Background(), cfg, scheduler.Options{
		Version: "test", Logger: slog.New(slog.NewTextHandler(w.log, nil)), JournalWait: 10 * time.Second, EmptyGrace: time.Hour,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Stop(context.Background())) })
	w.cl = dial(t, w.FlightAddr())
	return w
}

func dial(t testing.TB, addr string) *fsql.Client {
	t.Helper()
	cl, err := fsql.NewClient(addr, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = cl.Close() })
	return cl
}

func text(ctx context.Context, t testing.TB, cl *fsql.Client, info *flight.FlightInfo, err error) []string {
	t.Helper()
	require.NoError(t, err)
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	promised, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	require.True(t, promised.Equal(r.Schema()))
	var out []string
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			var row []string
			for _, c := range r.RecordBatch().Columns() {
				row = append(row, c.ValueStr(i))
			}
			out = append(out, strings.Join(row, "|"))
		}
	}
	require.NoError(t, r.Err())
	return out
}

// S25, S31: results that the scheduler makes itself need no executor.
func TestServer_StatementsWithoutExecutors(t *testing.T) {
	w := start(t, t.TempDir(), "127.0.0.1:0")
	ctx := t.Context()
	query := func(sql string) []string {
		t.Helper()
		info, err := w.cl.Execute(ctx, sql)
		return text(ctx, t, w.cl, info, err)
	}
	require.Empty(t, query("SHOW SCHEMAS"))
	n, err := w.cl.ExecuteUpdate(ctx, "CREATE SCHEMA lake.a")
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, []string{"created schema lake.b"}, query("CREATE SCHEMA lake.b"))
	require.Equal(t, []string{"a", "b"}, query("SHOW SCHEMAS FROM lake"))
	require.Equal(t, []string{"lake"}, query("SHOW CATALOGS"))
	_, err = w.cl.ExecuteUpdate(ctx, "CREATE SCHEMA lake.a")
	require.Equal(t, codes.AlreadyExists, status.Code(err))
	require.IsType(t, &schedulerv1.JobError{}, status.Convert(err).Details()[0])
	_, err = w.cl.ExecuteUpdate(ctx, "SHOW CATALOGS")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = w.cl.ExecuteUpdate(ctx, "EXPLODE")
	require.Equal(t, codes.InvalidArgument, status.Code(err))

	p, err := w.cl.Prepare(ctx, "CREATE SCHEMA lake.c")
	require.NoError(t, err)
	_, err = p.ExecuteUpdate(ctx)
	require.NoError(t, err)
	_, err = p.ExecuteUpdate(ctx)
	require.Equal(t, codes.AlreadyExists, status.Code(err))
	require.NoError(t, p.Close(ctx))
	_, err = p.ExecuteUpdate(ctx)
	require.Error(t, err)

	info, err := w.cl.ExecutePoll(ctx, "SHOW CATALOGS", nil)
	require.NoError(t, err)
	for info.FlightDescriptor != nil {
		info, err = w.cl.ExecutePoll(ctx, "", info.FlightDescriptor)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"lake"}, text(ctx, t, w.cl, info.Info, nil))
	res, err := w.cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info.Info})
	require.NoError(t, err)
	require.Equal(t, flight.CancelStatusNotCancellable, res.Status, "it has ended")
}

// S64: the key is a header, and one key is one statement.
func TestServer_KeyNamesOneStatement(t *testing.T) {
	w := start(t, t.TempDir(), "127.0.0.1:0")
	ctx := metadata.AppendToOutgoingContext(t.Context(), flightsql.KeyHeader, "k")
	for range 3 {
		_, err := w.cl.ExecuteUpdate(ctx, "CREATE SCHEMA lake.a")
		require.NoError(t, err, "it is the same job")
	}
	_, err := w.cl.ExecuteUpdate(ctx, "CREATE SCHEMA lake.b")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = w.cl.ExecuteUpdate(metadata.AppendToOutgoingContext(t.Context(), flightsql.KeyHeader, strings.Repeat("k", 300)), "CREATE SCHEMA lake.b")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

// A scheduler that stops tells those who wait, and cancels nothing: their jobs are there after the next start.
func TestServer_StopLeavesJobsOpen(t *testing.T) {
	dir := t.TempDir()
	w := start(t, dir, "127.0.0.1:0")
	failed := make(chan error, 3)
	go func() {
		_, err := w.cl.Execute(context.Background(), "SELECT 1")
		failed <- err
	}()
	go func() {
		_, err := w.cl.ExecuteUpdate(context.Background(), "INSERT INTO lake.a.t SELECT 1")
		failed <- err
	}()
	go func() {
		info, err := w.cl.ExecutePoll(context.Background(), "SELECT 2", nil)
		for err == nil && info.FlightDescriptor != nil {
			info, err = w.cl.ExecutePoll(context.Background(), "", info.FlightDescriptor)
		}
		failed <- err
	}()
	native, err := client.Dial(w.Addr())
	require.NoError(t, err)
	defer native.Close()
	require.Eventually(t, func() bool {
		jobs, err := native.Jobs(t.Context(), 10)
		return err == nil && len(jobs) >= 2
	}, 10*time.Second, 5*time.Millisecond)
	jobs, err := native.Jobs(t.Context(), 10)
	require.NoError(t, err)
	open := map[string]bool{}
	for _, j := range jobs {
		open[j.GetJobId()] = j.GetError() == nil
	}
	require.NoError(t, w.Stop(context.Background()))
	for range cap(failed) {
		err := <-failed
		if strings.Contains(fmt.Sprint(err), "plugin is misconfigured") { // the INSERT was quick enough to find that there is none here
			continue
		}
		require.Contains(t, []codes.Code{codes.Unavailable, codes.NotFound}, status.Code(err), "%v", err)
	}
	again := start(t, dir, "127.0.0.1:0")
	native, err = client.Dial(again.Addr())
	require.NoError(t, err)
	defer native.Close()
	jobs, err = native.Jobs(t.Context(), 10)
	require.NoError(t, err)
	for _, j := range jobs {
		if open[j.GetJobId()] {
			require.NotEqual(t, schedulerv1.JobState_JOB_STATE_CANCELLED, j.GetState(), j)
		}
	}
}

// X21: a call that ends cancels the job that it began, which waits for an executor here.
func TestServer_ACallThatEndsCancelsItsJob(t *testing.T) {
	w := start(t, t.TempDir(), "127.0.0.1:0")
	native, err := client.Dial(w.Addr())
	require.NoError(t, err)
	defer native.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := command(t, &pb.CommandStatementUpdate{Query: "INSERT INTO lake.a.t SELECT * FROM 'none.parquet'"})
	put, err := w.cl.Client.DoPut(ctx)
	require.NoError(t, err)
	require.NoError(t, put.Send(&flight.FlightData{FlightDescriptor: cmd}))
	header, err := put.Header()
	require.NoError(t, err)
	cancel()
	job, err := native.Wait(t.Context(), header.Get(flightsql.JobHeader)[0], nil)
	require.NoError(t, err)
	require.Contains(t, []schedulerv1.JobState{schedulerv1.JobState_JOB_STATE_CANCELLED, schedulerv1.JobState_JOB_STATE_FAILED}, job.GetState())

	info, err := w.cl.ExecutePoll(t.Context(), "SELECT 1", nil)
	require.NoError(t, err)
	res, err := w.cl.CancelFlightInfo(t.Context(), &flight.CancelFlightInfoRequest{Info: info.Info})
	require.NoError(t, err)
	require.Equal(t, flight.CancelStatusCancelled, res.Status)
	_, err = w.cl.ExecutePoll(t.Context(), "", info.FlightDescriptor)
	require.Equal(t, codes.Canceled, status.Code(err))
}

func command(t testing.TB, m proto.Message) *flight.FlightDescriptor {
	t.Helper()
	wrapped, err := anypb.New(m)
	require.NoError(t, err)
	b, err := proto.Marshal(wrapped)
	require.NoError(t, err)
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}
}

func TestServer_RefusalsHaveReasons(t *testing.T) {
	w := start(t, t.TempDir(), "127.0.0.1:0")
	ctx := t.Context()
	txn := []byte("t")
	for name, call := range map[string]func() error{
		"begin": func() error { _, err := w.cl.BeginTransaction(ctx); return err },
		"statement in a transaction": func() error {
			_, err := w.cl.Client.GetFlightInfo(ctx, command(t, &pb.CommandStatementQuery{Query: "SHOW CATALOGS", TransactionId: txn}))
			return err
		},
		"poll in a transaction": func() error {
			_, err := w.cl.Client.PollFlightInfo(ctx, command(t, &pb.CommandStatementQuery{Query: "SHOW CATALOGS", TransactionId: txn}))
			return err
		},
		"substrait": func() error { _, err := w.cl.ExecuteSubstrait(ctx, fsql.SubstraitPlan{Plan: []byte("x")}); return err },
		"substrait update": func() error {
			_, err := w.cl.ExecuteSubstraitUpdate(ctx, fsql.SubstraitPlan{Plan: []byte("x")})
			return err
		},
		"prepared substrait": func() error { _, err := w.cl.PrepareSubstrait(ctx, fsql.SubstraitPlan{Plan: []byte("x")}); return err },
		"renew": func() error {
			_, err := w.cl.RenewFlightEndpoint(ctx, &flight.RenewFlightEndpointRequest{Endpoint: &flight.FlightEndpoint{}})
			return err
		},
	} {
		err := call()
		require.Equal(t, codes.Unimplemented, status.Code(err), name)
		require.Contains(t, err.Error(), "not supported", name)
	}
	_, err := w.cl.DoGet(ctx, &flight.Ticket{Ticket: command(t, &pb.CommandPreparedStatementQuery{PreparedStatementHandle: []byte("x")}).Cmd})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "FlightInfo")
}

// Streams that are broken, or claim to become far larger than they may, are refused as the client's mistakes; nothing is left of them.
func TestServer_BrokenAndHostileStreams(t *testing.T) {
	w := start(t, t.TempDir(), "127.0.0.1:0")
	ctx := t.Context()
	_, err := w.cl.ExecuteUpdate(ctx, "CREATE SCHEMA lake.a")
	require.NoError(t, err)
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	good := messages(t, schema, ipc.WithZstd())
	target := "a"
	ingest := command(t, &pb.CommandStatementIngest{
		Table: "t", Schema: &target, TableDefinitionOptions: &pb.CommandStatementIngest_TableDefinitionOptions{IfNotExist: pb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_CREATE},
	})
	p, err := w.cl.Prepare(ctx, "CREATE SCHEMA lake.b")
	require.NoError(t, err)
	commands := map[string]*flight.FlightDescriptor{
		"ingest": ingest, "bind": command(t, &pb.CommandPreparedStatementQuery{PreparedStatementHandle: p.Handle()}), "update": command(t, &pb.CommandPreparedStatementUpdate{PreparedStatementHandle: p.Handle()}),
	}
	put := func(all []*flight.FlightData) error {
		s, err := w.cl.Client.DoPut(ctx)
		require.NoError(t, err)
		for _, m := range all {
			if s.Send(m) != nil {
				break // the answer says why
			}
		}
		require.NoError(t, s.CloseSend())
		_, err = s.Recv()
		return err
	}
	bomb := proto.Clone(good[1]).(*flight.FlightData)
	for i := range bomb.DataBody { // every length that the body has becomes enormous
		if i%8 == 5 {
			bomb.DataBody[i] = 0x7f
		}
	}
	for name, desc := range commands {
		for kind, all := range map[string][]*flight.FlightData{
			"batch without schema": {good[1]},
			"garbage schema":       {{DataHeader: []byte("garbage that is no flatbuffer at all")}},
			"garbage batch":        {good[0], {DataHeader: []byte{0xff, 0xff, 0xff, 0x7f, 0, 1, 2, 3}, DataBody: []byte("x")}},
			"half a batch":         {good[0], {DataHeader: good[1].DataHeader, DataBody: good[1].DataBody[:len(good[1].DataBody)/2]}},
			"two schemas":          {good[0], good[0]},
			"header without body":  {good[0], {DataHeader: good[1].DataHeader}},
			"bomb":                 {good[0], bomb},
			"huge header":          {{DataHeader: make([]byte, 5<<20)}},
		} {
			first := proto.Clone(all[0]).(*flight.FlightData)
			first.FlightDescriptor = desc
			err := put(append([]*flight.FlightData{first}, all[1:]...))
			if status.Code(err) == codes.OK && name != "ingest" {
				continue // a statement without parameters reads nothing of it
			}
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%s of %s: %v", name, kind, err)
			if kind == "bomb" && name == "ingest" {
				require.ErrorContains(t, err, "bytes of memory")
			}
		}
	}
	require.Equal(t, codes.InvalidArgument, status.Code(put(nil)))
	require.Equal(t, codes.InvalidArgument, status.Code(put([]*flight.FlightData{{}})))
	require.Equal(t, codes.InvalidArgument, status.Code(put([]*flight.FlightData{{FlightDescriptor: command(t, &pb.CommandGetCatalogs{})}})))
	require.NotContains(t, w.log.String(), "panicked")
	left, err := filepath.Glob(filepath.Join(w.dir, "inputs", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// sink collects what a writer sends.
type sink struct{ all []*flight.FlightData }

func (s *sink) Send(m *flight.FlightData) error {
	s.all = append(s.all, proto.Clone(m).(*flight.FlightData))
	return nil
}

// messages are a schema and one batch as they travel.
func messages(t testing.TB, schema *arrow.Schema, opts ...ipc.Option) []*flight.FlightData {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"id":1,"s":"`+strings.Repeat("x", 10000)+`"},{"id":2,"s":"y"}]`))
	require.NoError(t, err)
	defer rec.Release()
	var s sink
	w := flight.NewRecordWriter(&s, append(opts, ipc.WithSchema(schema))...)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	require.Len(t, s.all, 2)
	return s.all
}

// Nothing that a client sends makes the server panic, or answer as if it were its own fault.
func FuzzServer_AnyBytes(f *testing.F) {
	w := start(f, f.TempDir(), "127.0.0.1:0")
	p, err := w.cl.Prepare(context.Background(), "CREATE SCHEMA lake.z")
	require.NoError(f, err)
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	good := messages(f, schema)
	for _, m := range []proto.Message{
		&pb.CommandGetTables{IncludeSchema: true, TableTypes: []string{"TABLE"}}, &pb.CommandGetDbSchemas{}, &pb.CommandGetSqlInfo{Info: []uint32{0, 1, 7}}, &pb.CommandGetXdbcTypeInfo{},
		&pb.CommandStatementUpdate{Query: "CREATE SCHEMA lake.fuzz"}, &pb.CommandPreparedStatementQuery{PreparedStatementHandle: p.Handle()}, &pb.TicketStatementQuery{StatementHandle: []byte("x")},
		&pb.CommandStatementIngest{Table: "t"}, &pb.ActionCreatePreparedStatementRequest{Query: "SHOW CATALOGS"}, &pb.CommandGetCrossReference{PkTable: "a", FkTable: "b"},
		&pb.CommandPreparedStatementUpdate{PreparedStatementHandle: p.Handle()}, &pb.CommandStatementQuery{Query: "SHOW CATALOGS"},
	} {
		f.Add(command(f, m).Cmd, good[0].DataHeader, good[1].DataHeader, good[1].DataBody)
	}
	f.Add([]byte("garbage"), []byte("garbage"), []byte("garbage"), []byte("garbage"))
	f.Fuzz(func(t *testing.T, cmd, header, batch, body []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // a statement may wait for an executor
		defer cancel()
		fine := func(err error) {
			switch c := status.Code(err); c {
			case codes.Internal, codes.Unknown, codes.DataLoss:
				t.Errorf("%s: %v", c, err)
			}
		}
		desc := &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: cmd}
		if !runsQuery(cmd) {
			_, err := w.cl.Client.GetFlightInfo(ctx, desc)
			fine(err)
			_, err = w.cl.Client.GetSchema(ctx, desc)
			fine(err)
			_, err = w.cl.Client.PollFlightInfo(ctx, desc)
			fine(err)
		}
		get, err := w.cl.Client.DoGet(ctx, &flight.Ticket{Ticket: cmd})
		for err == nil {
			_, err = get.Recv()
		}
		if !errors.Is(err, io.EOF) {
			fine(err)
		}
		for _, kind := range []string{
			"CancelFlightInfo", "CancelQuery", "CreatePreparedStatement", "ClosePreparedStatement", "SetSessionOptions", "GetSessionOptions", "BeginTransaction", "RenewFlightEndpoint", string(header),
		} {
			if kind == "CreatePreparedStatement" && runsQuery(cmd) {
				continue
			}
			act, err := w.cl.Client.DoAction(ctx, &flight.Action{Type: strings.ToValidUTF8(kind, ""), Body: cmd})
			if err == nil {
				_, err = act.Recv()
			}
			if !errors.Is(err, io.EOF) {
				fine(err)
			}
		}
		put, err := w.cl.Client.DoPut(ctx)
		require.NoError(t, err)
		_ = put.Send(&flight.FlightData{FlightDescriptor: desc, DataHeader: header}) // the answer says why
		_ = put.Send(&flight.FlightData{DataHeader: batch, DataBody: body})
		require.NoError(t, put.CloseSend())
		if _, err = put.Recv(); !errors.Is(err, io.EOF) {
			fine(err)
		}
		require.NotContains(t, w.log.String(), "panicked")
	})
}

// runsQuery: the statement might be one that waits for an executor.
func runsQuery(cmd []byte) bool {
	up := strings.ToUpper(string(cmd))
	for _, word := range []string{"SELECT", "VALUES", "WITH", "FROM", "TABLE"} {
		if strings.Contains(up, word) {
			return true
		}
	}
	return false
}
