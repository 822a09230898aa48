package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

// tries is how often a request is sent before the caller hears of its failure.
const tries = 6

// idle is how long a store may say nothing, once a request has been sent and between two pieces of a body.
const idle = time.Minute

// s3Client implements Client for S3 and what speaks its protocol.
type s3Client struct {
	bucket string
	at     place
	source Source
	words  Dialect
	api    API
	clock  *clock
	pause  func(ctx context.Context, try int, least time.Duration) error
	signer *v4.Signer
}

var _ Client = (*s3Client)(nil)

// NewS3 returns a client for one bucket. It sends nothing.
func NewS3(p Props, bucket string, source Source) (Client, error) {
	return newS3(p, bucket, source, Dialect{})
}

func newS3(p Props, bucket string, source Source, words Dialect) (*s3Client, error) {
	at, err := p.place()
	if err != nil {
		return nil, err
	}
	if bucket == "" {
		return nil, errors.New("object store: no bucket is named")
	}
	words = words.or()
	c := &s3Client{bucket: bucket, at: at, source: source, words: words, clock: &clock{}, pause: words.Pause, signer: v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping, o.DisableHeaderHoisting = true, true
	})}
	if words.API != nil {
		c.api, err = words.API(words.Transport(c.clock))
		return c, err
	}
	o := s3.Options{
		Region: at.region, UsePathStyle: at.pathStyle, HTTPClient: &http.Client{Transport: words.Transport(c.clock), CheckRedirect: noRedirect},
		Retryer: aws.NopRetryer{}, Logger: logging.Nop{},
		// What has to be checked is given with the request. Trailers, which the SDK would add otherwise, are not known to every store.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		APIOptions:                 []func(*middleware.Stack) error{unsignedPayload},
	}
	if at.endpoint != "" {
		o.BaseEndpoint = aws.String(at.endpoint)
	}
	if source == nil {
		o.Credentials = aws.AnonymousCredentials{}
	} else {
		o.Credentials = provider{source}
	}
	c.api = s3.New(o)
	return c, nil
}

// unsignedPayload leaves out the SHA-256 of bodies: their CRC-32C is signed with the headers, and the store checks it.
func unsignedPayload(stack *middleware.Stack) error {
	_, _ = stack.Finalize.Remove((*v4.ComputePayloadSHA256)(nil).ID())
	if _, ok := stack.Finalize.Get("ResolveEndpointV2"); !ok {
		return nil
	}
	return stack.Finalize.Insert(&v4.UnsignedPayload{}, "ResolveEndpointV2", middleware.After)
}

// noRedirect: signatures are for one host, and a redirect of a store says that the region is another.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c *s3Client) URI(key string) string { return c.words.Scheme + "://" + c.bucket + "/" + key }

// provider is a Source for the SDK.
type provider struct{ source Source }

func (p provider) Retrieve(ctx context.Context) (aws.Credentials, error) {
	k, err := p.source(ctx)
	if err != nil {
		return aws.Credentials{}, &sourceError{err}
	}
	if k.AccessKeyID == "" {
		return aws.Credentials{}, &sourceError{errors.New("there are none")}
	}
	return k.aws(), nil
}

func (c Credentials) aws() aws.Credentials {
	return aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}
}

// do sends a request that may be sent any number of times, until it succeeds or is refused.
func (c *s3Client) do(ctx context.Context, op, key string, send func(context.Context) error) error {
	r := repeat{c: c, ctx: ctx}
	for {
		if err := ctx.Err(); err != nil {
			return &Error{Op: op, URI: c.URI(key), Err: context.Cause(ctx)}
		}
		err := send(r.ctx)
		if err == nil {
			return nil
		}
		e, v := c.explain(ctx, op, key, err)
		if v = r.remedy(e, v); v == refused || r.next(err) != nil {
			return e
		}
	}
}

// repeat counts the tries of one request.
type repeat struct {
	c                  *s3Client
	ctx                context.Context
	n                  int
	renewed, corrected bool
}

// remedy says that a request may be sent once more where something was learnt from its refusal: that credentials are over, or how late it is.
func (r *repeat) remedy(e *Error, v verdict) verdict {
	mute := e.Op == "head" // an answer to it has no body that says why
	switch {
	case (errors.Is(e, ErrExpired) || mute && e.Status == http.StatusBadRequest) && !r.renewed && r.c.source != nil:
		r.renewed = true
		r.ctx = context.WithValue(r.ctx, renewKey{}, true)
		return again
	case (errors.Is(e, ErrSkew) || mute && e.Status == http.StatusForbidden && r.c.clock.wrong()) && !r.corrected:
		r.corrected = true
		return again
	}
	return v
}

// next waits before the next try, or says that there is none.
func (r *repeat) next(err error) error {
	if r.n++; r.n >= tries {
		return fmt.Errorf("tried %d times", r.n)
	}
	var least time.Duration
	if re := new(awshttp.ResponseError); errors.As(err, &re) && re.Response != nil && re.Response.Response != nil {
		if s, err := strconv.Atoi(re.Response.Header.Get("Retry-After")); err == nil && s > 0 {
			least = min(time.Duration(s)*time.Second, 30*time.Second)
		}
	}
	return r.c.pause(r.ctx, r.n, least)
}

// pause waits a random time below 100 ms doubled with each try, and at least what the store asks for.
func pause(ctx context.Context, try int, least time.Duration) error {
	t := time.NewTimer(least + rand.N(100*time.Millisecond<<try))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// transport is shared by all clients, so that connections are.
var transport = &http.Transport{
	Proxy:       http.ProxyFromEnvironment,
	DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
	// A store closes connections that are idle for longer, and a request on one of them would be in doubt.
	IdleConnTimeout: 20 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: idle, ExpectContinueTimeout: time.Second,
	MaxIdleConns: 256, MaxIdleConnsPerHost: 64, DisableCompression: true,
}

// clock learns from the store's answers how far its clock is ahead of this machine's.
type clock struct{ ahead atomic.Int64 }

func (k *clock) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil && resp.Header.Get("Age") == "" && time.Since(sent) < idle {
		ahead := time.Until(at)
		if ahead.Abs() < 5*time.Second { // a Date has whole seconds, and the answer took a while
			ahead = 0
		}
		k.ahead.Store(int64(ahead))
	}
	return resp, nil
}

// wrong reports whether the store may refuse signatures of this machine for their time.
func (k *clock) wrong() bool { return time.Duration(k.ahead.Load()).Abs() > 5*time.Minute }

// now is the store's time.
func (k *clock) now() time.Time { return time.Now().Add(time.Duration(k.ahead.Load())) }

// Ahead is how far the store's clock is ahead of this machine's, by its last answer; 0 where that is less than 5 s.
func (c *s3Client) Ahead() time.Duration { return time.Duration(c.clock.ahead.Load()) }
