package objects

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// s3Upload implements Upload.
type s3Upload struct {
	c       *s3Client
	key, id string
	nonce   string

	mu    sync.Mutex
	parts map[int]part
}

type part struct {
	types.CompletedPart
	size int64
}

func (c *s3Client) Begin(ctx context.Context, key string) (Upload, error) {
	u := &s3Upload{c: c, key: key, nonce: rand.Text(), parts: map[int]part{}}
	err := c.do(ctx, "begin upload", key, func(ctx context.Context) error {
		r, err := c.api.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: &c.bucket, Key: &key, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c, Metadata: map[string]string{nonceKey: u.nonce},
		})
		if err == nil {
			u.id = aws.ToString(r.UploadId)
		}
		return err
	})
	if err == nil && u.id == "" {
		err = &Error{Op: "begin upload", URI: c.URI(key), Err: errors.New("the store gave no upload id")}
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}

func (u *s3Upload) ID() string { return u.id }

func (u *s3Upload) Part(ctx context.Context, n int, b Body) error {
	sum, err := Checksum(b)
	if err != nil {
		return &Error{Op: "upload part", URI: u.c.URI(u.key), Err: err}
	}
	return u.c.do(ctx, "upload part", u.key, func(ctx context.Context) error {
		r, err := u.c.api.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &u.c.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(n)), ContentLength: aws.Int64(b.Size()), ChecksumCRC32C: &sum,
			Body: io.NewSectionReader(b, 0, b.Size()),
		})
		if err != nil {
			return err
		}
		done := part{types.CompletedPart{PartNumber: aws.Int32(int32(n)), ETag: r.ETag}, b.Size()}
		if r.ChecksumCRC32C != nil { // of a store that keeps them, and wants to see them again
			done.ChecksumCRC32C = &sum
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.parts[n] = done
		return nil
	})
}

func (u *s3Upload) Complete(ctx context.Context, o PutOptions) (Info, error) {
	u.mu.Lock()
	var size int64
	parts := make([]types.CompletedPart, 0, len(u.parts))
	for _, p := range u.parts {
		parts, size = append(parts, p.CompletedPart), size+p.size
	}
	u.mu.Unlock()
	slices.SortFunc(parts, func(a, b types.CompletedPart) int { return cmp.Compare(*a.PartNumber, *b.PartNumber) })
	in := &s3.CompleteMultipartUploadInput{Bucket: &u.c.bucket, Key: &u.key, UploadId: &u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}}
	if o.IfAbsent {
		in.IfNoneMatch = aws.String("*")
	}
	if o.IfMatch != "" {
		in.IfMatch = &o.IfMatch
	}
	w := &write{c: u.c, op: "complete upload", key: u.key, o: o, nonce: u.nonce}
	r := repeat{c: u.c, ctx: ctx}
	for {
		if ctx.Err() != nil {
			return Info{}, w.open(&Error{Err: context.Cause(ctx)})
		}
		out, err := u.c.api.CompleteMultipartUpload(r.ctx, in)
		if err == nil {
			return Info{Key: u.key, Size: size, ETag: aws.ToString(out.ETag), ModTime: u.c.clock.now().UTC().Truncate(time.Second), Nonce: u.nonce}, nil
		}
		e, v := u.c.explain(ctx, w.op, u.key, err)
		if v = r.remedy(e, v); v == doubt {
			w.doubt, w.inner = true, e
		}
		if ctx.Err() != nil {
			return Info{}, w.open(e)
		}
		failed := e.Status == http.StatusPreconditionFailed
		gone := e.Code == codeNoSuchUpload // completed by a request whose answer was lost, or aborted by somebody
		if failed || gone || v == doubt || w.doubt {
			info, err := u.c.Head(ctx, u.key)
			switch {
			case err == nil && info.Nonce == u.nonce:
				return info, nil
			case err == nil && failed && o.IfAbsent:
				return Info{}, w.error(ErrExists)
			case failed && !w.doubt && o.IfAbsent:
				return Info{}, w.error(ErrExists)
			case failed && !w.doubt:
				return Info{}, w.error(ErrChanged)
			}
		}
		// A conflict with another conditional request ends the upload on some stores: it is sent again, and NoSuchUpload then says so.
		if v == refused || r.next(err) != nil {
			return Info{}, w.open(e)
		}
	}
}

func (u *s3Upload) Abort(ctx context.Context) error { return u.c.abort(ctx, u.key, u.id) }

// abort ends an upload; one that is gone is none.
func (c *s3Client) abort(ctx context.Context, key, id string) error {
	err := c.do(ctx, "abort upload", key, func(ctx context.Context) error {
		_, err := c.api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &c.bucket, Key: &key, UploadId: &id})
		return err
	})
	if e := new(Error); errors.As(err, &e) && (e.Code == codeNoSuchUpload || errors.Is(e, ErrNotFound)) {
		return nil
	}
	return err
}
