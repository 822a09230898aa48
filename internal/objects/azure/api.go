package azure

import (
	"context"
	"crypto/md5" //nolint:gosec // what the store compares bodies by
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/signet-io/signet/internal/objects"
)

// api does the operations of S3 that package objects needs, with azblob. Each sends one request, once.
type api struct {
	who       *Identity
	container string
	endpoint  string
	shared    *service.SharedKeyCredential // nil: tokens, or a shared access signature
	service   *service.Client
	client    *container.Client

	mu        sync.Mutex
	delegated *delegation // what signs with tokens
}

func (a *api) open(h *http.Client) error {
	o := policy.ClientOptions{
		Transport: h, Retry: policy.RetryOptions{MaxRetries: -1}, Telemetry: policy.TelemetryOptions{Disabled: true},
		InsecureAllowCredentialWithHTTP: strings.HasPrefix(a.endpoint, "http://"),
	}
	var err error
	switch {
	case a.who.key != "":
		if a.shared, err = service.NewSharedKeyCredential(a.who.account, a.who.key); err != nil {
			return fmt.Errorf("secret %s is no key of an account: it is not base64", Key)
		}
		a.service, err = service.NewClientWithSharedKeyCredential(a.endpoint, a.shared, &service.ClientOptions{ClientOptions: o})
	case a.who.sas != "":
		a.service, err = service.NewClientWithNoCredential(a.endpoint+"?"+a.who.sas, &service.ClientOptions{ClientOptions: o})
	default:
		a.service, err = service.NewClient(a.endpoint, a.who.entra, &service.ClientOptions{ClientOptions: o})
	}
	if err != nil {
		return errors.New("no client can be made for the account: correct " + Account + " and its credentials") // the text may hold a signature
	}
	a.client = a.service.NewContainerClient(a.container)
	return nil
}

// said makes the store's answer of an error.
func said(err error) error {
	var re *azcore.ResponseError
	if !errors.As(err, &re) {
		return err
	}
	out := &objects.Answer{Status: re.StatusCode, Code: re.ErrorCode, Means: means[re.ErrorCode], Err: err}
	if re.RawResponse != nil {
		out.Header = re.RawResponse.Header
		out.RequestID = out.Header.Get("X-Ms-Request-Id")
	}
	if re.ErrorCode == "BlobAlreadyExists" {
		out.Status = http.StatusPreconditionFailed
	}
	return out
}

func nonce(metadata map[string]*string) map[string]string {
	for name, v := range metadata {
		if strings.EqualFold(name, nonceKey) && v != nil {
			return map[string]string{objects.NonceKey: *v}
		}
	}
	return nil
}

func metadata(m map[string]string) map[string]*string {
	if v, ok := m[objects.NonceKey]; ok {
		return map[string]*string{nonceKey: &v}
	}
	return nil
}

// conditions are those of a write or a read. nil: none.
func conditions(match, none *string) *blob.AccessConditions {
	if match == nil && none == nil {
		return nil
	}
	m := &blob.ModifiedAccessConditions{}
	if match != nil {
		m.IfMatch = (*azcore.ETag)(match)
	}
	if none != nil {
		m.IfNoneMatch = (*azcore.ETag)(none)
	}
	return &blob.AccessConditions{ModifiedAccessConditions: m}
}

func etag(e *azcore.ETag) *string { return (*string)(e) }

// HeadObject implements objects.API.
func (a *api) HeadObject(ctx context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	r, err := a.client.NewBlobClient(*in.Key).GetProperties(ctx, nil)
	if err != nil {
		return nil, said(err)
	}
	return &s3.HeadObjectOutput{ContentLength: r.ContentLength, ETag: etag(r.ETag), LastModified: r.LastModified, Metadata: nonce(r.Metadata)}, nil
}

// GetObject implements objects.API.
func (a *api) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	o := &blob.DownloadStreamOptions{AccessConditions: conditions(in.IfMatch, nil)}
	if in.Range != nil {
		first, last, _ := strings.Cut(strings.TrimPrefix(*in.Range, "bytes="), "-")
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return nil, err
		}
		o.Range.Offset = from
		if last != "" {
			to, err := strconv.ParseInt(last, 10, 64)
			if err != nil {
				return nil, err
			}
			o.Range.Count = to - from + 1
		}
	}
	r, err := a.client.NewBlobClient(*in.Key).DownloadStream(ctx, o)
	if err != nil {
		return nil, said(err)
	}
	if in.Range != nil && r.ContentLength != nil && *r.ContentLength == 0 { // Azurite's way to say that nothing is there
		r.Body.Close()
		return nil, &objects.Answer{Status: http.StatusRequestedRangeNotSatisfiable, Code: "InvalidRange", Err: errors.New("the blob has no such bytes")}
	}
	out := &s3.GetObjectOutput{Body: r.Body, ContentLength: r.ContentLength, ContentRange: r.ContentRange, ETag: etag(r.ETag), LastModified: r.LastModified, Metadata: nonce(r.Metadata)}
	if in.Range == nil {
		out.ContentRange = nil
	} else if out.ContentRange == nil && o.Range.Offset == 0 && o.Range.Count == 0 { // azblob asks for no range then
		out.ContentRange = aws.String(fmt.Sprintf("bytes 0-%d/%d", *r.ContentLength-1, *r.ContentLength))
	}
	return out, nil
}

// checked is a body, and what the store compares it by.
func checked(body io.Reader) (io.ReadSeekCloser, blob.TransferValidationTypeMD5, error) {
	seeker, ok := body.(io.ReadSeeker)
	if !ok {
		return nil, nil, errors.New("a body that cannot be read twice")
	}
	h := md5.New() //nolint:gosec // see the import
	if _, err := io.Copy(h, seeker); err != nil {
		return nil, nil, err
	}
	_, err := seeker.Seek(0, io.SeekStart)
	return streaming.NopCloser(seeker), h.Sum(nil), err
}

// PutObject implements objects.API.
func (a *api) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	body, sum, err := checked(in.Body)
	if err != nil {
		return nil, err
	}
	r, err := a.client.NewBlockBlobClient(*in.Key).Upload(ctx, body, &blockblob.UploadOptions{
		Metadata: metadata(in.Metadata), AccessConditions: conditions(in.IfMatch, in.IfNoneMatch), TransactionalValidation: sum,
	})
	if err != nil {
		return nil, said(err)
	}
	return &s3.PutObjectOutput{ETag: etag(r.ETag)}, nil
}

// CreateMultipartUpload implements objects.API. Nothing is sent.
func (a *api) CreateMultipartUpload(_ context.Context, in *s3.CreateMultipartUploadInput, _ ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	return &s3.CreateMultipartUploadOutput{UploadId: aws.String(uploadID(in.Metadata[objects.NonceKey]))}, nil
}

// blockID is the name of a part's block: as long as every other, and no other upload's.
func blockID(upload string, part int32) string {
	sum := sha256.Sum256([]byte(upload))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(sum[:20], uint32(part))) //nolint:gosec // parts are 1 to 10,000
}

// UploadPart implements objects.API. The ETag of a part is its block's name.
func (a *api) UploadPart(ctx context.Context, in *s3.UploadPartInput, _ ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	body, sum, err := checked(in.Body)
	if err != nil {
		return nil, err
	}
	id := blockID(*in.UploadId, *in.PartNumber)
	if _, err := a.client.NewBlockBlobClient(*in.Key).StageBlock(ctx, id, body, &blockblob.StageBlockOptions{TransactionalValidation: sum}); err != nil {
		return nil, said(err)
	}
	return &s3.UploadPartOutput{ETag: &id}, nil
}

// CompleteMultipartUpload implements objects.API.
func (a *api) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, _ ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	ids := make([]string, 0, len(in.MultipartUpload.Parts))
	for _, p := range in.MultipartUpload.Parts {
		ids = append(ids, *p.ETag)
	}
	r, err := a.client.NewBlockBlobClient(*in.Key).CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{
		Metadata: metadata(map[string]string{objects.NonceKey: nonceOf(*in.UploadId)}), AccessConditions: conditions(in.IfMatch, in.IfNoneMatch),
	})
	if err != nil {
		return nil, said(err)
	}
	return &s3.CompleteMultipartUploadOutput{ETag: etag(r.ETag)}, nil
}

// AbortMultipartUpload implements objects.API. Blocks without a list are no blob, and vanish.
func (a *api) AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	return &s3.AbortMultipartUploadOutput{}, nil
}

// ListMultipartUploads implements objects.API: there are none.
func (a *api) ListMultipartUploads(context.Context, *s3.ListMultipartUploadsInput, ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error) {
	return &s3.ListMultipartUploadsOutput{}, nil
}

// DeleteObject implements objects.API.
func (a *api) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	all := blob.DeleteSnapshotsOptionTypeInclude
	_, err := a.client.NewBlobClient(*in.Key).Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: &all})
	return &s3.DeleteObjectOutput{}, said(err)
}

// DeleteObjects implements objects.API: one by one.
func (a *api) DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return nil, &objects.Answer{Status: http.StatusNotImplemented, Err: errors.New("not one request")}
}

// ListObjectsV2 implements objects.API.
func (a *api) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	out := &s3.ListObjectsV2Output{}
	var items []*container.BlobItem
	include := container.ListBlobsInclude{Metadata: true}
	var next *string
	if in.Delimiter != nil {
		p := a.client.NewListBlobsHierarchyPager(*in.Delimiter, &container.ListBlobsHierarchyOptions{Prefix: in.Prefix, Marker: in.ContinuationToken, Include: include})
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, said(err)
		}
		for _, f := range page.Segment.BlobPrefixes {
			out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: f.Name})
		}
		items, next = page.Segment.BlobItems, page.NextMarker
	} else {
		p := a.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: in.Prefix, Marker: in.ContinuationToken, Include: include})
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, said(err)
		}
		items, next = page.Segment.BlobItems, page.NextMarker
	}
	for _, i := range items {
		if isDirectory(i) {
			continue
		}
		out.Contents = append(out.Contents, types.Object{Key: i.Name, Size: i.Properties.ContentLength, LastModified: i.Properties.LastModified, ETag: quoted(i.Properties.ETag)})
	}
	if next != nil && *next != "" {
		out.IsTruncated, out.NextContinuationToken = aws.Bool(true), next
	}
	return out, nil
}

// isDirectory: accounts with a hierarchical namespace list their directories.
func isDirectory(i *container.BlobItem) bool {
	for name, v := range i.Metadata {
		if strings.EqualFold(name, "hdi_isfolder") && v != nil && *v == "true" {
			return true
		}
	}
	return false
}

// quoted is the ETag as headers have it: lists leave the quotes out.
func quoted(e *azcore.ETag) *string {
	if e == nil {
		return nil
	}
	return aws.String(`"` + strings.Trim(string(*e), `"`) + `"`)
}
