package upload_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/gcs"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// clientSigner signs with a client of a store, as the scheduler does.
type clientSigner struct {
	client objects.Client
	prefix string // of keys
}

func (s *clientSigner) Puts(ctx context.Context, puts []*executorv1.PutRequest) ([]*executorv1.SignedRequest, error) {
	var out []*executorv1.SignedRequest
	for _, p := range puts {
		f := objects.FilePut{
			Name: p.GetName(), Size: p.GetSizeBytes(), CRC32C: p.GetCrc32C(), UploadID: p.GetUploadId(), Part: int(p.GetPart()), Begin: p.GetBegin(), Abort: p.GetAbort(), Head: p.GetHead(),
		}
		what := f.Signing("attempt")
		what.Key, what.For = s.prefix+"/"+p.GetName(), time.Minute
		r, err := s.client.Sign(ctx, what)
		if err != nil {
			return nil, err
		}
		one := &executorv1.SignedRequest{Uri: s.client.URI(what.Key), Method: r.Method, Url: r.URL, Headers: map[string]string{}}
		for name, values := range r.Header {
			one.Headers[name] = strings.Join(values, ",")
		}
		out = append(out, one)
	}
	return out, nil
}

// clouds are the stores besides S3, each with its requests of an upload.
var clouds = map[string]struct {
	start func(t *testing.T) (*objectstest.Server, objects.Client)
	steps map[string]func(*http.Request) bool
}{
	"gs": {
		start: func(t *testing.T) (*objectstest.Server, objects.Client) {
			s := objectstest.StartGCS(t)
			who, err := gcs.NewIdentity(s.GCSProps(t))
			require.NoError(t, err)
			c, err := who.Client(objectstest.Bucket)
			require.NoError(t, err)
			return s, c
		},
		steps: map[string]func(*http.Request) bool{
			"whole":    func(r *http.Request) bool { return r.Method == http.MethodPut },
			"begin":    func(r *http.Request) bool { return r.URL.Query().Has("uploads") },
			"part":     func(r *http.Request) bool { return r.URL.Query().Has("partNumber") },
			"complete": func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") },
		},
	},
}

func cloudWriter(t *testing.T, c objects.Client) (upload.Writer, string) {
	t.Helper()
	client := signed.New()
	t.Cleanup(client.Close)
	const keys = "wh/t x/data/attempt"
	prefix := c.URI(keys)
	w, err := (&upload.Remote{Signer: &clientSigner{c, keys}, Client: client, Retry: quick, Whole: 10 << 10, Part: 4 << 10}).Writer(t.Context(), prefix)
	require.NoError(t, err)
	return w, keys
}

// Whatever a store does to one request of an upload, the file is there, whole.
func TestClouds_FaultAtEveryRequest(t *testing.T) {
	for name, cloud := range clouds {
		for step, match := range cloud.steps {
			for fault, f := range map[string]objectstest.Fault{
				"none": {Skip: 1000}, "cut before": {}, "cut after": {Apply: true}, "half an answer": {Apply: true, Body: 1}, "500 before": {Status: 500}, "500 after": {Apply: true, Status: 500},
				"503": {Status: 503}, "denied": {Status: 403},
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, step, fault), func(t *testing.T) {
					s, c := cloud.start(t)
					w, keys := cloudWriter(t, c)
					f.Match = match
					s.Fail(f)
					size := large
					if step == "whole" {
						size = small
					}
					want := body(size)
					uri, n, err := w.Place(t.Context(), local(t, want), "x y.parquet")
					require.NoError(t, err)
					require.Equal(t, c.URI(keys+"/x y.parquet"), uri)
					require.EqualValues(t, size, n)
					r, info, err := c.Get(t.Context(), keys+"/x y.parquet", 0, -1, "")
					require.NoError(t, err)
					got, err := io.ReadAll(r)
					require.NoError(t, err)
					require.True(t, bytes.Equal(want, got))
					require.Equal(t, "attempt", info.Nonce)
				})
			}
		}
	}
}

// C13, D6: what another has written is never replaced.
func TestClouds_NeverOverwrite(t *testing.T) {
	for name, cloud := range clouds {
		s, c := cloud.start(t)
		w, keys := cloudWriter(t, c)
		_, err := c.Put(t.Context(), keys+"/x.parquet", objects.Bytes([]byte("theirs")), objects.PutOptions{})
		require.NoError(t, err)
		s.Fail(objectstest.Fault{Method: http.MethodPut})
		_, _, err = w.Place(t.Context(), local(t, body(small)), "x.parquet")
		require.ErrorContains(t, err, "not of this attempt", name)
		info, err := c.Head(t.Context(), keys+"/x.parquet")
		require.NoError(t, err)
		require.EqualValues(t, len("theirs"), info.Size)
	}
}
