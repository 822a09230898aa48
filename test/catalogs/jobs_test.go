package catalogs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/nessie"
	"github.com/signet-io/signet/test/servers/weed"
)

// stage is a cluster with a catalog named prod on somebody else's server. Neither the scheduler nor an executor is told a key of the store: the catalog gives them.
type stage struct {
	*harness.Cluster
	env    []string // of the scheduler
	python string   // PyIceberg's properties of the same catalog
}

func onWeed(t *testing.T, store *weed.Server, at string) *stage {
	s := &stage{env: []string{"PROD_CREDENTIAL=" + store.AccessKey + ":" + store.SecretKey}}
	s.python = fmt.Sprintf(`uri=%q, warehouse="s3://%s", credential=%q, **{"header.X-Iceberg-Access-Delegation": "vended-credentials"}`,
		store.REST, weed.Warehouse, store.AccessKey+":"+store.SecretKey)
	s.Cluster = harness.New(t, harness.Options{Executors: 2, SchedulerEnv: s.env, CatalogConfig: fmt.Sprintf(
		"  prod:\n    type: rest\n    uri: %s\n    warehouse: s3://%s\n    secret: {credential: {env: PROD_CREDENTIAL}}\n    credentials: {mode: vended}\n", at, weed.Warehouse)})
	return s
}

func onNessie(t *testing.T, store *weed.Server) *stage {
	makeBucket(t, store, lake)
	n := nessie.Start(t, store, lake)
	s := &stage{python: fmt.Sprintf(`uri=%q, warehouse=%q, **{"header.X-Iceberg-Access-Delegation": "vended-credentials"}`, n.URL, n.Warehouse)}
	s.Cluster = harness.New(t, harness.Options{Executors: 2, CatalogConfig: fmt.Sprintf(
		"  prod:\n    type: rest\n    uri: %s\n    warehouse: %s\n    credentials: {mode: vended}\n", n.URL, n.Warehouse)})
	return s
}

// Statements of all kinds, eight jobs at once in the middle of which the scheduler is killed, and PyIceberg, which reads the same rows through the same server.
func TestJobs(t *testing.T) {
	for name, on := range map[string]func(*testing.T, *weed.Server) *stage{
		"SeaweedFS": func(t *testing.T, store *weed.Server) *stage { return onWeed(t, store, store.REST) },
		"Nessie":    onNessie,
	} {
		t.Run(name, func(t *testing.T) {
			store := weed.Start(t)
			s := on(t, store)
			s.SQL("CREATE SCHEMA prod.demo")
			s.SQL("CREATE TABLE prod.demo.t (id BIGINT NOT NULL, s STRUCT(a INTEGER, b VARCHAR), name VARCHAR)")
			s.eightJobs(t)
			s.SQL("CREATE TABLE prod.demo.u AS SELECT id, name, s FROM prod.demo.t WHERE id < 500")
			s.SQL("UPDATE prod.demo.u SET name = 'x' WHERE id % 2 = 0")
			s.SQL("DELETE FROM prod.demo.u WHERE id >= 400")
			s.SQL("ALTER TABLE prod.demo.u ADD COLUMN more INTEGER")
			s.SQL("INSERT INTO prod.demo.u (id, more) SELECT 1000, 7")
			require.Equal(t, "401,200,7,79800", strings.Join(s.SQL("SELECT count(*), count(*) FILTER (name = 'x'), sum(more), sum(s.a) FROM prod.demo.u")[0], ","))
			s.Fail(1, "CREATE TABLE prod.demo.t (id BIGINT)", "exists")
			s.pyIceberg(t)
			s.SQL("DROP TABLE prod.demo.u")
			require.Equal(t, [][]string{{"t"}}, s.SQL("SHOW TABLES FROM prod.demo"))
		})
	}
}

const jobs, rowsOfEach = 8, 1000

// eightJobs: the scheduler dies when it has been given all of them, and comes back. Each job lands once.
func (s *stage) eightJobs(t *testing.T) {
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() {
			r := s.Run("sql", "--retry-for", "5m", fmt.Sprintf("INSERT INTO prod.demo.t SELECT i, {'a': i, 'b': 'b' || i}, 'n' || i FROM range(%d, %d) r(i)", i*rowsOfEach, (i+1)*rowsOfEach))
			if r.Code != 0 {
				t.Errorf("job %d: %s", i, r.Err)
			}
		})
	}
	// A client that finds nobody at its first call gives up at once: it has sent nothing that could be lost.
	harness.Eventually(t, "every job is submitted", func() bool { return len(s.JobsAbout("INSERT INTO prod.demo.t")) == jobs })
	s.Scheduler.Kill()
	s.Scheduler.Wait(t)
	s.StartScheduler(s.env...)
	wg.Wait()
	n := jobs * rowsOfEach
	require.Equal(t, fmt.Sprintf("%d,%d,%d", n, n, n*(n-1)/2), strings.Join(s.SQL("SELECT count(*), count(DISTINCT id), sum(s.a) FROM prod.demo.t")[0], ","))
}

// pyIceberg reads the table that the jobs have written, if `make interop` has installed it.
func (s *stage) pyIceberg(t *testing.T) {
	python := filepath.Join(harness.Root(), ".cache/interop-venv/bin/python")
	if _, err := os.Stat(python); err != nil {
		t.Log("PyIceberg is not installed: test/interop/run.sh --setup")
		return
	}
	script := fmt.Sprintf(`
from pyiceberg.catalog.rest import RestCatalog
c = RestCatalog("prod", %s)
t = c.load_table("demo.t").scan().to_arrow()
ids = sorted(t["id"].to_pylist())
assert ids == list(range(8000)), (len(ids), ids[:5])
assert all(r["s"] == {"a": r["id"], "b": "b%%d" %% r["id"]} and r["name"] == "n%%d" %% r["id"] for r in t.to_pylist())
u = c.load_table("demo.u").scan().to_arrow()
assert len(u) == 401 and sum(r["more"] or 0 for r in u.to_pylist()) == 7, len(u)
print("ok")
`, s.python)
	cmd := exec.Command(python, "-c", script)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%.3000s", out)
}
