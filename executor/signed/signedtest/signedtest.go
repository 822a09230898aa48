// Package signedtest is an object store for tests of those who send signed requests, with what stores do wrong. Its signatures are tokens, which it looks at: it denies what was not
// signed, what has run out, and what differs from what was signed.
package signedtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

// Bucket is the only one.
const Bucket = "lake"

// Fault is what is done to one request.
type Fault int

// Faults.
const (
	None       Fault = iota
	Before500        // refused with 500, and not applied
	After500         // applied, and answered with 500
	Cut              // applied, and the answer is cut
	CutBefore        // the connection is closed, nothing is applied
	SlowDown         // refused with 503 SlowDown
	Expired          // refused as a signature that has run out
	HalfBody         // the body of the answer is cut half-way
	Body500          // applied, and answered with 200 and an error inside
	Conflict         // refused with 409 ConditionalRequestConflict
	NotAllowed       // refused with 403, whatever the signature
	NotKnown         // refused with 501 NotImplemented
)

// Store is the server, and who signs requests for it.
type Store struct {
	t       testing.TB
	URL     string
	Backend gofakes3.Backend

	// Meet decides about a request: what it is ("GET", "HEAD", "PUT", "begin", "part", "copy", "complete", "abort"), and how many of its kind there were before. nil: no faults.
	Meet func(kind string, n int) Fault

	Careless bool                                // does not look at conditions of copies
	Ranges   func(b []byte, from, to int) []byte // what a careless store makes of the range of a copy; nil: what it says

	inner http.Handler
	mu    sync.Mutex
	count map[string]int
	keys  map[string]string // by token: what was signed
	Asked [][]*executorv1.PutRequest
	Reply func(*executorv1.PutRequest) error // refuses to sign; nil: never
}

// New starts a store.
func New(t testing.TB) *Store {
	s := &Store{t: t, Backend: s3mem.New(), count: map[string]int{}, keys: map[string]string{}}
	require.NoError(t, s.Backend.CreateBucket(Bucket))
	inner := gofakes3.New(s.Backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s.inner = inner
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, inner) }))
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// Counted is how many requests of a kind there were.
func (s *Store) Counted(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[kind]
}

// Expire makes every signature run out that was made by now.
func (s *Store) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = map[string]string{}
}

func kindOf(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return "copy"
	case r.Method == http.MethodPut && q.Has("partNumber"):
		return "part"
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "begin"
	case r.Method == http.MethodPost:
		return "complete"
	case r.Method == http.MethodDelete:
		return "abort"
	}
	return r.Method
}

func said(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>injected</Message></Error>`, code)
}

func (s *Store) serve(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	kind := kindOf(r)
	s.mu.Lock()
	n := s.count[kind]
	s.count[kind]++
	want, ok := s.keys[r.URL.Query().Get("token")]
	meet := s.Meet
	s.mu.Unlock()
	fault := None
	if meet != nil {
		fault = meet(kind, n)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch fault {
	case Before500:
		said(w, http.StatusInternalServerError, "InternalError")
		return
	case SlowDown:
		said(w, http.StatusServiceUnavailable, "SlowDown")
		return
	case Conflict:
		said(w, http.StatusConflict, "ConditionalRequestConflict")
		return
	case Expired:
		said(w, http.StatusForbidden, "AccessDenied")
		return
	case NotAllowed:
		said(w, http.StatusForbidden, "SignatureDoesNotMatch")
		return
	case NotKnown:
		said(w, http.StatusNotImplemented, "NotImplemented")
		return
	case CutBefore:
		panic(http.ErrAbortHandler)
	}
	if !ok || want != essence(r) {
		said(w, http.StatusForbidden, "AccessDenied")
		return
	}
	if sum := r.Header.Get("X-Amz-Checksum-Crc32c"); sum != "" && sum != sumOf(body) {
		said(w, http.StatusBadRequest, "BadDigest")
		return
	}
	q := r.URL.Query()
	q.Del("token")
	r.URL.RawQuery = q.Encode()
	rec := httptest.NewRecorder()
	if kind == "copy" {
		if body, err = s.copied(r); err != nil {
			said(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		inner.ServeHTTP(rec, r)
		rec.Body = bytes.NewBufferString("<CopyPartResult><ETag>" + rec.Header().Get("ETag") + "</ETag><ChecksumCRC32C>" + sumOf(body) + "</ChecksumCRC32C></CopyPartResult>")
	} else {
		inner.ServeHTTP(rec, r)
	}
	switch fault {
	case After500:
		said(w, http.StatusInternalServerError, "InternalError")
		return
	case Body500:
		said(w, http.StatusOK, "InternalError")
		return
	case Cut:
		panic(http.ErrAbortHandler)
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	out := rec.Body.Bytes()
	if kind != http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	}
	w.WriteHeader(rec.Code)
	if fault == HalfBody {
		_, _ = w.Write(out[:len(out)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(out)
}

// copied are the bytes that a request copies from, if they are of the version that it names. The header that says so is taken away: what is left is a part.
func (s *Store) copied(r *http.Request) ([]byte, error) {
	_, key, _ := strings.Cut(r.Header.Get("X-Amz-Copy-Source"), "/")
	o, err := s.Backend.HeadObject(Bucket, key)
	if err != nil {
		return nil, err
	}
	if want := r.Header.Get("X-Amz-Copy-Source-If-Match"); want != "" && want != fmt.Sprintf("%q", fmt.Sprintf("%x", o.Hash)) && !s.Careless {
		return nil, errors.New("another version")
	}
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("X-Amz-Copy-Source-Range"), "bytes=%d-%d", &from, &to); err != nil {
		return nil, err
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Copy") {
			r.Header.Del(name)
		}
	}
	b := s.Get(key)
	if s.Careless && s.Ranges != nil {
		return s.Ranges(b, from, to), nil
	}
	return b[from : to+1], nil
}

func sumOf(b []byte) string {
	n := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// signedHeaders are those that a signature covers, if they are there.
var signedHeaders = []string{"X-Amz-Copy-Source", "X-Amz-Copy-Source-Range", "X-Amz-Copy-Source-If-Match", "If-None-Match", "X-Amz-Checksum-Crc32c", "X-Amz-Checksum-Algorithm", "X-Amz-Meta-Signet-Put"}

// essence is what a signature says.
func essence(r *http.Request) string {
	q := r.URL.Query()
	q.Del("token")
	out := r.Method + " " + r.URL.EscapedPath() + "?" + q.Encode()
	for _, h := range signedHeaders {
		out += "\n" + r.Header.Get(h)
	}
	if kindOf(r) == "part" || kindOf(r) == http.MethodPut {
		out += fmt.Sprint("\n", r.ContentLength)
	}
	return out
}

func (s *Store) sign(method, uri string, q url.Values, headers map[string]string, size int64) *executorv1.SignedRequest {
	key, ok := strings.CutPrefix(uri, "s3://"+Bucket+"/")
	require.True(s.t, ok, uri)
	u, err := url.Parse(s.URL)
	require.NoError(s.t, err)
	u.Path = "/" + Bucket + "/" + key
	u.RawQuery = q.Encode()
	r, err := http.NewRequest(method, u.String(), nil)
	require.NoError(s.t, err)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.ContentLength = size
	s.mu.Lock()
	defer s.mu.Unlock()
	token := fmt.Sprintf("secret-%d", len(s.keys)+1000*len(s.count)+s.count["sign"])
	s.count["sign"]++
	s.keys[token] = essence(r)
	q.Set("token", token)
	u.RawQuery = q.Encode()
	return &executorv1.SignedRequest{Uri: uri, Method: method, Url: u.String(), Headers: headers}
}

// Attempt signs what one attempt asks for.
type Attempt struct {
	*Store
	Prefix, Nonce string
	Pinned        map[string]string // ETags of what it copies from, by URI
}

// Reads implements inputs.Access.
func (a *Attempt) Reads(ctx context.Context, uris []string) ([]*executorv1.SignedRequest, error) {
	var out []*executorv1.SignedRequest
	for _, u := range uris {
		out = append(out, a.sign(http.MethodGet, u, url.Values{}, nil, 0))
	}
	return out, ctx.Err()
}

// Puts implements upload.Signer.
func (a *Attempt) Puts(ctx context.Context, puts []*executorv1.PutRequest) ([]*executorv1.SignedRequest, error) {
	a.mu.Lock()
	a.Asked = append(a.Asked, puts)
	a.mu.Unlock()
	var out []*executorv1.SignedRequest
	for _, p := range puts {
		if a.Reply != nil {
			if err := a.Reply(p); err != nil {
				return nil, err
			}
		}
		uri, q := a.Prefix+"/"+p.GetName(), url.Values{}
		if p.GetUploadId() != "" {
			q.Set("uploadId", p.GetUploadId())
		}
		sum := base64.StdEncoding.EncodeToString(p.GetCrc32C())
		switch {
		case p.GetHead():
			out = append(out, a.sign(http.MethodHead, uri, q, nil, 0))
		case p.GetBegin():
			q.Set("uploads", "")
			out = append(out, a.sign(http.MethodPost, uri, q, map[string]string{"X-Amz-Meta-Signet-Put": a.Nonce, "X-Amz-Checksum-Algorithm": "CRC32C"}, 0))
		case p.GetAbort():
			out = append(out, a.sign(http.MethodDelete, uri, q, nil, 0))
		case p.GetCopy() != nil:
			q.Set("partNumber", fmt.Sprint(p.GetPart()))
			c := p.GetCopy()
			h := map[string]string{
				"X-Amz-Copy-Source":       Bucket + "/" + strings.TrimPrefix(c.GetUri(), "s3://"+Bucket+"/"),
				"X-Amz-Copy-Source-Range": fmt.Sprintf("bytes=%d-%d", c.GetOffset(), c.GetOffset()+c.GetSizeBytes()-1),
			}
			if etag := a.Pinned[c.GetUri()]; etag != "" {
				h["X-Amz-Copy-Source-If-Match"] = etag
			}
			out = append(out, a.sign(http.MethodPut, uri, q, h, 0))
		case p.GetPart() > 0:
			q.Set("partNumber", fmt.Sprint(p.GetPart()))
			out = append(out, a.sign(http.MethodPut, uri, q, map[string]string{"X-Amz-Checksum-Crc32c": sum}, p.GetSizeBytes()))
		case p.GetUploadId() != "":
			out = append(out, a.sign(http.MethodPost, uri, q, nil, 0))
		default:
			out = append(out, a.sign(http.MethodPut, uri, q, map[string]string{"X-Amz-Meta-Signet-Put": a.Nonce, "X-Amz-Checksum-Crc32c": sum, "If-None-Match": "*"}, p.GetSizeBytes()))
		}
	}
	return out, ctx.Err()
}

// Put stores an object, past all faults, and answers its ETag.
func (s *Store) Put(key string, body []byte) {
	_, err := s.Backend.PutObject(Bucket, key, map[string]string{}, bytes.NewReader(body), int64(len(body)), nil)
	require.NoError(s.t, err)
}

// Get is what an object holds; nil: there is none.
func (s *Store) Get(key string) []byte {
	o, err := s.Backend.GetObject(Bucket, key, nil)
	if err != nil {
		var rerr gofakes3.ErrorCode
		require.True(s.t, errors.As(err, &rerr) || gofakes3.HasErrorCode(err, gofakes3.ErrNoSuchKey), "%v", err)
		return nil
	}
	defer o.Contents.Close()
	b, err := io.ReadAll(o.Contents)
	require.NoError(s.t, err)
	return b
}

// Uploads is how many uploads in parts have neither been completed nor aborted.
func (s *Store) Uploads() int {
	rec := httptest.NewRecorder()
	s.inner.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/"+Bucket+"?uploads", nil))
	if rec.Code == http.StatusNotFound { // there never was one
		return 0
	}
	require.Equal(s.t, http.StatusOK, rec.Code)
	return strings.Count(rec.Body.String(), "<Upload>")
}
