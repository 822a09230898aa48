package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
)

const looseConfig = `{"defaults":{},"overrides":{"nessie.is-nessie-catalog":"true"}}`

// newLoose is a server that says that it is Nessie, and takes first appends as Nessie does.
func newLoose(t *testing.T) (*server, *catalogtest.Proxy, *catalog.Table) {
	s := newServer(t)
	s.loose, s.config = true, looseConfig
	require.NoError(t, s.cat.CreateNamespace(t.Context(), []string{"demo"}, false))
	tbl, err := s.cat.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	return s, catalogtest.NewProxy(t, s.url), tbl
}

// loosen makes of an append to an empty table one that replaces what the table has by now.
func (s *server) loosen(ctx context.Context, id catalog.Ident, requirements, updates []byte) (_, _ []byte, _ error) {
	now, err := s.cat.Load(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	var reqs, ups, kept []map[string]any
	if err := errors.Join(json.Unmarshal(requirements, &reqs), decode(updates, &ups)); err != nil {
		return nil, nil, err
	}
	for _, r := range reqs {
		if r["type"] != "assert-ref-snapshot-id" || r["snapshot-id"] != nil {
			kept = append(kept, r)
		}
	}
	if len(kept) == len(reqs) {
		return requirements, updates, nil
	}
	for _, u := range ups {
		if snap, ok := u["snapshot"].(map[string]any); ok {
			snap["sequence-number"] = now.Metadata.LastSequenceNumber() + 1
		}
	}
	requirements, err = json.Marshal(kept)
	if err == nil {
		updates, err = json.Marshal(ups)
	}
	return requirements, updates, err
}

// decode keeps ids of snapshots exact.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

func posts(p *catalogtest.Proxy) int {
	n := 0
	seen, _ := p.Seen()
	for _, r := range seen {
		if r.Method == http.MethodPost {
			n++
		}
	}
	return n
}

func head(t *testing.T, s *server, id catalog.Ident) (current int64, snapshots int) {
	now, err := s.cat.Load(t.Context(), id)
	require.NoError(t, err)
	require.NotNil(t, now.Metadata.CurrentSnapshot())
	return now.Metadata.CurrentSnapshot().SnapshotID, len(now.Metadata.Snapshots())
}

// The server by itself loses what somebody else has written: this is what the client keeps from happening.
func TestLoose_ServerTakesAFirstAppendThatIsNone(t *testing.T) {
	s, p, tbl := newLoose(t)
	careless := s.open(t, p.URL)
	s.config = plainConfig // so that this client trusts it
	_, err := careless.Namespaces(t.Context())
	require.NoError(t, err)
	theirs, ours := catalogtest.SnapshotID(), catalogtest.SnapshotID()
	for _, id := range []int64{theirs, ours} {
		reqs, ups := catalogtest.Append(tbl, id)
		_, err := careless.Commit(t.Context(), tbl.Ident, reqs, ups)
		require.NoError(t, err)
	}
	current, _ := head(t, s, tbl.Ident)
	require.Equal(t, ours, current)
}

// A first append to such a server goes out only if the table is still as it wants it, and its outcome is what the table shows.
func TestLoose_FirstAppends(t *testing.T) {
	for _, tc := range []struct {
		name  string
		state func(t *testing.T, s *server, tbl *catalog.Table, reqs, ups []byte)
		fault map[int]catalogtest.HTTPFault // the look is 0, the commit 1
		want  error
		sent  int
		lands bool
	}{
		{name: "the table is empty", sent: 1, lands: true},
		{name: "somebody else was first", state: func(t *testing.T, s *server, tbl *catalog.Table, _, _ []byte) {
			reqs, ups := catalogtest.Append(tbl, 4711)
			_, err := s.cat.Commit(t.Context(), tbl.Ident, reqs, ups)
			require.NoError(t, err)
		}, want: catalog.ErrConflict},
		{name: "it has landed already", state: func(t *testing.T, s *server, tbl *catalog.Table, reqs, ups []byte) {
			_, err := s.cat.Commit(t.Context(), tbl.Ident, reqs, ups)
			require.NoError(t, err)
		}, lands: true},
		{name: "it has landed, and others after it", state: func(t *testing.T, s *server, tbl *catalog.Table, reqs, ups []byte) {
			now, err := s.cat.Commit(t.Context(), tbl.Ident, reqs, ups)
			require.NoError(t, err)
			reqs, ups = catalogtest.Append(now, 4711)
			_, err = s.cat.Commit(t.Context(), tbl.Ident, reqs, ups)
			require.NoError(t, err)
		}, lands: true},
		{name: "the table is gone", state: func(t *testing.T, s *server, tbl *catalog.Table, _, _ []byte) {
			require.NoError(t, s.cat.Drop(t.Context(), tbl.Ident))
		}, want: catalog.ErrConflict},
		{name: "the table cannot be looked at", fault: map[int]catalogtest.HTTPFault{0: {Status: http.StatusServiceUnavailable}}, want: catalog.ErrNotSent},
		{name: "something else says that the table is gone", fault: map[int]catalogtest.HTTPFault{0: {Status: http.StatusNotFound, Plain: true}}, want: catalog.ErrNotSent},
		{name: "the reply is lost", fault: map[int]catalogtest.HTTPFault{1: {Applied: true}}, want: errUnknown, sent: 1, lands: true},
		{name: "the reply is cut", fault: map[int]catalogtest.HTTPFault{1: {Applied: true, Half: true}}, want: errUnknown, sent: 1, lands: true},
		{name: "the request is lost", fault: map[int]catalogtest.HTTPFault{1: {}}, want: errUnknown, sent: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, p, tbl := newLoose(t)
			c, ctx, id := s.open(t, p.URL), t.Context(), catalogtest.SnapshotID()
			_, err := c.Namespaces(ctx) // it has read the server's configuration
			require.NoError(t, err)
			reqs, ups := catalogtest.Append(tbl, id)
			if tc.state != nil {
				tc.state(t, s, tbl, reqs, ups)
			}
			p.Arm(tc.fault)
			_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
			requireOutcome(t, tc.want, err)
			assert.Equal(t, tc.sent, posts(p))
			now, err := s.cat.Load(ctx, tbl.Ident)
			if errors.Is(err, catalog.ErrNotFound) {
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.lands, now.Metadata.SnapshotByID(id) != nil)
			if theirs := now.Metadata.SnapshotByID(4711); theirs != nil {
				require.EqualValues(t, 4711, now.Metadata.CurrentSnapshot().SnapshotID, "what somebody else has written stays")
			}
		})
	}
}

// After a lost reply the identical request settles it: found, it is not sent again, also when others have gone on; not found, it is sent; and where somebody else was faster it is
// refused.
func TestLoose_LostReplyIsSettledByTheIdenticalRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		applied, others bool
		want            error
		sent            int
	}{
		"applied":                       {applied: true},
		"applied, and others followed":  {applied: true, others: true},
		"not applied":                   {sent: 1},
		"not applied, and others wrote": {others: true, want: catalog.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, tbl := newLoose(t)
			c, ctx, id, total := s.open(t, p.URL), t.Context(), catalogtest.SnapshotID(), 1
			_, err := c.Namespaces(ctx)
			require.NoError(t, err)
			reqs, ups := catalogtest.Append(tbl, id)
			p.Arm(map[int]catalogtest.HTTPFault{1: {Applied: tc.applied}})
			_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
			requireOutcome(t, errUnknown, err)
			if tc.others {
				now, err := s.cat.Load(ctx, tbl.Ident)
				require.NoError(t, err)
				r, u := catalogtest.Append(now, 4711)
				_, err = s.cat.Commit(ctx, tbl.Ident, r, u)
				require.NoError(t, err)
				if tc.applied {
					total++
				}
			}
			for range 2 {
				p.Arm(nil)
				_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
				requireOutcome(t, tc.want, err)
				require.Equal(t, tc.sent, posts(p))
				tc.sent = 0 // it is there by now
			}
			current, snapshots := head(t, s, tbl.Ident)
			assert.Equal(t, total, snapshots)
			if tc.others {
				assert.EqualValues(t, 4711, current)
			} else {
				assert.Equal(t, id, current)
			}
		})
	}
}

// Of the writers of one process that are all to be first, one is.
func TestLoose_FirstAppendsOfOneProcessQueue(t *testing.T) {
	s, p, tbl := newLoose(t)
	c := s.open(t, p.URL)
	results, ids := make([]error, 8), make([]int64, 8)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			ids[i] = catalogtest.SnapshotID()
			reqs, ups := catalogtest.Append(tbl, ids[i])
			_, results[i] = c.Commit(t.Context(), tbl.Ident, reqs, ups)
		})
	}
	all.Wait()
	current, snapshots := head(t, s, tbl.Ident)
	assert.Equal(t, 1, snapshots)
	for i, err := range results {
		if ids[i] == current {
			require.NoError(t, err)
			continue
		}
		requireOutcome(t, catalog.ErrConflict, err)
	}
}
