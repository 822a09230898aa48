package exchange_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/internal/exchangeclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ticket = "ticket-of-the-job"

// node is an executor, as far as exchanges go.
type node struct {
	t       testing.TB
	store   *exchange.Store
	dir     string // of the store
	address string
	pool    *duckdb.Pool
	access  duckdb.Access // memory, threads
}

func newNode(t testing.TB) *node {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "outputs")
	n := &node{
		t: t, dir: dir, store: exchange.NewStore(dir), pool: duckdb.NewPool(duckdb.Options{}),
		access: duckdb.Access{MemoryBytes: 1 << 30, Threads: 2},
	}
	l, err := net.Listen("tcp", exchange.DefaultListen)
	require.NoError(t, err)
	n.address = l.Addr().String()
	server := exchange.NewServer(n.store)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done; require.NoError(t, n.pool.Close()) })
	return n
}

func hashed(partitions int32, keys ...int32) *planv1.ExchangeTask {
	return &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_HASH, Keys: keys, Partitions: partitions, Ticket: ticket}
}

func gathered() *planv1.ExchangeTask {
	return &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_GATHER, Partitions: 1, Ticket: ticket}
}

// produce runs an exchange task, keeps its output, and answers its columns and its parts.
func (n *node) produce(ex *planv1.ExchangeTask, number int32, sql string, sources ...*planv1.Source) ([]*planv1.Column, []*planv1.ExchangePart) {
	n.t.Helper()
	cols, parts, err := n.tryProduce(ex, number, sql, sources...)
	require.NoError(n.t, err)
	return cols, parts
}

func (n *node) tryProduce(ex *planv1.ExchangeTask, number int32, sql string, sources ...*planv1.Source) ([]*planv1.Column, []*planv1.ExchangePart, error) {
	n.t.Helper()
	ctx := context.Background()
	task := &planv1.Task{JobId: "job", Stage: 1, Task: number, AttemptId: uuid.NewString(), Sql: sql, Sources: sources, Work: &planv1.Task_Exchange{Exchange: ex}}
	dir := n.t.TempDir()
	acc := n.access
	acc.WriteDirs, acc.TempDir, acc.KeepOrder, acc.OpenFiles = []string{dir}, filepath.Join(dir, "spill"), exchange.KeepOrder(ex), exchange.OpenFiles(ex, 2)
	inst, err := n.pool.Open(ctx, acc)
	require.NoError(n.t, err)
	defer inst.Close()
	require.NoError(n.t, inst.BindSources(ctx, sources))
	cols, err := inst.Describe(ctx, sql)
	if err != nil {
		return nil, nil, err
	}
	made, out, err := exchange.Run(ctx, inst, task, exchange.Options{Scratch: dir})
	if err != nil {
		return nil, nil, err
	}
	ref := &executorv1.AttemptRef{JobId: task.JobId, Stage: 1, Task: number, AttemptId: task.AttemptId}
	require.NoError(n.t, n.store.Put(ref, ex.GetTicket(), made, out.GetPartitions()))
	var parts []*planv1.ExchangePart
	for _, p := range out.GetPartitions() {
		require.Positive(n.t, p.GetRows(), "partitions without rows are not listed")
		parts = append(parts, &planv1.ExchangePart{
			Task: number, AttemptId: task.AttemptId, Partition: p.GetPartition(), ExecutorId: "x", Address: n.address, Ticket: ex.GetTicket(),
			Rows: p.GetRows(), Bytes: p.GetBytes(), Sha256: p.GetSha256(),
		})
	}
	return cols, parts, nil
}

func input(view string, cols []*planv1.Column, parts []*planv1.ExchangePart) *planv1.Source {
	return &planv1.Source{View: view, Kind: &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{Stage: 1, Columns: cols, Parts: parts}}}
}

func dialer(t testing.TB) *exchangeclient.Dialer {
	t.Helper()
	d := exchangeclient.NewDialer(exchangeclient.Config{MinPause: time.Millisecond, MaxPause: 2 * time.Millisecond})
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// consume fetches the parts of sources and opens a locked instance with their views.
func (n *node) consume(sources ...*planv1.Source) *duckdb.Instance {
	n.t.Helper()
	inst, err := n.tryConsume(sources...)
	require.NoError(n.t, err)
	return inst
}

func (n *node) tryConsume(sources ...*planv1.Source) (*duckdb.Instance, error) {
	n.t.Helper()
	dir := filepath.Join(n.t.TempDir(), "parts")
	if err := exchange.FetchParts(context.Background(), dialer(n.t), sources, dir, -1); err != nil {
		return nil, err
	}
	acc := n.access
	acc.ReadFiles, acc.PartsDir, acc.KeepOrder = duckdb.PartFiles(dir, sources), dir, true
	inst, err := n.pool.Open(context.Background(), acc)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { require.NoError(n.t, inst.Close()) })
	return inst, inst.BindSources(context.Background(), sources)
}

// rows runs a query and answers its rows as text.
func rows(t testing.TB, inst *duckdb.Instance, query string) []string {
	t.Helper()
	res, err := inst.Conn().QueryContext(context.Background(), "SELECT CAST(row(*COLUMNS(*)) AS VARCHAR) FROM ("+query+") r")
	require.NoError(t, err, query)
	defer res.Close()
	var out []string
	for res.Next() {
		var s string
		require.NoError(t, res.Scan(&s))
		out = append(out, s)
	}
	require.NoError(t, res.Err())
	return out
}

func one(t testing.TB, inst *duckdb.Instance, query string) string {
	t.Helper()
	r := rows(t, inst, "SELECT "+query)
	require.Len(t, r, 1)
	return r[0]
}
