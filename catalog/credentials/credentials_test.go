package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/internal/objects"
)

// signer remembers what it was asked to sign.
type signer struct {
	uris []string
	what []objects.Signing
	err  error
}

func (s *signer) sign(_ context.Context, uri string, what objects.Signing) (objects.Signed, error) {
	s.uris, s.what = append(s.uris, uri), append(s.what, what)
	return objects.Signed{Method: what.Method, URL: "https://signed/" + uri}, s.err
}

func scope() credentials.Scope {
	return credentials.Scope{Reads: map[string]struct{}{"s3://b/t/data/x.parquet": {}}, Prefix: "s3://b/t/data/job/0/1/attempt", Nonce: "attempt"}
}

// Reads are of the scope's own URIs, letter for letter: what a store may take for the same object is refused all the same.
func TestRead_OnlyWhatIsInTheScope(t *testing.T) {
	s := &signer{}
	i := credentials.NewPresigned(s.sign, time.Minute)
	out, err := i.Read(t.Context(), scope(), []string{"s3://b/t/data/x.parquet"})
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.Equal(t, []objects.Signing{{Method: http.MethodGet, For: time.Minute}}, s.what)
	for _, uri := range []string{
		"", "s3://b/t/data/y.parquet", "s3://b/t/data/x.parquet/", "s3://b//t/data/x.parquet", "s3://b/t/data/../data/x.parquet", "s3a://b/t/data/x.parquet",
		"s3://B/t/data/x.parquet", "s3://b/t/data/x.parquet?versionId=1", "s3://b/t/data/X.parquet", "s3://b/t/metadata/v1.metadata.json", "file:///etc/passwd",
	} {
		before := len(s.uris)
		_, err := i.Read(t.Context(), scope(), []string{"s3://b/t/data/x.parquet", uri})
		require.ErrorIs(t, err, credentials.ErrRefused, uri)
		require.Len(t, s.uris, before, "nothing is signed when a part is refused")
	}
}

var hostile = []string{
	"", ".", "..", "a/b", "/a", "a/", "../a", "..\\a", "a\\b", "a\x00b", "a\nb", "a\rb", "\x7f", "a\u2028b", "a\u0085b", "\xff\xfe", strings.Repeat("x", 256),
}

func TestPut_NamesAreOneSegment_J20(t *testing.T) {
	s := &signer{}
	i := credentials.NewPresigned(s.sign, 0)
	for _, name := range hostile {
		_, err := i.Put(t.Context(), scope(), []credentials.Put{{Name: "fine.parquet", Head: true}, {Name: name, Head: true}})
		require.ErrorIs(t, err, credentials.ErrRefused, "%q", name)
	}
	require.Empty(t, s.uris)
	for _, name := range []string{"a.parquet", "00000-1-é 日本.parquet", "a?b", "a#b", "a%2Fb", "a*b", "${x}", "a+b", "…", "..a", "a.."} {
		_, err := i.Put(t.Context(), scope(), []credentials.Put{{Name: name, Head: true}})
		require.NoError(t, err, name)
		require.Equal(t, "s3://b/t/data/job/0/1/attempt/"+name, s.uris[len(s.uris)-1])
	}
}

func TestPut_WhatIsSigned(t *testing.T) {
	crc := []byte{1, 2, 3, 4}
	for name, c := range map[string]struct {
		put  credentials.Put
		want objects.Signing
	}{
		"whole": {credentials.Put{Name: "f", Size: 7, CRC32C: crc}, objects.Signing{
			Method: "PUT", Size: 7, Header: http.Header{"If-None-Match": {"*"}, "X-Amz-Checksum-Crc32c": {"AQIDBA=="}, credentials.NonceHeader: {"attempt"}},
		}},
		"head": {credentials.Put{Name: "f", Head: true}, objects.Signing{Method: "HEAD"}},
		"begin": {credentials.Put{Name: "f", Begin: true}, objects.Signing{
			Method: "POST", Begin: true, Header: http.Header{"X-Amz-Checksum-Algorithm": {"CRC32C"}, credentials.NonceHeader: {"attempt"}},
		}},
		"part": {credentials.Put{Name: "f", UploadID: "u", Part: 3, Size: 5 << 20, CRC32C: crc}, objects.Signing{
			Method: "PUT", UploadID: "u", Part: 3, Size: 5 << 20, Header: http.Header{"X-Amz-Checksum-Crc32c": {"AQIDBA=="}},
		}},
		"complete": {credentials.Put{Name: "f", UploadID: "u"}, objects.Signing{Method: "POST", UploadID: "u"}},
		"abort":    {credentials.Put{Name: "f", UploadID: "u", Abort: true}, objects.Signing{Method: "DELETE", UploadID: "u"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &signer{}
			_, err := credentials.NewPresigned(s.sign, 0).Put(t.Context(), scope(), []credentials.Put{c.put})
			require.NoError(t, err)
			c.want.For = credentials.Lifetime
			require.Equal(t, []objects.Signing{c.want}, s.what)
		})
	}
}

func TestPut_Refused(t *testing.T) {
	crc := []byte{1, 2, 3, 4}
	for n, p := range []credentials.Put{
		{Name: "f", Size: 1},                       // no checksum
		{Name: "f", Size: -1, CRC32C: crc},         // no size
		{Name: "f", Size: 5<<30 + 1, CRC32C: crc},  // too large
		{Name: "f", Part: 1, Size: 1, CRC32C: crc}, // of no upload
		{Name: "f", Abort: true},                   // of no upload
		{Name: "f", Begin: true, UploadID: "u"},    // begun already
		{Name: "f", Head: true, UploadID: "u"},     // not about it
		{Name: "f", Begin: true, Head: true},       // two things
		{Name: "f", Begin: true, Abort: true, UploadID: "u"},
		{Name: "f", UploadID: "u", Part: 10_001, Size: 1, CRC32C: crc},
		{Name: "f", UploadID: "u", Part: -1, Size: 1, CRC32C: crc},
		{Name: "f", UploadID: "u v"},
		{Name: "f", UploadID: "u\n"},
		{Name: "f", UploadID: strings.Repeat("u", 2049)},
	} {
		s := &signer{}
		_, err := credentials.NewPresigned(s.sign, 0).Put(t.Context(), scope(), []credentials.Put{p})
		require.ErrorIs(t, err, credentials.ErrRefused, "%d: %+v", n, p)
		require.Empty(t, s.what)
	}
	i := credentials.NewPresigned((&signer{}).sign, 0)
	_, err := i.Put(t.Context(), credentials.Scope{Reads: scope().Reads}, []credentials.Put{{Name: "f", Head: true}})
	require.ErrorIs(t, err, credentials.ErrRefused, "what reads does not write")
	i = credentials.NewPresigned((&signer{err: fmt.Errorf("no route: %w", objects.ErrBusy)}).sign, 0)
	_, err = i.Put(t.Context(), scope(), []credentials.Put{{Name: "f", Head: true}})
	require.ErrorIs(t, err, objects.ErrBusy)
	require.False(t, errors.Is(err, credentials.ErrRefused), "which may be asked for again")
}
