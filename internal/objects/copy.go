package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// ErrElsewhere: the store of one object cannot copy from that of the other.
var ErrElsewhere = errors.New("not in the same store")

// CopySource is a range of an object, which a store copies by itself into a part of an upload.
type CopySource struct {
	Client    Client // of its bucket
	Key       string
	ETag      string // of the version that is copied, and no other is; empty: whatever there is
	Off, Size int64  // bytes
}

// SameStore says why a store cannot copy objects of one client into uploads of another (ErrElsewhere): a copy is one request to one store, which by one signature reads
// and writes. Other errors: the credentials could not be had.
func SameStore(ctx context.Context, to, from Client) error {
	a, ok := to.(*s3Client)
	b, ok2 := from.(*s3Client)
	switch {
	case !ok || !ok2 || a.words.Sign != nil || b.words.Sign != nil || a.words.API != nil || b.words.API != nil || a.source == nil || b.source == nil:
		return fmt.Errorf("%w: only a store that speaks S3, by keys, copies", ErrElsewhere)
	case a.at.endpoint != b.at.endpoint || a.at.region != b.at.region:
		return fmt.Errorf("%w: endpoints or regions differ", ErrElsewhere)
	}
	k, err := a.source(ctx)
	if err != nil {
		return &sourceError{err}
	}
	other, err := b.source(ctx)
	if err != nil {
		return &sourceError{err}
	}
	if k.AccessKeyID == "" || k.AccessKeyID != other.AccessKeyID {
		return fmt.Errorf("%w: it is read with other keys than are written with", ErrElsewhere)
	}
	return nil
}

// copies are the headers of a request that copies.
func (c *s3Client) copies(ctx context.Context, from *CopySource) (http.Header, error) {
	if err := SameStore(ctx, c, from.Client); err != nil {
		return nil, err
	}
	b, _ := from.Client.(*s3Client) // SameStore has seen to it
	if from.Key == "" {
		return nil, errors.New("no key to copy from")
	}
	h := http.Header{}
	h.Set("X-Amz-Copy-Source", b.bucket+"/"+escape(from.Key))
	h.Set("X-Amz-Copy-Source-Range", fmt.Sprintf("bytes=%d-%d", from.Off, from.Off+from.Size-1))
	if from.ETag != "" {
		h.Set("X-Amz-Copy-Source-If-Match", from.ETag)
	}
	return h, nil
}
