package dispatch_test

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/dispatch"
)

const patience = 20 * time.Second

// recorder is a Handler that remembers.
type recorder struct {
	mu     sync.Mutex
	known  map[string]bool
	lost   chan []*executorv1.AttemptRef
	ended  chan *executorv1.TaskStatus
	joined chan joining
	unseen chan []*executorv1.AttemptRef
	placed map[string]string // attempts by executor, as Assigned told

	granting func(context.Context) // called by Access
}

func (r *recorder) Adopt(ref *executorv1.AttemptRef, _ string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[ref.AttemptId]
}

func (r *recorder) Assigned(ref *executorv1.AttemptRef, executor string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placed[ref.AttemptId] = executor
}

func (r *recorder) Unseen(_ string, a []*executorv1.AttemptRef) { r.unseen <- a }

func (r *recorder) TaskEnded(st *executorv1.TaskStatus, _ string) error { r.ended <- st; return nil }

func (r *recorder) ExecutorLost(_ string, a []*executorv1.AttemptRef) { r.lost <- a }

func (r *recorder) Keep(ref *executorv1.AttemptRef) bool { return ref.JobId == "j" }

func (r *recorder) Joined(executor string, adopted, outputs []*executorv1.AttemptRef) {
	r.joined <- joining{executor, adopted, outputs}
}

func (r *recorder) Progress(*executorv1.TaskProgress) {}

func (r *recorder) Access(ctx context.Context, _ string, _ *executorv1.AccessRequest, analysis *executorv1.Analyze) *executorv1.Access {
	if r.granting != nil {
		r.granting(ctx)
	}
	return &executorv1.Access{Reads: []*executorv1.SignedRequest{{Uri: analysis.GetSql(), Url: "https://signed"}}}
}

type joining struct {
	executor         string
	adopted, outputs []*executorv1.AttemptRef
}

type server struct {
	executorv1.UnimplementedExecutorGatewayServer
	pool *dispatch.Pool
}

func (s *server) Session(st grpc.BidiStreamingServer[executorv1.SessionRequest, executorv1.SessionResponse]) error {
	return s.pool.Session(st)
}

func newPool(t *testing.T, cfg dispatch.Config) (*dispatch.Pool, *recorder, executorv1.ExecutorGatewayClient) {
	t.Helper()
	rec := &recorder{known: map[string]bool{}, placed: map[string]string{}, unseen: make(chan []*executorv1.AttemptRef, 8), lost: make(chan []*executorv1.AttemptRef, 8), ended: make(chan *executorv1.TaskStatus, 8), joined: make(chan joining, 8)}
	cfg.Epoch = 5
	p, c := serve(t, cfg, rec)
	return p, rec, c
}

func serve(t *testing.T, cfg dispatch.Config, h dispatch.Handler) (*dispatch.Pool, executorv1.ExecutorGatewayClient) {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	p := dispatch.New(cfg, h)
	l := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	executorv1.RegisterExecutorGatewayServer(g, &server{pool: p})
	go func() { _ = g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///pool", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { p.Close(); conn.Close(); g.Stop() })
	return p, executorv1.NewExecutorGatewayClient(conn)
}

// session is one executor's side.
type session struct {
	t      *testing.T
	st     grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse]
	cancel context.CancelFunc
}

func join(t *testing.T, c executorv1.ExecutorGatewayClient, reg *executorv1.Register) (*session, *executorv1.Registered) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	st, err := c.Session(ctx)
	require.NoError(t, err)
	s := &session{t, st, cancel}
	s.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: reg}})
	m, err := st.Recv()
	require.NoError(t, err)
	return s, m.GetRegistered()
}

func (s *session) send(m *executorv1.SessionRequest) {
	s.t.Helper()
	require.NoError(s.t, s.st.Send(m))
}

func (s *session) recv() *executorv1.SessionResponse {
	s.t.Helper()
	m, err := s.st.Recv()
	require.NoError(s.t, err)
	return m
}

func launch(p *dispatch.Pool, t *planv1.Task) { p.Launch(dispatch.Work{Task: t}) }

func task(job, attempt string) *planv1.Task {
	return &planv1.Task{JobId: job, AttemptId: attempt, Epoch: 5}
}

func TestPool_JobsTakeTurns(t *testing.T) {
	p, _, c := newPool(t, dispatch.Config{})
	for _, a := range []string{"big-1", "big-2", "big-3"} {
		launch(p, task("big", a))
	}
	launch(p, task("small", "small-1"))
	s, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	var order []string
	for range 4 {
		id := s.recv().GetLaunch().GetTask().GetAttemptId()
		order = append(order, id)
		p.Ended(id)
	}
	require.Equal(t, []string{"big-1", "small-1", "big-2", "big-3"}, order)
}

func TestPool_SlotsBoundWhatRuns(t *testing.T) {
	p, _, c := newPool(t, dispatch.Config{})
	s, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 2})
	for _, a := range []string{"1", "2", "3"} {
		launch(p, task("j", a))
	}
	s.recv()
	s.recv()
	require.Equal(t, 1, p.Queued("j"))
	require.Equal(t, 2, p.Executors()[0].Running)
	require.Len(t, p.DropQueued("j"), 1)
	require.Zero(t, p.Queued("j"))
}

func TestSession_StatusIsAcknowledgedAndFreesItsSlot(t *testing.T) { // T5
	p, rec, c := newPool(t, dispatch.Config{})
	s, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	launch(p, task("j", "1"))
	launch(p, task("j", "2"))
	ref := &executorv1.AttemptRef{JobId: "j", AttemptId: s.recv().GetLaunch().GetTask().GetAttemptId()}
	s.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: &executorv1.TaskStatus{Attempt: ref}}})
	require.Equal(t, "1", (<-rec.ended).Attempt.AttemptId)
	got := []string{}
	for range 2 {
		m := s.recv()
		if a := m.GetAck(); a != nil {
			got = append(got, "ack "+a.Attempt.AttemptId)
		} else {
			got = append(got, "launch "+m.GetLaunch().GetTask().GetAttemptId())
		}
	}
	slices.Sort(got)
	require.Equal(t, []string{"ack 1", "launch 2"}, got)
}

// Numbers in docs/semantics.md: J8.
func TestSession_LostAfterGraceWithItsAttempts(t *testing.T) {
	p, rec, c := newPool(t, dispatch.Config{ReconnectGrace: 10 * time.Millisecond})
	s, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 2})
	launch(p, task("j", "1"))
	s.recv()
	s.cancel()
	select {
	case lost := <-rec.lost:
		require.Len(t, lost, 1)
		require.Equal(t, "1", lost[0].AttemptId)
	case <-time.After(patience):
		t.Fatal("not reported as lost")
	}
	require.Empty(t, p.Executors())
}

func TestSession_ComesBackWithWhatIsStillWanted(t *testing.T) { // S71
	p, rec, c := newPool(t, dispatch.Config{ReconnectGrace: time.Hour})
	s, first := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 3})
	require.EqualValues(t, 5, first.Epoch)
	for _, a := range []string{"kept", "unseen"} {
		launch(p, task("j", a))
		s.recv()
	}
	rec.mu.Lock()
	rec.known["kept"] = true
	rec.mu.Unlock()
	s.cancel()
	_, again := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 3, KnownEpoch: 5, Attempts: []*executorv1.AttemptRef{{AttemptId: "kept"}, {AttemptId: "foreign"}}})
	require.Len(t, again.Adopted, 1)
	require.Equal(t, "kept", again.Adopted[0].AttemptId)
	lost := <-rec.unseen // it was sent into the broken stream, and the executor does not know it
	require.Len(t, lost, 1)
	require.Equal(t, "unseen", lost[0].AttemptId)
	require.Equal(t, "x", p.Holder("kept"))
}

func TestSession_RefusesOlderEpochAndBadRegistration(t *testing.T) { // S65
	_, _, c := newPool(t, dispatch.Config{})
	for reg, want := range map[*executorv1.Register]codes.Code{
		{ExecutorId: "x", Slots: 1, KnownEpoch: 6}: codes.FailedPrecondition,
		{Slots: 1}:        codes.InvalidArgument,
		{ExecutorId: "x"}: codes.InvalidArgument,
	} {
		st, err := c.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, st.Send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: reg}}))
		_, err = st.Recv()
		require.Equal(t, want, status.Code(err), reg)
	}
}

func TestAnalyze_GoesToAnotherExecutorWhenOneDies(t *testing.T) {
	p, _, c := newPool(t, dispatch.Config{ReconnectGrace: time.Millisecond})
	s, _ := join(t, c, &executorv1.Register{ExecutorId: "a", Slots: 1})
	done := make(chan *executorv1.AnalyzeResult, 1)
	go func() {
		r, err := p.Analyze(t.Context(), &executorv1.Analyze{RequestId: "q", Sql: "SELECT 1"})
		if err == nil {
			done <- r
		}
	}()
	require.Equal(t, "q", s.recv().GetAnalyze().GetRequestId())
	s.cancel()
	s2, _ := join(t, c, &executorv1.Register{ExecutorId: "b", Slots: 1})
	require.Equal(t, "q", s2.recv().GetAnalyze().GetRequestId())
	s2.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Analyzed{Analyzed: &executorv1.AnalyzeResult{RequestId: "q", Sql: "x"}}})
	select {
	case r := <-done:
		require.Equal(t, "x", r.Sql)
	case <-time.After(patience):
		t.Fatal("no result")
	}
}

// Numbers in docs/semantics.md: J9.
func TestAnalyze_EmptyClusterSaysHowToStartOne(t *testing.T) {
	p, _, _ := newPool(t, dispatch.Config{EmptyGrace: time.Millisecond})
	_, err := p.Analyze(t.Context(), &executorv1.Analyze{RequestId: "q"})
	require.ErrorIs(t, err, dispatch.ErrNoExecutor)
	require.ErrorContains(t, err, "signet executor --scheduler")
}

func TestPool_OutputsAreKnownAndFreedOnTheirExecutors(t *testing.T) { // T9
	p, rec, c := newPool(t, dispatch.Config{})
	kept := []*executorv1.AttemptRef{{JobId: "j", AttemptId: "a"}, {JobId: "over", AttemptId: "b"}}
	x, answer := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1, ExchangeAddress: "127.0.0.1:9", Outputs: kept})
	got := <-rec.joined
	require.Equal(t, "x", got.executor)
	require.Len(t, got.outputs, 1)
	require.Equal(t, "a", got.outputs[0].AttemptId)
	require.Empty(t, got.adopted)
	require.Len(t, answer.Adopted, 1, "what is not named is dropped")
	require.Equal(t, "a", answer.Adopted[0].AttemptId)
	require.Zero(t, p.Executors()[0].Running)
	y, _ := join(t, c, &executorv1.Register{ExecutorId: "y", Slots: 1})
	require.Equal(t, "127.0.0.1:9", p.Address("x"))
	require.Empty(t, p.Address("y"))
	require.Empty(t, p.Address("z"))

	// Several clean-ups of one job, on one executor and on several: none takes another's place.
	p.Free("x", "j", []string{"a"})
	p.Free("y", "j", []string{"b"})
	p.Free("x", "j", []string{"c"})
	p.Free("gone", "j", []string{"d"})
	p.FreeJob("j")
	require.Equal(t, []string{"a"}, x.recv().GetFree().GetAttemptIds())
	require.Equal(t, []string{"c"}, x.recv().GetFree().GetAttemptIds())
	require.Empty(t, x.recv().GetFree().GetAttemptIds())
	require.Equal(t, []string{"b"}, y.recv().GetFree().GetAttemptIds())
	require.Equal(t, "j", y.recv().GetFree().GetJobId())
}

func TestSession_OneThatLeavesTakesItsOutputsAlong(t *testing.T) {
	_, rec, c := newPool(t, dispatch.Config{ReconnectGrace: time.Hour})
	s, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	s.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Leave{Leave: &executorv1.Leave{}}})
	require.NoError(t, s.st.CloseSend())
	select {
	case lost := <-rec.lost:
		require.Empty(t, lost)
	case <-time.After(patience):
		t.Fatal("nobody heard that it left")
	}
}

// An executor that says nothing for too long is taken to be lost, with what it runs (J8).
func TestPool_SilenceEndsTheSession_J8(t *testing.T) {
	p, rec, c := newPool(t, dispatch.Config{LostAfter: 50 * time.Millisecond, ReconnectGrace: time.Millisecond})
	s, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	launch(p, task("j", "1"))
	s.recv()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go p.Watch(ctx)
	select {
	case lost := <-rec.lost:
		require.Len(t, lost, 1)
		require.Equal(t, "1", lost[0].AttemptId)
	case <-time.After(patience / 2): // its stream ends with its context after that
		t.Fatal("nobody noticed")
	}
}
