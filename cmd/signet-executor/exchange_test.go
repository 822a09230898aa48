package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func TestParse_ExchangeFlags(t *testing.T) {
	o, err := parse([]string{"--scheduler", "h:1", "--scratch", "/s"}, noEnv, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:0", o.config.Exchange.Listen)
	require.Nil(t, o.config.Exchange.TLS)
	env := map[string]string{"SIGNET_EXECUTOR_EXCHANGE_LISTEN": "0.0.0.0:7071"}
	o, err = parse([]string{"--exchange-address", "exec-1.example.org"}, func(k string) (string, bool) { v, ok := env[k]; return v, ok }, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "0.0.0.0:7071", o.config.Exchange.Listen)
	require.Equal(t, "exec-1.example.org", o.config.Exchange.Advertise)
	for _, args := range [][]string{{"--exchange-tls-cert", "x"}, {"--exchange-tls-key", "x"}} {
		_, err = parse(args, noEnv, io.Discard)
		require.ErrorContains(t, err, "go together")
	}
	_, err = parse([]string{"--exchange-tls-cert", "/nonexistent", "--exchange-tls-key", "/nonexistent"}, noEnv, io.Discard)
	require.ErrorContains(t, err, "--exchange-tls-cert")
}

// Rows and tickets never travel between machines in the open.
func TestRun_RefusesPlainTextExchange(t *testing.T) {
	for _, args := range [][]string{{"--exchange-listen", "0.0.0.0:0"}, {"--exchange-listen", "192.0.2.1:7071"}, {"--exchange-address", "192.0.2.1:7071"}} {
		var errs bytes.Buffer
		all := append([]string{"--scheduler", "127.0.0.1:1", "--scratch", t.TempDir(), "--memory", "512MiB", "--slots", "1"}, args...)
		require.Equal(t, 2, run(all, noEnv, io.Discard, &errs))
		require.Contains(t, errs.String(), "--exchange-tls-cert")
	}
}

// scheduler answers one executor: what script sends after the registration, and what came back.
type scheduler struct {
	executorv1.UnimplementedExecutorGatewayServer
	script   []*executorv1.SessionResponse
	statuses chan *executorv1.TaskStatus
}

func (s *scheduler) Session(st grpc.BidiStreamingServer[executorv1.SessionRequest, executorv1.SessionResponse]) error {
	if _, err := st.Recv(); err != nil {
		return err
	}
	registered := &executorv1.SessionResponse{Message: &executorv1.SessionResponse_Registered{Registered: &executorv1.Registered{Epoch: 1, HeartbeatMillis: 100}}}
	for _, m := range append([]*executorv1.SessionResponse{registered}, s.script...) {
		if err := st.Send(m); err != nil {
			return err
		}
	}
	for {
		m, err := st.Recv()
		if err != nil {
			return nil //nolint:nilerr // its end
		}
		if status := m.GetStatus(); status != nil {
			if err := st.Send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Ack{Ack: &executorv1.StatusAck{Attempt: status.GetAttempt()}}}); err != nil {
				return err
			}
			s.statuses <- status
		}
	}
}

func schedule(t *testing.T, script ...*executorv1.SessionResponse) (*scheduler, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &scheduler{script: script, statuses: make(chan *executorv1.TaskStatus, 100)}
	g := grpc.NewServer()
	executorv1.RegisterExecutorGatewayServer(g, s)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return s, l.Addr().String()
}

func (s *scheduler) next(t *testing.T) *executorv1.TaskStatus {
	t.Helper()
	select {
	case st := <-s.statuses:
		return st
	case <-time.After(20 * time.Second):
		t.Fatal("no status")
		return nil
	}
}

func TestProcess_DrainEndsItWithStatusZero(t *testing.T) {
	_, address := schedule(t, &executorv1.SessionResponse{Message: &executorv1.SessionResponse_Drain{Drain: &executorv1.Drain{Reason: "maintenance"}}})
	cmd, log := process(t, "--scheduler", address)
	require.NoError(t, cmd.Wait())
	require.Contains(t, log.String(), "executor stopped")
}

// What a killed executor left for others goes when the next one starts over the same scratch.
func TestProcess_KilledOnesOutputsAreSwept(t *testing.T) {
	launch := &executorv1.SessionResponse{Message: &executorv1.SessionResponse_Launch{Launch: &executorv1.Launch{Task: &planv1.Task{
		JobId: "job", AttemptId: "attempt-1", Epoch: 1, Sql: "SELECT 1 AS a",
		Work: &planv1.Task_Exchange{Exchange: &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_GATHER, Partitions: 1, Ticket: "t"}},
	}}}}
	s, address := schedule(t, launch)
	scratch := t.TempDir()
	cmd, _ := process(t, "--scheduler", address, "--scratch", scratch)
	st := s.next(t)
	require.Nil(t, st.GetError())
	require.Len(t, st.GetOutput().GetPartitions(), 1)
	outputs := func() []string {
		found, err := filepath.Glob(filepath.Join(scratch, "*", "outputs", "attempt-1", "0.parquet"))
		require.NoError(t, err)
		return found
	}
	require.Len(t, outputs(), 1)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Len(t, outputs(), 1)
	cmd, _ = process(t, "--scratch", scratch)
	require.Empty(t, outputs())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, left)
}
