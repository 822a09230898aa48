// Package objectstest is an S3 server in memory for tests, with a proxy in front of it that makes requests fail as networks and stores do.
package objectstest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/signet-io/signet/internal/objects"
)

// Bucket exists on every server.
const Bucket = "lake"

// Server is a running one.
type Server struct {
	URL string

	mu       sync.Mutex
	faults   []*active
	log      []string
	ahead    time.Duration
	pageSize int
	empty    bool
	accounts map[string]*Account // by key; nil: anybody
	store    http.Handler
	words    func(w http.ResponseWriter, r *http.Request, s3 http.HandlerFunc) // of another store; nil: S3's
	complete sync.Mutex
}

// Start runs a server until the test ends. It takes any credentials, and no notice of signatures.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	s.store = gofakes3.New(backend, gofakes3.WithTimeSource(s), gofakes3.WithIntegrityCheck(true)).Server()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Props lead a client to the server, with keys.
func (s *Server) Props() objects.Props {
	return objects.Props{objects.Endpoint: s.URL, objects.AccessKeyID: "canary-key", objects.SecretKey: "canary-secret"}
}

// Client is one for Bucket.
func (s *Server) Client(t testing.TB) objects.Client {
	t.Helper()
	c, err := objects.NewS3(s.Props(), Bucket, objects.Static(s.Props()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Now implements gofakes3.TimeSource.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// Since implements gofakes3.TimeSource.
func (s *Server) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// Ahead puts the server's clock forward.
func (s *Server) Ahead(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = d
}

// Pages makes lists come in pages of n names; with empty, one without names precedes each.
func (s *Server) Pages(n int, empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageSize, s.empty = n, empty
}

// Log lists the requests since the server was started, or Log was called: method, path and the names in the query.
func (s *Server) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.log
	s.log = nil
	return out
}

// respond answers in the words of the store that it is.
func (s *Server) respond(w http.ResponseWriter, r *http.Request) {
	if s.words != nil {
		s.words(w, r, s.serve)
		return
	}
	s.serve(w, r)
}

// Fault makes requests fail.
type Fault struct {
	Method string                     // empty: any
	Match  func(r *http.Request) bool // nil: any
	Skip   int                        // how many that match pass before
	Times  int                        // how many fail; 0: one

	Apply  bool   // the request takes effect, and then its answer is lost
	Status int    // what is answered; 0: nothing, the connection breaks
	Code   string // of S3
	Retry  int    // Retry-After, in seconds
	Region string // x-amz-bucket-region
	Body   int    // with Apply and no Status: so many bytes of the answer come before the connection breaks

	sts bool // it answers as STS does
}

// Fail adds faults. Of several that match, the first one counts.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &active{Fault: f, times: int64(max(f.Times, 1))})
	}
}

// active is a fault with how often it was met.
type active struct {
	Fault
	times int64
	seen  atomic.Int64
}

// Pending reports how many faults have not happened as often as they were to.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, f := range s.faults {
		if f.seen.Load() < int64(f.Skip)+f.times {
			n++
		}
	}
	return n
}

func (s *Server) fault(r *http.Request) *active {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for name := range r.URL.Query() {
		if name != "x-id" {
			names = append(names, name)
		}
	}
	line := r.Method + " " + r.URL.Path
	if len(names) == 1 {
		line += "?" + names[0]
	} else if len(names) > 1 {
		line += "?…"
	}
	s.log = append(s.log, line)
	faults := slices.Clone(s.faults)
	s.mu.Unlock()
	defer s.mu.Lock()
	for _, f := range faults {
		if f.Method != "" && f.Method != r.Method || f.Match != nil && !f.Match(r) {
			continue
		}
		if n := f.seen.Add(1); n > int64(f.Skip) && n <= int64(f.Skip)+f.times {
			return f
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == tokenPath || r.URL.Path == signPath { // of others than the store
		s.respond(w, r)
		return
	}
	f := s.fault(r)
	w.Header().Set("Date", s.Now().UTC().Format(http.TimeFormat))
	if f == nil {
		s.respond(w, r)
		return
	}
	if !f.Apply {
		f.answer(w, r)
		return
	}
	rec := httptest.NewRecorder()
	s.respond(rec, r)
	if f.Status != 0 || f.Body == 0 {
		f.answer(w, r)
		return
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	body := rec.Body.Bytes()
	// More is promised than comes, also of an empty body: it would look whole, and the connection good for another request, which would fail for no reason of its own.
	w.Header().Set("Content-Length", strconv.Itoa(max(len(body), f.Body+1)))
	w.WriteHeader(rec.Code)
	_, _ = w.Write(body[:min(f.Body, len(body))])
	if fl, ok := w.(http.Flusher); ok {
		fl.Flush()
	}
	panic(http.ErrAbortHandler)
}

func (f *Fault) answer(w http.ResponseWriter, r *http.Request) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	if f.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.Retry))
	}
	if f.Region != "" {
		w.Header().Set("X-Amz-Bucket-Region", f.Region)
	}
	w.Header().Set("X-Amz-Request-Id", "request-7")
	if f.Code == "" || r.Method == http.MethodHead {
		w.WriteHeader(f.Status)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(f.Status)
	if f.sts {
		fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>injected</Message></Error></ErrorResponse>`, f.Code)
		return
	}
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>injected</Message><RequestId>request-7</RequestId></Error>`, f.Code)
}

// serve adds to the store in memory what it lacks: pages that are empty, and a condition of completed uploads.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	by, refused := s.refuses(r)
	if refused != nil {
		refused.answer(w, r)
		return
	}
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/" && by != nil:
		s.assume(w, r, by)
		return
	case q.Get("list-type") == "2":
		if s.page(w, r) {
			return
		}
	case r.Method == http.MethodPost && q.Has("uploadId"):
		s.complete.Lock()
		defer s.complete.Unlock()
		if r.Header.Get("If-None-Match") == "*" {
			rec := httptest.NewRecorder()
			s.store.ServeHTTP(rec, httptest.NewRequest(http.MethodHead, (&httpPath{r.URL.Path}).String(), nil))
			if rec.Code == http.StatusOK {
				(&Fault{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed"}).answer(w, r)
				return
			}
		}
	}
	s.store.ServeHTTP(w, r)
}

// httpPath is the URL of a path that is not escaped.
type httpPath struct{ path string }

func (p *httpPath) String() string {
	var b bytes.Buffer
	for i := range len(p.path) {
		if ch := p.path[i]; ch == '/' || ch >= '0' && ch <= '9' || ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' {
			b.WriteByte(ch)
		} else {
			fmt.Fprintf(&b, "%%%02X", ch)
		}
	}
	return b.String()
}

const emptyPage = "empty-"

func (s *Server) page(w http.ResponseWriter, r *http.Request) (done bool) {
	s.mu.Lock()
	size, empty := s.pageSize, s.empty
	s.mu.Unlock()
	if size == 0 {
		return false
	}
	q := r.URL.Query()
	token, seen := strings.CutPrefix(q.Get("continuation-token"), emptyPage)
	if empty && !seen {
		if token != "" {
			token = base64.RawURLEncoding.EncodeToString([]byte(token))
		}
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>%s</Name><KeyCount>0</KeyCount><IsTruncated>true</IsTruncated><NextContinuationToken>%s%s</NextContinuationToken></ListBucketResult>`,
			Bucket, emptyPage, token)
		return true
	}
	if seen {
		if plain, err := base64.RawURLEncoding.DecodeString(token); err == nil {
			token = string(plain)
		}
		q.Del("continuation-token")
		if token != "" {
			q.Set("continuation-token", token)
		}
	}
	q.Set("max-keys", strconv.Itoa(size))
	r.URL.RawQuery = q.Encode()
	return false
}

// StartProxy is a server that has another one answer, as it is, but for faults. Pages are the other one's.
func StartProxy(t testing.TB, to string) *Server {
	t.Helper()
	s := Start(t)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host // the Host header stays: signatures may be of it
		r.Out.Host = r.In.Host
	}}
	s.words = func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { p.ServeHTTP(w, r) }
	return s
}

// Heal takes every fault back.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}
