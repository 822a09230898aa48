package inputs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/inputs"
	"github.com/signet-io/signet/internal/objects"
)

// plainAccess is that of web servers: a request that nobody has signed.
type plainAccess struct{}

func (plainAccess) Reads(_ context.Context, uris []string) (out []*executorv1.SignedRequest, _ error) {
	for _, u := range uris {
		out = append(out, &executorv1.SignedRequest{Uri: u, Method: http.MethodGet, Url: u})
	}
	return out, nil
}

func source(function string, files ...*planv1.PinnedFile) []*planv1.Source {
	return []*planv1.Source{{View: "v", Kind: &planv1.Source_File{File: &planv1.FileSource{Function: function, Files: files}}}}
}

// A web server may know neither ranges nor versions; what it sends is whole, or refused.
func TestStage_WebServers(t *testing.T) {
	want := body(200_000)
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dated := "modified:" + when.Format(http.TimeFormat)
	for name, c := range map[string]struct {
		version string
		size    int
		serve   func(n int32, w http.ResponseWriter, r *http.Request)
		fails   string
	}{
		"plain": {size: len(want), serve: func(_ int32, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) }},
		"plain, cut once": {size: len(want), serve: func(n int32, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "200000")
			if n == 1 {
				_, _ = w.Write(want[:1000])
				return
			}
			_, _ = w.Write(want)
		}},
		"dated": {version: dated, size: len(want), serve: func(_ int32, w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x", when, bytes.NewReader(want))
		}},
		"dated, changed": {version: dated, size: len(want), fails: "another object has its name now", serve: func(_ int32, w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x", when.Add(time.Second), bytes.NewReader(want))
		}},
		"weak tag": {version: `W/"1"`, size: len(want), serve: func(_ int32, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `W/"1"`)
			http.ServeContent(w, r, "x", time.Time{}, bytes.NewReader(want))
		}},
		"tag that it ignores, changed": {version: `"1"`, size: len(want), fails: "another object has its name now", serve: func(_ int32, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"2"`)
			_, _ = w.Write(want)
		}},
		"resized": {size: 7, fails: "7 bytes then, 200000 now", serve: func(_ int32, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "200000")
			_, _ = w.Write(want)
		}},
		"longer, and does not say so": {size: 7, fails: "7 bytes then, more now", serve: func(_ int32, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) }},
		"was empty": {fails: "0 bytes then, 200000 now", serve: func(_ int32, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "200000")
			_, _ = w.Write(want)
		}},
		"redirects": {size: 1, fails: "302", serve: func(_ int32, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}},
		"gone": {size: 1, fails: "is gone", serve: func(_ int32, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var asked atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					t.Errorf("%s was asked for", r.URL)
				}
				c.serve(asked.Add(1), w, r)
			}))
			defer s.Close()
			f := &planv1.PinnedFile{Uri: s.URL + "/d/x%20y.csv", Name: "asked", Etag: c.version, SizeBytes: int64(c.size)}
			out, err := b.cache.Stage(t.Context(), plainAccess{}, source("read_csv", f), b.dir, inputs.All)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			path := out[0].GetFile().GetFiles()[0].GetPath()
			require.Equal(t, b.dir+"/http/"+strings.TrimPrefix(s.URL, "http://")+"/d/x%20y.csv", path)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
		})
	}
}

// What has no version is fetched for each task anew: another file may have its name and size.
func TestStage_NoVersionIsNotKept(t *testing.T) {
	b := newBench(t)
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{byte('0' + n.Add(1))}) }))
	defer s.Close()
	for _, want := range []string{"1", "2"} {
		out, err := b.cache.Stage(t.Context(), plainAccess{}, source("read_csv", &planv1.PinnedFile{Uri: s.URL + "/x", SizeBytes: 1}), t.TempDir(), inputs.All)
		require.NoError(t, err)
		got, err := os.ReadFile(out[0].GetFile().GetFiles()[0].GetPath())
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// To bind a query, the footers of Parquet sources are enough; text is needed whole.
func TestStage_FootersOfParquetSources(t *testing.T) {
	b := newBench(t)
	file := body(4 << 20)
	copy(file, "PAR1")
	copy(file[len(file)-4:], "PAR1")
	binary.LittleEndian.PutUint32(file[len(file)-8:], 1000)
	b.Put("raw/x.parquet", file)
	f := pinned("raw/x.parquet", len(file))
	out, err := b.cache.Stage(t.Context(), b, source("READ_PARQUET", f), t.TempDir(), inputs.Schemas)
	require.NoError(t, err)
	got, err := os.ReadFile(out[0].GetFile().GetFiles()[0].GetPath())
	require.NoError(t, err)
	require.Len(t, got, len(file))
	require.True(t, bytes.Equal(file[len(file)-1008:], got[len(got)-1008:]))
	require.False(t, bytes.Equal(file, got), "the rest was not fetched")
	out, err = b.cache.Stage(t.Context(), b, source("read_csv", f), t.TempDir(), inputs.Schemas)
	require.NoError(t, err)
	got, err = os.ReadFile(out[0].GetFile().GetFiles()[0].GetPath())
	require.NoError(t, err)
	require.True(t, bytes.Equal(file, got))
}

// Any key has a local name that leads nowhere else, and no two keys have the same.
func TestSourcePath(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("x", 300) + ".parquet"
	for _, uri := range []string{
		"s3://b/a/b", "s3://b/a//b", "s3://b//a/b", "s3://b/a/b/", "s3://b/a/_/b", "s3://b/a/./b", "s3://b/a/../b", "s3://b/..", "s3://b/../../../etc/passwd", "https://b/a/b", "http://b/a/b", "s3://b/a%2Fb",
		"s3://b/" + long, "s3://b/a/" + long, "s3://b/a\nb", "s3://c/a/b", "https://b:8443/a/b", "s3://b/a\\b",
	} {
		got, err := inputs.SourcePath("/dir", uri)
		require.NoError(t, err, uri)
		require.True(t, strings.HasPrefix(got, "/dir/"), got)
		require.NotContains(t, got, "/../")
		require.Empty(t, seen[got], "%s and %s", seen[got], uri)
		seen[got] = uri
		for s := range strings.SplitSeq(got, "/") {
			require.LessOrEqual(t, len(s), 255)
		}
	}
	got, err := inputs.SourcePath("/dir", "s3://b/k=v/"+long)
	require.NoError(t, err)
	require.Contains(t, got, "/k=v/")
	require.True(t, strings.HasSuffix(got, ".parquet"))
	for _, uri := range []string{"", "x", "s3://b", "s3://b/a\x00b"} {
		_, err := inputs.SourcePath("/dir", uri)
		require.Error(t, err, uri)
	}
}

func TestVersion(t *testing.T) {
	require.Equal(t, `"a"`, objects.Version(http.Header{"Etag": {`"a"`}, "Last-Modified": {"x"}}))
	require.Equal(t, "modified:x", objects.Version(http.Header{"Last-Modified": {"x"}}))
	require.Empty(t, objects.Version(nil))
	for version, want := range map[string]http.Header{
		`"a"`: {"If-Match": {`"a"`}}, `a`: {"If-Match": {`"a"`}}, `W/"a"`: {}, "": {}, "modified:x": {"If-Unmodified-Since": {"x"}},
	} {
		h := http.Header{}
		objects.OnlyIf(h, version)
		require.Equal(t, want, h, version)
	}
	require.True(t, objects.SameVersion(`"a"`, "a"))
	require.False(t, objects.SameVersion(`"a"`, `"b"`))
}
