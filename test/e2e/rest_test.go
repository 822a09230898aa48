package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/restfixture"
)

// restCatalogStage is a cluster with a catalog named prod behind Iceberg's own REST adapter, and a look at it past the scheduler.
type restCatalogStage struct {
	*harness.Cluster
	t     *testing.T
	srv   *restfixture.Server
	truth *rest.Catalog
}

func newRESTCatalogStage(t *testing.T, env ...string) *restCatalogStage {
	srv := restfixture.Start(t, "file://"+t.TempDir(), "oauth=me:s3cret")
	url, warehouse := srv.Catalog()
	c := harness.New(t, harness.Options{
		Executors: 2, SchedulerEnv: append(env, "PROD_CREDENTIAL=me:s3cret"),
		CatalogConfig: fmt.Sprintf("  prod:\n    type: rest\n    uri: %s\n    warehouse: %s\n    secret: {credential: {env: PROD_CREDENTIAL}}\n", url, warehouse),
	})
	truth, err := rest.Open(t.Context(), rest.Options{Name: "prod", URI: url, Warehouse: warehouse, Secrets: map[string]string{"credential": "me:s3cret"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, truth.Close()) })
	return &restCatalogStage{Cluster: c, t: t, srv: srv, truth: truth}
}

func (s *restCatalogStage) table(name string) *catalog.Table {
	s.t.Helper()
	tbl, err := s.truth.Load(context.Background(), catalog.Ident{"demo", name})
	require.NoError(s.t, err)
	return tbl
}

// markers are the jobs that have landed in a table.
func (s *restCatalogStage) markers(name string) int {
	n := 0
	for k, v := range s.table(name).Metadata.Properties() {
		if strings.HasPrefix(k, "signet.landed.") {
			n += len(strings.Split(v, ","))
		}
	}
	return n
}

func TestREST_Statements(t *testing.T) {
	t.Parallel()
	s := newRESTCatalogStage(t)
	s.SQL("CREATE SCHEMA prod.demo")
	s.SQL("CREATE TABLE prod.demo.t (id BIGINT NOT NULL, s STRUCT(a INTEGER, b VARCHAR), name VARCHAR)")
	s.SQL("INSERT INTO prod.demo.t SELECT i, {'a': i, 'b': 'b' || i}, 'n' || i FROM range(0, 100) r(i)")
	require.Equal(t, "100,4950,4950", strings.Join(s.SQL("SELECT count(*), sum(id), sum(s.a) FROM prod.demo.t")[0], ","), "nested columns have ids of the server's")
	s.SQL("CREATE TABLE prod.demo.u AS SELECT id, name, s FROM prod.demo.t WHERE id < 50")
	s.SQL("UPDATE prod.demo.u SET name = 'x' WHERE id % 2 = 0")
	s.SQL("DELETE FROM prod.demo.u WHERE id >= 40")
	s.SQL("MERGE INTO prod.demo.u AS u USING prod.demo.t AS t ON u.id = t.id WHEN MATCHED AND u.name = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'm' WHEN NOT MATCHED AND t.id >= 90 THEN INSERT (id, name) VALUES (t.id, t.name)")
	require.Equal(t, "30,20,10", strings.Join(s.SQL("SELECT count(*), count(*) FILTER (name = 'm'), count(*) FILTER (name LIKE 'n9_') FROM prod.demo.u")[0], ","))
	s.SQL("ALTER TABLE prod.demo.u ADD COLUMN more INTEGER")
	s.SQL("INSERT INTO prod.demo.u (id, more) SELECT 1000, 7")
	require.Equal(t, "7", s.Value("SELECT sum(more) FROM prod.demo.u"))
	require.Len(t, s.table("u").Metadata.Snapshots(), 5)
	require.Equal(t, 5, s.markers("u"))

	// The server names itself where it fails, and nothing is left behind.
	s.Fail(1, "CREATE TABLE prod.demo.t (id BIGINT)", "exists")
	s.SQL("CREATE TABLE prod.demo.v1 WITH ('format-version' = '1') AS SELECT 1 AS id")
	s.Fail(1, "INSERT INTO prod.demo.v1 SELECT 2", "format version 1")
	require.Equal(t, "1", s.Value("SELECT count(*) FROM prod.demo.v1"))
	s.SQL("DROP TABLE prod.demo.u")
	_, err := s.truth.Load(context.Background(), catalog.Ident{"demo", "u"})
	require.ErrorIs(t, err, catalog.ErrNotFound)
	require.Equal(t, [][]string{{"t"}, {"v1"}}, s.SQL("SHOW TABLES FROM prod.demo"))
}

// Eight jobs append to one table at once, while the server loses answers, cuts connections and refuses for no reason.
func TestREST_ConcurrentInserts(t *testing.T) {
	t.Parallel()
	s := newRESTCatalogStage(t)
	s.SQL("CREATE SCHEMA prod.demo")
	s.SQL("CREATE TABLE prod.demo.t (id BIGINT)")
	for round, mode := range []string{"", "lost", "drop", "gateway", "busy", "conflict"} {
		if mode != "" {
			s.srv.Fault(t, mode, 3)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				from := (round*8 + i) * 10
				r := s.Run("sql", fmt.Sprintf("INSERT INTO prod.demo.t SELECT i FROM range(%d, %d) r(i)", from, from+10))
				require.Zero(t, r.Code, "%s: %s", mode, r.Err)
			})
		}
		wg.Wait()
		rows := (round + 1) * 80
		require.Equal(t, fmt.Sprintf("%d,%d", rows, rows*(rows-1)/2), strings.Join(s.SQL("SELECT count(*), sum(id) FROM prod.demo.t")[0], ","), mode)
		require.Equal(t, (round+1)*8, s.markers("t"), mode)
	}
}

// restCrashes are the points around a commit at which the scheduler dies.
var restCrashes = []string{
	"broker.seal.before", "broker.seal.after", "broker.commit.after-send", "broker.settle.before", "broker.settle.after", "scheduler.seal.after-journal",
	"scheduler.settle.before-journal", "scheduler.settle.after-journal",
}

func TestREST_SchedulerDiesAroundTheCommit(t *testing.T) {
	t.Parallel()
	faults := harness.NewFaults(t)
	s := newRESTCatalogStage(t, faults.Env(restCrashes...))
	s.SQL("CREATE SCHEMA prod.demo")
	s.SQL("CREATE TABLE prod.demo.t (id BIGINT)")
	for i, point := range restCrashes {
		for _, create := range []bool{false, true}[:1+i%2] {
			text, name := fmt.Sprintf("INSERT INTO prod.demo.t SELECT i FROM range(%d, %d) r(i)", i*10, i*10+10), "t"
			if create {
				name = fmt.Sprintf("u%d", i)
				text = fmt.Sprintf("CREATE TABLE prod.demo.%s AS SELECT i FROM range(0, 10) r(i)", name)
			}
			done := make(chan harness.Result, 1)
			faults.Arm(t, point, 0)
			go func() { done <- s.Run("sql", "--retry-for", "5m", text) }()
			s.Scheduler.Wait(t)
			require.True(t, s.Scheduler.Killed(), point)
			s.StartScheduler(faults.Env(restCrashes...), "PROD_CREDENTIAL=me:s3cret")
			r := <-done
			require.Zero(t, r.Code, "%s: %s", point, r.Err)
			faults.Disarm(t, point)
			if create {
				require.Equal(t, "10", s.Value("SELECT count(*) FROM prod.demo."+name), point)
				require.Equal(t, 1, s.markers(name), point)
				continue
			}
			require.Equal(t, fmt.Sprint(i*10+10), s.Value("SELECT count(*) FROM prod.demo.t"), point)
			require.Equal(t, i+1, s.markers("t"), point)
			require.Len(t, s.table("t").Metadata.Snapshots(), i+1, point)
		}
	}
}
