package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/tracing"
	"github.com/signet-io/signet/scheduler/telemetry"
)

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/api/metrics", nil))
	require.Equal(t, 200, w.Code)
	return w.Body.String()
}

func lines(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "signet_") && !strings.Contains(l, "_bucket") && !strings.Contains(l, "_sum") {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}

func TestMetrics_CountWhatHappened(t *testing.T) {
	m := telemetry.New("v1")
	m.Watch(func() telemetry.Snapshot {
		return telemetry.Snapshot{Jobs: map[string]int{"running": 2}, QueuedTasks: 3, RunningTasks: 4, RunningRoots: 1, Executors: 5, Slots: 20, EventsDropped: 6, EventsWritten: 7, EventsQueued: 8}
	})
	m.JobEnded("insert", "successful", time.Second)
	m.Attempt(telemetry.AttemptLaunched)
	m.AttemptSucceeded(time.Second, 10, 100, true)
	m.AttemptSucceeded(time.Second, -1, 50, false)
	m.CommitOutcome("conflict")
	m.CommitTook(time.Second)
	m.RootEnded("failed", time.Second)
	m.JournalWrite(time.Millisecond, nil)
	m.JournalWrite(time.Millisecond, errors.New("full"))
	m.Request("GET /api/jobs", "200")
	require.Equal(t, []string{
		`signet_build_info{version="v1"} 1`,
		`signet_commit_seconds_count 1`,
		`signet_commits_total{outcome="conflict"} 1`,
		`signet_event_log_dropped_total 6`,
		`signet_event_log_queue 8`,
		`signet_event_log_written_total 7`,
		`signet_exchange_bytes_total 100`,
		`signet_executor_slots 20`,
		`signet_executors 5`,
		`signet_http_requests_total{code="200",route="GET /api/jobs"} 1`,
		`signet_job_seconds_count{kind="insert"} 1`,
		`signet_jobs{state="running"} 2`,
		`signet_jobs_finished_total{kind="insert",state="successful"} 1`,
		`signet_journal_write_seconds_count 2`,
		`signet_journal_writes_total{result="error"} 1`,
		`signet_journal_writes_total{result="ok"} 1`,
		`signet_root_seconds_count 1`,
		`signet_roots_running 1`,
		`signet_roots_total{result="failed"} 1`,
		`signet_task_attempt_seconds_count 2`,
		`signet_task_attempts_total{result="launched"} 1`,
		`signet_task_attempts_total{result="succeeded"} 2`,
		`signet_task_bytes_total 150`,
		`signet_task_rows_total 10`,
		`signet_tasks_queued 3`,
		`signet_tasks_running 4`,
	}, lines(scrape(t, m)))
	require.Contains(t, scrape(t, m), "go_goroutines")
	require.Contains(t, scrape(t, m), "process_open_fds")
}

// TestMetrics_AreDocumented: docs/operations.md names the metrics that there are, and no others.
func TestMetrics_AreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(doc), "## Metrics")
	section, _, _ = strings.Cut(section, "## Traces")
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("signet_[a-z_]+").FindAllString(section, -1) {
		documented[name] = true
	}
	inCode := map[string]bool{}
	for _, file := range []string{"metrics.go", "gauges.go"} {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?:counters?|times?|describe)\("([a-z_]+)", |Name: "([a-z_]+)"`).FindAllStringSubmatch(string(b), -1) {
			inCode["signet_"+m[1]+m[2]] = true
		}
	}
	require.Greater(t, len(inCode), 20)
	require.Equal(t, inCode, documented)
}

// sink is a plugin that notes the trace of each call and asks the host for something.
type sink struct {
	sinkv1.UnimplementedSinkServer
	mu      sync.Mutex
	parents map[string]string
	host    hostv1.SealClient
}

func (s *sink) note(ctx context.Context, name string) {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents[name] = strings.Join(md.Get("traceparent"), ",")
}

func (s *sink) Commit(ctx context.Context, _ *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	s.note(ctx, "Commit")
	md, _ := metadata.FromIncomingContext(ctx)
	_, err := s.host.Take(metadata.NewOutgoingContext(ctx, md), &hostv1.TakeRequest{}) // as the SDK does
	return &sinkv1.CommitResponse{}, err
}

func (s *sink) Lookup(ctx context.Context, _ *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	s.note(ctx, "Lookup")
	return nil, status.Error(codes.NotFound, "canary: what users wrote")
}

func (s *sink) Stage(st grpc.ClientStreamingServer[sinkv1.StageRequest, sinkv1.StageResponse]) error {
	s.note(st.Context(), "Stage")
	for {
		if _, err := st.Recv(); errors.Is(err, io.EOF) {
			return st.SendAndClose(&sinkv1.StageResponse{})
		} else if err != nil {
			return err
		}
	}
}

func (s *sink) PlanScan(_ *sinkv1.PlanScanRequest, st grpc.ServerStreamingServer[sinkv1.PlanScanResponse]) error {
	s.note(st.Context(), "PlanScan")
	return errors.Join(st.Send(&sinkv1.PlanScanResponse{}), st.Send(&sinkv1.PlanScanResponse{}))
}

func (s *sink) parent(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parents[name]
}

// exporter tells of every span.
type exporter struct {
	*tracetest.InMemoryExporter
	came chan string
}

func (e exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.InMemoryExporter.ExportSpans(ctx, spans)
	for _, s := range spans {
		e.came <- s.Name()
	}
	return err
}

type seal struct {
	hostv1.UnimplementedSealServer
}

func (seal) Take(context.Context, *hostv1.TakeRequest) (*hostv1.TakeResponse, error) {
	return &hostv1.TakeResponse{}, nil
}

// dial serves a gRPC server in memory.
func dial(t *testing.T, register func(*grpc.Server), server []grpc.ServerOption, client ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	g := grpc.NewServer(server...)
	register(g)
	go func() { _ = g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///mem", append(client, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); g.Stop() })
	return conn
}

// Calls of a plugin, and what it asks of the host, are in the trace of the job that made them.
func TestPluginCalls_AreInTheTraceOfTheirJob(t *testing.T) {
	spans := exporter{tracetest.NewInMemoryExporter(), make(chan string, 100)}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tracer, m := provider.Tracer("test"), telemetry.New("v1")
	host := dial(t, func(g *grpc.Server) { hostv1.RegisterSealServer(g, seal{}) }, telemetry.HostCalls(tracer, "s"))
	plugin := &sink{parents: map[string]string{}, host: hostv1.NewSealClient(host)}
	conn := dial(t, func(g *grpc.Server) { sinkv1.RegisterSinkServer(g, plugin) }, nil, telemetry.PluginCalls(m, tracer, "s")...)
	c := sinkv1.NewSinkClient(conn)

	ctx, job := tracer.Start(t.Context(), "job")
	_, err := c.Commit(ctx, &sinkv1.CommitRequest{})
	require.NoError(t, err)
	_, err = c.Lookup(ctx, &sinkv1.LookupRequest{})
	require.Error(t, err)
	st, err := c.Stage(ctx)
	require.NoError(t, err)
	require.NoError(t, st.Send(&sinkv1.StageRequest{}))
	_, err = st.CloseAndRecv()
	require.NoError(t, err)
	scan, err := c.PlanScan(ctx, &sinkv1.PlanScanRequest{})
	require.NoError(t, err)
	for range 2 {
		_, err = scan.Recv()
		require.NoError(t, err)
	}
	_, err = scan.Recv()
	require.ErrorIs(t, err, io.EOF)
	gone, cancel := context.WithCancel(ctx)
	st, err = c.Stage(gone) // given up
	require.NoError(t, err)
	require.NoError(t, st.Send(&sinkv1.StageRequest{}))
	cancel()
	for range 6 {
		<-spans.came
	}

	trace := job.SpanContext().TraceID()
	byName := map[string]tracetest.SpanStub{}
	for _, s := range spans.GetSpans() {
		require.Equal(t, trace, s.SpanContext.TraceID(), s.Name)
		if _, twice := byName[s.Name]; !twice {
			byName[s.Name] = s
		}
		for _, a := range s.Attributes {
			require.NotContains(t, a.Value.String(), "canary")
		}
		require.NotContains(t, s.Status.Description, "canary")
	}
	for _, name := range []string{"Commit", "Lookup", "Stage", "PlanScan"} {
		s := byName["sink "+name]
		require.Equal(t, job.SpanContext().SpanID(), s.Parent.SpanID(), name)
		require.Contains(t, plugin.parent(name), trace.String(), name)
	}
	require.Equal(t, byName["sink Commit"].SpanContext.SpanID(), byName["host Seal.Take"].Parent.SpanID())
	require.Equal(t, "NotFound", byName["sink Lookup"].Status.Description)

	// Without a trace nothing is sent and nothing is made up; the calls are counted all the same.
	_, err = c.Commit(t.Context(), &sinkv1.CommitRequest{})
	require.NoError(t, err)
	require.Empty(t, plugin.parent("Commit"))
	require.Len(t, spans.GetSpans(), 6)
	text := scrape(t, m)
	for _, want := range []string{
		`signet_plugin_calls_total{code="OK",method="Commit",sink="s"} 2`, `signet_plugin_calls_total{code="NotFound",method="Lookup",sink="s"} 1`,
		`signet_plugin_calls_total{code="OK",method="Stage",sink="s"} 1`, `signet_plugin_calls_total{code="Canceled",method="Stage",sink="s"} 1`,
		`signet_plugin_calls_total{code="OK",method="PlanScan",sink="s"} 1`, `signet_plugin_call_seconds_count{method="Commit",sink="s"} 2`,
	} {
		require.Contains(t, text, want)
	}
	require.Equal(t, tracing.KeySink.String("s"), byName["sink Commit"].Attributes[len(byName["sink Commit"].Attributes)-1])
}
