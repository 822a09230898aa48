package objects_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
)

type reply struct {
	StatusCode int
	Header     http.Header
}

// send sends what was signed as it is.
func send(t *testing.T, s objects.Signed, body string) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), s.Method, s.URL, strings.NewReader(body))
	require.NoError(t, err)
	r.Header = s.Header.Clone()
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return reply{resp.StatusCode, resp.Header}, string(b)
}

func TestSign_RequestsWork(t *testing.T) {
	_, c := start(t)
	sum, err := objects.Checksum(objects.Bytes([]byte("hello")))
	require.NoError(t, err)
	const key = "a b/+%2B/ü?#.parquet"
	sign := func(s objects.Signing) objects.Signed {
		t.Helper()
		s.Key, s.For = key, time.Hour
		out, err := c.Sign(t.Context(), s)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(time.Hour), out.Until, time.Minute)
		return out
	}
	header := http.Header{"If-None-Match": {"*"}, "x-amz-checksum-crc32c": {sum}, objects.NonceHeader: {"once"}}
	resp, _ := send(t, sign(objects.Signing{Method: http.MethodPut, Size: 5, Header: header}), "hello")
	require.Equal(t, 200, resp.StatusCode)
	resp, _ = send(t, sign(objects.Signing{Method: http.MethodPut, Size: 5, Header: header}), "other")
	require.Equal(t, 412, resp.StatusCode)
	resp, body := send(t, sign(objects.Signing{Method: http.MethodGet}), "")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "hello", body)
	resp, _ = send(t, sign(objects.Signing{Method: http.MethodHead}), "")
	require.Equal(t, "once", resp.Header.Get(objects.NonceHeader))
	info, err := c.Head(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "once", info.Nonce)

	_, begun := send(t, sign(objects.Signing{Method: http.MethodPost, Begin: true}), "")
	_, rest, _ := strings.Cut(begun, "<UploadId>")
	id, _, _ := strings.Cut(rest, "<")
	resp, _ = send(t, sign(objects.Signing{Method: http.MethodPut, UploadID: id, Part: 1, Size: 4}), "part")
	require.Equal(t, 200, resp.StatusCode)
	resp, body = send(t, sign(objects.Signing{Method: http.MethodPost, UploadID: id}),
		`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>`+resp.Header.Get("ETag")+`</ETag></Part></CompleteMultipartUpload>`)
	require.Equal(t, 200, resp.StatusCode, body)
	text, _, err := get(c, key, 0, -1, "")
	require.NoError(t, err)
	require.Equal(t, "part", text)
	resp, _ = send(t, sign(objects.Signing{Method: http.MethodDelete, UploadID: id}), "")
	require.Equal(t, 404, resp.StatusCode)
}

// The SDK's own presigner comes to the same URL; and what is signed is listed.
func TestSign_AsTheSDK(t *testing.T) {
	for _, p := range []objects.Props{
		{objects.Endpoint: "https://store.example:9000/base"}, {objects.Endpoint: "https://store.example", objects.PathStyle: "false"}, {objects.Region: "eu-west-1"}, {objects.ClientRegion: "cn-north-1", objects.PathStyle: "true"},
	} {
		p[objects.AccessKeyID], p[objects.SecretKey], p[objects.SessionToken] = "AKID", "secret", "token"
		c, err := objects.NewS3(p, "my-bucket", objects.Static(p))
		require.NoError(t, err)
		o := s3.Options{Region: p[objects.Region] + p[objects.ClientRegion], UsePathStyle: p[objects.Endpoint] != "" && p[objects.PathStyle] == "" || p[objects.PathStyle] == "true"}
		if o.Region == "" {
			o.Region = "us-east-1"
		}
		if p[objects.Endpoint] != "" {
			o.BaseEndpoint = aws.String(p[objects.Endpoint])
		}
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "token"}, nil
		})
		for _, key := range []string{"plain/key.parquet", "a b/+%2B/ü?#&=;:@,$!*'()~", "k=v//x/../y"} {
			for range 3 { // a second may end between the two
				ours, err := c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: key, For: 10 * time.Minute})
				require.NoError(t, err)
				theirs, err := s3.NewPresignClient(s3.New(o), s3.WithPresignExpires(10*time.Minute)).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("my-bucket"), Key: &key})
				require.NoError(t, err)
				a, b := parts(t, ours.URL), parts(t, theirs.URL)
				b.query.Del("x-id")
				a.query.Del("X-Amz-Signature")
				b.query.Del("X-Amz-Signature") // x-id is signed, too
				if a.query.Get("X-Amz-Date") == b.query.Get("X-Amz-Date") {
					assert.Equal(t, b, a)
					break
				}
			}
		}
	}
}

type located struct {
	scheme, host, path string
	query              url.Values
}

func parts(t *testing.T, text string) located {
	u, err := url.Parse(text)
	require.NoError(t, err)
	return located{u.Scheme, u.Host, u.EscapedPath(), u.Query()}
}

func TestSign_SignsWhatItIsTold(t *testing.T) {
	_, c := start(t)
	s, err := c.Sign(t.Context(), objects.Signing{
		Method: http.MethodPut, Key: "k", Size: 7, For: time.Hour, Header: http.Header{"If-None-Match": {"*"}, "X-Amz-Checksum-Crc32c": {"AAAAAA=="}, objects.NonceHeader: {"n"}},
	})
	require.NoError(t, err)
	require.Equal(t, "content-length;host;if-none-match;x-amz-checksum-crc32c;x-amz-meta-signet-put", parts(t, s.URL).query.Get("X-Amz-SignedHeaders"))
	require.Equal(t, http.Header{"If-None-Match": {"*"}, "X-Amz-Checksum-Crc32c": {"AAAAAA=="}, "X-Amz-Meta-Signet-Put": {"n"}}, s.Header)
}

func TestSign_Refuses(t *testing.T) {
	_, c := start(t)
	for _, s := range []objects.Signing{
		{Method: http.MethodGet},
		{Method: http.MethodDelete, Key: "k"},
		{Method: http.MethodPost, Key: "k"},
		{Method: http.MethodPut, Key: "k", Part: 1},
		{Method: http.MethodPut, Key: "k", Part: 10_001, UploadID: "u"},
		{Method: http.MethodPut, Key: "k", Size: -1},
		{Method: http.MethodGet, Key: "k", UploadID: "u"},
		{Method: http.MethodPut, Key: "k", UploadID: "u"},
		{Method: http.MethodPost, Key: "k", Begin: true, UploadID: "u"},
		{Method: http.MethodPut, Key: "k", Begin: true},
		{Method: "LIST", Key: "k"},
	} {
		s.For = time.Hour
		_, err := c.Sign(t.Context(), s)
		require.Error(t, err, "%+v", s)
	}
	_, err := c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k"})
	require.ErrorIs(t, err, objects.ErrExpired)
	p := objects.Props{objects.Endpoint: "http://h", objects.AccessKeyID: "k", objects.SecretKey: "s", objects.TokenExpires: "1000"}
	old, err := objects.NewS3(p, "b", objects.Static(p))
	require.NoError(t, err)
	_, err = old.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Hour})
	require.ErrorIs(t, err, objects.ErrExpired, "a request lives no longer than what signs it")
	anonymous, err := objects.NewS3(objects.Props{objects.Endpoint: "http://h"}, "b", nil)
	require.NoError(t, err)
	_, err = anonymous.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Hour})
	require.ErrorContains(t, err, "no credentials")
}
