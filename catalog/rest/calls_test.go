package rest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/rest"
)

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
