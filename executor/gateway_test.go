package executor_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/internal/rpc"
)

const patience = 20 * time.Second

// gateway is a scheduler of its own make: real gRPC, no logic but what a test gives it.
type gateway struct {
	executorv1.UnimplementedExecutorGatewayServer
	t     testing.TB
	epoch uint64
	adopt func(*executorv1.AttemptRef) bool
	// onManifest answers a report; nil: accepted.
	onManifest func(*manifest.Reader) (*executorv1.ReportManifestResponse, error)
	ackStatus  func(*executorv1.TaskStatus) bool                  // nil: always
	onAccess   func(*executorv1.AccessRequest) *executorv1.Access // nil as an answer: none

	server *grpc.Server
	lis    *bufconn.Listener

	registers chan *executorv1.Register
	statuses  chan *executorv1.TaskStatus
	analyzed  chan *executorv1.AnalyzeResult
	beats     chan *executorv1.Heartbeat
	manifests chan *manifest.Reader
	outputs   chan output
	left      chan string
	polls     chan int32
	tokens    chan string

	mu   sync.Mutex
	send func(*executorv1.SessionResponse) error
}

type output struct {
	data []byte
	rows int64
}

func newGateway(t testing.TB, epoch uint64) *gateway {
	g := &gateway{
		t: t, epoch: epoch, registers: make(chan *executorv1.Register, 100), statuses: make(chan *executorv1.TaskStatus, 1000),
		analyzed: make(chan *executorv1.AnalyzeResult, 100), beats: make(chan *executorv1.Heartbeat, 10000), manifests: make(chan *manifest.Reader, 1000),
		outputs: make(chan output, 100), left: make(chan string, 10), polls: make(chan int32, 1000), tokens: make(chan string, 1000),
	}
	return g
}

// switchboard lets schedulers come and go behind one address.
type switchboard struct {
	mu      sync.Mutex
	cur     *bufconn.Listener
	refused chan struct{}
}

func newSwitchboard() *switchboard { return &switchboard{refused: make(chan struct{}, 1)} }

func (s *switchboard) dial(ctx context.Context, _ string) (net.Conn, error) {
	s.mu.Lock()
	lis := s.cur
	s.mu.Unlock()
	if lis == nil {
		select {
		case s.refused <- struct{}{}:
		default:
		}
		return nil, errors.New("nobody listens")
	}
	return lis.DialContext(ctx)
}

func (s *switchboard) up(t testing.TB, g *gateway) {
	t.Helper()
	g.lis = bufconn.Listen(1 << 20)
	g.server = grpc.NewServer(rpc.ServerOptions()...)
	executorv1.RegisterExecutorGatewayServer(g.server, g)
	s.mu.Lock()
	s.cur = g.lis
	s.mu.Unlock()
	go func() { _ = g.server.Serve(g.lis) }()
	t.Cleanup(g.server.Stop)
}

func (s *switchboard) down(g *gateway) {
	s.mu.Lock()
	s.cur = nil
	s.mu.Unlock()
	g.server.Stop()
}

func (g *gateway) Session(st grpc.BidiStreamingServer[executorv1.SessionRequest, executorv1.SessionResponse]) error {
	if md, ok := metadata.FromIncomingContext(st.Context()); ok {
		g.tokens <- strings.Join(md.Get("authorization"), ",")
	}
	m, err := st.Recv()
	if err != nil {
		return err
	}
	answer := &executorv1.Registered{Epoch: g.epoch, HeartbeatMillis: 20}
	for _, a := range slices.Concat(m.GetRegister().GetAttempts(), m.GetRegister().GetOutputs()) {
		if g.adopt == nil || g.adopt(a) {
			answer.Adopted = append(answer.Adopted, a)
		}
	}
	var mu sync.Mutex
	send := func(m *executorv1.SessionResponse) error {
		mu.Lock()
		defer mu.Unlock()
		return st.Send(m)
	}
	if err := send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Registered{Registered: answer}}); err != nil {
		return err
	}
	g.mu.Lock()
	g.send = send
	g.mu.Unlock()
	g.registers <- m.GetRegister()
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *executorv1.SessionRequest_Heartbeat:
			select {
			case g.beats <- m.Heartbeat:
			default:
			}
		case *executorv1.SessionRequest_AccessRequest:
			if a := g.onAccess(m.AccessRequest); a != nil {
				a.RequestId = m.AccessRequest.GetRequestId()
				_ = send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Access{Access: a}})
			}
		case *executorv1.SessionRequest_Analyzed:
			g.analyzed <- m.Analyzed
		case *executorv1.SessionRequest_Poll:
			g.polls <- m.Poll.GetTasks()
		case *executorv1.SessionRequest_Leave:
			g.left <- m.Leave.GetReason()
		case *executorv1.SessionRequest_Status:
			select {
			case g.statuses <- m.Status:
			default:
			}
			if g.ackStatus == nil || g.ackStatus(m.Status) {
				_ = send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Ack{Ack: &executorv1.StatusAck{Attempt: m.Status.GetAttempt()}}})
			}
		}
	}
}

func (g *gateway) ReportManifest(st grpc.ClientStreamingServer[executorv1.ReportManifestRequest, executorv1.ReportManifestResponse]) error {
	r := manifest.NewReader(manifest.Limits{})
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := r.Add(m.GetChunk()); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
	answer, err := &executorv1.ReportManifestResponse{Accepted: true}, error(nil)
	if g.onManifest != nil {
		answer, err = g.onManifest(r)
	}
	g.manifests <- r
	if err != nil {
		return err
	}
	return st.SendAndClose(answer)
}

func (g *gateway) PushOutput(st grpc.ClientStreamingServer[executorv1.PushOutputRequest, executorv1.PushOutputResponse]) error {
	var o output
	for {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		o.data = append(o.data, m.GetData()...)
		if m.GetLast() {
			o.rows = m.GetRows()
			break
		}
	}
	g.outputs <- o
	return st.SendAndClose(&executorv1.PushOutputResponse{Accepted: true})
}

func (g *gateway) message(m *executorv1.SessionResponse) {
	g.t.Helper()
	g.mu.Lock()
	send := g.send
	g.mu.Unlock()
	require.NoError(g.t, send(m))
}

func (g *gateway) launch(task *planv1.Task) {
	g.t.Helper()
	g.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Launch{Launch: &executorv1.Launch{Task: task}}})
}

// next waits for one value.
func next[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
		panic("unreachable")
	}
}

// process is a running executor.
type process struct {
	*executor.Executor
	board *switchboard
	stop  func() error  // ends it and answers what Run did
	ended chan struct{} // closed when Run has returned
	dir   string        // its scratch
}

func start(t testing.TB, board *switchboard, change func(*executor.Config)) *process {
	t.Helper()
	cfg := executor.Config{
		Scheduler: "passthrough:///scheduler", Scratch: t.TempDir(), MemoryBytes: 512 << 20, Slots: 2, Threads: 1, MinFreeBytes: -1, Drain: 2 * time.Second,
		Logger: slog.New(slog.DiscardHandler), MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(board.dial), grpc.WithTransportCredentials(insecure.NewCredentials())},
	}
	if change != nil {
		change(&cfg)
	}
	e, err := executor.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done, ended := make(chan error, 1), make(chan struct{})
	go func() { done <- e.Run(ctx); close(ended) }()
	var once sync.Once
	var result error
	stop := func() error {
		once.Do(func() {
			cancel()
			select {
			case result = <-done:
			case <-time.After(patience):
				result = errors.New("the executor does not stop")
			}
		})
		return result
	}
	t.Cleanup(func() {
		require.NoError(t, stop())
		left, err := os.ReadDir(cfg.Scratch)
		require.NoError(t, err)
		require.Empty(t, left, "scratch is gone with the executor")
	})
	return &process{Executor: e, board: board, stop: stop, ended: ended, dir: filepath.Join(cfg.Scratch, "signet-"+e.ID())}
}

// writeTask writes one BIGINT column.
func writeTask(t testing.TB, epoch uint64, sql string) *planv1.Task {
	t.Helper()
	f := &planv1.Field{Id: 1, Name: "x", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}}
	task := &planv1.Task{JobId: uuid.NewString(), Stage: 1, Task: 2, AttemptId: uuid.NewString(), Epoch: epoch, Sql: sql}
	spec := &planv1.WriteSpec{TableUuid: uuid.NewString(), SchemaId: 3, SpecId: 4, Schema: &planv1.Schema{Fields: []*planv1.Field{f}}, DataLocation: "file://" + t.TempDir() + "/data"}
	task.Work = &planv1.Task_Write{Write: &planv1.WriteTask{
		Columns: []*planv1.OutputColumn{{Field: f}}, Spec: spec, Prefix: spec.DataLocation + "/" + task.JobId + "/1/2/" + task.AttemptId,
	}}
	return task
}

func dir(task *planv1.Task) string { return strings.TrimPrefix(task.GetWrite().GetPrefix(), "file://") }

const endless = "SELECT sum(a.i * b.i) FROM range(10000000) a(i), range(10000000) b(i)"
