package executor_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
)

func TestExchange_OutputIsReadByAnotherExecutor(t *testing.T) {
	a, b := join(t, nil), join(t, nil)
	producer := exchangeTask("SELECT i AS a FROM range(1000) t(i)", 4)
	st := a.run(t, producer)
	require.Equal(t, int64(1000), st.GetRows())
	parts := a.parts(producer, st)
	require.Len(t, parts, 4)
	var bytes int64
	for _, p := range parts {
		bytes += p.GetBytes()
	}
	require.Equal(t, bytes, st.GetBytes())

	consumer := resultTask("SELECT sum(a)::BIGINT FROM v", source("v", parts))
	b.run(t, consumer)
	require.Equal(t, []int64{499500}, numbers(t, next(t, b.outputs, "result")))

	// A third stage reads what the second one left, and a write task what the third did.
	second := exchangeTask("SELECT a FROM v WHERE a < 10 ORDER BY a DESC", 1, source("v", parts))
	second.Stage = 2
	got := b.parts(second, b.run(t, second))
	write := writeTask(t, 1, "SELECT a FROM w")
	write.Sources = []*planv1.Source{source("w", got)}
	a.launch(write)
	files, err := next(t, a.manifests, "manifest").Files()
	require.NoError(t, err)
	require.Equal(t, int64(10), files[0].GetRecordCount())
}

func TestExchange_NoPartsAreNoRows(t *testing.T) {
	c := join(t, nil)
	producer := exchangeTask("SELECT i AS a FROM range(10) t(i) WHERE i > 99", 8)
	st := c.run(t, producer)
	require.NotNil(t, st.GetOutput())
	require.Empty(t, st.GetOutput().GetPartitions())
	c.run(t, resultTask("SELECT count(*) FROM v", source("v", nil)))
	require.Equal(t, []int64{0}, numbers(t, next(t, c.outputs, "result")))
}

// proxy passes connections on and counts what comes back.
type proxy struct {
	net.Listener
	target atomic.Value
	got    atomic.Int64
	all    sync.WaitGroup
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l}
	p.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.target.Load().(string))
			if err != nil {
				in.Close()
				continue
			}
			p.all.Go(func() { _, _ = io.Copy(out, in); out.Close() })
			p.all.Go(func() {
				n, _ := io.Copy(in, out)
				p.got.Add(n)
				in.Close()
			})
		}
	})
	return p
}

// S11: also what lies in this very process comes by gRPC, from the address in the part.
func TestExchange_ReadsRemotelyFromItself(t *testing.T) {
	p := newProxy(t)
	c := join(t, func(cfg *executor.Config) {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		cfg.Exchange.Listen = free.Addr().String()
		require.NoError(t, free.Close())
		p.target.Store(cfg.Exchange.Listen)
		cfg.Exchange.Advertise = p.Addr().String()
	})
	require.Equal(t, p.Addr().String(), c.address)
	producer := exchangeTask("SELECT (hash(i) >> 1)::BIGINT AS a FROM range(10000) t(i)", 1)
	parts := c.parts(producer, c.run(t, producer))
	c.run(t, resultTask("SELECT count(*) FROM v", source("v", parts)))
	require.NoError(t, c.stop()) // closes the connections
	require.NoError(t, p.Close())
	p.all.Wait()
	require.Greater(t, p.got.Load(), parts[0].GetBytes())
}

// S70: the outputs of others are no files that a query can read.
func TestExchange_QueriesSeeOnlyTheirParts(t *testing.T) {
	c := join(t, nil)
	producer := exchangeTask("SELECT 1::BIGINT AS a", 1)
	parts := c.parts(producer, c.run(t, producer))
	path := filepath.Join(c.dir, "outputs", producer.GetAttemptId(), "0.parquet")
	require.FileExists(t, path)
	for _, sql := range []string{"SELECT * FROM read_parquet('" + path + "')", "SELECT content FROM read_blob('" + path + "')", "SELECT * FROM v, glob('" + c.dir + "/**')"} {
		for _, task := range []*planv1.Task{resultTask(sql, source("v", parts)), exchangeTask(sql, 1, source("v", parts))} {
			c.launch(task)
			st := statusOf(t, c.gateway, task)
			require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, st.GetError().GetClass(), "%s: %v", sql, st)
		}
	}
}

func TestExchange_LostPartNamesItsAttempt(t *testing.T) {
	a, b := join(t, nil), join(t, func(c *executor.Config) { c.Fetch.MinPause, c.Fetch.MaxPause = time.Millisecond, time.Millisecond })
	producer := exchangeTask("SELECT 1::BIGINT AS a", 1)
	parts := a.parts(producer, a.run(t, producer))
	fails := func(why string) {
		t.Helper()
		task := resultTask("SELECT * FROM v", source("v", parts))
		b.launch(task)
		st := statusOf(t, b.gateway, task)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_FETCH, st.GetError().GetClass(), "%v", st)
		require.Equal(t, producer.GetAttemptId(), st.GetError().GetLostAttempt())
		require.Contains(t, st.GetError().GetMessage(), why)
	}
	b.run(t, resultTask("SELECT a FROM v", source("v", parts)))
	parts[0].Ticket = "another job's"
	fails("no such output")
	parts[0].Ticket = "ticket"
	parts[0].Sha256[0]++
	fails("checksum")
	parts[0].Sha256[0]--
	a.free("job")
	eventually(t, "freed", func() bool { return !fetchable(t, parts[0]) })
	fails("no such output")
	require.NoError(t, a.stop())
	fails("given up after 6 tries")
}

// A cancelled task stops fetching.
func TestExchange_CancelStopsFetching(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // an executor that accepts and says nothing
	require.NoError(t, err)
	defer l.Close()
	c := join(t, nil)
	part := &planv1.ExchangePart{AttemptId: "gone", Address: l.Addr().String(), Ticket: "ticket", Bytes: 100, Sha256: make([]byte, 32)}
	task := resultTask("SELECT * FROM v", source("v", []*planv1.ExchangePart{part}))
	c.launch(task)
	awaitRunning(t, c.gateway, 1)
	c.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Cancel{Cancel: &executorv1.CancelTask{Attempt: &executorv1.AttemptRef{AttemptId: task.GetAttemptId()}, Reason: "its input is lost"}}})
	st := statusOf(t, c.gateway, task)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "its input is lost")
}

func TestExchange_RefusesBadTasks(t *testing.T) {
	c := join(t, nil)
	part := func(attempt string, partition int32) *planv1.ExchangePart {
		return &planv1.ExchangePart{AttemptId: attempt, Partition: partition, Address: c.address, Ticket: "ticket", Sha256: make([]byte, 32)}
	}
	noTicket := exchangeTask("SELECT 1", 1)
	noTicket.GetExchange().Ticket = ""
	for want, task := range map[string]*planv1.Task{
		"without a ticket": noTicket,
		"twice":            resultTask("SELECT 1", source("v", []*planv1.ExchangePart{part("x", 1), part("x", 1)})),
		"two attempts":     resultTask("SELECT 1", source("v", []*planv1.ExchangePart{part("x", 1), part("y", 2)})), // S73, T1
		"attempt id":       resultTask("SELECT 1", source("v", []*planv1.ExchangePart{part("../../etc", 1)})),
		"no checksum":      resultTask("SELECT 1", source("v", []*planv1.ExchangePart{{AttemptId: "x", Address: c.address}})),
	} {
		c.launch(task)
		st := statusOf(t, c.gateway, task)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, st.GetError().GetClass(), "%s: %s", want, st.GetError().GetMessage())
		require.Contains(t, st.GetError().GetMessage(), want)
	}
	// An executor of another machine, and no certificate authority to know it by.
	task := resultTask("SELECT 1", source("v", []*planv1.ExchangePart{{AttemptId: "x", Address: "192.0.2.1:7071", Sha256: make([]byte, 32)}}))
	c.launch(task)
	st := statusOf(t, c.gateway, task)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_RESOURCE, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetHint(), "--tls-ca")
}

func TestExchange_UserErrorsStayUserErrors(t *testing.T) {
	c := join(t, nil)
	task := exchangeTask("SELECT 'abc'::INTEGER AS a", 4)
	c.launch(task)
	st := statusOf(t, c.gateway, task)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "abc")
	left, err := filepath.Glob(filepath.Join(c.dir, "*", "*.parquet"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestNew_RefusesPlainTextExchangeForOtherMachines(t *testing.T) {
	cfg := executor.Config{Scheduler: "localhost:1", Scratch: t.TempDir(), MemoryBytes: 1 << 30, Slots: 1}
	cfg.Exchange.Listen = "0.0.0.0:0"
	_, err := executor.New(cfg)
	require.ErrorContains(t, err, "plain text")
	left, err := os.ReadDir(cfg.Scratch)
	require.NoError(t, err)
	require.Empty(t, left)
}
