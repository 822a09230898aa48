package exchangeclient_test

import (
	"crypto/sha256"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// executor is an exchange that does what a test tells it.
type executor struct {
	executorv1.UnimplementedExchangeServer
	t       *testing.T
	address string
	server  *grpc.Server
	done    chan struct{}

	mu      sync.Mutex
	calls   []*executorv1.FetchRequest
	answers []answer // of one call after the other; the last one goes on
}

type answer func(*executorv1.FetchRequest, grpc.ServerStreamingServer[executorv1.FetchResponse]) error

func start(t *testing.T, answers ...answer) *executor {
	t.Helper()
	e := &executor{t: t, answers: answers}
	e.listen("127.0.0.1:0")
	t.Cleanup(e.stop)
	return e
}

func (e *executor) listen(address string) {
	l, err := net.Listen("tcp", address)
	require.NoError(e.t, err)
	e.address, e.done = l.Addr().String(), make(chan struct{})
	e.server = grpc.NewServer(rpc.ServerOptions()...)
	executorv1.RegisterExchangeServer(e.server, e)
	server, done := e.server, e.done
	go func() { defer close(done); _ = server.Serve(l) }()
}

func (e *executor) stop() {
	e.server.Stop()
	<-e.done
}

func (e *executor) Fetch(req *executorv1.FetchRequest, st grpc.ServerStreamingServer[executorv1.FetchResponse]) error {
	e.mu.Lock()
	n := len(e.calls)
	e.calls = append(e.calls, req)
	e.mu.Unlock()
	return e.answers[min(n, len(e.answers)-1)](req, st)
}

// offsets are where the calls began.
func (e *executor) offsets() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []int64
	for _, c := range e.calls {
		out = append(out, c.GetOffset())
	}
	return out
}

// sends gives the bytes from the offset to end, 1,000 at a time, and then an error or none.
func sends(data []byte, end int, err error) answer {
	return func(req *executorv1.FetchRequest, st grpc.ServerStreamingServer[executorv1.FetchResponse]) error {
		for at := int(req.GetOffset()); at < end; at += 1000 {
			if err := st.Send(&executorv1.FetchResponse{Data: data[at:min(at+1000, end)]}); err != nil {
				return err
			}
		}
		return err
	}
}

func fails(err error) answer { return sends(nil, 0, err) }

// hangs sends nothing until the caller has had enough.
func hangs(_ *executorv1.FetchRequest, st grpc.ServerStreamingServer[executorv1.FetchResponse]) error {
	<-st.Context().Done()
	return st.Context().Err()
}

func part(address string, data []byte) *planv1.ExchangePart {
	sum := sha256.Sum256(data)
	return &planv1.ExchangePart{Task: 3, AttemptId: "attempt-1", Partition: 2, ExecutorId: "exec-1", Address: address, Ticket: "t", Bytes: int64(len(data)), Sha256: sum[:]}
}

func dialer(t *testing.T, change func(*exchangeclient.Config)) *exchangeclient.Dialer {
	t.Helper()
	cfg := exchangeclient.Config{MinPause: time.Millisecond, MaxPause: 2 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	d := exchangeclient.NewDialer(cfg)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}
