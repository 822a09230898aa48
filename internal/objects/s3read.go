package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// resumes is how often a body is resumed that breaks off before resumeAfter more bytes have come.
const (
	resumes     = 5
	resumeAfter = 1 << 20
)

func (c *s3Client) Head(ctx context.Context, key string) (Info, error) {
	var out Info
	err := c.do(ctx, "head", key, func(ctx context.Context) error {
		r, err := c.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: &key})
		if err == nil {
			out = Info{Key: key, Size: aws.ToInt64(r.ContentLength), ETag: aws.ToString(r.ETag), ModTime: aws.ToTime(r.LastModified), Nonce: r.Metadata[nonceKey]}
		}
		return err
	})
	if e := new(Error); errors.As(err, &e) {
		err = c.spoken(ctx, key, e)
	}
	return out, err
}

// spoken finds out why a look at an object was refused, which its answer, that has no body, does not say: by asking for the first byte.
func (c *s3Client) spoken(ctx context.Context, key string, e *Error) error {
	if e.Status != http.StatusBadRequest && e.Status != http.StatusForbidden && e.Status != http.StatusUnauthorized || errors.Is(e, ErrExpired) {
		return e
	}
	r, err := c.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &c.bucket, Key: &key, Range: aws.String("bytes=0-0")})
	if err == nil {
		_ = r.Body.Close() // it may be read, but not be looked at
		return e
	}
	why, v := c.explain(ctx, e.Op, key, err)
	if v != refused || why.Code == "" || errors.Is(why, ErrNotFound) {
		return e
	}
	return why
}

func (c *s3Client) Get(ctx context.Context, key string, off, n int64, ifMatch string) (io.ReadCloser, Info, error) {
	if off < 0 {
		return nil, Info{}, &Error{Op: "get", URI: c.URI(key), Err: fmt.Errorf("offset %d", off)}
	}
	b := &body{ctx: ctx, c: c, key: key, etag: ifMatch, off: off, left: n}
	info, err := b.open()
	if e := new(Error); errors.As(err, &e) && e.Status == http.StatusRequestedRangeNotSatisfiable { // nothing there
		if info, err = c.Head(ctx, key); err == nil && info.Size <= off {
			return io.NopCloser(bytes.NewReader(nil)), info, c.sameVersion(key, ifMatch, info.ETag)
		}
		if err == nil {
			err = e
		}
	}
	if err != nil {
		return nil, Info{}, err
	}
	return b, info, nil
}

// sameVersion: not every store looks at If-Match when it is read from.
func (c *s3Client) sameVersion(key, want, got string) error {
	if want == "" || strings.Trim(want, `"`) == strings.Trim(got, `"`) {
		return nil
	}
	return &Error{Op: "get", URI: c.URI(key), Err: fmt.Errorf("%w: it is %s, and was %s", ErrChanged, got, want)}
}

// body is what comes of an object. When the connection breaks, the rest is asked for.
type body struct {
	ctx       context.Context
	c         *s3Client
	key, etag string
	off, left int64 // left < 0: to the end

	cur    io.ReadCloser
	quiet  *time.Timer // ends cur when nothing comes
	cancel context.CancelFunc
	since  int64 // bytes since it broke
	breaks int
}

// open asks for what is left, and learns how much that is.
func (b *body) open() (Info, error) {
	in := &s3.GetObjectInput{Bucket: &b.c.bucket, Key: &b.key}
	ranged := b.off > 0 || b.left >= 0
	switch {
	case b.left == 0:
		info, err := b.c.Head(b.ctx, b.key)
		if err == nil {
			err = b.c.sameVersion(b.key, b.etag, info.ETag)
		}
		return info, err
	case b.left > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", b.off, b.off+b.left-1))
	case ranged:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", b.off))
	}
	if b.etag != "" {
		in.IfMatch = &b.etag
	}
	var info Info
	err := b.c.do(b.ctx, "get", b.key, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		r, err := b.c.api.GetObject(ctx, in)
		if err != nil {
			cancel()
			return err
		}
		info = Info{Key: b.key, Size: aws.ToInt64(r.ContentLength), ETag: aws.ToString(r.ETag), ModTime: aws.ToTime(r.LastModified), Nonce: r.Metadata[nonceKey]}
		left := info.Size
		err = b.c.sameVersion(b.key, b.etag, info.ETag)
		switch {
		case err != nil:
		case r.ContentLength == nil:
			err = b.fault("the store does not say how long its answer is")
		case ranged && r.ContentRange == nil:
			err = b.fault("the store does not know ranges")
		case ranged:
			var first, last int64
			first, last, info.Size, err = contentRange(*r.ContentRange)
			if err != nil || first != b.off || last < first || b.left > 0 && last >= b.off+b.left || last-first+1 != left {
				err = b.fault(fmt.Sprintf("asked for %s, the store answers %q with %d bytes", *in.Range, clip(*r.ContentRange), left))
			}
		}
		if err != nil {
			cancel()
			r.Body.Close()
			return err
		}
		b.cur, b.cancel, b.left, b.etag = r.Body, cancel, left, info.ETag
		b.quiet = time.AfterFunc(idle, cancel)
		return nil
	})
	if e := new(Error); errors.As(err, &e) && e.Status == http.StatusRequestedRangeNotSatisfiable && b.etag != "" { // because it is another one, and shorter?
		if now, err := b.c.Head(b.ctx, b.key); err == nil {
			if err := b.c.sameVersion(b.key, b.etag, now.ETag); err != nil {
				return now, err
			}
		}
	}
	return info, err
}

func (b *body) fault(text string) error {
	return &Error{Op: "get", URI: b.c.URI(b.key), Err: errors.New(text)}
}

// contentRange parses "bytes 0-9/100".
func contentRange(text string) (first, last, size int64, err error) {
	span, ok := strings.CutPrefix(text, "bytes ")
	span, total, ok2 := strings.Cut(span, "/")
	from, to, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, errors.New("no range")
	}
	first, err = strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	size, err3 := strconv.ParseInt(total, 10, 64)
	return first, last, size, errors.Join(err, err2, err3)
}

func (b *body) Read(p []byte) (int, error) {
	for {
		if b.left == 0 {
			return 0, io.EOF
		}
		if len(p) == 0 {
			return 0, nil
		}
		if err := b.ctx.Err(); err != nil {
			return 0, &Error{Op: "get", URI: b.c.URI(b.key), Err: context.Cause(b.ctx)}
		}
		b.quiet.Reset(idle)
		n, err := b.cur.Read(p[:min(int64(len(p)), b.left)])
		b.quiet.Stop()
		b.off, b.left, b.since = b.off+int64(n), b.left-int64(n), b.since+int64(n)
		if n > 0 || err == nil {
			return n, nil
		}
		if b.since >= resumeAfter {
			b.breaks = 0
		}
		if b.breaks++; b.breaks > resumes {
			return 0, b.fault(fmt.Sprintf("the answer broke off %d times, at byte %d: %v", b.breaks, b.off, withoutQuery(err.Error())))
		}
		b.since = 0
		b.release()
		if b.breaks > 1 {
			if err := b.c.pause(b.ctx, b.breaks, 0); err != nil {
				return 0, &Error{Op: "get", URI: b.c.URI(b.key), Err: err}
			}
		}
		if _, err := b.open(); err != nil {
			return 0, err
		}
	}
}

func (b *body) release() {
	if b.cur != nil {
		b.quiet.Stop()
		b.cancel()
		b.cur.Close()
		b.cur = nil
	}
}

// Close ends the request. What was not read is left.
func (b *body) Close() error {
	b.release()
	b.left = 0
	return nil
}
