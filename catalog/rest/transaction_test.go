package rest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
)

// transact applies all changes or none, unless the test has it lose some (I9), or stop in the middle.
func (s *server) transact(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Changes []struct {
			Identifier            struct{ Namespace, Name any }
			Requirements, Updates json.RawMessage
		} `json:"table-changes"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, catalog.ErrPermanent)
		return
	}
	s.one.Lock()
	defer s.one.Unlock()
	try := func(dry bool) error {
		for _, c := range body.Changes {
			name, _ := c.Identifier.Name.(string)
			if slices.Contains(s.loses, name) {
				continue
			}
			id := catalog.Ident{"demo", name}
			reqs, ups := c.Requirements, c.Updates
			if dry { // the requirements alone
				ups = []byte(`[{"action":"set-properties","updates":{}}]`)
			}
			if _, err := s.cat.Commit(r.Context(), id, reqs, ups); err != nil {
				return err
			}
		}
		return nil
	}
	if err := try(true); err != nil {
		fail(w, err)
		return
	}
	if err := try(false); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func twoTables(t *testing.T, s *server) []*catalog.Table {
	require.NoError(t, s.cat.CreateNamespace(t.Context(), []string{"demo"}, false))
	var out []*catalog.Table
	for _, name := range []string{"a", "b"} {
		tbl, err := s.cat.Create(t.Context(), catalog.Ident{"demo", name}, catalogtest.Spec())
		require.NoError(t, err)
		out = append(out, tbl)
	}
	return out
}

// changes append one snapshot to each table.
func changes(tables []*catalog.Table) (all []catalog.Change, ids []int64) {
	for _, tbl := range tables {
		id := catalogtest.SnapshotID()
		reqs, ups := catalogtest.Append(tbl, id)
		all, ids = append(all, catalog.Change{Ident: tbl.Ident, Requirements: reqs, Updates: ups}), append(ids, id)
	}
	return all, ids
}

// Whatever is answered, a transaction has landed where every table shows it, and nowhere else.
func TestTransaction_Outcomes(t *testing.T) {
	advance := func(t *testing.T, s *server, tbl *catalog.Table) {
		reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
		_, err := s.cat.Commit(t.Context(), tbl.Ident, reqs, ups)
		require.NoError(t, err)
	}
	for name, tc := range map[string]struct {
		fault *catalogtest.HTTPFault // of the request that commits
		loses []string               // changes that the server forgets, and says that it is done
		moved []int                  // tables that have moved on before
		gone  bool                   // the second table
		want  error
		torn  bool
		lands []bool
	}{
		"both":                              {lands: []bool{true, true}},
		"one has moved on":                  {moved: []int{1}, want: catalog.ErrConflict, lands: []bool{false, false}},
		"one is gone":                       {gone: true, want: catalog.ErrConflict, lands: []bool{false, false}},
		"refused":                           {fault: &catalogtest.HTTPFault{Status: 400}, want: catalog.ErrPermanent, lands: []bool{false, false}},
		"forbidden":                         {fault: &catalogtest.HTTPFault{Status: 403}, want: catalog.ErrPermanent, lands: []bool{false, false}},
		"409, and nothing has changed":      {fault: &catalogtest.HTTPFault{Status: 409}, want: errUnknown, lands: []bool{false, false}},
		"409 after it was applied":          {fault: &catalogtest.HTTPFault{Applied: true, Status: 409}, lands: []bool{true, true}},
		"cut after it was applied":          {fault: &catalogtest.HTTPFault{Applied: true}, want: errUnknown, lands: []bool{true, true}},
		"cut before":                        {fault: &catalogtest.HTTPFault{}, want: errUnknown, lands: []bool{false, false}},
		"503":                               {fault: &catalogtest.HTTPFault{Status: 503}, want: errUnknown, lands: []bool{false, false}},
		"504 after it was applied":          {fault: &catalogtest.HTTPFault{Applied: true, Status: 504}, want: errUnknown, lands: []bool{true, true}},
		"200 of something else":             {fault: &catalogtest.HTTPFault{Status: 200, Plain: true}, want: errUnknown, lands: []bool{false, false}},
		"204, and both are lost":            {loses: []string{"a", "b"}, want: errUnknown, lands: []bool{false, false}},
		"204, and one is lost":              {loses: []string{"b"}, want: errUnknown, lands: []bool{true, false}},
		"204, and one is lost to another":   {loses: []string{"b"}, moved: []int{1}, torn: true, want: errUnknown, lands: []bool{true, false}},
		"204, and both are lost to another": {loses: []string{"a", "b"}, moved: []int{0, 1}, want: catalog.ErrConflict, lands: []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			tables := twoTables(t, s)
			p := catalogtest.NewProxy(t, s.url)
			c, ctx := s.open(t, p.URL), t.Context()
			_, err := c.Namespaces(ctx)
			require.NoError(t, err)
			all, ids := changes(tables)
			for _, i := range tc.moved {
				advance(t, s, tables[i])
			}
			if tc.gone {
				require.NoError(t, s.cat.Drop(ctx, tables[1].Ident))
			}
			s.loses = tc.loses
			if p.Arm(nil); tc.fault != nil {
				p.Arm(map[int]catalogtest.HTTPFault{0: *tc.fault})
			}
			got, err := c.CommitTransaction(ctx, all)
			requireOutcome(t, tc.want, err)
			torn := new(catalog.TornError)
			require.Equal(t, tc.torn, errors.As(err, &torn))
			if tc.torn {
				require.Equal(t, []catalog.Ident{{"demo", "a"}}, torn.Landed)
				require.Equal(t, []catalog.Ident{{"demo", "b"}}, torn.Lost)
			}
			require.Equal(t, 1, posts(p), "one send is one send")
			for i, tbl := range tables {
				now, err := s.cat.Load(ctx, tbl.Ident)
				if tc.gone && i == 1 {
					require.ErrorIs(t, err, catalog.ErrNotFound)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, tc.lands[i], now.Metadata.SnapshotByID(ids[i]) != nil)
				if got != nil {
					require.NotNil(t, got[i].Metadata.SnapshotByID(ids[i]))
				}
			}
			if tc.want == nil || tc.lands[0] && tc.lands[1] { // the identical request finds it
				for range 2 {
					_, err = c.CommitTransaction(ctx, all)
					require.NoError(t, err)
				}
			}
		})
	}
}

func TestTransaction_Refused(t *testing.T) {
	s := newServer(t)
	tables := twoTables(t, s)
	p := catalogtest.NewProxy(t, s.url)
	c := s.open(t, p.URL)
	all, _ := changes(tables)
	reqs, ups := catalogtest.SetProperties(tables[0], map[string]string{"a": "b"})
	made, madeUps := catalogtest.Staged("", tables[0].Location+"-x", 7)
	for name, bad := range map[string][]catalog.Change{
		"nothing":        nil,
		"a table twice":  {all[0], all[1], all[0]},
		"no snapshot":    {all[1], {Ident: tables[0].Ident, Requirements: reqs, Updates: ups}},
		"a table is new": {all[1], {Ident: catalog.Ident{"demo", "x"}, Requirements: made, Updates: madeUps}},
		"bad name":       {{Ident: catalog.Ident{"x"}, Requirements: all[0].Requirements, Updates: all[0].Updates}},
		"no request":     {all[0], {Ident: tables[1].Ident, Requirements: []byte(`[`), Updates: all[1].Updates}},
	} {
		_, err := c.CommitTransaction(t.Context(), bad)
		require.ErrorIs(t, err, catalog.ErrPermanent, name)
	}
	s.config = `{"defaults":{},"overrides":{},"endpoints":["GET /v1/{prefix}/namespaces"]}`
	_, err := s.open(t, s.url).CommitTransaction(t.Context(), all)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "POST /v1/{prefix}/transactions/commit")
	require.Zero(t, posts(p), "nothing was sent")
	_, err = s.open(t, "http://127.0.0.1:1").CommitTransaction(t.Context(), all)
	requireOutcome(t, catalog.ErrNotSent, err)
}

// A server that takes any first append gets none that is not one.
func TestTransaction_FirstAppendsOfLooseServers(t *testing.T) {
	s := newServer(t)
	tables := twoTables(t, s)
	s.config = looseConfig
	p := catalogtest.NewProxy(t, s.url)
	c := s.open(t, p.URL)
	all, _ := changes(tables)
	reqs, ups := catalogtest.Append(tables[1], 4711)
	_, err := s.cat.Commit(t.Context(), tables[1].Ident, reqs, ups)
	require.NoError(t, err)
	_, err = c.CommitTransaction(t.Context(), all)
	requireOutcome(t, catalog.ErrConflict, err)
	require.Zero(t, posts(p))
}
