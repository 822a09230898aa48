package sources

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
)

// web is a server with files of all kinds below /pub.
func web(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	body := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		_, _ = w.Write([]byte("a,b\n1"))
	}
	mux.HandleFunc("/pub/plain.csv", body)
	mux.HandleFunc("/pub/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() == "/pub/a%2Bb%20c.csv" {
			body(w, r)
			return
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("/pub/tagged.csv", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("ETag", `"v1"`); body(w, r) })
	mux.HandleFunc("/pub/dated.csv", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2026 15:04:05 GMT")
		body(w, r)
	})
	mux.HandleFunc("GET /pub/getonly.csv", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Header.Get("Range") != "":
			w.Header().Set("Content-Range", "bytes 0-0/5")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("a"))
		}
	})
	mux.HandleFunc("/pub/endless.csv", func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush() }) //nolint:forcetypeassert // of a test server
	mux.HandleFunc("/pub/denied.csv", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/pub/gone.csv", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) })
	mux.HandleFunc("/pub/teapot.csv", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("/pub/inside", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/pub/plain.csv", http.StatusFound) })
	mux.HandleFunc("/pub/circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/pub/circle", http.StatusFound) })
	for name, to := range map[string]string{
		"outside": "/private/x.csv", "up": "/pub/..%2fprivate/x.csv", "query": "/pub/plain.csv?token=topsecret", "host": "http://169.254.169.254/latest/meta-data", "file": "file:///etc/passwd",
	} {
		mux.HandleFunc("/pub/"+name+".csv", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		})
	}
	mux.HandleFunc("/private/", func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// S70: a file of a web server is what its URL says, below a prefix, and a redirect leads nowhere else.
func TestWeb(t *testing.T) {
	s := web(t)
	r := resolver(t, Rules{Remote: []Remote{{Prefix: s.URL + "/pub/"}}})
	for name, want := range map[string]string{ // to where it is, and its version
		"plain.csv": "plain.csv ", "tagged.csv": `tagged.csv "v1"`, "dated.csv": "dated.csv modified:Mon, 02 Jan 2026 15:04:05 GMT", "getonly.csv": "getonly.csv ", "inside": "plain.csv ",
		"a%2Bb c.csv": "a%2Bb%20c.csv ", "a%2Bb%20c.csv": "a%2Bb%20c.csv ",
	} {
		files, err := r.Resolve(t.Context(), "", []string{s.URL + "/pub/" + name})
		require.NoError(t, err, name)
		f := files[0]
		require.Equal(t, want, strings.TrimPrefix(f.GetUri(), s.URL+"/pub/")+" "+f.GetEtag())
		require.EqualValues(t, 5, f.GetSizeBytes())
		require.Equal(t, s.URL+"/pub/"+name, f.GetName())
		require.NoError(t, r.Changed(t.Context(), f))
		signed, err := r.Sign(t.Context(), f.GetUri(), objects.Signing{Method: http.MethodGet})
		require.NoError(t, err)
		require.Equal(t, f.GetUri(), signed.URL)
		require.Empty(t, signed.Header)
	}
	for name, want := range map[string]string{
		"none.csv": "no such file", "gone.csv": "no such file", "*.csv": "there are no patterns there", "endless.csv": "does not say how large", "denied.csv": "read without credentials",
		"teapot.csv": "418", "outside.csv": "none of the prefixes", "up.csv": "a way up", "query.csv": "without a user, a query", "host.csv": "none of the prefixes", "file.csv": "it redirects to file://",
		"circle": "more than 5 redirects",
	} {
		_, err := r.Resolve(t.Context(), "", []string{s.URL + "/pub/" + name})
		require.ErrorContains(t, err, want, name)
		require.ErrorContains(t, err, fmt.Sprintf("%q", s.URL+"/pub/"+name))
		require.NotContains(t, err.Error(), "topsecret")
	}
}

// A name that leads to this machine is not followed there; the address itself may be listed.
func TestWeb_NamesLeadToNoLocalAddress(t *testing.T) {
	s := web(t)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	r := resolver(t, Rules{Remote: []Remote{{Prefix: "http://localhost" + port}, {Prefix: "http://localhost.localdomain" + port}, {Prefix: "http://ip6-localhost" + port}}})
	_, err := r.Resolve(t.Context(), "", []string{"http://LOCALHOST" + port + "/pub/plain.csv"})
	require.NoError(t, err)
	_, err = r.Resolve(t.Context(), "", []string{"http://localhost.localdomain" + port + "/pub/plain.csv"})
	require.Error(t, err) // whether the machine knows the name or not
}
