package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/tracing"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/eventlog"
)

// logs collects what a scheduler logs.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// viewed is a scheduler without plugins, with its API.
type viewed struct {
	*Server
	t      *testing.T
	logs   *logs
	spans  *tracetest.InMemoryExporter
	client schedulerv1.SchedulerClient
	conn   *grpc.ClientConn
}

func viewedConfig(t *testing.T, dir string) *config.Config {
	t.Helper()
	c := config.Embedded(dir)
	c.HTTP.Listen, c.Executors.Local = "127.0.0.1:0", 0
	c.Plugins = config.Plugins{Dir: t.TempDir(), AllowUnlocked: true}
	return c
}

func startViewed(t *testing.T, cfg *config.Config) *viewed {
	t.Helper()
	v := &viewed{t: t, logs: &logs{}, spans: tracetest.NewInMemoryExporter()}
	var err error
	v.Server, err = Start(t.Context(), cfg, Options{
		Version: "test", Logger: slog.New(slog.NewJSONHandler(v.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Tracing: sdktrace.NewTracerProvider(sdktrace.WithSyncer(v.spans)), ReconnectGrace: time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(v.stopNow)
	v.conn, err = grpc.NewClient(v.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { v.conn.Close() })
	v.client = schedulerv1.NewSchedulerClient(v.conn)
	return v
}

func (v *viewed) stopNow() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(v.t, v.Stop(ctx))
}

// submit runs a statement to its end.
func (v *viewed) submit(ctx context.Context, sql string) *schedulerv1.Job {
	v.t.Helper()
	r, err := v.client.Submit(ctx, &schedulerv1.SubmitRequest{Sql: sql})
	require.NoError(v.t, err)
	return v.wait(ctx, r.JobId)
}

func (v *viewed) wait(ctx context.Context, id string) *schedulerv1.Job {
	v.t.Helper()
	st, err := v.client.Watch(ctx, &schedulerv1.WatchRequest{JobId: id})
	require.NoError(v.t, err)
	for {
		m, err := st.Recv()
		require.NoError(v.t, err)
		if isTerminal(m.Job.State) {
			return m.Job
		}
	}
}

func (v *viewed) call(method, path, token, body string, want int) string {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, "http://"+v.HTTPAddr()+path, strings.NewReader(body))
	require.NoError(v.t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(v.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(v.t, err)
	require.Equal(v.t, want, res.StatusCode, "%s", b)
	return string(b)
}

func (v *viewed) get(path string) map[string]any {
	v.t.Helper()
	var out map[string]any
	require.NoError(v.t, json.Unmarshal([]byte(v.call("GET", path, "", "", 200)), &out))
	return out
}

func (v *viewed) history(id string) *eventlog.History {
	v.t.Helper()
	path, err := eventlog.Path(v.views.events.Dir(), id)
	require.NoError(v.t, err)
	var h *eventlog.History
	for deadline := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		j := v.job(id)
		over := j != nil && (j.over() || func() bool { snap, _ := j.snapshot(); return isTerminal(snap.State) }())
		require.NoError(v.t, v.views.events.Flush(v.t.Context()))
		h, err = eventlog.ReadFile(path)
		require.NoError(v.t, err)
		if !over || h.End() != nil || time.Now().After(deadline) {
			break
		}
	}
	return h
}

func happened(h *eventlog.History) []string {
	var out []string
	for _, r := range h.Records {
		out = append(out, strings.TrimSpace(r.Type+" "+r.Event))
	}
	return out
}

// executor speaks executor.v1 and gives every query one row. failures are the errors of its first attempts.
func (v *viewed) executor(failures ...*planv1.Error) {
	v.t.Helper()
	gw := executorv1.NewExecutorGatewayClient(v.conn)
	ctx, cancel := context.WithCancel(context.Background())
	st, err := gw.Session(ctx)
	require.NoError(v.t, err)
	v.t.Cleanup(cancel)
	send := func(m *executorv1.SessionRequest) { _ = st.Send(m) }
	send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: &executorv1.Register{ExecutorId: "e1", Host: "h", Slots: 2, ExchangeAddress: "127.0.0.1:1"}}})
	rows, err := inlineResult([]string{"x"}, []row{{"1"}})
	require.NoError(v.t, err)
	go func() {
		for {
			m, err := st.Recv()
			if err != nil {
				return
			}
			if a := m.GetAnalyze(); a != nil {
				columns := []*planv1.Column{{Name: "x", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}, EngineType: "VARCHAR"}}
				send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Analyzed{Analyzed: &executorv1.AnalyzeResult{
					RequestId: a.RequestId, Sql: a.Sql, Columns: columns, NotRowWise: "it reads no table or file",
					Staged: &executorv1.StagedQuery{Stages: []*executorv1.QueryStage{{Sql: a.Sql, Columns: columns, Single: true}}, NotStaged: "it reads no table or file"},
				}}})
			}
			if l := m.GetLaunch(); l != nil {
				end := &executorv1.TaskStatus{Attempt: refOf(l.Task), Rows: 1, Bytes: int64(len(rows))}
				if len(failures) > 0 {
					end.Error, failures = failures[0], failures[1:]
				} else if out, err := gw.PushOutput(ctx); err == nil {
					_ = out.Send(&executorv1.PushOutputRequest{Attempt: end.Attempt, Data: rows, Last: true, Rows: 1})
					_, _ = out.CloseAndRecv()
				}
				send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: end}})
			}
		}
	}()
}

// S48: a job without a scheduler root has no such stage; one without stages has none at all.
func TestViews_AStatementWithoutStages(t *testing.T) {
	v := startViewed(t, viewedConfig(t, t.TempDir()))
	j := v.submit(t.Context(), "SHOW CATALOGS")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.State)
	got := v.get("/api/job/" + j.JobId)
	require.Equal(t, "successful", got["state"])
	require.Equal(t, "show", got["kind"])
	require.Equal(t, "SHOW CATALOGS", got["statement"])
	require.NotEmpty(t, got["finished"])
	require.Empty(t, v.get("/api/job/" + j.JobId + "/stages")["stages"])
	require.Empty(t, v.get("/api/job/" + j.JobId + "/plan")["plan"])
	require.Equal(t, []string{"submitted", "end"}, happened(v.history(j.JobId)))
	require.EqualValues(t, 1, v.get("/api/state")["jobs"].(map[string]any)["successful"])
	v.call("GET", "/readyz", "", "", 200)
	require.Contains(t, v.call("GET", "/api/metrics", "", "", 200), `signet_jobs_finished_total{kind="show",state="successful"} 1`)
}

// S49: EXPLAIN, REST and the event log show the same plan and stages.
func TestViews_AQuerysPlanAndStages(t *testing.T) {
	v := startViewed(t, viewedConfig(t, t.TempDir()))
	v.executor(&planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: "disk", Hint: "try"})
	j := v.submit(t.Context(), "SELECT 'x' AS x")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.State, j.Error)
	h := v.history(j.JobId)
	require.Equal(t, []string{
		"submitted", "planned", "stage started", "attempt launched", "attempt failed", "attempt launched", "attempt succeeded", "stage completed", "end",
	}, happened(h))
	failed := h.Records[4]
	require.Equal(t, "io", failed.Class)
	require.Equal(t, "e1", failed.Executor)
	require.Equal(t, &eventlog.Failure{Message: "disk", Hint: "try"}, failed.Error)
	require.Equal(t, 2, h.Records[6].Number)
	require.Equal(t, int64(1), h.Records[6].Rows)

	plan := v.get("/api/job/" + j.JobId + "/plan")["plan"].(string)
	require.Contains(t, plan, "Stage 0: 1 task")
	require.Equal(t, plan, h.Plan())
	stages := v.get("/api/job/" + j.JobId + "/stages")["stages"].([]any)
	require.Len(t, stages, 1)
	st := stages[0].(map[string]any)
	require.EqualValues(t, 0, st["id"])
	require.Equal(t, "done", st["state"])
	require.Contains(t, plan, st["plan"])
	require.Equal(t, h.Stages()[0].Plan, st["plan"])
	require.EqualValues(t, 1, st["metrics"].(map[string]any)["tasks_done"])
	require.EqualValues(t, 2, st["metrics"].(map[string]any)["attempts"])
	require.Equal(t, eventlog.StageNumber(0), h.End().Stages[0].ID)
	require.Equal(t, "done", h.End().Stages[0].State)

	text := v.logs.String()
	for _, want := range []string{`"msg":"task attempt launched","job":"` + j.JobId + `","stage":0,"task":0,"attempt":"`, `"msg":"task attempt failed"`, `"executor":"e1","class":"io","error":"disk"`} {
		require.Contains(t, text, want)
	}
	metrics := v.call("GET", "/api/metrics", "", "", 200)
	for _, want := range []string{
		`signet_task_attempts_total{result="launched"} 2`, `signet_task_attempts_total{result="failed"} 1`, `signet_task_attempts_total{result="succeeded"} 1`, `signet_task_rows_total 1`,
		`signet_executors 1`, `signet_executor_slots 2`, `signet_journal_writes_total{result="ok"}`,
	} {
		require.Contains(t, metrics, want)
	}
	require.Equal(t, "e1", v.get("/api/executors")["executors"].([]any)[0].(map[string]any)["id"])
}

func TestViews_ExplainAnalyzeRunsTheQuery(t *testing.T) {
	v := startViewed(t, viewedConfig(t, t.TempDir()))
	v.executor()
	j := v.submit(t.Context(), "EXPLAIN ANALYZE SELECT 'x' AS x")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.State, j.Error)
	require.Equal(t, "explain", j.Kind)
	require.False(t, j.HasRows, "its rows are dropped")
	for _, want := range []string{"Stage 0: 1 task", "measured: tasks 1/1, attempts 1, rows 1, ", "Steps: ", "  analyze "} {
		require.Contains(t, string(j.InlineResult), want)
	}
	_, err := os.Stat(filepath.Join(v.cfg.DataDir, "results", j.JobId))
	require.ErrorIs(t, err, os.ErrNotExist)

	plain := v.submit(t.Context(), "EXPLAIN SELECT 'x' AS x")
	require.NotContains(t, string(plain.InlineResult), "measured")
	require.Equal(t, []string{"submitted", "planned", "end"}, happened(v.history(plain.JobId)))
	refused := v.submit(t.Context(), "EXPLAIN ANALYZE DROP TABLE t")
	require.Equal(t, "user", refused.Error.GetCode())
}

// Numbers in docs/semantics.md: J12.
func TestViews_CancelByREST(t *testing.T) {
	v := startViewed(t, viewedConfig(t, t.TempDir()))
	r, err := v.client.Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SELECT 1"}) // waits for an executor
	require.NoError(t, err)
	const cancel = `{"state":"cancelled"}`
	v.call("PATCH", "/api/job/"+r.JobId, "", cancel, 200)
	j := v.wait(t.Context(), r.JobId)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, j.State)
	require.Contains(t, v.call("PATCH", "/api/job/"+r.JobId, "", cancel, 409), "the job has ended: cancelled")
	v.call("PATCH", "/api/job/none", "", cancel, 404)
	end := v.history(r.JobId).End()
	require.Equal(t, "cancelled", end.State)
	require.Equal(t, "cancelled by local", end.Error.Message)
	done := v.submit(t.Context(), "SHOW CATALOGS")
	require.Contains(t, v.call("PATCH", "/api/job/"+done.JobId, "", cancel, 409), "the job has ended: successful")
}

// Numbers in docs/semantics.md: J14.
func TestViews_JobsBelongToTheirPrincipal(t *testing.T) {
	cfg := viewedConfig(t, t.TempDir())
	cfg.Auth.Tokens = []config.Token{{Principal: "ann", Token: secret(t, "ann-token")}, {Principal: "bob", Token: secret(t, "bob-token")}}
	v := startViewed(t, cfg)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ann-token")
	j := v.submit(ctx, "SHOW CATALOGS")
	for _, path := range []string{"/api/job/" + j.JobId, "/api/job/" + j.JobId + "/stages", "/api/job/" + j.JobId + "/plan"} {
		v.call("GET", path, "", "", 401)
		v.call("GET", path, "wrong-token", "", 401)
		v.call("GET", path, "bob-token", "", 404)
		v.call("GET", path, "ann-token", "", 200)
	}
	v.call("PATCH", "/api/job/"+j.JobId, "bob-token", `{"state":"cancelled"}`, 404)
	require.JSONEq(t, `{"jobs":[]}`, v.call("GET", "/api/jobs", "bob-token", "", 200))
	require.Contains(t, v.call("GET", "/api/state", "bob-token", "", 200), `"successful":0`)
	require.Contains(t, v.call("GET", "/api/jobs", "ann-token", "", 200), j.JobId)
	v.call("GET", "/healthz", "", "", 200)
}

// T7: no configured secret is in a job's answer, history, log line, metric or span, wherever it stood.
func TestViews_HoldNoSecret(t *testing.T) {
	const canary = "canary-4c1f9e"
	cfg := viewedConfig(t, t.TempDir())
	cfg.Auth.JoinToken = secret(t, canary+"-join")
	cfg.Plugins.Secrets = map[string]map[string]config.Secret{"s": {"key": secret(t, canary)}}
	v := startViewed(t, cfg)
	ok := v.submit(t.Context(), "SHOW CATALOGS -- "+canary)
	bad := v.submit(t.Context(), "SELEC '"+canary+"-join'")
	require.NotNil(t, bad.Error)
	v.log.Info("somebody logs "+canary, "error", fmt.Errorf("%s", canary))
	var seen strings.Builder
	for _, id := range []string{ok.JobId, bad.JobId} {
		for _, path := range []string{"", "/stages", "/plan"} {
			seen.WriteString(v.call("GET", "/api/job/"+id+path, "", "", 200))
		}
		v.history(id)
		b, err := os.ReadFile(filepath.Join(v.views.events.Dir(), id+".jsonl"))
		require.NoError(t, err)
		seen.Write(b)
	}
	for _, path := range []string{"/api/jobs", "/api/state", "/api/executors", "/api/metrics"} {
		seen.WriteString(v.call("GET", path, "", "", 200))
	}
	v.stopNow()
	seen.WriteString(v.logs.String())
	for _, s := range v.spans.GetSpans() {
		fmt.Fprintf(&seen, "%+v", s)
	}
	require.NotContains(t, seen.String(), canary)
	require.Contains(t, seen.String(), "SHOW CATALOGS -- [redacted]")
	require.Contains(t, seen.String(), "somebody logs [redacted]")
}

// A client's span, the job's, its steps and its attempts are one trace.
func TestViews_OneTrace(t *testing.T) {
	v := startViewed(t, viewedConfig(t, t.TempDir()))
	v.executor(&planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: "disk"})
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(v.spans)).Tracer("client")
	ctx, client := tracer.Start(t.Context(), "client")
	r, err := v.client.Submit(tracing.Outgoing(ctx), &schedulerv1.SubmitRequest{Sql: "SELECT 'x' AS x", IdempotencyKey: "k"})
	require.NoError(t, err)
	v.wait(t.Context(), r.JobId)
	again, err := v.client.Submit(tracing.Outgoing(ctx), &schedulerv1.SubmitRequest{Sql: "SELECT 'x' AS x", IdempotencyKey: "k"})
	require.NoError(t, err)
	require.True(t, again.Existing)
	client.End()
	trace := client.SpanContext().TraceID()
	require.Equal(t, trace.String(), v.get("/api/job/" + r.JobId)["trace"])
	require.Equal(t, trace.String(), v.history(r.JobId).Submitted().Trace)
	v.stopNow()
	names := map[string]tracetest.SpanStubs{}
	for _, s := range v.spans.GetSpans() {
		require.Equal(t, trace, s.SpanContext.TraceID(), s.Name)
		names[s.Name] = append(names[s.Name], s)
	}
	require.Len(t, names["client"], 1)
	require.Len(t, names["job select"], 1)
	require.Len(t, names["job"], 1, "the second submission made no job")
	job := names["job select"][0]
	require.Equal(t, client.SpanContext().SpanID(), job.Parent.SpanID())
	require.Len(t, names["task"], 2)
	require.Equal(t, "failed", names["task"][0].Status.Description)
	require.Len(t, names["analyze"], 1)
	for _, s := range append(names["task"], names["analyze"]...) {
		require.Equal(t, job.SpanContext.SpanID(), s.Parent.SpanID(), s.Name)
	}
}

// What was seen of a job stays visible after a restart, and an end that a crash kept from the log is there again.
func TestViews_AfterARestart(t *testing.T) {
	dir := t.TempDir()
	v := startViewed(t, viewedConfig(t, dir))
	v.executor()
	j := v.submit(t.Context(), "SELECT 'x' AS x")
	cut := v.submit(t.Context(), "SHOW CATALOGS")
	plan, stages := v.get("/api/job/"+j.JobId+"/plan"), v.get("/api/job/" + j.JobId + "/stages")["stages"].([]any)
	v.stopNow()
	path, err := eventlog.Path(filepath.Join(dir, "events"), cut.JobId)
	require.NoError(t, err)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(b), "\n")
	require.NoError(t, os.WriteFile(path, []byte(first+"\n"+`{"type":"end","jo`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "events", "forgotten.jsonl"), []byte(first+"\n"), 0o600))

	v = startViewed(t, viewedConfig(t, dir))
	require.Equal(t, plan, v.get("/api/job/"+j.JobId+"/plan"))
	again := v.get("/api/job/" + j.JobId + "/stages")["stages"].([]any)
	require.Len(t, again, len(stages))
	for i := range stages {
		was, is := stages[i].(map[string]any), again[i].(map[string]any)
		for _, key := range []string{"id", "state", "plan", "tasks_total"} {
			require.Equal(t, was[key], is[key])
		}
	}
	<-v.views.repaired
	h := v.history(cut.JobId)
	require.Equal(t, []string{"submitted", "end"}, happened(h))
	require.Equal(t, "successful", h.End().State)
	_, err = os.Stat(filepath.Join(dir, "events", "forgotten.jsonl"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, []string{"submitted", "planned", "stage started", "attempt launched", "attempt succeeded", "stage completed", "end"}, happened(v.history(j.JobId)))
}

func TestViews_HistoriesGoWithTheirJobs(t *testing.T) {
	v := startViewed(t, viewedConfig(t, t.TempDir()))
	a, b := v.submit(t.Context(), "SHOW CATALOGS"), v.submit(t.Context(), "SHOW CATALOGS")
	v.observeForgotten([]*job{v.job(a.JobId)})
	v.history(b.JobId)
	_, err := os.Stat(filepath.Join(v.views.events.Dir(), a.JobId+".jsonl"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCheckHTTP_OpenAddressesNeedTLSAndTokens(t *testing.T) {
	for addr, ok := range map[string]bool{"127.0.0.1:0": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "x": false} {
		if err := checkListen(&config.Config{}, "http.listen", addr, false); ok {
			require.NoError(t, err, addr)
		} else {
			require.ErrorIs(t, err, ErrOpenListener, addr)
		}
	}
	cfg := viewedConfig(t, t.TempDir())
	cfg.HTTP.Listen = "0.0.0.0:0"
	_, err := Start(t.Context(), cfg, Options{Logger: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, ErrOpenListener)
}

func TestSplitPlan_DividesByHeads(t *testing.T) {
	p := splitPlan("[scheduler] Commit t\n  detail\nStage 12: 3 tasks, 4 B of input\n  Write t\nStage 0: 1 task, 0 B\nWarnings:\n  Stage 7: 1 task in a warning\nEngine plan:\n  x")
	require.Equal(t, "[scheduler] Commit t\n  detail\n", p.root)
	require.Equal(t, map[int32]planStage{12: {"Stage 12: 3 tasks, 4 B of input\n  Write t\n", 3}, 0: {"Stage 0: 1 task, 0 B\n", 1}}, p.stages)
	require.Equal(t, planParts{stages: map[int32]planStage{}}, splitPlan(""))
	require.Empty(t, splitPlan("Stage 99999999999999999999: 1 task\n").stages)
}
