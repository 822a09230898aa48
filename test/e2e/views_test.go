package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// viewed is a held cluster with the REST API.
type viewed struct {
	*held
	token string
}

const httpConfig = "http: {listen: '127.0.0.1:0'}\nlog: {level: debug, format: json}\n"

func newViewed(t *testing.T, points string, opts harness.Options) *viewed {
	v := &viewed{held: &held{t: t, gate: filepath.Join(t.TempDir(), "gate")}}
	opts.Executors, opts.Config = 1, httpConfig+opts.Config
	opts.SchedulerEnv = append(opts.SchedulerEnv, fault.Env+"="+replaceGate(points, v.gate))
	v.Cluster = harness.New(t, opts)
	t.Cleanup(func() { v.open() }) // so that the scheduler can stop
	v.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")
	return v
}

var httpReady = regexp.MustCompile(`"HTTP ready","address":"([^"]+)"`)

// url is the API of the scheduler that was started last.
func (v *viewed) url() string {
	v.t.Helper()
	b, err := os.ReadFile(v.SchedulerLog())
	require.NoError(v.t, err)
	all := httpReady.FindAllStringSubmatch(string(b), -1)
	require.NotEmpty(v.t, all)
	return "http://" + all[len(all)-1][1]
}

func (v *viewed) rest(method, path, body string, want int) string {
	v.t.Helper()
	req, err := http.NewRequestWithContext(harness.Context(v.t), method, v.url()+path, strings.NewReader(body))
	require.NoError(v.t, err)
	req.Header.Set("Content-Type", "application/json")
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(v.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(v.t, err)
	require.Equal(v.t, want, res.StatusCode, "%s %s: %s", method, path, b)
	return string(b)
}

type restStage struct {
	ID      any            `json:"id"`
	State   string         `json:"state"`
	Plan    string         `json:"plan"`
	Tasks   []any          `json:"tasks"`
	Metrics map[string]any `json:"metrics"`
}

func (v *viewed) stages(id string) []restStage {
	v.t.Helper()
	var out struct{ Stages []restStage }
	require.NoError(v.t, json.Unmarshal([]byte(v.rest("GET", "/api/job/"+id+"/stages", "", 200)), &out))
	return out.Stages
}

func (v *viewed) events() string { return filepath.Join(v.Dir, "data", "events") }

// requireRoot: the stage of the scheduler root is the last, and has neither tasks nor measures (S46).
func requireRoot(t *testing.T, stages []restStage, state string) {
	t.Helper()
	require.GreaterOrEqual(t, len(stages), 2)
	last := stages[len(stages)-1]
	require.Equal(t, "scheduler", last.ID)
	require.Equal(t, state, last.State)
	require.Empty(t, last.Tasks)
	require.Nil(t, last.Metrics)
	require.Contains(t, last.Plan, "[scheduler] Commit lake.h.t")
	for i, s := range stages[:len(stages)-1] {
		require.EqualValues(t, i, s.ID)
		require.NotNil(t, s.Metrics)
	}
}

const cancelIt = `{"state":"cancelled"}`

// REST, plan, event log and metrics of an INSERT while its commit is held, after it, and after the scheduler was killed (S45, S46, S49).
func TestViews_OfAnInsert(t *testing.T) {
	t.Parallel()
	v := newViewed(t, "broker.seal.after=1*pause(${gate})", harness.Options{})
	id := v.submit("")
	v.awaitPhase(id, "root")
	requireRoot(t, v.stages(id), "running")
	require.Contains(t, v.rest("GET", "/api/job/"+id, "", 200), `"phase":"root"`)
	plan := v.rest("GET", "/api/job/"+id+"/plan", "", 200)
	require.Contains(t, plan, `"plan":"[scheduler] Commit lake.h.t`, "the root is on top")
	v.open()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, v.end(id).GetState())
	v.requireOnce()
	require.Contains(t, v.rest("PATCH", "/api/job/"+id, cancelIt, 409), "successful")
	v.rest("PATCH", "/api/job/none", cancelIt, 404)
	v.rest("GET", "/api/job/none/stages", "", 404)

	stages := v.stages(id)
	requireRoot(t, stages, "done")
	require.EqualValues(t, 5, stages[0].Metrics["rows"])
	rows := v.SQL("SELECT * FROM lake.h.t")
	require.Len(t, rows, 5)
	query := v.JobsAbout("SELECT * FROM lake.h.t")[0].GetJobId()
	for _, s := range v.stages(query) { // S48
		require.NotEqual(t, "scheduler", s.ID)
	}

	metrics := v.rest("GET", "/api/metrics", "", 200)
	for _, want := range []string{
		`signet_jobs_finished_total{kind="insert",state="successful"} 1`, `signet_commits_total{outcome="landed"} 1`, `signet_roots_total{result="successful"} 1`, `signet_commit_seconds_count 1`,
		`signet_plugin_calls_total{code="OK",method="Commit",sink="iceberg"} 1`, `signet_plugin_calls_total{code="OK",method="Stage",sink="iceberg"} 1`, `signet_executors 1`,
		`signet_journal_writes_total{result="ok"}`, `signet_event_log_dropped_total 0`,
	} {
		require.Contains(t, metrics, want)
	}
	text := v.history(id)
	for _, want := range []string{"stage 0 started: 1 task", "task 0 launched", "task 0 succeeded on ", "scheduler root started", "scheduler root commit landed", "end: Successful", "plan\n[scheduler] Commit lake.h.t"} {
		require.Contains(t, text, want)
	}

	v.Scheduler.Kill()
	v.StartScheduler()
	require.Equal(t, plan, v.rest("GET", "/api/job/"+id+"/plan", "", 200))
	again := v.stages(id)
	requireRoot(t, again, "done")
	require.Equal(t, stages[0].Plan, again[0].Plan)
	require.EqualValues(t, 5, again[0].Metrics["rows"])
	require.Equal(t, text, v.history(id))
}

// history is what `signet history` prints of a job.
func (v *viewed) history(id string) string {
	v.t.Helper()
	var r harness.Result
	harness.Eventually(v.t, "the history has its end", func() bool {
		r = harness.RunCommand(v.t, "", nil, "history", id, "--data-dir", filepath.Join(v.Dir, "data"))
		return r.Code == 0 && strings.Contains(r.Out, "end: ")
	})
	return r.Out
}

// A cancel by REST before the seal is final; afterwards the job has ended.
func TestViews_CancelAnInsert(t *testing.T) {
	t.Parallel()
	v := newViewed(t, "scheduler.root.before-commit=1*pause(${gate})", harness.Options{})
	id := v.submit("")
	v.awaitPhase(id, "root")
	v.rest("PATCH", "/api/job/"+id, cancelIt, 200)
	v.open()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, v.end(id).GetState())
	require.Contains(t, v.rest("PATCH", "/api/job/"+id, cancelIt, 409), "cancelled")
	requireRoot(t, v.stages(id), "failed")
	require.Contains(t, v.history(id), "end: Cancelled: cancelled by local")
	v.requireNothing()
}

// EXPLAIN ANALYZE of a write commits it, once, and shows what it took; also when the scheduler dies on the way.
func TestViews_ExplainAnalyze(t *testing.T) {
	t.Parallel()
	v := newViewed(t, "", harness.Options{})
	text := v.Value("EXPLAIN ANALYZE INSERT INTO lake.h.t SELECT i AS id FROM range(1, 6) r(i)")
	for _, want := range []string{"[scheduler] Commit lake.h.t", "  measured: ", "measured: tasks 1/1, attempts 1, rows 5, ", "Steps: "} {
		require.Contains(t, text, want)
	}
	v.requireOnce()
	require.Contains(t, v.Value("EXPLAIN ANALYZE SELECT count(*) FROM lake.h.t"), "measured: tasks 1/1, attempts 1, rows 1, ")
	require.Contains(t, v.Value("EXPLAIN ANALYZE CREATE TABLE lake.h.u AS SELECT 1 AS a"), "measured: tasks 1/1, attempts 1, rows 1, ")
	require.Equal(t, "1", v.Value("SELECT count(*) FROM lake.h.u"))

	v.Scheduler.Terminate(t)
	faults := harness.NewFaults(t)
	v.StartScheduler(faults.Env("scheduler.root.start"))
	faults.ArmAhead(t, "scheduler.root.start")
	r, err := v.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: "EXPLAIN ANALYZE INSERT INTO lake.h.u SELECT 2 AS a"})
	require.NoError(t, err)
	v.Scheduler.Wait(t)
	require.True(t, v.Scheduler.Killed())
	v.StartScheduler()
	job := v.end(r.GetJobId())
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job.GetState())
	require.Contains(t, string(job.GetInlineResult()), "measured: tasks 1/1")
	require.Equal(t, "2", v.Value("SELECT count(*) FROM lake.h.u"))
	require.Contains(t, v.history(r.GetJobId()), "taken up again after a restart of the scheduler")
}

// T7: what is secret is in no answer, history, log or metric, wherever users, plugins or errors put it.
func TestViews_HoldNoSecret(t *testing.T) {
	t.Parallel()
	const canary, token = "cAnArY-1f7e02d9", "cAnArY-token-77aa31"
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": canary, "token": token} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
	}
	v := newViewed(t, "", harness.Options{
		Config:     fmt.Sprintf("plugins:\n  secrets: {iceberg: {one: {file: %[1]s/secret}}}\nauth:\n  tokens: [{principal: ann, token: {file: %[1]s/token}}]\n", dir),
		ClientArgs: []string{"--token-file", filepath.Join(dir, "token")},
	})
	v.token = token
	v.SQL("INSERT INTO lake.h.t SELECT length('" + canary + "') AS id")
	v.Fail(1, "INSERT INTO lake.h.t SELECT '"+token+"' AS id")
	v.Fail(1, "INSERT INTO lake.h.t SELECT i FROM '/no/such/"+canary+".parquet'")
	var jobs struct{ Jobs []struct{ ID string } }
	list := v.rest("GET", "/api/jobs", "", 200)
	require.NoError(t, json.Unmarshal([]byte(list), &jobs))
	require.GreaterOrEqual(t, len(jobs.Jobs), 5)
	seen := []string{list, v.rest("GET", "/api/state", "", 200), v.rest("GET", "/api/metrics", "", 200)}
	for _, j := range jobs.Jobs {
		for _, part := range []string{"", "/stages", "/plan"} {
			seen = append(seen, v.rest("GET", "/api/job/"+j.ID+part, "", 200))
		}
		seen = append(seen, v.history(j.ID))
	}
	v.token = ""
	v.rest("GET", "/api/jobs", "", 401)
	v.Stop()
	files, err := filepath.Glob(filepath.Join(v.events(), "*"))
	require.NoError(t, err)
	require.Len(t, files, len(jobs.Jobs))
	for _, f := range append(files, v.SchedulerLog()) {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		seen = append(seen, string(b))
	}
	all := strings.Join(seen, "\n")
	for _, secret := range []string{canary, token} {
		require.NotContains(t, all, secret)
	}
	require.Contains(t, all, "[redacted]")
	require.Contains(t, all, `"job":"`+jobs.Jobs[0].ID+`"`)
}

// The API listens where others can reach it only with the certificates and tokens of the gRPC listener.
func TestViews_TLSAndTokens(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	alice, bob := file(t, "alice", "al1ce"), file(t, "bob", "b0b")
	open := file(t, "signet.yaml", "data_dir: "+t.TempDir()+"\nhttp: {listen: '0.0.0.0:0'}\n")
	r := harness.RunCommand(t, "", nil, "scheduler", "--config", open)
	require.Equal(t, 2, r.Code, r.Err)
	require.Contains(t, r.Err, "http.listen")
	require.Contains(t, r.Err, "tls.cert and tls.key, auth.tokens")

	c := harness.New(t, harness.Options{
		ClientArgs: []string{"--tls-ca", cert, "--token-file", alice},
		Config: fmt.Sprintf("http: {listen: '0.0.0.0:0'}\nlog: {format: json}\ntls: {cert: %s, key: %s}\nauth:\n  tokens:\n    - {principal: alice, token: {file: %s}}\n    - {principal: bob, token: {file: %s}}\n",
			cert, key, alice, bob),
	})
	c.SQL("SHOW CATALOGS")
	job := c.Jobs()[0].ID
	v := &viewed{held: &held{Cluster: c, t: t}}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(v.url(), "http://"))
	require.NoError(t, err)
	pem, err := os.ReadFile(cert)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(pem))
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	get := func(client *http.Client, scheme, path, token string) (int, error) {
		req, err := http.NewRequestWithContext(harness.Context(t), http.MethodGet, scheme+"://127.0.0.1:"+port+path, nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	for token, want := range map[string]int{"": 401, "wr0ng": 401, "b0b": 404, "al1ce": 200} {
		status, err := get(trusting, "https", "/api/job/"+job, token)
		require.NoError(t, err)
		require.Equal(t, want, status, token)
	}
	status, err := get(trusting, "https", "/healthz", "")
	require.NoError(t, err)
	require.Equal(t, 200, status)
	_, err = get(http.DefaultClient, "https", "/healthz", "")
	require.Error(t, err, "who does not trust the certificate is not served")
	status, err = get(http.DefaultClient, "http", "/api/job/"+job, "al1ce")
	require.True(t, err != nil || status == 400, "plain text is not served: %d", status)
}

// collector takes spans over OTLP/HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracev1.Span
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var m coltrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(b, &m); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// named are the spans of a name.
func (c *collector) named(name string) []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*tracev1.Span
	for _, s := range c.spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// The command, the job, its task, the calls of the sink, and what the sink asks of the host for its commit are one trace.
func TestViews_OneTrace(t *testing.T) {
	t.Parallel()
	col := newCollector(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + col.URL, "OTEL_BSP_SCHEDULE_DELAY=50"}
	v := newViewed(t, "", harness.Options{SchedulerEnv: env})
	v.Executors[0].Terminate(t)
	v.RestartExecutor(0, env...)
	v.AwaitExecutors(1)
	r := harness.RunCommand(t, "", env, "sql", "-q", "INSERT INTO lake.h.t SELECT i AS id FROM range(1, 6) r(i)", "--scheduler", v.Address)
	require.Equal(t, 0, r.Code, r.Err)
	v.requireOnce()
	harness.Eventually(t, "the spans arrive", func() bool {
		return len(col.named("signet statement")) == 1 && len(col.named("job insert")) == 1 && len(col.named("host Catalog.CommitTable")) == 1
	})
	command, job := col.named("signet statement")[0], col.named("job insert")[0]
	require.Equal(t, command.SpanId, job.ParentSpanId)
	parents := map[string]*tracev1.Span{"task": job, "sink PrepareWrite": job, "sink Stage": job, "sink Commit": job, "analyze": job, "commit": job}
	harness.Eventually(t, "all of the job's spans arrive", func() bool {
		for name := range parents {
			if len(col.named(name)) == 0 {
				return false
			}
		}
		return true
	})
	trace := fmt.Sprintf("%x", command.TraceId)
	of := func(name string) *tracev1.Span { // of this trace: other statements have theirs
		for _, s := range col.named(name) {
			if fmt.Sprintf("%x", s.TraceId) == trace {
				return s
			}
		}
		t.Fatalf("no span %q in the command's trace", name)
		return nil
	}
	harness.Eventually(t, "the executor's span arrives", func() bool { return len(col.named("run task")) > 0 })
	parents["run task"] = of("task")
	for name, parent := range parents {
		require.Equal(t, parent.SpanId, of(name).ParentSpanId, name)
	}
	require.Equal(t, of("sink Commit").SpanId, of("host Catalog.CommitTable").ParentSpanId)
	id := v.JobsAbout("INSERT INTO lake.h.t SELECT i")[0].GetJobId()
	require.Contains(t, v.rest("GET", "/api/job/"+id, "", 200), `"trace":"`+trace+`"`)
	require.Contains(t, v.history(id), trace)
}
