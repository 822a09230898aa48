package rest_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/rest"
)

// guarded is a server that wants tokens and gives them out.
type guarded struct {
	*server
	mu      sync.Mutex
	valid   string
	given   int
	forms   []string
	headers []http.Header
	life    int // seconds; 0: it does not say
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.URL.Path == "/v1/oauth/tokens" {
		_ = r.ParseForm()
		g.forms = append(g.forms, r.Form.Encode())
		if r.Form.Get("client_secret") != "s3cret:with:colons" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"no such client"}`)
			return
		}
		g.given++
		g.valid = fmt.Sprint("token-", g.given)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"bearer"`, g.valid)
		if g.life > 0 {
			fmt.Fprintf(w, `,"expires_in":%d`, g.life)
		}
		fmt.Fprint(w, `}`)
		return
	}
	g.headers = append(g.headers, r.Header)
	if r.Header.Get("Authorization") != "Bearer "+g.valid {
		w.WriteHeader(http.StatusUnauthorized)
		reply(w, map[string]any{"error": map[string]any{"message": "who? you sent " + r.Header.Get("Authorization"), "type": "NotAuthorizedException", "code": 401}})
		return
	}
	g.server.ServeHTTP(w, r)
}

func (g *guarded) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.valid = "another"
}

func guard(t *testing.T) (*guarded, string) {
	g := &guarded{server: newServer(t)}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	return g, srv.URL
}

func TestOAuth2(t *testing.T) {
	g, url := guard(t)
	g.life = 3600
	c := g.open(t, url, func(o *rest.Options) {
		o.Secrets = map[string]string{"credential": "me:s3cret:with:colons", "header.X-Api-Key": "k3y"}
		o.Properties = map[string]string{"scope": "a b", "audience": "lake", "header.X-Team": "blue"}
	})
	ctx := t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	require.Equal(t, []string{"audience=lake&client_id=me&client_secret=s3cret%3Awith%3Acolons&grant_type=client_credentials&scope=a+b"}, g.forms, "one token for all calls")
	require.Equal(t, "k3y", g.headers[0].Get("X-Api-Key"))
	require.Equal(t, "blue", g.headers[0].Get("X-Team"))

	// A token that is refused before its time: a new one, and the commit goes out once more.
	g.revoke()
	reqs, ups := catalogtest.Append(tbl, 5)
	tbl, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	require.Equal(t, 2, g.given)
	require.Len(t, tbl.Metadata.Snapshots(), 1)
}

func TestOAuth2_TokensEndInTime(t *testing.T) {
	g, url := guard(t)
	g.life = 1 // second, of which a fifth is left to spare
	c := g.open(t, url, func(o *rest.Options) { o.Secrets = map[string]string{"credential": "me:s3cret:with:colons"} })
	for g.given < 2 { // as time goes by
		_, err := c.Namespaces(t.Context())
		require.NoError(t, err)
	}
	for _, h := range g.headers {
		require.Contains(t, h.Get("Authorization"), "Bearer token-")
	}
}

func TestOAuth2_Refused(t *testing.T) {
	g, url := guard(t)
	var log bytes.Buffer
	c := g.open(t, url, func(o *rest.Options) {
		o.Secrets = map[string]string{"credential": "me:canary-9917"}
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	_, err := c.Load(t.Context(), catalog.Ident{"demo", "t"})
	require.ErrorContains(t, err, "invalid_client")
	require.NotErrorIs(t, err, catalog.ErrNotFound)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", err, err, err, log.String()), "canary")
	_, err = c.Commit(t.Context(), catalog.Ident{"demo", "t"}, []byte("[]"), []byte("[]"))
	require.ErrorIs(t, err, catalog.ErrNotSent)
}

func TestStaticToken(t *testing.T) {
	g, url := guard(t)
	g.valid = "mine-canary-1"
	c := g.open(t, url, func(o *rest.Options) { o.Secrets = map[string]string{"token": "mine-canary-1"} })
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	g.revoke()
	err := c.CreateNamespace(t.Context(), []string{"more"}, false)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.NotContains(t, err.Error(), "canary", "also where the server repeats it")
	require.Contains(t, err.Error(), "[redacted]")
	require.Zero(t, g.given)
}

// What a server wants to set is for the operator to set: a server that was taken must not send credentials elsewhere.
func TestConfig_ServersDoNotMoveCredentials(t *testing.T) {
	var calls []string
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { calls = append(calls, r.URL.String()) }))
	t.Cleanup(evil.Close)
	g, url := guard(t)
	var log bytes.Buffer
	g.config = fmt.Sprintf(`{"defaults":{"uri":%q,"header.X-A":"b"},"overrides":{"uri":%q,"oauth2-server-uri":%q,"token":"theirs","credential":"their:own","rest.sigv4-enabled":"true","scope":"all"}}`, evil.URL, evil.URL, evil.URL)
	c := g.open(t, url, func(o *rest.Options) {
		o.Secrets = map[string]string{"credential": "me:s3cret:with:colons"}
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	g.revoke()
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"more"}, false))
	require.Empty(t, calls)
	require.Contains(t, log.String(), "[credential header.X-A oauth2-server-uri rest.sigv4-enabled scope token uri]")
	require.NotContains(t, log.String(), "theirs")
}

// Redirects: a GET within the origin is followed, nothing else.
func TestRedirects(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	s := newServer(t)
	away := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case away != "":
			http.Redirect(w, r, away+r.URL.Path, http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/old"):
			http.Redirect(w, r, strings.TrimPrefix(r.URL.Path, "/old"), http.StatusMovedPermanently)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	c := s.open(t, srv.URL+"/old", func(o *rest.Options) { o.Secrets = map[string]string{"token": "canary-token"} })
	_, err := c.Namespaces(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, c.CreateNamespace(t.Context(), []string{"demo"}, false), "not followed")
	away = other.URL
	_, err = c.Namespaces(t.Context())
	require.ErrorContains(t, err, strings.TrimPrefix(other.URL, "http://"))
	require.Empty(t, elsewhere)
}

func TestTLS(t *testing.T) {
	s := newServer(t)
	srv := httptest.NewUnstartedServer(s)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	_, err := s.open(t, srv.URL).Namespaces(t.Context())
	require.ErrorContains(t, err, "certificate")
	c := s.open(t, srv.URL, func(o *rest.Options) { o.CA = ca })
	_, err = c.Namespaces(t.Context())
	require.NoError(t, err)
	_, err = c.Commit(t.Context(), catalog.Ident{"demo", "t"}, []byte("[]"), []byte("[]"))
	require.ErrorIs(t, err, catalog.ErrConflict)
}

func TestSigV4(t *testing.T) {
	s := newServer(t)
	var got []http.Header
	var late time.Duration
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Clone())
		now := time.Now().Add(late)
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || now.Sub(at).Abs() > 5*time.Minute {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"message":"Signature expired: 1 is now earlier than 2"}`))
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	signed := func(o *rest.Options) {
		o.Properties = map[string]string{"rest.sigv4-enabled": "true", "rest.signing-name": "glue", "rest.signing-region": "eu-central-1"}
		o.Secrets = map[string]string{"rest.access-key-id": "AKID", "rest.secret-access-key": "canary-secret", "rest.session-token": "session", "token": "bearer-1"}
	}
	c := s.open(t, srv.URL, signed)
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	h := got[len(got)-1]
	assert.Regexp(t, `^AWS4-HMAC-SHA256 Credential=AKID/\d{8}/eu-central-1/glue/aws4_request, SignedHeaders=.*host.*original-authorization.*x-amz-security-token, Signature=[0-9a-f]{64}$`, h.Get("Authorization"))
	assert.Equal(t, "Bearer bearer-1", h.Get("Original-Authorization"))
	assert.Equal(t, "session", h.Get("X-Amz-Security-Token"))

	late = 20 * time.Minute // clocks that differ
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"more"}, false))
	n := len(got)
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"most"}, false))
	require.Len(t, got, n+1, "the server's clock is known by then")
}

func TestOpen_RefusesBadOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*rest.Options)
		want   string
	}{
		"no name":         {func(o *rest.Options) { o.Name = "" }, "no name"},
		"no uri":          {func(o *rest.Options) { o.URI = "" }, "uri"},
		"ftp":             {func(o *rest.Options) { o.URI = "ftp://x" }, "http or https"},
		"password in uri": {func(o *rest.Options) { o.URI = "https://a:canary@x/y" }, "credential"},
		"broken uri":      {func(o *rest.Options) { o.URI = "https://canary\x7f" }, "not a URL"},
		"query":           {func(o *rest.Options) { o.URI = "https://x/y?token=canary" }, "query"},
		"two secrets":     {func(o *rest.Options) { o.Secrets = map[string]string{"token": "canary", "credential": "canary"} }, "one of them"},
		"token of lines":  {func(o *rest.Options) { o.Secrets = map[string]string{"token": "canary\nX: y"} }, "more than one line"},
		"header value":    {func(o *rest.Options) { o.Properties = map[string]string{"header.X": "a\r\nY: canary"} }, "header.X"},
		"header name":     {func(o *rest.Options) { o.Properties = map[string]string{"header.a b": "c"} }, "header.a b"},
		"token server": {func(o *rest.Options) {
			o.Secrets = map[string]string{"credential": "a:b"}
			o.Properties = map[string]string{"oauth2-server-uri": "x"}
		}, "oauth2-server-uri"},
		"sigv4":     {func(o *rest.Options) { o.Properties = map[string]string{"rest.sigv4-enabled": "yes please"} }, "rest.sigv4-enabled"},
		"no region": {func(o *rest.Options) { o.Properties = map[string]string{"rest.sigv4-enabled": "true"} }, "rest.signing-region"},
		"half a key": {func(o *rest.Options) {
			o.Properties = map[string]string{"rest.sigv4-enabled": "true", "rest.signing-region": "x"}
			o.Secrets = map[string]string{"rest.access-key-id": "a"}
		}, "go together"},
		"no ca":            {func(o *rest.Options) { o.CA = "/does/not/exist" }, "tls.ca"},
		"ca is no PEM":     {func(o *rest.Options) { o.CA = os.Args[0] }, "tls.ca"},
		"cert without key": {func(o *rest.Options) { o.Cert = "x" }, "go together"},
	} {
		o := rest.Options{Name: "lake", URI: "http://127.0.0.1:1"}
		tc.change(&o)
		_, err := rest.Open(t.Context(), o)
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), "canary", name)
	}
}

// Keys come only where the server takes them; a request that is the only one of its content has the same key always, all others never.
func TestIdempotencyKeys(t *testing.T) {
	s := newServer(t)
	p := catalogtest.NewProxy(t, s.url)
	ctx := t.Context()
	require.NoError(t, s.cat.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := s.cat.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	keys := func(reqs, ups []byte) []string {
		p.Arm(nil)
		for range 2 {
			_, err := s.open(t, p.URL).Commit(ctx, tbl.Ident, reqs, ups)
			require.NoError(t, err)
		}
		var out []string
		seen, _ := p.Seen()
		for _, r := range seen {
			if r.Method == http.MethodPost {
				out = append(out, r.Header.Get("Idempotency-Key"))
			}
		}
		require.Len(t, out, 2, "no transport sends it again")
		return out
	}
	reqs, ups := catalogtest.SetProperties(tbl, map[string]string{"a": "b"})
	require.Equal(t, []string{"", ""}, keys(reqs, ups))
	s.config = `{"defaults":{},"overrides":{},"idempotency-key-lifetime":"PT30M"}`
	k := keys(reqs, ups)
	require.NotEqual(t, k[0], k[1])
	reqs, ups = catalogtest.Append(tbl, 9)
	k = keys(reqs, ups)
	require.Equal(t, k[0], k[1])
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, k[0])

	// Not even a connection that breaks in the middle makes it go out twice, although it has a key and a connection was kept.
	now, err := s.cat.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	reqs, ups = catalogtest.Append(now, 10)
	c := s.open(t, p.URL)
	_, err = c.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	p.Arm(map[int]catalogtest.HTTPFault{0: {}})
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	requireOutcome(t, errUnknown, err)
	seen, _ := p.Seen()
	require.Len(t, seen, 1)
}

// A load costs the server no metadata where nothing has changed, and the bytes are the catalog's own.
func TestLoad_WithETags(t *testing.T) {
	for _, noETag := range []bool{false, true} {
		s := newServer(t)
		s.noETag = noETag
		p := catalogtest.NewProxy(t, s.url)
		ctx := t.Context()
		require.NoError(t, s.cat.CreateNamespace(ctx, []string{"demo"}, false))
		made, err := s.cat.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
		require.NoError(t, err)
		c := s.open(t, p.URL)
		one, err := c.Load(ctx, made.Ident)
		require.NoError(t, err)
		two, err := c.Load(ctx, made.Ident)
		require.NoError(t, err)
		require.Same(t, one, two)
		raw, err := s.cat.RawMetadata(ctx, made)
		require.NoError(t, err)
		require.JSONEq(t, string(raw), string(one.Raw))
		seen, _ := p.Seen()
		require.Equal(t, !noETag, seen[len(seen)-1].Header.Get("If-None-Match") != "")
		reqs, ups := catalogtest.Append(one, 3)
		_, err = s.cat.Commit(ctx, made.Ident, reqs, ups)
		require.NoError(t, err)
		three, err := c.Load(ctx, made.Ident)
		require.NoError(t, err)
		require.Len(t, three.Metadata.Snapshots(), 1)
		require.Empty(t, one.Metadata.Snapshots())
		require.NoError(t, s.cat.Drop(ctx, made.Ident))
		_, err = c.Load(ctx, made.Ident)
		require.ErrorIs(t, err, catalog.ErrNotFound)
	}
}

func TestCommit_OneMetadataFileIsRefused(t *testing.T) {
	s := newServer(t)
	p := catalogtest.NewProxy(t, s.url)
	c := s.open(t, p.URL)
	_, err := c.Commit(t.Context(), catalog.Ident{"demo", "t"}, []byte(`[{"type":"assert-metadata-location","metadata-location":"file:///x"}]`), []byte(`[]`))
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "format version 1")
	seen, _ := p.Seen()
	require.Empty(t, seen)
}

// A server that makes another version than it was asked for (I3) is told by what it made, and what it made is taken back.
func TestCreate_AnotherVersionIsRefused(t *testing.T) {
	s := newServer(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/tables") {
			var body map[string]any
			_ = json.NewDecoder(r.Body).Decode(&body)
			delete(body, "properties")
			b, _ := json.Marshal(body)
			r.Body = http.NoBody
			r2 := r.Clone(r.Context())
			r2.Body = readCloser{bytes.NewReader(b)}
			r = r2
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c := s.open(t, srv.URL)
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	spec := catalogtest.Spec()
	spec.Properties = map[string]string{"format-version": "3"}
	_, err := c.Create(t.Context(), catalog.Ident{"demo", "t"}, spec)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "format version 2, asked for 3")
	_, err = c.Load(t.Context(), catalog.Ident{"demo", "t"})
	require.ErrorIs(t, err, catalog.ErrNotFound)
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// Without staged creates a place is found all the same, and never one of a dropped table.
func TestDefaultLocation_WithoutStaging(t *testing.T) {
	s := newServer(t)
	s.noStage = true
	c := s.open(t, s.url)
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	loc, err := c.DefaultLocation(t.Context(), catalog.Ident{"demo", "t"})
	require.NoError(t, err)
	require.Regexp(t, "^"+s.cat.Warehouse()+"/demo/t-[0-9a-f]{8}$", loc)
	c = s.open(t, s.url, func(o *rest.Options) { o.Warehouse = "prod" })
	_, err = c.DefaultLocation(t.Context(), catalog.Ident{"demo", "t"})
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "warehouse")
}
