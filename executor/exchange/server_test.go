package exchange_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/rpc"
)

// put keeps bytes as partition 4 of an attempt.
func (n *node) put(attempt string, content []byte) *planv1.ExchangePart {
	n.t.Helper()
	dir := filepath.Join(n.t.TempDir(), "files")
	require.NoError(n.t, os.Mkdir(dir, 0o700))
	require.NoError(n.t, os.WriteFile(filepath.Join(dir, "4.parquet"), content, 0o600))
	sum := sha256.Sum256(content)
	ref := &executorv1.AttemptRef{JobId: "job", AttemptId: attempt}
	require.NoError(n.t, n.store.Put(ref, ticket, dir, []*planv1.ExchangePartition{{Partition: 4, Rows: 1, Bytes: int64(len(content)), Sha256: sum[:]}}))
	return &planv1.ExchangePart{AttemptId: attempt, Partition: 4, Address: n.address, Ticket: ticket, Bytes: int64(len(content)), Sha256: sum[:]}
}

func (n *node) client() executorv1.ExchangeClient {
	n.t.Helper()
	opts := append(rpc.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(64<<10)) // readers that hold little themselves
	c, err := grpc.NewClient(n.address, opts...)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { c.Close() })
	return executorv1.NewExchangeClient(c)
}

func read(st grpc.ServerStreamingClient[executorv1.FetchResponse], err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var out []byte
	for {
		m, err := st.Recv()
		if err == io.EOF { //nolint:errorlint // the stream's own end
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if len(m.GetData()) > rpc.Chunk {
			return out, status.Errorf(codes.Internal, "a message of %d bytes", len(m.GetData()))
		}
		out = append(out, m.GetData()...)
	}
}

func content(size int) []byte {
	return bytes.Repeat([]byte("0123456789abcde\n"), size/16)
}

// Whoever does not know all of attempt, partition and ticket learns nothing, not even which of them was wrong.
func TestFetch_UnknownIsAlwaysTheSame(t *testing.T) {
	n := newNode(t)
	n.put("a", content(1024))
	freed := n.put("b", content(1024))
	require.NoError(t, n.store.Take(func(ref *executorv1.AttemptRef) bool { return ref.GetAttemptId() == "b" }).Remove())
	c := n.client()
	got, err := read(c.Fetch(t.Context(), &executorv1.FetchRequest{AttemptId: "a", Partition: 4, Ticket: ticket}))
	require.NoError(t, err)
	require.Equal(t, content(1024), got)
	var answers []string
	for _, req := range []*executorv1.FetchRequest{
		{AttemptId: "x", Partition: 4, Ticket: ticket},
		{AttemptId: "a", Partition: 5, Ticket: ticket},
		{AttemptId: "a", Partition: -1, Ticket: ticket},
		{AttemptId: "a", Partition: 4, Ticket: "wrong"},
		{AttemptId: "a", Partition: 4},
		{AttemptId: "a", Partition: 5, Ticket: "wrong"},
		{},
		{AttemptId: "../outputs/a", Partition: 4, Ticket: ticket},
		{AttemptId: freed.GetAttemptId(), Partition: 4, Ticket: ticket},
	} {
		got, err := read(c.Fetch(t.Context(), req))
		require.Equal(t, codes.NotFound, status.Code(err), "%v", req)
		require.Empty(t, got)
		answers = append(answers, err.Error())
	}
	for _, a := range answers {
		require.Equal(t, answers[0], a)
	}
}

func TestFetch_Offsets(t *testing.T) {
	n := newNode(t)
	want := content(3<<20 + 4096)
	n.put("a", want)
	c := n.client()
	for _, off := range []int64{0, 1, 1 << 20, int64(len(want)) - 1, int64(len(want))} {
		got, err := read(c.Fetch(t.Context(), &executorv1.FetchRequest{AttemptId: "a", Partition: 4, Ticket: ticket, Offset: off}))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want[off:], got), "offset %d", off)
	}
	for _, off := range []int64{-1, int64(len(want)) + 1} {
		_, err := read(c.Fetch(t.Context(), &executorv1.FetchRequest{AttemptId: "a", Partition: 4, Ticket: ticket, Offset: off}))
		require.Equal(t, codes.OutOfRange, status.Code(err))
	}
}

// What is freed is not sent to its end.
func TestFetch_BreaksOffWhenFreed(t *testing.T) {
	n := newNode(t)
	n.put("a", content(32<<20))
	st, err := n.client().Fetch(t.Context(), &executorv1.FetchRequest{AttemptId: "a", Partition: 4, Ticket: ticket})
	require.NoError(t, err)
	_, err = st.Recv()
	require.NoError(t, err)
	require.NoError(t, n.store.Take(func(*executorv1.AttemptRef) bool { return true }).Remove())
	_, err = read(st, nil)
	require.Equal(t, codes.NotFound, status.Code(err))
}

// Readers that do not read hold little memory, however many they are, and do not stop others.
func TestFetch_ManySlowReadersBoundedMemory(t *testing.T) {
	const size, readers = 8 << 20, 400
	n := newNode(t)
	part := n.put("a", content(size))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var open sync.WaitGroup
	for range 2 {
		c := n.client()
		for range readers / 2 {
			open.Go(func() {
				st, err := c.Fetch(ctx, &executorv1.FetchRequest{AttemptId: "a", Partition: 4, Ticket: ticket})
				if err == nil {
					_, err = st.Recv()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	open.Wait()
	var out bytes.Buffer
	require.NoError(t, exchangeclient.Fetch(ctx, dialer(t), part, &out))
	require.Equal(t, size, out.Len())
	out = bytes.Buffer{}
	for range 3 { // pools give way at the second
		runtime.GC()
	}
	runtime.ReadMemStats(&after)
	t.Log((int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(256<<20), "of the %d MiB that they want", readers*size>>20)
}

func TestStore_OutputsAndHeld(t *testing.T) {
	n := newNode(t)
	held, changed := n.store.Held()
	require.Zero(t, held)
	n.put("b", content(16))
	n.put("a", content(16))
	require.Error(t, n.store.Put(&executorv1.AttemptRef{AttemptId: "a"}, ticket, t.TempDir(), nil), "an attempt has one output")
	var ids []string
	for _, ref := range n.store.Outputs() {
		ids = append(ids, ref.GetAttemptId())
	}
	require.Equal(t, []string{"a", "b"}, ids)
	gone := n.store.Take(func(ref *executorv1.AttemptRef) bool { return ref.GetAttemptId() == "a" })
	require.Len(t, gone.Attempts(), 1)
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was told")
	}
	require.NoError(t, gone.Remove())
	held, _ = n.store.Held()
	require.Equal(t, 1, held)
	require.Empty(t, n.store.Take(func(ref *executorv1.AttemptRef) bool { return ref.GetAttemptId() == "a" }))
}

// An attempt that is fetched from after its files have gone is as good as unknown.
func TestFetch_LostFilesAreUnknown(t *testing.T) {
	n := newNode(t)
	part := n.put("a", content(1024))
	require.NoError(t, os.RemoveAll(n.dir))
	var le *exchangeclient.LostError
	require.ErrorAs(t, exchangeclient.Fetch(t.Context(), dialer(t), part, io.Discard), &le)
	require.Equal(t, "a", le.Attempt)
}

func TestEndpoint_PlainTextStaysOnThisMachine(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:0": "plain text", "[::]:0": "plain text", ":0": "plain text", "192.0.2.1:7071": "plain text", "example.org:7071": "plain text", "127.0.0.1": "want host:port",
	} {
		_, _, err := exchange.Endpoint{Listen: listen}.Open()
		require.ErrorContains(t, err, want, listen)
	}
	_, _, err := exchange.Endpoint{Advertise: "192.0.2.1:7071"}.Open()
	require.ErrorContains(t, err, "no certificate")
	for _, listen := range []string{"", "127.0.0.1:0", "localhost:0"} {
		l, address, err := exchange.Endpoint{Listen: listen}.Open()
		require.NoError(t, err)
		require.True(t, exchangeclient.IsLoopback(address))
		require.NotContains(t, address, ":0")
		require.NoError(t, l.Close())
	}
}

func TestEndpoint_AdvertisedAddress(t *testing.T) {
	cert := certificate(t)
	for _, c := range []struct{ listen, advertise, want, err string }{
		{"0.0.0.0:0", "exec-1.example.org", "exec-1.example.org:PORT", ""},
		{"0.0.0.0:0", "exec-1.example.org:0", "exec-1.example.org:PORT", ""},
		{"127.0.0.1:0", "exec-1.example.org:7443", "exec-1.example.org:7443", ""},
		{"127.0.0.1:0", "2001:db8::1", "[2001:db8::1]:PORT", ""},
		{"0.0.0.0:0", "", "", "--exchange-address"},
		{":0", "", "", "--exchange-address"},
		{"127.0.0.1:0", ":7443", "", "no host"},
		{"127.0.0.1:0", "", "", "of this machine only"},
		{"127.0.0.1:0", "localhost", "", "of this machine only"},
	} {
		l, address, err := exchange.Endpoint{Listen: c.listen, Advertise: c.advertise, TLS: cert.server}.Open()
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%v", c)
			continue
		}
		require.NoError(t, err, "%v", c)
		require.Equal(t, address, portOf(c.want, l), "%v", c)
		require.NoError(t, l.Close())
	}
}
