package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// board is a backend with one job of ann's.
type board struct {
	filter    Filter
	tasks     int
	cancelled []string
	refuse    string
	notReady  []string
	defect    bool
}

func (b *board) job(who, id string) (Job, bool) {
	if b.defect {
		panic("a defect")
	}
	return Job{
		ID: id, Principal: who, Statement: "SELECT 1", Kind: "insert", State: "running", Phase: "root", Warnings: []string{"w"}, Settings: map[string]string{"signet.planner": "static"},
		Submitted: noon, Finished: &noon, TimingsMicros: map[string]int64{"parse": 3}, Error: &JobError{Code: "user", Message: "m", Hint: "h"}, Trace: "t", Message: "waiting",
	}, who == "ann" && id == "j1"
}

func (b *board) State(string) State {
	return State{Catalogs: []string{"lake"}, Jobs: map[string]int{"running": 1}, Started: noon}
}
func (b *board) Executors() []Executor { return []Executor{{ID: "e1", LastSeen: noon}} }
func (b *board) Jobs(who string, f Filter) []Job {
	b.filter = f
	if j, ok := b.job(who, "j1"); ok {
		return []Job{j}
	}
	return nil
}
func (b *board) Job(who, id string) (Job, bool) { return b.job(who, id) }
func (b *board) Stages(who, id string, tasks int) ([]Stage, bool) {
	b.tasks = tasks
	_, ok := b.job(who, id)
	return []Stage{
		{ID: "0", State: "done", Plan: "Stage 0", TasksTotal: 1, Tasks: []Task{{State: "done", Executor: "e1", Error: "x"}}, Metrics: &Metrics{Started: &noon}},
		{ID: "12", State: "running", Metrics: &Metrics{}},
		{ID: SchedulerStage, State: "pending", Plan: "[scheduler] Commit"},
	}, ok
}

func (b *board) Plan(who, id string) (string, bool) { _, ok := b.job(who, id); return "the plan", ok }

func (b *board) Cancel(who, id string) (Job, string, bool) {
	j, ok := b.job(who, id)
	if ok {
		b.cancelled = append(b.cancelled, id)
	}
	return j, b.refuse, ok
}
func (b *board) NotReady() []string { return b.notReady }

type fixture struct {
	*board
	url    string
	counts map[string]int
	mu     sync.Mutex
}

func serve(t *testing.T, open bool) *fixture {
	t.Helper()
	f := &fixture{board: &board{}, counts: map[string]int{}}
	s, err := Listen(t.Context(), "127.0.0.1:0", Config{
		Backend: f.board, Open: open, Logger: slog.New(slog.DiscardHandler),
		Authenticate: func(_ *http.Request, token string) (string, *Refusal) {
			who := map[string]string{"a-token": "ann", "b-token": "bob"}[token]
			switch {
			case open:
				return "ann", nil
			case token == "later":
				return "", &Refusal{Why: "nobody knows yet", Unavailable: true}
			case who == "":
				return "", &Refusal{Why: "nobody has this token"}
			}
			return who, nil
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprintln(w, "signet_jobs 1")
		}),
		Count: func(route, code string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.counts[route+" "+code]++
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	f.url = "http://" + s.Addr()
	return f
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (f *fixture) do(t *testing.T, method, path, token, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{res.StatusCode, res.Header, string(b)}
}

func (a answer) problem(t *testing.T) Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), a.body)
	var p Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	require.Equal(t, a.status, p.Status)
	return p
}

const cancelBody = `{"state":"cancelled"}`

// TestAPI_AnswersAreAsDescribed holds an answer of every operation and status against the document.
// Numbers in docs/semantics.md: J11, J15.
func TestAPI_AnswersAreAsDescribed(t *testing.T) {
	f, d := serve(t, false), readDocument(t)
	seen := map[string]bool{}
	try := func(method, route, path, token, body string, want int, header ...string) answer {
		t.Helper()
		a := f.do(t, method, path, token, body, header...)
		require.Equal(t, want, a.status, "%s %s: %s", method, path, a.body)
		d.check(t, method, route, a.status, a.header.Get("Content-Type"), []byte(a.body))
		seen[fmt.Sprint(strings.ToLower(method), route, want)] = true
		return a
	}
	for _, route := range []string{"/api/state", "/api/executors", "/api/jobs", "/api/job/{id}", "/api/job/{id}/stages", "/api/job/{id}/plan", "/api/metrics"} {
		path := strings.Replace(route, "{id}", "j1", 1)
		try("GET", route, path, "a-token", "", 200)
		a := try("GET", route, path, "", "", 401)
		require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
		try("GET", route, path, "other", "", 401)
		require.Equal(t, "5", try("GET", route, path, "later", "", 503).header.Get("Retry-After"))
		if strings.Contains(route, "{id}") {
			try("GET", route, path, "b-token", "", 404)
			try("GET", route, strings.Replace(route, "{id}", "..%2f..", 1), "a-token", "", 404)
		}
	}
	try("GET", "/api/jobs", "/api/jobs?limit=0", "a-token", "", 400)
	try("GET", "/api/jobs", "/api/jobs?limit=x", "a-token", "", 400)
	try("GET", "/api/jobs", "/api/jobs?state=gone", "a-token", "", 400)
	try("GET", "/api/job/{id}/stages", "/api/job/j1/stages?tasks=-1", "a-token", "", 400)
	try("GET", "/healthz", "/healthz", "", "", 200)
	try("GET", "/readyz", "/readyz", "", "", 200)
	f.notReady = []string{"stopping"}
	try("GET", "/readyz", "/readyz", "", "", 503)
	try("GET", "/api/openapi.json", "/api/openapi.json", "", "", 200)

	patch := func(token, body string, want int, header ...string) answer {
		t.Helper()
		return try("PATCH", "/api/job/{id}", "/api/job/j1", token, body, want, header...)
	}
	patch("", cancelBody, 401)
	patch("later", cancelBody, 503)
	patch("b-token", cancelBody, 404)
	for _, body := range []string{`{"state":"running"}`, `{}`, `{"state":"cancelled","also":1}`, `[1]`, `{"state"`, cancelBody + cancelBody, ``} {
		patch("a-token", body, 400, "Content-Type", "application/json")
	}
	patch("a-token", cancelBody, 415, "Content-Type", "text/plain")
	patch("a-token", `{"state":"`+strings.Repeat("x", maxBody)+`"}`, 413)
	require.Empty(t, f.cancelled)
	patch("a-token", cancelBody, 200)
	patch("a-token", cancelBody, 200, "Content-Type", "application/merge-patch+json; charset=utf-8")
	require.Equal(t, []string{"j1", "j1"}, f.cancelled)
	f.refuse = "the job has ended: successful"
	require.Equal(t, f.refuse, patch("a-token", cancelBody, 409).problem(t).Detail)

	for path, item := range d.Paths {
		for method, raw := range item {
			var op operation
			if method == "parameters" || json.Unmarshal(raw, &op) != nil {
				continue
			}
			for status := range op.Responses {
				require.True(t, seen[method+path+status], "no answer %s to %s %s was seen", status, method, path)
			}
		}
	}
}

// S46, S47: the scheduler's stage is the last, without tasks and measures; other ids are numbers.
func TestStages_EndWithTheSchedulers(t *testing.T) {
	f := serve(t, true)
	a := f.do(t, "GET", "/api/job/j1/stages?tasks=7", "", "")
	require.Equal(t, 7, f.tasks)
	var got struct {
		Stages []map[string]any `json:"stages"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &got))
	require.Len(t, got.Stages, 3)
	require.InDelta(t, 0, got.Stages[0]["id"], 0)
	require.InDelta(t, 12, got.Stages[1]["id"], 0)
	require.Equal(t, map[string]any{"id": "scheduler", "state": "pending", "plan": "[scheduler] Commit", "tasks": []any{}, "tasks_total": 0.0}, got.Stages[2])
}

func TestJobs_FilterAndLimit(t *testing.T) {
	f := serve(t, true)
	f.do(t, "GET", "/api/jobs", "", "")
	require.Equal(t, Filter{Limit: 100}, f.filter)
	f.do(t, "GET", "/api/jobs?state=failed&kind=insert&limit=3", "", "")
	require.Equal(t, Filter{State: "failed", Kind: "insert", Limit: 3}, f.filter)
	f2 := serve(t, false)
	require.JSONEq(t, `{"jobs":[]}`, f2.do(t, "GET", "/api/jobs", "b-token", "").body)
}

func TestAPI_RefusalsHaveOneForm(t *testing.T) {
	f := serve(t, false)
	require.Equal(t, "not-found", f.do(t, "GET", "/nowhere", "a-token", "").problem(t).Code)
	require.Equal(t, "not-found", f.do(t, "GET", "/", "", "").problem(t).Code)
	for method, path := range map[string]string{"POST": "/api/job/j1", "DELETE": "/api/jobs", "PATCH": "/healthz"} {
		a := f.do(t, method, path, "a-token", cancelBody)
		require.Equal(t, 405, a.status)
		require.Equal(t, "method-not-allowed", a.problem(t).Code)
		require.Contains(t, a.header.Get("Allow"), "GET")
	}
	f.defect = true
	a := f.do(t, "GET", "/api/job/j1", "a-token", "")
	require.Equal(t, 500, a.status)
	require.Equal(t, "internal", a.problem(t).Code)
	require.NotContains(t, a.body, "a defect")
	f.defect = false
	require.Equal(t, 200, f.do(t, "GET", "/api/job/j1", "a-token", "").status, "it goes on")
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, map[string]int{
		"none 404": 2, "none 405": 3, "GET /api/job/{id} 500": 1, "GET /api/job/{id} 200": 1,
	}, f.counts)
}

// A page of another site must not act through a browser on this machine.
func TestAPI_OpenListenerAnswersToLocalNamesOnly(t *testing.T) {
	f := serve(t, true)
	for host, want := range map[string]int{"localhost": 200, "LOCALHOST:80": 200, "127.0.0.1:1": 200, "[::1]:2": 200, "evil.example": 421, "localhost.evil.example:80": 421, "10.0.0.1": 421} {
		a := f.do(t, "GET", "/api/jobs", "", "", "Host", host)
		require.Equal(t, want, a.status, host)
	}
	require.Equal(t, 421, f.do(t, "PATCH", "/api/job/j1", "", cancelBody, "Host", "evil.example").status)
	require.Equal(t, 415, f.do(t, "PATCH", "/api/job/j1", "", cancelBody, "Content-Type", "application/x-www-form-urlencoded").status)
	require.Empty(t, f.cancelled)
	closed := serve(t, false)
	require.Equal(t, 200, closed.do(t, "GET", "/api/jobs", "a-token", "", "Host", "signet.example").status)
}

func TestAPI_BoundsHeadersAndConnections(t *testing.T) {
	f := serve(t, true)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/api/jobs", nil)
	require.NoError(t, err)
	req.Header.Set("X-Large", strings.Repeat("x", 2*maxHeader))
	res, err := http.DefaultClient.Do(req)
	if err == nil { // otherwise the connection was closed while we still wrote
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, res.StatusCode)
	}
	require.Zero(t, f.filter.Limit, "the backend was not asked")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := bounded(l, 1)
	defer b.Close()
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := b.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Fatal("a second connection while the first is open")
	default:
	}
	require.NoError(t, first.Close())
	require.Error(t, first.Close()) // and frees its place once
	second := <-accepted
	require.NoError(t, b.Close())
	_, open := <-accepted
	require.False(t, open)
	require.NoError(t, second.Close())
}

func TestListen_NamesTheKeyOfAnAddressInUse(t *testing.T) {
	l := httptest.NewServer(nil)
	defer l.Close()
	_, err := Listen(t.Context(), l.Listener.Addr().String(), Config{Logger: slog.Default()})
	require.ErrorContains(t, err, "http.listen")
}

func TestAPI_SurvivesHalfRequests(t *testing.T) {
	f := serve(t, true)
	c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	fmt.Fprintf(c, "PATCH /api/job/j1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "400")
	require.Empty(t, f.cancelled)
}
