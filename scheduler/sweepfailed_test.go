package scheduler

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/rest"
	catalogsql "github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
)

// vending is a catalog whose table t is there or not, and which gives keys of a store for it or not.
type vending struct {
	store       *objectstest.Server
	table       atomic.Pointer[catalog.Table]
	gives, down atomic.Bool
}

const sweptTable = "s3://" + objectstest.Bucket + "/wh/demo/t"

func (v *vending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doc := map[string]any{}
	switch t := v.table.Load(); {
	case v.down.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/v1/config":
		doc["defaults"] = map[string]string{}
	case r.Method == http.MethodPost: // a table is staged
		doc["metadata"] = map[string]string{"location": sweptTable}
	case t == nil:
		w.WriteHeader(http.StatusNotFound)
		doc["error"] = map[string]any{"type": "NoSuchTableException", "code": 404}
	default:
		doc["metadata-location"], doc["metadata"] = t.MetadataLocation, json.RawMessage(t.Raw)
	}
	if v.gives.Load() {
		doc["storage-credentials"] = []any{map[string]any{"prefix": sweptTable, "config": v.store.Props()}}
	}
	_ = json.NewEncoder(w).Encode(doc)
}

// S72: a sweep that fails is tried more and more rarely. Where its table is gone and nothing leads to the place for a day, it is given up, and that is told.
func TestSweep_EndsWhereNothingReachesThePlace_S72(t *testing.T) {
	v := &vending{store: objectstest.Start(t)}
	srv := httptest.NewServer(v)
	defer srv.Close()
	audit := filepath.Join(t.TempDir(), "audit")
	b := newBenchWith(t, func(c *config.Config) { c.Audit.File = audit })
	s := b.server
	cat, err := rest.Open(t.Context(), rest.Options{Name: "lake", URI: srv.URL, Vending: &rest.Vending{}})
	require.NoError(t, err)
	s.catalogs["prod"] = &catalogEntry{name: "prod", sink: "iceberg", catalog: cat}
	const prefix = sweptTable + "/data/job/0/0/attempt"
	duty := func() (out *journal.Duty) {
		require.NoError(t, s.journal.View(func(tx *journal.Tx) error {
			return tx.Duties(func(d *journal.Duty) error { c := *d; out = &c; return nil })
		}))
		return out
	}
	put := func(d *journal.Duty) {
		require.NoError(t, s.journal.Update(func(tx *journal.Tx) error { return tx.PutDuty(d) }))
	}
	// It is not due before the server's own loop has ended with the test.
	owe := func() {
		put(&journal.Duty{
			Prefix: prefix, Catalog: "prod", Location: sweptTable, Ident: []string{"demo", "t"}, Job: "job", Attempt: "attempt", NotBefore: time.Now().Add(time.Hour), Sweeps: 1,
		})
	}
	// due is a try, as if the first had been so long ago.
	due := func(ago time.Duration) *journal.Duty {
		d := duty()
		require.NotNil(t, d)
		if d.Failures > 0 {
			d.FailingSince = time.Now().Add(-ago)
		}
		if err := s.sweep(t.Context(), *d); err != nil {
			s.sweepFailed(t.Context(), *d, err)
		}
		return duty()
	}

	owe()
	for n := 1; n <= 9; n++ {
		d := due(23 * time.Hour)
		require.NotNil(t, d)
		require.Equal(t, n, d.Failures)
		pause := min(time.Minute<<(n-1), time.Hour)
		require.WithinRange(t, d.NotBefore, time.Now().Add(pause-30*time.Second), time.Now().Add(pause))
		d.Confirmed, d.Sweeps = true, 0
		require.False(t, s.sweepDue(d, time.Now()), "not before its time, although its executor has confirmed the end")
		require.True(t, s.sweepDue(d, d.NotBefore))
	}

	v.down.Store(true) // which says nothing about the place
	require.NotNil(t, due(100*time.Hour))
	v.down.Store(false)
	made := madeTable(t)
	v.table.Store(made) // the table is there: somebody has to set up vending again
	require.NotNil(t, due(100*time.Hour))
	d := duty()
	d.Until = time.Now().Add(time.Hour)
	put(d)
	v.table.Store(nil)
	require.NotNil(t, due(100*time.Hour), "somebody may still write there")
	require.NotContains(t, b.log.String(), "given up")
	d = duty()
	d.Until = time.Time{}
	put(d)
	require.Nil(t, due(25*time.Hour))
	require.Contains(t, b.log.String(), "clean-up is given up")
	require.Contains(t, b.log.String(), prefix)
	b.eventually("the audit log tells", func() bool {
		text, _ := os.ReadFile(audit)
		return strings.Contains(string(text), `"event":"left"`) && strings.Contains(string(text), prefix)
	})

	// What leads there again in time does the work.
	owe()
	require.Equal(t, 1, due(0).Failures)
	v.gives.Store(true)
	require.Nil(t, due(time.Hour))
}

// madeTable is a table's metadata at sweptTable.
func madeTable(t *testing.T) *catalog.Table {
	dir := t.TempDir()
	c, err := catalogsql.Open(t.Context(), catalogsql.Options{Name: "c", URI: "sqlite://" + filepath.Join(dir, "c.db"), Warehouse: "file://" + dir})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	made, err := c.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	raw, err := c.RawMetadata(t.Context(), made)
	require.NoError(t, err)
	made.Raw = []byte(strings.ReplaceAll(string(raw), fmt.Sprintf("%q", made.Location), fmt.Sprintf("%q", sweptTable)))
	return made
}
