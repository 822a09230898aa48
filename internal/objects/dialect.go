package objects

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// API are the operations by which this package does its work, in the words of S3's client. Each sends at most one request, at most once. A failure that the store has told is an Answer.
type API interface {
	HeadObject(ctx context.Context, in *s3.HeadObjectInput, o ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(ctx context.Context, in *s3.GetObjectInput, o ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, o ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, o ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, o ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, o ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error)
	UploadPart(ctx context.Context, in *s3.UploadPartInput, o ...func(*s3.Options)) (*s3.UploadPartOutput, error)
	CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, o ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error)
	AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, o ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error)
	ListMultipartUploads(ctx context.Context, in *s3.ListMultipartUploadsInput, o ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error)
}

// Answer is a failure that a store has told.
type Answer struct {
	Status    int    // of HTTP
	Code      string // the store's own
	Means     string // the code of S3 that means the same; empty: Code, or what the status says
	RequestID string
	Header    http.Header
	Err       error
}

func (a *Answer) Error() string { return fmt.Sprintf("the store answered %d %s", a.Status, a.Code) }

func (a *Answer) Unwrap() error { return a.Err }

// Dialect is what a store has different whose protocol is S3's but for words of its own. What is not set is S3's.
type Dialect struct {
	Scheme    string                                    // of URIs; s3
	Endpoint  string                                    // the property that says where the store is, for errors; s3.endpoint
	Transport func(http.RoundTripper) http.RoundTripper // says requests and answers in the store's words, and authenticates them
	Hints     map[string]string                         // what to do, by the store's code, or by the HTTP status of a code that is not known
	// API does the operations, with requests that go through the transport; nil: S3's client.
	API func(http.RoundTripper) (API, error)
	// Sign presigns a request, that has been checked, and whose query in S3 and time by the store's clock are given.
	Sign func(ctx context.Context, s Signing, query url.Values, now time.Time) (Signed, error)
	// Pause waits before a request is tried again: at least so long as the store asks for.
	Pause func(ctx context.Context, try int, least time.Duration) error
}

func (d Dialect) or() Dialect {
	d.Scheme, d.Endpoint = cmp.Or(d.Scheme, "s3"), cmp.Or(d.Endpoint, Endpoint)
	if d.Transport == nil {
		d.Transport = func(next http.RoundTripper) http.RoundTripper { return next }
	}
	if d.Pause == nil {
		d.Pause = pause
	}
	return d
}

// NewDialect returns a client for one bucket of a store that speaks so. Requests come to its Transport without a signature. It sends nothing.
func NewDialect(p Props, bucket string, d Dialect) (Client, error) { return newS3(p, bucket, nil, d) }

// NewOver returns a client for one bucket of a store of another protocol, whose API the dialect has. It sends nothing.
func NewOver(bucket string, d Dialect) (Client, error) {
	return newS3(Props{Region: "none"}, bucket, nil, d)
}
