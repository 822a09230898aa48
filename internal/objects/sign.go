package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// maxLife is how long a presigned request of S3 can be good.
const maxLife = 7 * 24 * time.Hour

func (c *s3Client) Sign(ctx context.Context, s Signing) (Signed, error) {
	out, err := c.sign(ctx, s)
	if e := new(Error); err != nil && !errors.As(err, &e) {
		err = &Error{Op: "sign", URI: c.URI(s.Key), Err: err}
	}
	return out, err
}

func (c *s3Client) sign(ctx context.Context, s Signing) (Signed, error) {
	query, err := s.query()
	if err != nil {
		return Signed{}, err
	}
	if c.words.Sign != nil {
		if s.Key == "" {
			return Signed{}, errors.New("no key")
		}
		if s.From != nil {
			return Signed{}, SameStore(ctx, c, s.From.Client)
		}
		return c.words.Sign(ctx, s, query, c.clock.now())
	}
	if c.source == nil {
		return Signed{}, errors.New("there are no credentials to sign with")
	}
	k, err := c.source(ctx)
	if err != nil {
		return Signed{}, &sourceError{err}
	}
	if k.AccessKeyID == "" {
		return Signed{}, errors.New("there are no credentials to sign with")
	}
	var copied http.Header
	if s.From != nil {
		if copied, err = c.copies(ctx, s.From); err != nil {
			return Signed{}, err
		}
	}
	now, life := c.clock.now(), s.For
	if !k.Expires.IsZero() {
		life = min(life, time.Until(k.Expires))
	}
	if life = min(life, maxLife).Truncate(time.Second); life < time.Second {
		return Signed{}, fmt.Errorf("%w, or expire in less than a second", ErrExpired)
	}
	query.Set("X-Amz-Expires", strconv.Itoa(int(life/time.Second)))
	u, err := c.locate(ctx, s.Key)
	if err != nil {
		return Signed{}, err
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	r := &http.Request{Method: s.Method, URL: u, Host: u.Host, Header: http.Header{}, ContentLength: s.Size}
	for name, values := range s.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	maps.Copy(r.Header, copied)
	text, header, err := c.signer.PresignHTTP(ctx, k.aws(), r, "UNSIGNED-PAYLOAD", "s3", c.at.region, now)
	if err != nil {
		return Signed{}, errors.New(withoutQuery(err.Error()))
	}
	header.Del("Host")
	header.Del("Content-Length") // what sends it takes it from the body
	return Signed{Method: s.Method, URL: text, Header: header, Until: time.Now().Add(life)}, nil
}

// query is what the request says besides its method and key.
func (s *Signing) query() (url.Values, error) {
	q := url.Values{}
	if s.UploadID != "" {
		q.Set("uploadId", s.UploadID)
	}
	switch {
	case s.Size < 0:
		return nil, fmt.Errorf("a body of %d bytes", s.Size)
	case s.Part < 0 || s.Part > 10_000:
		return nil, fmt.Errorf("part %d: uploads have parts 1 to 10000", s.Part)
	case s.Part > 0 && (s.UploadID == "" || s.Method != http.MethodPut):
		return nil, errors.New("a part is put, and belongs to an upload")
	case s.From != nil && (s.Part == 0 || s.Size != 0 || s.From.Off < 0 || s.From.Size <= 0):
		return nil, errors.New("what is copied is some bytes, and a part of an upload")
	case s.Part > 0:
		q.Set("partNumber", strconv.Itoa(s.Part))
	case s.Method == http.MethodPost && s.Begin && s.UploadID == "":
		q.Set("uploads", "")
	case s.Method == http.MethodPost && s.UploadID != "" && !s.Begin, s.Method == http.MethodDelete && s.UploadID != "":
	case s.UploadID == "" && !s.Begin && (s.Method == http.MethodGet || s.Method == http.MethodHead || s.Method == http.MethodPut):
	default:
		return nil, fmt.Errorf("a %s request of this kind is not signed for others", s.Method)
	}
	return q, nil
}

// locate is the URL of an object.
func (c *s3Client) locate(ctx context.Context, key string) (*url.URL, error) {
	if key == "" {
		return nil, errors.New("no key")
	}
	p := s3.EndpointParameters{
		Bucket: &c.bucket, Region: &c.at.region, ForcePathStyle: &c.at.pathStyle, UseFIPS: aws.Bool(false), UseDualStack: aws.Bool(false), Accelerate: aws.Bool(false),
		UseGlobalEndpoint: aws.Bool(false), DisableMultiRegionAccessPoints: aws.Bool(true),
	}
	if c.at.endpoint != "" {
		p.Endpoint = &c.at.endpoint
	}
	e, err := s3.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, p)
	if err != nil {
		return nil, err
	}
	u := e.URI
	u.RawPath = strings.TrimRight(u.EscapedPath(), "/") + "/" + escape(key)
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, err
	}
	return &u, nil
}

// Escape encodes a key as paths of signed requests have it.
func Escape(key string) string { return escape(key) }

// escape encodes a key once, as signatures want it: everything but letters, digits, - . _ ~ and the slash.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch ch := key[i]; {
		case ch >= 'a' && ch <= 'z', ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', strings.IndexByte("-._~/", ch) >= 0:
			b.WriteByte(ch)
		default:
			fmt.Fprintf(&b, "%%%02X", ch)
		}
	}
	return b.String()
}
