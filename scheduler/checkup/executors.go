package checkup

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// executors tries what executors get: requests that the scheduler signs for them, and sessions of a role. It sends the very requests that they would.
func (r *run) executors(p *place, readable bool) {
	s := &signing{run: r, place: p, client: requests()}
	s.issuer = credentials.NewPresigned(p.signer.Sign, 0)
	if readable {
		s.reads()
	}
	s.writes()
	r.role(p)
}

// requests sends them as executors do.
func requests() *http.Client {
	return &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// signing tries signed requests.
type signing struct {
	*run
	*place

	client *http.Client
	issuer credentials.Issuer
}

// answer of a store to a request that was signed.
type answer struct {
	status int
	code   string // of S3, and of those that say it in the same way
	body   []byte
	upload string // that has begun without a request
}

// done says that the store did it.
func (a *answer) done() bool { return a.status >= 200 && a.status < 300 }

func (a *answer) error(what string) error {
	text := fmt.Sprintf("%s: the store answered %d", what, a.status)
	if a.code != "" {
		text += " (" + a.code + ")"
	}
	return errors.New(text)
}

// refused says that the store knows who may not.
func (a *answer) refused() bool {
	return a.status == http.StatusForbidden || a.status == http.StatusUnauthorized || a.status == http.StatusBadRequest
}

func (s *signing) send(q objects.Signed, body []byte) (*answer, error) {
	req, err := http.NewRequestWithContext(s.ctx, q.Method, q.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("what was signed is no request")
	}
	for name, values := range q.Header {
		req.Header[name] = values
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if u := new(url.Error); errors.As(err, &u) {
			err = u.Err // its text has the signature
		}
		return nil, fmt.Errorf("%s %s: %w", q.Method, req.URL.Host, err)
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, 64<<10)); err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.Method, req.URL.Host, err)
	}
	if !a.done() {
		var e struct {
			Code string `xml:"Code"`
		}
		_ = xml.Unmarshal(a.body, &e) // a store that says nothing
		a.code = e.Code
	}
	return a, nil
}

// anonymous is the request without its signature.
func anonymous(q objects.Signed) objects.Signed {
	q.URL, _, _ = strings.Cut(q.URL, "?")
	return q
}

const nobodys = "the bucket's policy or the store lets requests in that nobody has signed: whoever reaches it can do what executors can"

func (s *signing) reads() {
	var signed objects.Signed
	if !s.step("read by a signed request", s.mayRead(), func() (string, error) {
		scope := credentials.Scope{Reads: map[string]struct{}{s.file: {}}}
		all, err := s.issuer.Read(s.ctx, scope, []string{s.file})
		if err != nil {
			return "", err
		}
		signed = all[0]
		a, err := s.send(signed, nil)
		switch {
		case err != nil:
			return "", err
		case a.status != http.StatusOK:
			return "", a.error("a request that was signed to read " + s.file)
		case !bytes.Equal(a.body, s.body):
			return "", fmt.Errorf("%s was read as something else than what was written", s.file)
		}
		return "", nil
	}) {
		return
	}
	s.step("refuse to read without a signature", nobodys, func() (string, error) {
		a, err := s.send(anonymous(signed), nil)
		switch {
		case err != nil:
			return "", err
		case a.status == http.StatusOK:
			return "", fmt.Errorf("%s was read by a request without a signature", s.file)
		case !a.refused():
			return "", a.error("a request without a signature")
		}
		return "", nil
	})
}

// put signs requests about files, which are removed at the end.
func (s *signing) put(p ...credentials.Put) ([]objects.Signed, error) {
	return s.issuer.Put(s.ctx, credentials.Scope{Prefix: s.prefix, Nonce: "signet-check"}, p)
}

func (s *signing) writes() {
	sum, err := checksum(s.body)
	if err != nil { // never: it is in memory
		return
	}
	whole := func(name string) credentials.Put {
		return credentials.Put{Name: name, Size: int64(len(s.body)), CRC32C: sum}
	}
	s.name("b")
	s.name("c")
	s.name("d")
	var signed []objects.Signed
	if !s.step("write by a signed request", s.mayWrite(), func() (_ string, err error) {
		if signed, err = s.put(whole("b"), whole("c")); err != nil {
			return "", err
		}
		a, err := s.send(signed[0], s.body)
		if err == nil && !a.done() {
			err = a.error("a request that was signed to write " + storage.Join(s.prefix, "b"))
		}
		return "", err
	}) {
		return
	}
	s.step("a signed request replaces nothing", "the store ignores If-None-Match, or does not know it: who takes a signed request could replace a data file until it runs out", func() (string, error) {
		a, err := s.send(signed[0], s.body)
		if err == nil && a.status != http.StatusPreconditionFailed && a.status != http.StatusConflict && a.code != "UnauthorizedBlobOverwrite" { // Azure's, of who may only create
			err = a.error("the same request, sent again")
		}
		return "", err
	})
	s.step("refuse to write without a signature", nobodys, func() (string, error) { return "", s.refuse(anonymous(signed[1]), "a request without a signature") })
	s.step("a signature is for one object", "the store does not check signatures: who takes one can write anything; no table should be in it", func() (string, error) {
		other := signed[1]
		path, query, _ := strings.Cut(other.URL, "?")
		other.URL = strings.TrimSuffix(path, "c") + "d?" + query
		return "", s.refuse(other, "a request whose signature is for another object")
	})
	s.step("upload in parts by signed requests", s.may("write below the warehouse", "s3:PutObject and s3:AbortMultipartUpload"), func() (string, error) { return "", s.parts(sum) })
}

func (s *signing) refuse(q objects.Signed, what string) error {
	a, err := s.send(q, s.body)
	if err == nil && !a.refused() {
		err = a.error(what)
	}
	return err
}

// parts begins an upload, sends a part and aborts it.
func (s *signing) parts(sum []byte) error {
	step := func(what string, body []byte, p credentials.Put) (*answer, error) {
		signed, err := s.put(p)
		if err != nil {
			return nil, err
		}
		if signed[0].URL == "" { // the store's uploads begin and end by themselves
			return &answer{upload: signed[0].UploadID}, nil
		}
		a, err := s.send(signed[0], body)
		if err == nil && !a.done() {
			err = a.error(what)
		}
		return a, err
	}
	a, err := step("begin an upload in parts", nil, credentials.Put{Name: "d", Begin: true})
	if err != nil {
		return err
	}
	begun := struct {
		UploadID string `xml:"UploadId"`
	}{a.upload}
	if begun.UploadID == "" {
		err = xml.Unmarshal(a.body, &begun)
	}
	if err != nil || begun.UploadID == "" {
		return errors.New("begin an upload in parts: the store gave no upload id")
	}
	_, err = step("write a part", s.body, credentials.Put{Name: "d", Size: int64(len(s.body)), CRC32C: sum, UploadID: begun.UploadID, Part: 1})
	_, aborted := step("abort an upload in parts", nil, credentials.Put{Name: "d", UploadID: begun.UploadID, Abort: true})
	return errors.Join(err, aborted)
}

func checksum(body []byte) ([]byte, error) {
	text, err := objects.Checksum(objects.Bytes(body))
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// depth is how many segments the prefix of an attempt has at least below a warehouse; policies for shorter ones are not made.
const depth = "role/0/0/attempt"

// role tries the sessions that executors write with.
func (r *run) role(p *place) {
	if r.target.Session == nil {
		r.skip("sessions of a role", "there is no "+r.setting("credentials.role_arn")+": executors get signed requests")
		return
	}
	prefix := storage.Join(p.prefix, depth)
	var props map[string]string
	if !r.step("assume the role", "check "+r.setting("credentials")+": role_arn, external_id, sts_endpoint", func() (_ string, err error) {
		props, err = r.target.Session(r.ctx, prefix)
		return "", err
	}) {
		return
	}
	if props == nil {
		r.skip("sessions of a role", "no policy can bound a session to "+prefix+": executors get signed requests for tables there")
		return
	}
	c, err := objects.NewS3(props, p.bucket, objects.Static(props))
	if err != nil {
		r.step("sessions of a role", "check "+r.setting("properties"), func() (string, error) { return "", err })
		return
	}
	key := func(name string) string {
		at, err := uri.Parse(name)
		if err != nil {
			return ""
		}
		return at.Path()
	}
	if !r.step("a session writes its prefix", "the role of "+r.setting("credentials.role_arn")+" has to be allowed s3:PutObject, s3:GetObject and s3:AbortMultipartUpload below the warehouse", func() (string, error) {
		return "", inside(r.ctx, c, key(p.name(depth+"/a")), p.body)
	}) {
		return
	}
	reached, err := outside(r.ctx, c, key(p.file), key(p.name("role/0/0/other/a")), key(p.prefix)+"/", p.body)
	switch {
	case err != nil:
		r.step("a session reaches nothing else", "", func() (string, error) { return "", err })
	case len(reached) > 0:
		r.warn("a session reaches nothing else", "it can also "+strings.Join(reached, ", ")+" outside of its prefix: this store's STS does not heed session policies, or the bucket's policy allows it",
			"an executor that is taken over reaches other tables: set "+r.setting("credentials.mode")+": presigned, or mend the store's policies")
	default:
		r.step("a session reaches nothing else", "", func() (string, error) { return "writing, reading, listing and removing outside are refused", nil })
	}
}

func inside(ctx context.Context, c objects.Client, key string, body []byte) error {
	if _, err := c.Put(ctx, key, objects.Bytes(body), objects.PutOptions{}); err != nil {
		return err
	}
	if _, err := c.Head(ctx, key); err != nil {
		return err
	}
	u, err := c.Begin(ctx, key)
	if err != nil {
		return err
	}
	return errors.Join(u.Part(ctx, 1, objects.Bytes(body)), u.Abort(ctx))
}

// outside lists what a session can do where it must not. An error is another than a refusal.
func outside(ctx context.Context, c objects.Client, file, other, dir string, body []byte) (reached []string, err error) {
	try := func(what string, f func() (bool, error)) {
		did, failed := f()
		switch {
		case failed == nil && did:
			reached = append(reached, what)
		case failed != nil && !errors.Is(failed, objects.ErrDenied):
			err = errors.Join(err, fmt.Errorf("%s outside of its prefix was not refused, but failed: %w", what, failed))
		}
	}
	try("write", func() (bool, error) {
		_, err := c.Put(ctx, other, objects.Bytes(body), objects.PutOptions{})
		return true, err
	})
	try("read", func() (bool, error) {
		r, _, err := c.Get(ctx, file, 0, -1, "")
		if err == nil {
			err = r.Close()
		}
		return true, err
	})
	try("list", func() (bool, error) {
		n := 0
		err := c.List(ctx, dir, "", func(objects.Info) error { n++; return nil })
		return n > 0, err // some stores list nothing instead of refusing
	})
	try("remove", func() (bool, error) { return true, c.Remove(ctx, other) })
	return reached, err
}
