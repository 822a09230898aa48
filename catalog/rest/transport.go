package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync"
	"time"
)

const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 2 * time.Minute // until the first byte of an answer: a commit may wait for others
	callTimeout   = 5 * time.Minute // with the body
	maxAnswer     = 512 << 20       // bytes
	maxRedirects  = 3               // of a GET, to the same origin
	maxUnsent     = 3               // connections that turned out closed before anything was written
)

// newTransport is one that never sends a request twice by itself: requests carry no GetBody, and connections speak HTTP/1.1, where one request at a
// time is on its way and what was written of it can be told.
func newTransport(o Options) (*http.Transport, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s holds no certificate in PEM form", o.CA)
		}
	}
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return nil, errors.New("tls: cert and key go together")
	case o.Cert != "":
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert, tls.key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &watched{Conn: c}, nil
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&tls.Dialer{NetDialer: dialer, Config: conf}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &watched{Conn: c}, nil
		},
		TLSClientConfig:       conf, // behind a proxy
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       30 * time.Second,
		Protocols:             http1(),
	}, nil
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// watched counts what was begun to be written, and takes nothing any more once it is sealed.
type watched struct {
	net.Conn
	mu     sync.Mutex
	writes int
	sealed bool
}

func (c *watched) Write(b []byte) (int, error) {
	c.mu.Lock()
	sealed := c.sealed
	if !sealed {
		c.writes++
	}
	c.mu.Unlock()
	if sealed {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *watched) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

func (c *watched) seal() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	return c.writes
}

// answer is what a server said, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// unsentError is an error of which it is certain that nothing was written to the server.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

func unsent(err error) bool {
	var u unsentError
	return errors.As(err, &u)
}

// trace follows one request through the transport.
type trace struct {
	mu     sync.Mutex
	conn   net.Conn
	before int
	reused bool
}

func (t *trace) got(info httptrace.GotConnInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn, t.reused = info.Conn, info.Reused
	if w, ok := info.Conn.(*watched); ok {
		t.before = w.count()
	}
}

// nothing says that nothing was written, nor will be; it is called when the request has failed.
func (t *trace) nothing() (none, reused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return true, false
	}
	w, ok := t.conn.(*watched)
	return ok && w.seal() == t.before, t.reused
}

// once sends a request once, but for connections that were closed before anything of it was written.
func (c *client) once(ctx context.Context, method, url string, header http.Header, body []byte) (*answer, error) {
	for try := 1; ; try++ {
		a, retry, err := c.roundTrip(ctx, method, url, header, body)
		if err == nil || !retry || try == maxUnsent {
			return a, err
		}
	}
}

func (c *client) roundTrip(ctx context.Context, method, rawURL string, header http.Header, body []byte) (_ *answer, retry bool, _ error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var tr trace
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: tr.got}), method, rawURL, nil)
	if err != nil {
		return nil, false, unsentError{errors.New("the address of the request cannot be used")}
	}
	req.Header = header
	if body != nil { // without GetBody: the transport cannot send it again
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	res, err := c.http.Do(req)
	if err != nil {
		err = cause(ctx, err)
		if none, reused := tr.nothing(); none {
			return nil, reused && ctx.Err() == nil, unsentError{err}
		}
		return nil, false, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("the answer (status %d) was cut: %w", res.StatusCode, cause(ctx, err))
	case len(b) > maxAnswer:
		return nil, false, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return &answer{status: res.StatusCode, header: res.Header, body: b}, false, nil
}

// cause leaves the request's address out, and keeps why the context ended.
func cause(ctx context.Context, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if c := context.Cause(ctx); c != nil && !errors.Is(err, c) {
		err = fmt.Errorf("%w (%w)", c, err)
	}
	return err
}

// redirect follows those of a GET within the origin, so that credentials go nowhere else; all others are answers.
func redirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || len(via) > maxRedirects || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}
