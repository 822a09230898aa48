package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// batch is how many objects one request removes.
const batch = 1000

func (c *s3Client) List(ctx context.Context, prefix, delimiter string, f func(Info) error) error {
	in := &s3.ListObjectsV2Input{Bucket: &c.bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
	if delimiter != "" {
		in.Delimiter = &delimiter
	}
	for {
		var page *s3.ListObjectsV2Output
		err := c.do(ctx, "list", prefix, func(ctx context.Context) (err error) {
			page, err = c.api.ListObjectsV2(ctx, in)
			return err
		})
		if err != nil {
			return err
		}
		if err := c.visit(page, prefix, f); err != nil {
			return err
		}
		if !aws.ToBool(page.IsTruncated) {
			return nil
		}
		next := aws.ToString(page.NextContinuationToken)
		if next == "" || next == aws.ToString(in.ContinuationToken) {
			return &Error{Op: "list", URI: c.URI(prefix), Err: errors.New("the store says that there is more, and not how to go on")}
		}
		in.ContinuationToken = &next
	}
}

// visit merges a page's objects and folded prefixes, each of which is in order.
func (c *s3Client) visit(page *s3.ListObjectsV2Output, prefix string, f func(Info) error) error {
	encoded := page.EncodingType == types.EncodingTypeUrl
	objects, folded := page.Contents, page.CommonPrefixes
	for len(objects) > 0 || len(folded) > 0 {
		var info Info
		if len(folded) > 0 && (len(objects) == 0 || decode(aws.ToString(folded[0].Prefix), encoded) < decode(aws.ToString(objects[0].Key), encoded)) {
			info, folded = Info{Key: decode(aws.ToString(folded[0].Prefix), encoded)}, folded[1:]
		} else {
			o := objects[0]
			info = Info{Key: decode(aws.ToString(o.Key), encoded), Size: aws.ToInt64(o.Size), ETag: aws.ToString(o.ETag), ModTime: aws.ToTime(o.LastModified)}
			objects = objects[1:]
		}
		if !strings.HasPrefix(info.Key, prefix) {
			return &Error{Op: "list", URI: c.URI(prefix), Err: fmt.Errorf("the store lists %q, which does not begin so", clip(info.Key))}
		}
		if err := f(info); err != nil {
			return err
		}
	}
	return nil
}

// decode takes a name of a list as the store wrote it.
func decode(name string, encoded bool) string {
	if encoded {
		if plain, err := url.QueryUnescape(name); err == nil {
			return plain
		}
	}
	return name
}

func (c *s3Client) Remove(ctx context.Context, key string) error {
	err := c.do(ctx, "remove", key, func(ctx context.Context) error {
		_, err := c.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &c.bucket, Key: &key})
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (c *s3Client) RemoveAll(ctx context.Context, prefix string, before time.Time) (int, error) {
	removed := 0
	var keys []string
	flush := func() error {
		n, err := c.removeBatch(ctx, keys)
		removed += n
		keys = keys[:0]
		return err
	}
	err := c.List(ctx, prefix, "", func(i Info) error {
		if keys = append(keys, i.Key); len(keys) == batch {
			return flush()
		}
		return nil
	})
	if err == nil && len(keys) > 0 {
		err = flush()
	}
	if err != nil {
		return removed, err
	}
	_, err = c.AbortUploads(ctx, prefix, before)
	return removed, err
}

// removeBatch removes objects, one by one where the store cannot do better, and counts them.
func (c *s3Client) removeBatch(ctx context.Context, keys []string) (int, error) {
	del := &types.Delete{Quiet: aws.Bool(true)}
	for _, k := range keys {
		del.Objects = append(del.Objects, types.ObjectIdentifier{Key: aws.String(k)})
	}
	var r *s3.DeleteObjectsOutput
	err := c.do(ctx, "remove", keys[0], func(ctx context.Context) (err error) {
		r, err = c.api.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &c.bucket, Delete: del})
		return err
	})
	if e := new(Error); errors.As(err, &e) && !errors.Is(e, ErrExpired) &&
		(e.Status == http.StatusNotImplemented || e.Status == http.StatusBadRequest || e.Status == http.StatusMethodNotAllowed) {
		return c.removeEach(ctx, keys)
	}
	if err != nil {
		return 0, err
	}
	removed := len(keys)
	var errs []error
	for _, failed := range r.Errors {
		code := clip(aws.ToString(failed.Code))
		if code == "NoSuchKey" {
			continue
		}
		removed--
		e := &Error{Op: "remove", URI: c.URI(aws.ToString(failed.Key)), Code: code}
		c.answered(e, clip(aws.ToString(failed.Message)), nil)
		if len(errs) < 3 { // the others say the same
			errs = append(errs, e)
		}
	}
	return removed, errors.Join(errs...)
}

func (c *s3Client) removeEach(ctx context.Context, keys []string) (int, error) {
	for i, k := range keys {
		if err := c.Remove(ctx, k); err != nil {
			return i, err
		}
	}
	return len(keys), nil
}

// AbortUploads aborts the uploads in parts below a prefix that began before the given time; zero: all of them. It counts them.
func (c *s3Client) AbortUploads(ctx context.Context, prefix string, before time.Time) (int, error) {
	aborted := 0
	in := &s3.ListMultipartUploadsInput{Bucket: &c.bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
	for {
		var page *s3.ListMultipartUploadsOutput
		err := c.do(ctx, "list uploads", prefix, func(ctx context.Context) (err error) {
			page, err = c.api.ListMultipartUploads(ctx, in)
			return err
		})
		if e := new(Error); errors.As(err, &e) && (e.Status == http.StatusNotImplemented || errors.Is(e, ErrNotFound)) {
			return aborted, nil // a store without uploads in parts
		}
		if err != nil {
			return aborted, err
		}
		encoded := page.EncodingType == types.EncodingTypeUrl
		for _, u := range page.Uploads {
			key := decode(aws.ToString(u.Key), encoded)
			if !strings.HasPrefix(key, prefix) || !before.IsZero() && !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			if err := c.abort(ctx, key, aws.ToString(u.UploadId)); err != nil {
				return aborted, err
			}
			aborted++
		}
		if !aws.ToBool(page.IsTruncated) {
			return aborted, nil
		}
		key, id := decode(aws.ToString(page.NextKeyMarker), encoded), aws.ToString(page.NextUploadIdMarker)
		if key == "" || key == aws.ToString(in.KeyMarker) && id == aws.ToString(in.UploadIdMarker) {
			return aborted, &Error{Op: "list uploads", URI: c.URI(prefix), Err: errors.New("the store says that there is more, and not how to go on")}
		}
		in.KeyMarker, in.UploadIdMarker = &key, &id
	}
}
