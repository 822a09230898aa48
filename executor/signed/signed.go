package signed

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/objects"
)

// What callers tell apart with errors.Is.
var (
	ErrNotFound = errors.New("no such object")
	ErrUpload   = errors.New("no such upload")
	ErrExists   = errors.New("a condition does not hold") // 412: it exists, or it has changed
	ErrDenied   = errors.New("access denied")             // or expired: stores do not always say which
	ErrBusy     = errors.New("the store cannot do it now")
	ErrNetwork  = errors.New("no answer")
	ErrRefused  = errors.New("the store refuses the request")
)

// Error is a request that failed.
type Error struct {
	Method, URI string
	Status      int    // of HTTP; 0: no answer
	Code, Text  string // the store's own
	Err         error  // one of this package's
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: %v", e.Method, e.URI, e.Err)
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d", e.Status)
		if e.Code != "" {
			text += ", " + e.Code
		}
		text += ")"
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Again tells whether the same request may go better another time.
func Again(err error) bool { return errors.Is(err, ErrBusy) || errors.Is(err, ErrNetwork) }

// Unknown tells whether a request that failed may have taken effect.
func Unknown(err error) bool {
	var e *Error
	return errors.Is(err, ErrNetwork) || errors.As(err, &e) && e.Status >= 500 && e.Code != "SlowDown" && e.Code != "ServiceUnavailable"
}

// Client sends requests. Safe for concurrent use.
type Client struct {
	http  *http.Client
	web   *http.Client // for files of web servers, which are not signed for
	ahead atomic.Int64 // of the clock of the store that answered last
}

// Ahead is how far the clock of the store that answered last is ahead of this machine's; 0 where it is not known.
func (c *Client) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

const (
	dialPatience   = 10 * time.Second
	answerPatience = time.Minute // for the first byte of an answer
	idlePatience   = time.Minute // between two reads of a body
)

// New makes a client with connections of its own.
func New() *Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialPatience}).DialContext, TLSHandshakeTimeout: dialPatience, ResponseHeaderTimeout: answerPatience,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true, // bodies are what is stored
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{http: &http.Client{Transport: t, CheckRedirect: stay}, web: &http.Client{Transport: objects.WebTransport(), CheckRedirect: stay}}
}

// Close lets go of idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.web.CloseIdleConnections()
}

// Do sends a request, with more headers that need no signature and a body of a size (nil: none). An answer that is no success is an Error. The caller closes the body
// of an answer.
func (c *Client) Do(ctx context.Context, r *executorv1.SignedRequest, more http.Header, body io.Reader, size int64) (*http.Response, error) {
	fail := func(err error) error {
		return &Error{Method: r.GetMethod(), URI: r.GetUri(), Err: ErrNetwork, Text: withoutURL(err)}
	}
	req, err := http.NewRequestWithContext(ctx, r.GetMethod(), r.GetUrl(), body)
	if err != nil {
		return nil, fail(err)
	}
	traffic := TrafficOf(ctx)
	if body != nil {
		req.Body = io.NopCloser(&metered{body, &traffic.Sent})
	}
	req.ContentLength, req.GetBody = size, nil // one call is one request
	if body == nil || size == 0 {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	for name, value := range r.GetHeaders() {
		req.Header.Set(name, value)
	}
	for name, values := range more {
		req.Header[name] = values
	}
	req.Header.Del("Content-Length") // which is the field's
	by := c.http
	if strings.HasPrefix(r.GetUri(), "http") { // of a web server; s3:// and so on are signed
		by = c.web
	}
	resp, err := by.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fail(err)
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil && by == c.http && resp.Header.Get("Age") == "" {
		c.ahead.Store(int64(time.Until(at)))
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		resp.Body = &watched{ReadCloser: resp.Body, received: &traffic.Received, timer: time.AfterFunc(idlePatience, func() { resp.Body.Close() })}
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, answered(r, resp)
}

// watched ends a body that stands still.
type watched struct {
	io.ReadCloser
	received *atomic.Int64
	timer    *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.received.Add(int64(n))
	if err == nil {
		w.timer.Reset(idlePatience)
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	return w.ReadCloser.Close()
}

// maxErrorBody bounds what of an error's body is read.
const maxErrorBody = 64 << 10

// answered is the error of an answer that is no success.
func answered(r *executorv1.SignedRequest, resp *http.Response) *Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what has come of it says enough
	said := parseError(body)
	return Classify(r, resp.StatusCode, said.Code, said.Message)
}

type storeError struct {
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

func parseError(body []byte) storeError {
	var said storeError
	if xml.Unmarshal(body, &said) != nil {
		return storeError{} // a page of a proxy
	}
	const long = 500
	if len(said.Message) > long {
		said.Message = strings.ToValidUTF8(said.Message[:long], "") + "…"
	}
	if strings.ContainsAny(said.Message, "?&") { // it may quote the request
		said.Message = ""
	}
	return said
}

// codes that mean the same with any status.
var codes = map[string]error{
	"NoSuchKey": ErrNotFound, "NoSuchUpload": ErrUpload, "PreconditionFailed": ErrExists, "ConditionalRequestConflict": ErrBusy, "OperationAborted": ErrBusy, "SlowDown": ErrBusy,
	"RequestTimeout": ErrBusy, "InternalError": ErrBusy, "ServiceUnavailable": ErrBusy, "ExpiredToken": ErrDenied, "RequestExpired": ErrDenied, "TokenRefreshRequired": ErrDenied,
	"BlobNotFound": ErrNotFound, "BlobAlreadyExists": ErrExists, "UnauthorizedBlobOverwrite": ErrExists, "ConditionNotMet": ErrExists, "ServerBusy": ErrBusy, "OperationTimedOut": ErrBusy,
	"Md5Mismatch": ErrBusy, "AccessDenied": ErrDenied, "RequestTimeTooSkewed": ErrDenied, "BadDigest": ErrBusy, "XAmzContentChecksumMismatch": ErrBusy, "IncompleteBody": ErrBusy,
}

// Classify makes an error of what a store said.
func Classify(r *executorv1.SignedRequest, status int, code, text string) *Error {
	e := &Error{Method: r.GetMethod(), URI: r.GetUri(), Status: status, Code: code, Text: text, Err: codes[code]}
	if e.Err != nil {
		return e
	}
	switch {
	case status == http.StatusNotFound:
		e.Err = ErrNotFound
	case status == http.StatusPreconditionFailed:
		e.Err = ErrExists
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		e.Err = ErrDenied
	case status >= 500 && status != http.StatusNotImplemented, slices.Contains([]int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests}, status):
		e.Err = ErrBusy
	default:
		e.Err = ErrRefused
	}
	return e
}

// withoutURL is the text of an error of net/http without the request's URL.
func withoutURL(err error) string {
	var ue *url.Error
	for errors.As(err, &ue) {
		err = ue.Err
	}
	return err.Error()
}
