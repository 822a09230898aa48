package gcs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/signet-io/signet/internal/objects"
)

const (
	metaS3      = "X-Amz-Meta-"
	metaGCS     = "X-Goog-Meta-"
	generation  = "X-Goog-Generation"
	ifMatches   = "X-Goog-If-Generation-Match"
	hash        = "X-Goog-Hash"
	crc32c      = "X-Amz-Checksum-Crc32c"
	userProject = "X-Goog-User-Project"
)

// transport says requests of S3 in the words of GCS, and its answers in those of S3.
type transport struct {
	next   http.RoundTripper
	tokens *tokens
	payer  string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, many := r.URL.Query()["delete"]; many && r.Method == http.MethodPost {
		return said(r, http.StatusNotImplemented, "NotImplemented"), closed(r)
	}
	out := r.Clone(r.Context())
	out.Header = http.Header{}
	for name, values := range r.Header {
		if !strings.HasPrefix(name, "X-Amz-") && !strings.HasPrefix(name, "Amz-Sdk-") && name != "Authorization" {
			out.Header[name] = values
		}
	}
	if err := translate(out.Header, r.Header); err != nil {
		return nil, err
	}
	q := out.URL.Query()
	if q.Has("x-id") { // the name of the SDK's operation
		q.Del("x-id")
		out.URL.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	}
	if err := t.authenticate(out); err != nil {
		return nil, err
	}
	if tag := r.Header.Get("If-Match"); tag != "" && r.Method != http.MethodGet && r.Method != http.MethodHead {
		g, answer, err := t.generation(out, tag)
		if err != nil || answer != nil {
			_ = closed(r)
			return answer, err
		}
		out.Header.Del("If-Match")
		out.Header.Set(ifMatches, g)
	}
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	for name, values := range resp.Header {
		if key, ok := strings.CutPrefix(name, metaGCS); ok {
			resp.Header[metaS3+key] = values
		}
	}
	return resp, nil
}

// translate adds to headers what the ones of S3 say.
func translate(to, from http.Header) error {
	for name, values := range from {
		if key, ok := strings.CutPrefix(name, metaS3); ok {
			to[metaGCS+key] = values
		}
	}
	if sum := from.Get(crc32c); sum != "" {
		to.Set(hash, "crc32c="+sum)
	}
	switch none := from.Get("If-None-Match"); none {
	case "":
	case "*":
		to.Del("If-None-Match")
		to.Set(ifMatches, "0")
	default:
		return fmt.Errorf("condition If-None-Match: %q cannot be said to this store", none)
	}
	return nil
}

func (t *transport) authenticate(r *http.Request) error {
	if t.payer != "" {
		r.Header.Set(userProject, t.payer)
	}
	if t.tokens == nil {
		return nil
	}
	token, err := t.tokens.token(r.Context())
	if err != nil {
		_ = closed(r)
		return objects.SourceFailed(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// generation is that of the version with an ETag. An answer instead of it: there is no such version any more, or it could not be looked at.
func (t *transport) generation(r *http.Request, tag string) (string, *http.Response, error) {
	look, err := http.NewRequestWithContext(r.Context(), http.MethodHead, r.URL.String(), http.NoBody)
	if err != nil {
		return "", nil, err
	}
	look.URL.RawQuery = ""
	look.Header.Set("Authorization", r.Header.Get("Authorization"))
	if t.payer != "" {
		look.Header.Set(userProject, t.payer)
	}
	resp, err := t.next.RoundTrip(look)
	if err != nil {
		return "", nil, err
	}
	resp.Body.Close()
	g := resp.Header.Get(generation)
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusOK && resp.Header.Get("ETag") != tag:
		return "", said(r, http.StatusPreconditionFailed, "PreconditionFailed"), nil
	case resp.StatusCode == http.StatusOK && g == "":
		return "", said(r, http.StatusNotImplemented, "NotImplemented"), nil
	case resp.StatusCode != http.StatusOK:
		resp.Body = http.NoBody
		return "", resp, nil
	}
	return g, nil, nil
}

// said is an answer as S3 would give it.
func said(r *http.Request, status int, code string) *http.Response {
	body := []byte("<Error><Code>" + code + "</Code></Error>")
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// closed closes a request's body, as a RoundTripper has to.
func closed(r *http.Request) error {
	if r.Body != nil {
		return r.Body.Close()
	}
	return nil
}
