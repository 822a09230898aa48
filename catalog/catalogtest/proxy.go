package catalogtest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// HTTPFault is what becomes of one request to a server.
type HTTPFault struct {
	Applied bool   // the server gets the request, and its answer is lost; otherwise the server never hears of it
	Status  int    // is answered instead, with an error of Iceberg's protocol; 0: the connection is cut
	Plain   bool   // the answer is a page of something else than the catalog
	Half    bool   // the server's own answer is cut in its middle (Applied)
	Header  string // name of one more header of the answer, with the value 1
	Code    string // the answer is an exception of that name in AWS's JSON protocol, with the status 400 unless there is another
}

// String names a fault in a test.
func (f HTTPFault) String() string {
	when := "before"
	if f.Applied {
		when = "after"
	}
	what := "cut"
	switch {
	case f.Half:
		what = "half"
	case f.Code != "":
		what = f.Code
	case f.Status != 0:
		what = strconv.Itoa(f.Status)
	}
	if f.Plain {
		what += "-page"
	}
	if f.Header != "" {
		what += "-" + f.Header
	}
	return when + "-" + what
}

// HTTPFaults are those that a network and what stands in it can do to any request.
func HTTPFaults() []HTTPFault {
	out := []HTTPFault{{Applied: true, Half: true}}
	for _, applied := range []bool{false, true} {
		out = append(out, HTTPFault{Applied: applied}, HTTPFault{Applied: applied, Status: http.StatusOK, Plain: true}, HTTPFault{Applied: applied, Status: http.StatusNotFound, Plain: true},
			HTTPFault{Applied: applied, Status: http.StatusConflict}, HTTPFault{Applied: applied, Status: http.StatusSeeOther, Plain: true})
		for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
			out = append(out, HTTPFault{Applied: applied, Status: status})
		}
	}
	return append(out, HTTPFault{Status: http.StatusBadRequest}, HTTPFault{Status: http.StatusUnauthorized}, HTTPFault{Status: 419}, HTTPFault{Status: http.StatusForbidden})
}

// Proxy stands in front of a server of a catalog and lets things go wrong. It passes requests on once each.
type Proxy struct {
	URL    string
	target string
	client http.Transport

	mu     sync.Mutex
	faults map[int]HTTPFault // by the number of the request since Arm
	seen   []*http.Request   // since Arm
	bodies [][]byte
}

// NewProxy starts one in front of target, http://host:port.
func NewProxy(t testing.TB, target string) *Proxy {
	p := &Proxy{target: target}
	srv := httptest.NewServer(p)
	t.Cleanup(func() { srv.Close(); p.client.CloseIdleConnections() })
	p.URL = srv.URL
	return p
}

// Arm counts requests from now on, and lets those of the given numbers go wrong.
func (p *Proxy) Arm(faults map[int]HTTPFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.seen, p.bodies = faults, nil, nil
}

// Seen returns the requests since Arm, and their bodies.
func (p *Proxy) Seen() ([]*http.Request, [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*http.Request(nil), p.seen...), append([][]byte(nil), p.bodies...)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.mu.Lock()
	f, broken := p.faults[len(p.seen)]
	p.seen, p.bodies = append(p.seen, r), append(p.bodies, body)
	p.mu.Unlock()
	if broken && !f.Applied {
		f.answer(w)
		return
	}
	status, header, answer, err := p.pass(r, body)
	switch {
	case err != nil:
		panic(http.ErrAbortHandler)
	case broken && !f.Half:
		f.answer(w)
		return
	}
	for k, v := range header {
		w.Header()[k] = v
	}
	if !broken {
		w.WriteHeader(status)
		_, _ = w.Write(answer)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)+1))
	w.WriteHeader(status)
	_, _ = w.Write(answer[:len(answer)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func (p *Proxy) pass(r *http.Request, body []byte) (status int, header http.Header, answer []byte, err error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.target+r.RequestURI, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	out.Header, out.GetBody = r.Header, nil
	res, err := p.client.RoundTrip(out)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, res.Header, answer, err
}

func (f HTTPFault) answer(w http.ResponseWriter) {
	if f.Code != "" {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.Header().Set("X-Amzn-Requestid", "injected")
		w.WriteHeader(cmp.Or(f.Status, http.StatusBadRequest))
		fmt.Fprintf(w, `{"__type":%q,"message":"injected"}`, f.Code)
		return
	}
	if f.Status == 0 {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	if f.Header != "" {
		w.Header().Set(f.Header, "1")
	}
	if f.Plain {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Location", "http://elsewhere.invalid/login")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html>not what you asked for</html>")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	fmt.Fprintf(w, `{"error":{"message":"injected","type":"InjectedException","code":%d}}`, f.Status)
}
