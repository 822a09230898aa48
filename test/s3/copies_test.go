package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/test/servers/weed"
)

// signer signs for one attempt, which may copy from raw/in.
type signer struct {
	t      *testing.T
	admin  *s3.Client
	issuer credentials.Issuer
	scope  credentials.Scope
}

const attemptKey = "wh/s/t/data/job/0/0/attempt"

func newSigner(t *testing.T) *signer {
	server := weed.Start(t)
	w := &world{server: server}
	x := &signer{t: t, admin: w.admin()}
	_, err := x.admin.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	props := objects.Props{objects.Endpoint: server.Endpoint, objects.AccessKeyID: server.AccessKey, objects.SecretKey: server.SecretKey}
	client, err := objects.NewS3(props, bucket, objects.Static(props))
	require.NoError(t, err)
	x.put("raw/in", bytes.Repeat([]byte("i"), 6<<20))
	x.put("wh/s/t/metadata/secret", bytes.Repeat([]byte("s"), 6<<20))
	head, err := client.Head(t.Context(), "raw/in")
	require.NoError(t, err)
	x.issuer = credentials.NewPresigned(func(ctx context.Context, uri string, what objects.Signing) (objects.Signed, error) {
		what.Key = strings.TrimPrefix(uri, "s3://"+bucket+"/")
		return client.Sign(ctx, what)
	}, 0)
	x.scope = credentials.Scope{
		Prefix: "s3://" + bucket + "/" + attemptKey, Nonce: "attempt",
		Copies: map[string]objects.CopySource{"s3://lake/raw/in": {Client: client, Key: "raw/in", ETag: head.ETag}},
	}
	return x
}

func (x *signer) put(key string, body []byte) {
	_, err := x.admin.PutObject(x.t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: bytes.NewReader(body)})
	require.NoError(x.t, err)
}

func (x *signer) sign(p credentials.Put) objects.Signed {
	out, err := x.issuer.Put(x.t.Context(), x.scope, []credentials.Put{p})
	require.NoError(x.t, err)
	return out[0]
}

// send sends a request as it was signed, but for what is changed.
func (x *signer) send(s objects.Signed, body string, change func(*http.Request)) (int, string, http.Header) {
	r, err := http.NewRequestWithContext(x.t.Context(), s.Method, s.URL, strings.NewReader(body))
	require.NoError(x.t, err)
	r.Header = s.Header.Clone()
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(x.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(x.t, err)
	return resp.StatusCode, string(b), resp.Header
}

func (x *signer) begin(name string) string {
	_, text, _ := x.send(x.sign(credentials.Put{Name: name, Begin: true}), "", nil)
	return between(text, "<UploadId>", "<")
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	out, _, _ := strings.Cut(rest, to)
	return out
}

// A copy that is signed is of one range of one version of one object, into one part of one upload: nothing of it can be bent to another source or another place.
func TestSignedCopy_CannotBeBent(t *testing.T) {
	x := newSigner(t)
	id, other := x.begin("out"), x.begin("other")
	from := &objects.Range{URI: "s3://lake/raw/in", Off: 1, Size: 5 << 20}
	signed := x.sign(credentials.Put{Name: "out", UploadID: id, Part: 1, Copy: from})
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	query := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			q := r.URL.Query()
			q.Set(name, value)
			r.URL.RawQuery = q.Encode()
		}
	}
	for name, change := range map[string]func(*http.Request){
		"another source":             header("X-Amz-Copy-Source", bucket+"/wh/s/t/metadata/secret"),
		"another version":            header("X-Amz-Copy-Source", signed.Header.Get("X-Amz-Copy-Source")+"?versionId=null"),
		"another range":              header("X-Amz-Copy-Source-Range", "bytes=0-9"),
		"whatever there is by now":   header("X-Amz-Copy-Source-If-Match", `"00000000000000000000000000000000"`),
		"no condition":               func(r *http.Request) { r.Header.Del("X-Amz-Copy-Source-If-Match") },
		"no range":                   func(r *http.Request) { r.Header.Del("X-Amz-Copy-Source-Range") },
		"no source, bytes":           func(r *http.Request) { r.Header.Del("X-Amz-Copy-Source") },
		"another part":               query("partNumber", "2"),
		"another upload":             query("uploadId", other),
		"no upload: the object":      func(r *http.Request) { r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "uploadId", "x") },
		"another file":               func(r *http.Request) { r.URL.Path = strings.Replace(r.URL.Path, "/out", "/other", 1) },
		"the metadata":               func(r *http.Request) { r.URL.Path = "/" + bucket + "/wh/s/t/metadata/v9.metadata.json" },
		"another method":             func(r *http.Request) { r.Method = http.MethodGet },
		"a second source beside":     func(r *http.Request) { r.Header.Add("X-Amz-Copy-Source", bucket+"/wh/s/t/metadata/secret") },
		"another source, other case": func(r *http.Request) { r.Header["x-amz-copy-source"] = []string{bucket + "/wh/s/t/metadata/secret"} },
	} {
		status, text, _ := x.send(signed, "", change)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", name, text)
	}
	status, text, _ := x.send(signed, "", nil)
	require.Equal(t, http.StatusOK, status, text)
	etag, sum := between(text, "<ETag>", "</ETag>"), between(text, "<ChecksumCRC32C>", "<")
	status, text, _ = x.send(x.sign(credentials.Put{Name: "out", UploadID: id}), fmt.Sprintf("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag><ChecksumCRC32C>%s</ChecksumCRC32C></Part></CompleteMultipartUpload>", etag, sum), nil)
	require.Equal(t, http.StatusOK, status, text)
	got, err := x.admin.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(attemptKey + "/out")})
	require.NoError(t, err)
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("i", 5<<20), string(body))

	x.put("raw/in", bytes.Repeat([]byte("x"), 6<<20)) // it changes
	status, text, _ = x.send(x.sign(credentials.Put{Name: "other", UploadID: other, Part: 1, Copy: from}), "", nil)
	require.Equal(t, http.StatusPreconditionFailed, status, text)
	for _, uri := range []string{"s3://lake/wh/s/t/metadata/secret", "s3://lake/raw/in2", "s3://lake/raw", "s3a://lake/raw/in", "s3://lake/raw/../raw/in", ""} {
		_, err := x.issuer.Put(t.Context(), x.scope, []credentials.Put{{Name: "other", UploadID: other, Part: 1, Copy: &objects.Range{URI: uri, Size: 1}}})
		require.ErrorIs(t, err, credentials.ErrRefused, uri)
	}
}

// What writes bytes is not made to copy: a header that nobody has signed is not taken.
func TestSignedPut_CannotBeMadeToCopy(t *testing.T) {
	x := newSigner(t)
	id := x.begin("out")
	for name, p := range map[string]credentials.Put{
		"a part":    {Name: "out", UploadID: id, Part: 1, CRC32C: make([]byte, 4)}, // of nothing
		"a file":    {Name: "whole", CRC32C: make([]byte, 4)},
		"the begin": {Name: "out", Begin: true},
	} {
		source := bucket + "/wh/s/t/metadata/secret"
		signed := x.sign(p)
		for how, change := range map[string]func(*http.Request){
			"header": func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", source) },
			"query":  func(r *http.Request) { r.URL.RawQuery += "&X-Amz-Copy-Source=" + url.QueryEscape(source) },
		} {
			status, text, _ := x.send(signed, "", change)
			require.Equal(t, http.StatusForbidden, status, "%s by its %s: %s", name, how, text)
		}
		status, text, _ := x.send(signed, "", nil)
		require.Equal(t, http.StatusOK, status, "%s as it was signed: %s", name, text)
	}
}
