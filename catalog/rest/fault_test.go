package rest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/rest"
)

// errUnknown stands for an error that says nothing about the outcome.
var errUnknown = errors.New("unknown")

var definite = []error{catalog.ErrConflict, catalog.ErrPermanent, catalog.ErrNotSent, catalog.ErrNotFound, catalog.ErrExists}

func requireOutcome(t *testing.T, want, got error) {
	t.Helper()
	switch {
	case want == nil:
		require.NoError(t, got)
	case errors.Is(want, errUnknown):
		require.Error(t, got)
		for _, d := range definite {
			require.NotErrorIs(t, got, d)
		}
	default:
		require.ErrorIs(t, got, want)
		for _, d := range []error{catalog.ErrConflict, catalog.ErrPermanent, catalog.ErrNotSent} {
			if !errors.Is(want, d) {
				require.NotErrorIs(t, got, d)
			}
		}
	}
}

// Every class of outcomes of a commit. The table that is written to is as the request wants it (fits), has moved on, is gone, or holds the request already (S68).
func TestCommit_Outcomes(t *testing.T) {
	const (
		fits = iota
		moved
		gone
		holds
		older // nothing the request demands has changed, but its sequence number is used
	)
	status := func(n int) catalogtest.HTTPFault { return catalogtest.HTTPFault{Status: n} }
	after := func(n int) catalogtest.HTTPFault { return catalogtest.HTTPFault{Applied: true, Status: n} }
	s := newServer(t)
	p := catalogtest.NewProxy(t, s.url)
	require.NoError(t, s.cat.CreateNamespace(t.Context(), []string{"demo"}, false))
	page := func(n int) catalogtest.HTTPFault { return catalogtest.HTTPFault{Status: n, Plain: true} }
	for _, tc := range []struct {
		name  string
		fault catalogtest.HTTPFault
		state int
		want  error
	}{
		{"409, and the table has moved", status(409), moved, catalog.ErrConflict},
		{"409, and the sequence number is used", status(409), older, catalog.ErrConflict},
		{"409, and nothing has changed: a lock, or the first of two in flight", status(409), fits, errUnknown},
		{"409 with Retry-After", catalogtest.HTTPFault{Status: 409, Header: "Retry-After"}, fits, errUnknown},
		{"409 to a repetition of what has landed", status(409), holds, nil},
		{"409 after it was applied", after(409), fits, nil},
		{"409, and the table is gone", status(409), gone, catalog.ErrConflict},
		{"400, and nothing has changed", status(400), fits, catalog.ErrPermanent},
		{"400, and the table has moved", status(400), moved, catalog.ErrConflict},
		{"400, and the sequence number is used", status(400), older, catalog.ErrConflict},
		{"400 after it was applied", after(400), fits, nil},
		{"422", status(422), fits, catalog.ErrPermanent},
		{"404 of the catalog, and the table is gone", status(404), gone, catalog.ErrConflict},
		{"404 of the catalog, and the table is there", status(404), fits, errUnknown},
		{"404 of something else", page(404), fits, errUnknown},
		{"403", status(403), fits, catalog.ErrPermanent},
		{"401", status(401), fits, catalog.ErrPermanent},
		{"419", status(419), fits, catalog.ErrPermanent},
		{"405", status(405), fits, catalog.ErrPermanent},
		{"406", status(406), fits, catalog.ErrPermanent},
		{"413", page(413), fits, catalog.ErrPermanent},
		{"501", status(501), fits, catalog.ErrPermanent},
		{"408", status(408), fits, errUnknown},
		{"429", status(429), fits, errUnknown},
		{"500", status(500), fits, errUnknown},
		{"500 after it was applied", after(500), fits, errUnknown},
		{"502", page(502), fits, errUnknown},
		{"503 that applied nothing", status(503), fits, errUnknown},
		{"503 after it was applied", after(503), fits, errUnknown},
		{"504 after it was applied", after(504), fits, errUnknown},
		{"cut before it was applied", catalogtest.HTTPFault{}, fits, errUnknown},
		{"cut after it was applied", catalogtest.HTTPFault{Applied: true}, fits, errUnknown},
		{"cut in the middle of the answer", catalogtest.HTTPFault{Applied: true, Half: true}, fits, errUnknown},
		{"200 of something else", page(200), fits, errUnknown},
		{"200 of something else, and it was applied", catalogtest.HTTPFault{Applied: true, Status: 200, Plain: true}, fits, nil},
		{"201", status(201), fits, errUnknown},
		{"204", after(204), fits, errUnknown},
		{"307 elsewhere", page(307), fits, catalog.ErrPermanent},
		{"303 elsewhere: it may have been applied", page(303), fits, errUnknown},
		{"302 elsewhere", page(302), fits, errUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, ctx := s.open(t, p.URL), t.Context()
			tbl, err := c.Create(ctx, catalog.Ident{"demo", tc.name}, catalogtest.Spec())
			require.NoError(t, err)
			id := catalogtest.SnapshotID()
			reqs, ups := catalogtest.Append(tbl, id)
			switch tc.state {
			case moved:
				r, u := catalogtest.Append(tbl, catalogtest.SnapshotID())
				_, err = s.cat.Commit(ctx, tbl.Ident, r, u)
			case older:
				r, u := catalogtest.Append(tbl, catalogtest.SnapshotID())
				_, err = s.cat.Commit(ctx, tbl.Ident, r, u)
				reqs = []byte(`[]`)
			case gone:
				err = s.cat.Drop(ctx, tbl.Ident)
			case holds:
				_, err = s.cat.Commit(ctx, tbl.Ident, reqs, ups)
			}
			require.NoError(t, err)
			p.Arm(map[int]catalogtest.HTTPFault{0: tc.fault})
			out, err := c.Commit(ctx, tbl.Ident, reqs, ups)
			requireOutcome(t, tc.want, err)
			if err == nil {
				assert.NotNil(t, out.Metadata.SnapshotByID(id))
			}
			sent := 0
			seen, bodies := p.Seen()
			for i, r := range seen {
				if r.Method == http.MethodPost {
					sent++
					require.Contains(t, string(bodies[i]), `"requirements":`+string(reqs)+`,"updates":`+string(ups)+`}`, "byte for byte")
				}
			}
			assert.Equal(t, 1, sent, "one send is one send")
		})
	}
}

// What the outcome of a create that is part of a commit is.
func TestCommit_OutcomesOfStagedCreates(t *testing.T) {
	s := newServer(t)
	p := catalogtest.NewProxy(t, s.url)
	require.NoError(t, s.cat.CreateNamespace(t.Context(), []string{"demo"}, false))
	for name, tc := range map[string]struct {
		fault  catalogtest.HTTPFault
		exists bool
		want   error
	}{
		"404: no namespace":                {catalogtest.HTTPFault{Status: 404}, false, catalog.ErrPermanent},
		"404 of something else":            {catalogtest.HTTPFault{Status: 404, Plain: true}, false, errUnknown},
		"409, and the name is taken":       {catalogtest.HTTPFault{Status: 409}, true, catalog.ErrConflict},
		"409, and no table is there":       {catalogtest.HTTPFault{Status: 409}, false, errUnknown},
		"400, and no table is there":       {catalogtest.HTTPFault{Status: 400}, false, catalog.ErrPermanent},
		"409 after it was applied":         {catalogtest.HTTPFault{Applied: true, Status: 409}, false, nil},
		"400 after it was applied":         {catalogtest.HTTPFault{Applied: true, Status: 400}, false, nil},
		"503":                              {catalogtest.HTTPFault{Status: 503}, false, errUnknown},
		"cut in the middle of the answer":  {catalogtest.HTTPFault{Applied: true, Half: true}, false, errUnknown},
		"406: it creates no staged tables": {catalogtest.HTTPFault{Status: 406}, false, catalog.ErrPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			c, id := s.open(t, p.URL), catalog.Ident{"demo", name}
			if tc.exists {
				_, err := s.cat.Create(t.Context(), id, catalogtest.Spec())
				require.NoError(t, err)
			}
			location, err := c.DefaultLocation(t.Context(), id)
			require.NoError(t, err)
			reqs, ups := catalogtest.Staged(uuid.NewString(), location, 7)
			p.Arm(map[int]catalogtest.HTTPFault{0: tc.fault})
			_, err = c.Commit(t.Context(), id, reqs, ups)
			requireOutcome(t, tc.want, err)
		})
	}
}

// Nothing was sent where there was nobody to send it to, and where no token could be had.
func TestCommit_NotSent(t *testing.T) {
	nobody := "http://127.0.0.1:1"
	s := newServer(t)
	ctx := t.Context()
	require.NoError(t, s.cat.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := s.cat.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	reqs, ups := catalogtest.Append(tbl, 1)

	_, err = s.open(t, nobody).Commit(ctx, tbl.Ident, reqs, ups)
	requireOutcome(t, catalog.ErrNotSent, err)

	c := s.open(t, s.url, func(o *rest.Options) {
		o.Properties = map[string]string{"oauth2-server-uri": nobody}
		o.Secrets = map[string]string{"credential": "me:secret-4711"}
	})
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	requireOutcome(t, catalog.ErrNotSent, err)
	require.NotContains(t, err.Error(), "secret-4711")

	// The server goes away between two calls: the connection that was kept is closed before anything is written, or while it is.
	p := catalogtest.NewProxy(t, s.url)
	c = s.open(t, p.URL)
	_, err = c.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = c.Commit(cancelled, tbl.Ident, reqs, ups)
	requireOutcome(t, catalog.ErrNotSent, err)
	require.ErrorIs(t, err, context.Canceled)
	now, err := s.cat.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	require.Empty(t, now.Metadata.Snapshots())
}

// A request without a snapshot that the table shows already is not told from one that has just landed: no conflict, no success.
func TestCommit_ConflictOfWhatTheTableShowsIsUnknown(t *testing.T) {
	s := newServer(t)
	p := catalogtest.NewProxy(t, s.url)
	c := s.open(t, p.URL)
	ctx := t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	ups := []byte(`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"name","required":false,"type":"string"},{"id":3,"name":"more","required":false,"type":"int"}]},"last-column-id":3},{"action":"set-current-schema","schema-id":-1}]`)
	reqs := []byte(`[{"type":"assert-table-uuid","uuid":"` + tbl.UUID + `"},{"type":"assert-current-schema-id","current-schema-id":0}]`)
	p.Arm(map[int]catalogtest.HTTPFault{0: {Applied: true, Status: 409}})
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	requireOutcome(t, errUnknown, err)
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	requireOutcome(t, errUnknown, err)
	other := []byte(`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"name","required":false,"type":"string"},{"id":3,"name":"other","required":false,"type":"int"}]},"last-column-id":3},{"action":"set-current-schema","schema-id":-1}]`)
	_, err = c.Commit(ctx, tbl.Ident, reqs, other)
	requireOutcome(t, catalog.ErrConflict, err)
}

func TestFaultAtEveryCall(t *testing.T) {
	s := newServer(t)
	p := catalogtest.NewProxy(t, s.url)
	require.NoError(t, s.cat.CreateNamespace(t.Context(), []string{"demo"}, false))
	catalogtest.FaultAtEveryCall(t, p, []string{"demo"}, s.cat, func(t *testing.T) catalog.Catalog { return s.open(t, p.URL) })
}
