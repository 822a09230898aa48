package exchangeclient_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
)

type stream = grpc.ServerStreamingServer[executorv1.FetchResponse]

// Fetches from one executor share a connection, which closes when nobody has used it for a while, and opens again.
func TestDialer_SharesAndRetiresConnections(t *testing.T) {
	e := start(t, sends(data, len(data), nil))
	d := dialer(t, func(c *exchangeclient.Config) { c.Idle = 30 * time.Millisecond })
	for range 2 {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				var out bytes.Buffer
				if err := exchangeclient.Fetch(t.Context(), d, part(e.address, data), &out); err != nil || !bytes.Equal(out.Bytes(), data) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Eventually(t, func() bool { return d.Connections() == 0 }, patience, time.Millisecond)
	}
}

func TestDialer_ConnectionInUseStays(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	e := start(t, func(req *executorv1.FetchRequest, st stream) error {
		close(reached)
		<-release
		return sends(data, len(data), nil)(req, st)
	}, sends(data, len(data), nil))
	d := dialer(t, func(c *exchangeclient.Config) { c.Idle = time.Nanosecond })
	result := make(chan error, 1)
	go func() { result <- exchangeclient.Fetch(t.Context(), d, part(e.address, data), io.Discard) }()
	<-reached
	require.NoError(t, exchangeclient.Fetch(t.Context(), d, part(e.address, data), io.Discard)) // its end starts no clock
	require.Equal(t, 1, d.Connections())
	close(release)
	require.NoError(t, <-result)
}

// However many fetches are asked for, a few run; the others wait, and stop waiting when they are cancelled.
func TestDialer_BoundsFetches(t *testing.T) {
	began, release := make(chan struct{}, 100), make(chan struct{})
	e := start(t, func(req *executorv1.FetchRequest, st stream) error {
		began <- struct{}{}
		<-release
		return sends(data, len(data), nil)(req, st)
	})
	d := dialer(t, func(c *exchangeclient.Config) { c.Parallel = 3 })
	results := make(chan error, 10)
	for range 10 {
		go func() { results <- exchangeclient.Fetch(t.Context(), d, part(e.address, data), io.Discard) }()
	}
	for range 3 {
		<-began
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, exchangeclient.Fetch(ctx, d, part(e.address, data), io.Discard), context.Canceled)
	require.Empty(t, began, "a fourth one has begun")
	close(release)
	for range 10 {
		require.NoError(t, <-results)
	}
}

func TestDialer_Closed(t *testing.T) {
	d := exchangeclient.NewDialer(exchangeclient.Config{})
	require.NoError(t, d.Close())
	require.ErrorContains(t, exchangeclient.Fetch(t.Context(), d, part("127.0.0.1:1", data), io.Discard), "closed")
}

func TestDialer_OtherMachinesNeedTLS(t *testing.T) {
	d := dialer(t, nil)
	for _, address := range []string{"192.0.2.1:7071", "exec.example.org:7071", "localhost.example.org:1", "nonsense"} {
		require.ErrorIs(t, exchangeclient.Fetch(t.Context(), d, part(address, data), io.Discard), exchangeclient.ErrNoTLS, address)
	}
	require.Zero(t, d.Connections())
}

// S10, S73, T1
func TestOrder(t *testing.T) {
	p := func(task, partition int32, attempt string) *planv1.ExchangePart {
		return &planv1.ExchangePart{Task: task, Partition: partition, AttemptId: attempt}
	}
	in := []*planv1.ExchangePart{p(1, 0, "b"), p(0, 2, "a"), p(10, 0, "c"), p(0, 1, "a")}
	out, err := exchangeclient.Order(in)
	require.NoError(t, err)
	require.Equal(t, []*planv1.ExchangePart{in[3], in[1], in[0], in[2]}, out)
	require.Equal(t, int32(1), in[0].GetTask(), "the argument stays as it was")
	_, err = exchangeclient.Order([]*planv1.ExchangePart{p(0, 0, "a"), p(1, 0, "b"), p(0, 0, "a")})
	require.ErrorContains(t, err, "twice")
	_, err = exchangeclient.Order([]*planv1.ExchangePart{p(0, 0, "a"), p(0, 1, "dead")})
	require.ErrorContains(t, err, "two attempts")
	out, err = exchangeclient.Order(nil)
	require.NoError(t, err)
	require.Empty(t, out)
}
