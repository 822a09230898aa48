package rest

import (
	"cmp"
	_ "embed" // the API's description
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/internal/mutant"
)

// Description is the OpenAPI document of the API.
//
//go:embed openapi.json
var Description []byte

const (
	defaultJobs  = 100
	maxJobs      = 10_000
	defaultTasks = 1_000
	maxTasks     = 100_000
)

// States by which a job list can be filtered.
var states = []string{"queued", "planning", "running", "successful", "failed", "cancelled"}

type api struct{ cfg Config }

// Handler serves the API.
func Handler(cfg Config) http.Handler {
	a := &api{cfg}
	if a.cfg.Count == nil {
		a.cfg.Count = func(string, string) {}
	}
	mux := http.NewServeMux()
	open := func(route string, f http.HandlerFunc) { mux.Handle(route, f) }
	own := func(route string, f func(http.ResponseWriter, *http.Request, string)) {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			if who, ok := a.principal(w, r); ok {
				f(w, r, who)
			}
		})
	}
	open("GET /healthz", a.health)
	open("GET /readyz", a.ready)
	open("GET /api/openapi.json", a.description)
	own("GET /api/state", func(w http.ResponseWriter, _ *http.Request, who string) {
		write(w, http.StatusOK, cfg.Backend.State(who))
	})
	own("GET /api/executors", func(w http.ResponseWriter, _ *http.Request, _ string) {
		write(w, http.StatusOK, Executors{cfg.Backend.Executors()})
	})
	own("GET /api/jobs", a.jobs)
	own("GET /api/job/{id}", a.job)
	own("PATCH /api/job/{id}", a.patch)
	if !mutant.On("rest/no-stages") {
		own("GET /api/job/{id}/stages", a.stages)
	}
	own("GET /api/job/{id}/plan", a.plan)
	own("GET /api/metrics", func(w http.ResponseWriter, r *http.Request, _ string) { cfg.Metrics.ServeHTTP(w, r) })
	return a.outer(mux)
}

// recorder notes the status for the count.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// outer is around every request: it counts, bounds, survives defects, and gives the mux's own refusals the form of all others.
func (a *api) outer(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		_, route := mux.Handler(r)
		defer func() {
			if p := recover(); p != nil {
				a.cfg.Logger.Error("request panicked", "route", route, "panic", p, "stack", string(debug.Stack()))
				if rec.status == 0 {
					problem(rec, http.StatusInternalServerError, "internal", "the scheduler's log has the details")
				}
			}
			a.cfg.Count(cmp.Or(route, "none"), strconv.Itoa(rec.status))
		}()
		h := rec.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(rec, r.Body, maxBody)
		switch {
		case a.cfg.Open && !localName(r.Host):
			// Another site's name that resolves to this machine (DNS rebinding).
			problem(rec, http.StatusMisdirectedRequest, "forbidden", fmt.Sprintf("this listener asks for no tokens and answers to localhost only, not to %q", r.Host))
		case route == "":
			a.noRoute(rec, r, mux)
		default:
			mux.ServeHTTP(rec, r)
		}
	})
}

// noRoute tells a wrong method from a wrong path.
func (a *api) noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPatch} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, route := mux.Handler(other); route != "" {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) == 0 {
		problem(w, http.StatusNotFound, "not-found", "no such path; /api/openapi.json describes those that there are")
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	problem(w, http.StatusMethodNotAllowed, "method-not-allowed", r.Method+" is not for this path; use "+strings.Join(allowed, " or "))
}

func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// principal is whose request it is; an answer is given where there is none.
func (a *api) principal(w http.ResponseWriter, r *http.Request) (string, bool) {
	token := ""
	if v := r.Header.Values("Authorization"); len(v) == 1 && len(v[0]) > 7 && strings.EqualFold(v[0][:7], "bearer ") {
		token = v[0][7:]
	}
	who, no := a.cfg.Authenticate(r, token)
	switch {
	case no == nil:
	case no.Unavailable:
		w.Header().Set("Retry-After", "5")
		problem(w, http.StatusServiceUnavailable, "unavailable", no.Why)
	default:
		w.Header().Set("WWW-Authenticate", `Bearer realm="signet"`)
		problem(w, http.StatusUnauthorized, "unauthenticated", no.Why)
	}
	return who, no == nil
}

// Refusal says why a request has no principal.
type Refusal struct {
	Why         string
	Unavailable bool // who could tell does not answer: the same request may go through later
}

func write(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a defect of the model; outer answers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // whoever asked has left
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	b, err := json.Marshal(Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail})
	if err != nil {
		b = nil // of plain texts: cannot be
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // whoever asked has left
}

func (a *api) health(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, Health{Status: "ok"})
}

func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	if why := a.cfg.Backend.NotReady(); len(why) > 0 && !mutant.On("rest/always-ready") {
		write(w, http.StatusServiceUnavailable, Health{Status: "unavailable", Reasons: why})
		return
	}
	write(w, http.StatusOK, Health{Status: "ok"})
}

func (a *api) description(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(Description) // whoever asked has left
}

// number reads a query parameter between 1 and most.
func number(w http.ResponseWriter, r *http.Request, name string, missing, most int) (int, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return missing, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		problem(w, http.StatusBadRequest, "user", fmt.Sprintf("%s is %q; want a number from 1 to %d", name, text, most))
		return 0, false
	}
	return n, true
}

func (a *api) jobs(w http.ResponseWriter, r *http.Request, who string) {
	limit, ok := number(w, r, "limit", defaultJobs, maxJobs)
	if !ok {
		return
	}
	q := r.URL.Query()
	f := Filter{State: q.Get("state"), Kind: q.Get("kind"), Limit: limit}
	if f.State != "" && !slices.Contains(states, f.State) {
		problem(w, http.StatusBadRequest, "user", fmt.Sprintf("state is %q; want one of %s", f.State, strings.Join(states, ", ")))
		return
	}
	list := a.cfg.Backend.Jobs(who, f)
	if list == nil {
		list = []Job{}
	}
	write(w, http.StatusOK, Jobs{list})
}

func noJob(w http.ResponseWriter, id string) {
	problem(w, http.StatusNotFound, "not-found", fmt.Sprintf("no job %q; /api/jobs lists yours", id))
}

func (a *api) job(w http.ResponseWriter, r *http.Request, who string) {
	if j, ok := a.cfg.Backend.Job(who, r.PathValue("id")); ok {
		write(w, http.StatusOK, j)
		return
	}
	noJob(w, r.PathValue("id"))
}

func (a *api) stages(w http.ResponseWriter, r *http.Request, who string) {
	tasks, ok := number(w, r, "tasks", defaultTasks, maxTasks)
	if !ok {
		return
	}
	id := r.PathValue("id")
	list, ok := a.cfg.Backend.Stages(who, id, tasks)
	if !ok {
		noJob(w, id)
		return
	}
	if list == nil {
		list = []Stage{}
	}
	for i := range list {
		if list[i].Tasks == nil {
			list[i].Tasks = []Task{}
		}
	}
	write(w, http.StatusOK, Stages{id, list})
}

func (a *api) plan(w http.ResponseWriter, r *http.Request, who string) {
	id := r.PathValue("id")
	text, ok := a.cfg.Backend.Plan(who, id)
	if !ok {
		noJob(w, id)
		return
	}
	write(w, http.StatusOK, Plan{id, text})
}

// patch cancels: {"state": "cancelled"} is all that can be changed of a job.
func (a *api) patch(w http.ResponseWriter, r *http.Request, who string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" && kind != "application/merge-patch+json" {
		problem(w, http.StatusUnsupportedMediaType, "user", "send application/json")
		return
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	var change struct {
		State string `json:"state"`
	}
	err := d.Decode(&change)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		problem(w, http.StatusRequestEntityTooLarge, "user", fmt.Sprintf("a body has at most %d bytes", maxBody))
		return
	case err != nil:
		problem(w, http.StatusBadRequest, "user", "the body is not {\"state\": \"cancelled\"}: "+err.Error())
		return
	case change.State != "cancelled":
		problem(w, http.StatusBadRequest, "user", fmt.Sprintf("a job's state cannot be set to %q; only {\"state\": \"cancelled\"} can be asked for", change.State))
		return
	}
	id := r.PathValue("id")
	j, refused, found := a.cfg.Backend.Cancel(who, id)
	switch {
	case !found:
		noJob(w, id)
	case refused != "":
		problem(w, http.StatusConflict, "conflict", refused)
	default:
		write(w, http.StatusOK, j)
	}
}
