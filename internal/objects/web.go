package objects

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Web looks at files of web servers, without credentials. Bodies are read by whoever is told where a file is.
type Web struct {
	client *http.Client
}

// WebInfo is a file of a web server.
type WebInfo struct {
	URL     *url.URL // where it is, after redirects
	Size    int64
	Version string // see Version
}

// maxRedirects is how many are followed of one file.
const maxRedirects = 5

// webPatience bounds one request of Web: it has no body.
const webPatience = time.Minute

// NewWeb makes a client that follows redirects to where within has no objection, and to nowhere else.
func NewWeb(within func(*url.URL) error) *Web {
	return &Web{client: &http.Client{Transport: WebTransport(), Timeout: webPatience, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return &redirectError{fmt.Errorf("more than %d redirects", maxRedirects)}
		}
		if err := within(r.URL); err != nil {
			return &redirectError{fmt.Errorf("it redirects to %s: %w", Plain(r.URL), err)}
		}
		return nil
	}}}
}

// redirectError is a redirect that is not followed.
type redirectError struct{ error }

func (e *redirectError) Unwrap() error { return e.error }

// Plain is a URL without what may be a secret in it.
func Plain(u *url.URL) string {
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// Head describes the file at a URL. Servers that answer no HEAD are asked for its first byte.
func (w *Web) Head(ctx context.Context, u *url.URL) (WebInfo, error) {
	for n := 1; ; n++ {
		info, again, err := w.head(ctx, u, http.MethodHead)
		if e := new(Error); errors.As(err, &e) && (e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented || e.Status == http.StatusForbidden) ||
			err == nil && info.Size < 0 {
			info, again, err = w.head(ctx, u, http.MethodGet)
		}
		switch {
		case err == nil && info.Size < 0:
			return WebInfo{}, &Error{
				Op: "head", URI: Plain(u), Err: errors.New("the server does not say how large the file is, so that nobody could tell a whole one from a part"),
				Hint: "copy the file to a server that sends Content-Length, to an object store or to a local directory",
			}
		case err == nil || !again || n == tries:
			return info, err
		}
		if pause(ctx, n, 0) != nil {
			return WebInfo{}, &Error{Op: "head", URI: Plain(u), Err: context.Cause(ctx)}
		}
	}
}

func (w *Web) head(ctx context.Context, u *url.URL, method string) (_ WebInfo, again bool, _ error) {
	fault := &Error{Op: strings.ToLower(method), URI: Plain(u)}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		fault.Err = errors.New("no URL of a file")
		return WebInfo{}, false, fault
	}
	if method == http.MethodGet {
		r.Header.Set("Range", "bytes=0-0")
	}
	resp, err := w.client.Do(r)
	if err != nil {
		var ue *url.Error
		for errors.As(err, &ue) {
			err = ue.Err
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		fault.Err = err
		var guarded *guardError
		var redirected *redirectError
		if errors.As(err, &guarded) || errors.As(err, &redirected) {
			return WebInfo{}, false, fault
		}
		fault.Hint = "the scheduler must be able to reach the server"
		return WebInfo{}, ctx.Err() == nil, fault
	}
	resp.Body.Close() // whatever of it comes: what matters is in the headers
	fault.Status = resp.StatusCode
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		fault.Err = ErrNotFound
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		fault.Err, fault.Hint = ErrDenied, "files of web servers are read without credentials"
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && method == http.MethodGet: // there is no first byte
		return WebInfo{URL: resp.Request.URL, Size: 0, Version: Version(resp.Header)}, false, nil
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent:
		fault.Err = fmt.Errorf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		return WebInfo{}, resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, fault
	}
	if fault.Err != nil {
		return WebInfo{}, false, fault
	}
	info := WebInfo{URL: resp.Request.URL, Size: resp.ContentLength, Version: Version(resp.Header)}
	if resp.StatusCode == http.StatusPartialContent {
		info.Size = -1
		if _, total, ok := strings.Cut(resp.Header.Get("Content-Range"), "/"); ok {
			if n, err := strconv.ParseInt(total, 10, 64); err == nil && n >= 0 {
				info.Size = n
			}
		}
	}
	return info, false, nil
}

// modified begins versions of files whose server gives no ETag.
const modified = "modified:"

// Version tells versions of a file apart, as the headers of an answer about it do: its ETag, else when it was last modified; empty: they do not say.
func Version(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" {
		return tag
	}
	if when := h.Get("Last-Modified"); when != "" {
		return modified + when
	}
	return ""
}

// SameVersion compares what Version gave at two times. Stores do not agree whether lists have ETags in quotes.
func SameVersion(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// OnlyIf makes a request good for one version. A weak ETag cannot be asked for; the answer is compared.
func OnlyIf(h http.Header, version string) {
	switch when, ok := strings.CutPrefix(version, modified); {
	case ok:
		h.Set("If-Unmodified-Since", when)
	case version != "" && !strings.HasPrefix(version, "W/"):
		h.Set("If-Match", `"`+strings.Trim(version, `"`)+`"`)
	}
}

// WebTransport connects to web servers: by no proxy, and to no address of the machine itself or of its link, which a name may lead to, unless that very address is what
// is asked for.
func WebTransport() *http.Transport {
	plain := &net.Dialer{Timeout: 10 * time.Second}
	guarded := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if ip := at.Addr().Unmap(); ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
			return &guardError{ip}
		}
		return nil
	}}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
				return plain.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true,
		ForceAttemptHTTP2: true,
	}
}

// guardError is an address that a name must not lead to.
type guardError struct{ ip netip.Addr }

func (e *guardError) Error() string {
	return fmt.Sprintf("its name leads to %s, an address of this machine or its link; sources.remote would have to name the address itself", e.ip)
}
