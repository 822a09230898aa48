package objects

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is a body's CRC-32C as x-amz-checksum-crc32c has it: big-endian, in base64.
func Checksum(b Body) (string, error) {
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, io.NewSectionReader(b, 0, b.Size()))
	if err == nil && n != b.Size() {
		err = fmt.Errorf("the body has %d bytes, not %d", n, b.Size())
	}
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, h.Sum32())), err
}

func (c *s3Client) Put(ctx context.Context, key string, b Body, o PutOptions) (Info, error) {
	if o.IfAbsent && o.IfMatch != "" {
		return Info{}, &Error{Op: "put", URI: c.URI(key), Err: errors.New("two conditions that exclude each other")}
	}
	sum, err := Checksum(b)
	if err != nil {
		return Info{}, &Error{Op: "put", URI: c.URI(key), Err: err}
	}
	in := &s3.PutObjectInput{Bucket: &c.bucket, Key: &key, ContentLength: aws.Int64(b.Size()), ChecksumCRC32C: &sum}
	w := &write{c: c, op: "put", key: key, o: o, nonce: rand.Text()}
	in.Metadata = map[string]string{nonceKey: w.nonce} // unconditional ones too, so that no object keeps another write's
	if o.IfAbsent {
		in.IfNoneMatch = aws.String("*")
	}
	if o.IfMatch != "" {
		in.IfMatch = &o.IfMatch
	}
	send := func(ctx context.Context) (Info, error) {
		in.Body = io.NewSectionReader(b, 0, b.Size())
		r, err := c.api.PutObject(ctx, in)
		if err != nil {
			return Info{}, err
		}
		return Info{Key: key, Size: b.Size(), ETag: aws.ToString(r.ETag), ModTime: c.clock.now().UTC().Truncate(time.Second), Nonce: w.nonce}, nil
	}
	if w.conditional() {
		return w.run(ctx, send)
	}
	var out Info
	err = c.do(ctx, "put", key, func(ctx context.Context) (err error) {
		out, err = send(ctx)
		return err
	})
	return out, err
}

// write is a conditional one. It never guesses: what a lost answer leaves open is settled by the nonce that it has put into the object's metadata.
type write struct {
	c     *s3Client
	op    string
	key   string
	o     PutOptions
	nonce string
	inner error // the failure by which it came into doubt
	doubt bool  // a request whose answer was lost may have taken effect
}

func (w *write) conditional() bool { return w.o.IfAbsent || w.o.IfMatch != "" }

// run sends until the outcome is known, or cannot be found out.
func (w *write) run(ctx context.Context, send func(context.Context) (Info, error)) (Info, error) {
	r := repeat{c: w.c, ctx: ctx}
	for {
		if err := ctx.Err(); err != nil {
			return Info{}, w.open(&Error{Err: context.Cause(ctx)})
		}
		info, err := send(r.ctx)
		if err == nil {
			return info, nil
		}
		e, v := w.c.explain(ctx, w.op, w.key, err)
		v = r.remedy(e, v)
		if v == doubt {
			w.doubt, w.inner = true, e
		}
		if ctx.Err() != nil {
			return Info{}, w.open(e)
		}
		failed := e.Status == http.StatusPreconditionFailed
		if failed || v == doubt || v == refused && w.doubt {
			info, settled, err := w.settle(ctx, failed)
			if settled {
				return info, err
			}
		}
		if e.Status == http.StatusNotImplemented {
			e.Hint = "the store knows no conditional writes (If-None-Match), without which two writers may both win: it cannot hold tables"
		}
		if failed && w.o.IfAbsent { // it was there, whatever has become of it since
			e.Err = ErrExists
		}
		if v == refused && !failed || r.next(err) != nil {
			return Info{}, w.open(e)
		}
	}
}

// settle looks at the object. settled is false where the request may be sent again.
func (w *write) settle(ctx context.Context, failed bool) (info Info, settled bool, err error) {
	info, err = w.c.Head(ctx, w.key)
	there := err == nil
	switch {
	case there && info.Nonce == w.nonce:
		return info, true, nil
	case there && w.o.IfAbsent:
		return Info{}, true, w.error(ErrExists)
	case there && info.ETag == w.o.IfMatch: // neither ours nor another one has taken effect
		return Info{}, false, nil
	case there && !w.doubt:
		return Info{}, true, w.error(ErrChanged)
	case there: // another one has, after ours or instead
		return Info{}, true, w.open(w.error(ErrChanged))
	case !errors.Is(err, ErrNotFound):
		if !failed || w.doubt {
			return Info{}, false, nil
		}
		if w.o.IfAbsent { // it may not be looked at, but the store has said what counts
			return Info{}, true, w.error(ErrExists)
		}
		return Info{}, true, w.error(ErrChanged)
	case w.o.IfAbsent: // the object that was in the way is gone, or ours is not there yet
		return Info{}, false, nil
	}
	return Info{}, true, w.open(w.error(ErrNotFound))
}

func (w *write) error(err error) *Error { return &Error{Op: w.op, URI: w.c.URI(w.key), Err: err} }

// open is the error of a write whose outcome nobody knows, or, where no request is in doubt, just the error.
func (w *write) open(e *Error) *Error {
	if e.Op == "" {
		e.Op, e.URI = w.op, w.c.URI(w.key)
	}
	if !w.doubt || errors.Is(e, ErrUnknown) {
		return e
	}
	out := *e
	cause := w.inner
	if errors.Is(cause, e) || cause == nil {
		cause = e.Err
	}
	out.Err = fmt.Errorf("%w: %w", ErrUnknown, cause)
	if e.Err != nil && !errors.Is(cause, e.Err) && !isConclusive(e.Err) {
		out.Err = fmt.Errorf("%w; then %w", out.Err, e.Err)
	}
	return &out
}

// isConclusive: an error that callers would take for the outcome.
func isConclusive(err error) bool {
	return errors.Is(err, ErrExists) || errors.Is(err, ErrChanged) || errors.Is(err, ErrNotFound)
}
