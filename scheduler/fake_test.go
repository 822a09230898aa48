package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/scheduler/config"
)

const patience = 10 * time.Second

// bench is a scheduler with executors that a test plays.
type bench struct {
	t      *testing.T
	cfg    *config.Config
	opts   []Option
	server *Server
	client *client.Client
	log    logged
}

// logged is what the scheduler logs, from any goroutine.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newBench(t *testing.T, opts ...Option) *bench {
	t.Helper()
	return newBenchWith(t, func(*config.Config) {}, opts...)
}

func newBenchWith(t *testing.T, change func(*config.Config), opts ...Option) *bench {
	t.Helper()
	b := &bench{t: t, opts: opts, cfg: config.Embedded(t.TempDir())}
	b.cfg.Executors.Local = 0
	b.cfg.Timeouts.ExecutorLoss = time.Hour // actors send no heartbeats
	b.cfg.Plugins.AllowUnlocked, b.cfg.Plugins.Dir = true, filepath.Join(t.TempDir(), "plugins")
	change(b.cfg)
	b.start()
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *bench) start() {
	b.t.Helper()
	s, err := Start(b.t.Context(), b.cfg, Options{ReconnectGrace: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&b.log, nil))}, b.opts...)
	require.NoError(b.t, err)
	b.server = s
	b.client, err = client.Dial(s.Addr(), client.WithRetry(0))
	require.NoError(b.t, err)
}

func (b *bench) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = b.client.Close()
	require.NoError(b.t, b.server.Stop(ctx))
}

func (b *bench) submit(sql string, set map[string]string) string {
	b.t.Helper()
	r, err := b.client.Raw().Submit(b.t.Context(), &schedulerv1.SubmitRequest{Sql: sql, Settings: set})
	require.NoError(b.t, err)
	return r.GetJobId()
}

func (b *bench) submitPlan(p *planv1.PhysicalPlan, set map[string]string) string {
	b.t.Helper()
	r, err := b.client.Raw().Submit(b.t.Context(), &schedulerv1.SubmitRequest{PhysicalPlan: p, Settings: set})
	require.NoError(b.t, err)
	return r.GetJobId()
}

func (b *bench) end(id string) *schedulerv1.Job {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	j, err := b.client.Wait(ctx, id, nil)
	require.NoError(b.t, err)
	return j
}

func (b *bench) job(id string) *schedulerv1.GetJobResponse {
	b.t.Helper()
	j, err := b.client.Job(b.t.Context(), id)
	require.NoError(b.t, err)
	return j
}

func (b *bench) eventually(what string, f func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !f(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("never happened: %s", what)
		}
	}
}

// freed waits until executors keep nothing.
func (b *bench) freed(actors ...*actor) {
	b.t.Helper()
	for _, a := range actors {
		for deadline := time.Now().Add(patience); a.holding() > 0; <-time.After(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				a.mu.Lock()
				freed := a.freed
				a.mu.Unlock()
				b.t.Fatalf("executor %s still keeps %v; it was told %v", a.id, a.keeping(), freed)
			}
		}
	}
}

// actor is an executor that a test plays: it answers analyses with two stages, keeps rows that the test gives it, and serves them.
type actor struct {
	executorv1.UnimplementedExchangeServer
	b      *bench
	id     string
	server *grpc.Server
	addr   string
	conn   *grpc.ClientConn
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	st      grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse]
	outputs map[string]*kept2
	freed   []*executorv1.FreeOutputs
	repeats int                          // of every report
	spoil   func(*executorv1.TaskStatus) // what it reports instead
	fetches map[string]int
	acks    int
	refuse  bool // nothing is served
	// run says how a task ends. Nil: it succeeds.
	run func(*planv1.Task) *planv1.Error
	// staged is the answer to analyses; nil: stages(2).
	staged *executorv1.StagedQuery
	tasks  []*planv1.Task
	slots  int32           // 8 if 0
	mute   bool            // it does not ask for tasks
	polled map[string]bool // attempts that it has asked for
	drains []*executorv1.Drain
}

type kept2 struct {
	ref  *executorv1.AttemptRef
	data []byte
	rows int64
}

func (b *bench) actor(change ...func(*actor)) *actor {
	b.t.Helper()
	a := &actor{b: b, id: uuid.NewString(), outputs: map[string]*kept2{}, fetches: map[string]int{}, polled: map[string]bool{}, done: make(chan struct{})}
	for _, f := range change {
		f(a)
	}
	l, err := (&net.ListenConfig{}).Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b.t, err)
	a.addr, a.server = l.Addr().String(), grpc.NewServer()
	executorv1.RegisterExchangeServer(a.server, a)
	go func() { _ = a.server.Serve(l) }()
	a.join()
	b.t.Cleanup(a.die)
	return a
}

// join registers, also again, with what it keeps.
func (a *actor) join() {
	t := a.b.t
	t.Helper()
	conn, err := grpc.NewClient(a.b.server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	st, err := executorv1.NewExecutorGatewayClient(conn).Session(ctx)
	require.NoError(t, err)
	reg := &executorv1.Register{ExecutorId: a.id, Slots: cmp.Or(a.slots, 8), ExchangeAddress: a.addr}
	a.mu.Lock()
	for _, o := range a.outputs {
		reg.Outputs = append(reg.Outputs, o.ref)
	}
	a.st, a.conn, a.stop = st, conn, cancel
	a.mu.Unlock()
	require.NoError(t, st.Send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: reg}}))
	m, err := st.Recv()
	require.NoError(t, err)
	require.NotNil(t, m.GetRegistered())
	wanted := map[string]bool{}
	for _, r := range m.GetRegistered().GetAdopted() {
		wanted[r.GetAttemptId()] = true
	}
	a.mu.Lock()
	for id := range a.outputs {
		if !wanted[id] {
			delete(a.outputs, id)
		}
	}
	a.mu.Unlock()
	if !a.mute {
		a.poll(reg.Slots)
	}
	go a.serve(st)
}

func (a *actor) poll(tasks int32) {
	a.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Poll{Poll: &executorv1.Poll{Tasks: tasks}}})
}

// die ends the session and what it keeps, as a killed process does.
func (a *actor) die() {
	a.stop()
	_ = a.conn.Close()
	a.server.Stop()
}

func (a *actor) serve(st grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse]) {
	for {
		m, err := st.Recv()
		if err != nil {
			return
		}
		switch {
		case m.GetAnalyze() != nil:
			a.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Analyzed{Analyzed: a.analyze(m.GetAnalyze())}})
		case m.GetLaunch() != nil:
			a.mu.Lock()
			a.polled[m.GetLaunch().GetTask().GetAttemptId()] = m.GetLaunch().GetPolled()
			a.mu.Unlock()
			go a.work(m.GetLaunch().GetTask())
		case m.GetDrain() != nil:
			a.mu.Lock()
			a.drains = append(a.drains, m.GetDrain())
			a.mu.Unlock()
		case m.GetFree() != nil:
			a.free(m.GetFree())
		case m.GetAck() != nil:
			a.mu.Lock()
			a.acks++
			again := a.polled[m.GetAck().GetAttempt().GetAttemptId()] && !a.mute
			a.mu.Unlock()
			if again {
				a.poll(1)
			}
		}
	}
}

func (a *actor) send(m *executorv1.SessionRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.st.Send(m)
}

func (a *actor) analyze(r *executorv1.Analyze) *executorv1.AnalyzeResult {
	staged := a.staged
	if staged == nil {
		staged = stages(2)
	}
	last := staged.Stages[len(staged.Stages)-1]
	if r.BindOnly {
		return &executorv1.AnalyzeResult{RequestId: r.RequestId, Sql: r.Sql, Columns: last.Columns}
	}
	return &executorv1.AnalyzeResult{RequestId: r.RequestId, Sql: "SELECT n FROM whole", Columns: last.Columns, Staged: staged, NotRowWise: "it groups"}
}

// stages is a chain of n stages, by hash.
func stages(n int) *executorv1.StagedQuery {
	out := &executorv1.StagedQuery{}
	for i := range n {
		q := &executorv1.QueryStage{
			Sql: fmt.Sprintf("SELECT n FROM stage%d", i), Columns: []*planv1.Column{{Name: "n", EngineType: "BIGINT", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}}},
			Output: planv1.ExchangeKind_EXCHANGE_KIND_HASH, Keys: []int32{0}, Repeatable: true,
		}
		if i > 0 {
			q.Inputs = []*executorv1.StageInput{{View: "below", Stage: int32(i - 1), Split: true}}
		}
		if i == n-1 {
			q.Output, q.Keys = 0, nil
		}
		out.Stages = append(out.Stages, q)
	}
	return out
}

// work runs a task: every partition of an exchange gets ten rows.
func (a *actor) work(t *planv1.Task) {
	a.mu.Lock()
	a.tasks = append(a.tasks, t)
	run := a.run
	a.mu.Unlock()
	st := statusOf(t)
	if run != nil {
		st.Error = run(t)
	}
	switch {
	case st.Error != nil:
	case t.GetExchange() != nil:
		st.Output = a.keep(st.Attempt, t)
		st.Rows = 10 * int64(len(st.Output.Partitions))
	case t.GetResult() != nil:
		a.push(st.Attempt)
	}
	a.report(st)
}

func statusOf(t *planv1.Task) *executorv1.TaskStatus {
	return &executorv1.TaskStatus{Attempt: refOf(t)}
}

func (a *actor) report(st *executorv1.TaskStatus) {
	if a.spoil != nil {
		a.spoil(st)
	}
	for range a.repeats {
		a.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: st}})
	}
	a.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: st}})
}

func (a *actor) keep(ref *executorv1.AttemptRef, t *planv1.Task) *planv1.ExchangeOutput {
	data := numbers(a.b.t, 10)
	sum := sha256.Sum256(data)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outputs[ref.AttemptId] = &kept2{ref: ref, data: data, rows: 10}
	out := &planv1.ExchangeOutput{}
	for p := range t.GetExchange().GetPartitions() {
		out.Partitions = append(out.Partitions, &planv1.ExchangePartition{Partition: p, Rows: 10, Bytes: int64(len(data)), Sha256: sum[:]})
	}
	return out
}

func (a *actor) push(ref *executorv1.AttemptRef) {
	st, err := executorv1.NewExecutorGatewayClient(a.conn).PushOutput(context.Background())
	if err != nil {
		return
	}
	data, _ := inlineResult([]string{"n:int"}, []row{{int64(1)}})
	_ = st.Send(&executorv1.PushOutputRequest{Attempt: ref, Data: data, Last: true, Rows: 1})
	_, _ = st.CloseAndRecv()
}

func (a *actor) free(f *executorv1.FreeOutputs) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.freed = append(a.freed, f)
	for id, o := range a.outputs {
		if o.ref.JobId == f.JobId && (len(f.AttemptIds) == 0 || contains(f.AttemptIds, id)) {
			delete(a.outputs, id)
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Fetch implements executor.v1.
func (a *actor) Fetch(r *executorv1.FetchRequest, st grpc.ServerStreamingServer[executorv1.FetchResponse]) error {
	a.mu.Lock()
	o := a.outputs[r.AttemptId]
	a.fetches[fmt.Sprintf("%s/%d", r.AttemptId, r.Partition)]++
	refuse := a.refuse
	a.mu.Unlock()
	if o == nil || refuse {
		return status.Error(codes.NotFound, "no such output")
	}
	return st.Send(&executorv1.FetchResponse{Data: o.data[r.Offset:]})
}

func (a *actor) holding() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.outputs)
}

// keeping is what is kept, for messages.
func (a *actor) keeping() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, o := range a.outputs {
		out = append(out, fmt.Sprintf("%s of task %d of stage %d of job %s", o.ref.AttemptId, o.ref.Task, o.ref.Stage, o.ref.JobId))
	}
	return out
}

func (a *actor) acked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acks
}

func (a *actor) ran() []*planv1.Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*planv1.Task(nil), a.tasks...)
}

func numbers(t *testing.T, n int) []byte {
	schema := arrow.NewSchema([]arrow.Field{{Name: "c0", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return buf.Bytes()
}
