package scheduler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/schedule"
)

// listing is a catalog of names. It counts how often a schema is listed.
type listing struct {
	catalog.Catalog
	tables map[string][]catalog.Ident // by schema, as text
	names  [][]string
	lists  int
}

func (l *listing) Namespaces(context.Context) ([][]string, error) { return l.names, nil }

func (l *listing) Tables(_ context.Context, ns []string) ([]catalog.Ident, error) {
	l.lists++
	if fmt.Sprint(ns) == "[gone]" {
		return nil, catalog.ErrNotFound
	}
	return l.tables[fmt.Sprint(ns)], nil
}

// A walk names every table once, schema by schema, also those of nested ones, and goes on where an earlier one stood.
func TestTableWalk_NamesEveryTableOnce(t *testing.T) {
	l := &listing{
		names: [][]string{{"b"}, {"a"}, {"gone"}, {"a", "b"}, {"empty"}},
		tables: map[string][]catalog.Ident{
			"[a]": {{"a", "z"}, {"a", "b"}}, "[a b]": {{"a", "b", "b"}, {"a", "b", "a"}}, "[b]": {{"b", "a"}},
		},
	}
	want := []catalog.Ident{{"a", "b"}, {"a", "z"}, {"a", "b", "a"}, {"a", "b", "b"}, {"b", "a"}}
	from := func(w *tableWalk, after catalog.Ident) (out []catalog.Ident) {
		for {
			id, err := w.next(t.Context(), after)
			require.NoError(t, err)
			if id == nil {
				return out
			}
			require.Equal(t, id, identOf(tableOf("c", id).Name))
			out, after = append(out, id), id
		}
	}
	w := &tableWalk{catalog: l}
	require.Equal(t, want, from(w, nil))
	require.Equal(t, len(l.names), l.lists, "each schema is listed once")
	for i, id := range want {
		require.Equal(t, want[i+1:], append([]catalog.Ident{}, from(&tableWalk{catalog: l}, id)...), "%v", id)
	}
	require.Equal(t, want[2:], from(w, catalog.Ident{"a", "zz"}), "behind one that was dropped")
}

// Jobs of schedules push out nobody's, and are seen by all; operators cancel them.
func TestMaintenance_JobsAreKeptApart(t *testing.T) {
	b := newBench(t)
	s := b.server
	put := func(i int, upkeep *journal.Upkeep, who string) {
		rec := journal.Job{ID: fmt.Sprintf("00000000-0000-7000-8000-%012d", i), Principal: who, SQL: "SHOW CATALOGS", State: journal.StateSuccessful, Finished: time.Now(), Upkeep: upkeep}
		require.NoError(t, s.journal.Update(func(tx *journal.Tx) error { return tx.PutJob(&rec) }))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.jobs[rec.ID] = newJob(s.ctx, rec); upkeep != nil {
			s.scheduled++
		}
	}
	put(0, nil, localPrincipal)
	for i := range keepScheduled + dropScheduled + 1 {
		put(1+i, &journal.Upkeep{Catalog: "lake"}, config.MaintenancePrincipal)
	}
	s.trim()
	s.mu.Lock()
	require.Len(t, s.jobs, keepScheduled+2)
	require.Equal(t, keepScheduled+1, s.scheduled)
	s.mu.Unlock()
	require.NotNil(t, s.job("00000000-0000-7000-8000-000000000000"), "a client's job stays")
	s.trim()
	j := s.job(fmt.Sprintf("00000000-0000-7000-8000-%012d", 500))
	require.True(t, s.seenBy(j, "anybody"))
	require.True(t, s.mayCancel(j, localPrincipal), "without tokens there is one principal")
	s.cfg.Auth.Tokens = []config.Token{{Principal: "a"}, {Principal: "op", Operator: true}}
	require.False(t, s.mayCancel(j, "a"))
	require.True(t, s.mayCancel(j, "op"))
}

// Keys name a run of one table, and fit.
func TestScheduledKey(t *testing.T) {
	long := catalog.Ident{string(slices.Repeat([]byte{'n'}, 1000)), "t"}
	a := schedule.Run{Table: tableOf("lake", long), Key: "commits/9223372036854775807"}
	b := a
	b.Table = tableOf("other", long)
	require.LessOrEqual(t, len(scheduledKey(a)), maxKey)
	require.Equal(t, scheduledKey(a), scheduledKey(a))
	require.NotEqual(t, scheduledKey(a), scheduledKey(b))
}
