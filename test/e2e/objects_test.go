package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

const storeKey, storeSecret = "canary-key", "canary-secret-of-the-store"

// onObjects is a cluster with a catalog `s3` whose tables are in an object store. Only the scheduler has its keys.
func onObjects(t *testing.T, executors int, more harness.Options) (*harness.Cluster, *objectstest.Server) {
	t.Helper()
	store := objectstest.Start(t)
	more.Executors = executors
	more.SchedulerEnv = append(more.SchedulerEnv, "TEST_STORE_KEY="+storeKey, "TEST_STORE_SECRET="+storeSecret)
	more.CatalogConfig += fmt.Sprintf("  s3:\n    type: sql\n    uri: sqlite://%s/s3.db\n    warehouse: s3://%s/wh\n    properties: {s3.endpoint: %q}\n"+
		"    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n", t.TempDir(), objectstest.Bucket, store.URL)
	return harness.New(t, more), store
}

// keys lists the objects below a prefix.
func keys(t *testing.T, s *objectstest.Server, prefix string) (out []string) {
	t.Helper()
	require.NoError(t, s.Client(t).List(t.Context(), prefix, "", func(i objects.Info) error {
		out = append(out, i.Key)
		return nil
	}))
	return out
}

// Statements of each kind give the same rows on tables in an object store as on local ones.
func TestObjects_Statements(t *testing.T) {
	t.Parallel()
	c, store := onObjects(t, 2, harness.Options{})
	for _, catalog := range []string{"lake", "s3"} {
		script := `
			CREATE SCHEMA C.s;
			CREATE TABLE C.s.t (id BIGINT, name VARCHAR, part INTEGER) PARTITIONED BY (part);
			INSERT INTO C.s.t SELECT i, 'n' || i, i % 3 FROM range(1000) r(i);
			INSERT INTO C.s.t VALUES (1000, 'é ''x''', 7), (1001, NULL, NULL);
			CREATE TABLE C.s.copy AS SELECT id, name FROM C.s.t WHERE part = 1;
			DELETE FROM C.s.t WHERE id % 10 = 0;
			UPDATE C.s.t SET name = upper(name) WHERE part = 2;
			MERGE INTO C.s.t USING C.s.copy AS u ON t.id = u.id WHEN MATCHED AND u.id < 100 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.name, 9);
			CREATE TABLE C.s.mor (id BIGINT, v VARCHAR) TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read');
			INSERT INTO C.s.mor SELECT i, 'v' || i FROM range(5000) r(i);
			DELETE FROM C.s.mor WHERE id < 100;
			DELETE FROM C.s.mor WHERE id % 7 = 0;
			UPDATE C.s.mor SET v = 'changed' WHERE id BETWEEN 1000 AND 1100;
			CREATE TABLE C.s.pos (id BIGINT, v VARCHAR) TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read');
			INSERT INTO C.s.pos SELECT i, 'v' || i FROM range(3000) r(i);
			DELETE FROM C.s.pos WHERE id % 3 = 0;
			INSERT OVERWRITE C.s.copy SELECT id, v FROM C.s.pos WHERE id < 50;
			CALL C.system.rewrite_data_files(table => 's.mor')`
		c.SQL(strings.ReplaceAll(script, "C.", catalog+"."))
	}
	for _, q := range []string{
		"SELECT count(*), sum(id), count(DISTINCT name), min(name), max(name) FROM C.s.t",
		"SELECT part, count(*), sum(hash(name)::HUGEINT) FROM C.s.t GROUP BY 1 ORDER BY 1",
		"SELECT count(*), sum(id), count(*) FILTER (v = 'changed') FROM C.s.mor",
		"SELECT count(*), sum(id) FROM C.s.pos WHERE id > 100",
		"SELECT count(*), sum(id), max(name) FROM C.s.copy",
		"SELECT a.id, b.v FROM C.s.t a JOIN C.s.mor b USING (id) ORDER BY 1 LIMIT 20",
	} {
		local, remote := c.SQL(strings.ReplaceAll(q, "C.", "lake.")), c.SQL(strings.ReplaceAll(q, "C.", "s3."))
		require.Equal(t, local, remote, q)
	}
	require.NotEmpty(t, keys(t, store, "wh/s/"))
}

// The keys of the store, and what is signed with them, are in the scheduler's memory; the keys are in no other process, and neither is on a disk or in any output.
func TestObjects_KeysStayInTheScheduler(t *testing.T) {
	t.Parallel()
	c, store := onObjects(t, 1, harness.Options{})
	c.SQL("CREATE SCHEMA s3.s; CREATE TABLE s3.s.t AS SELECT i FROM range(10) r(i); INSERT INTO s3.s.t SELECT i FROM s3.s.t; DELETE FROM s3.s.t WHERE i = 3")
	require.Equal(t, "18", c.Value("SELECT count(*) FROM s3.s.t"))
	outputs := []string{c.Run("sql", "-q", "EXPLAIN INSERT INTO s3.s.t SELECT 1").Out, c.Run("info", "-o", "json").Out, c.Run("sql", "SELECT * FROM s3.s.nope").Err}
	gone := keys(t, store, "wh/s/t/data/")
	require.NoError(t, store.Client(t).Remove(t.Context(), gone[0]))
	for _, k := range gone[1:] {
		require.NoError(t, store.Client(t).Remove(t.Context(), k))
	}
	outputs = append(outputs, c.Run("sql", "SELECT * FROM s3.s.t WHERE i = 1").Err)
	store.Fail(objectstest.Fault{Method: http.MethodPut, Status: http.StatusForbidden, Code: "AccessDenied", Times: 1000})
	outputs = append(outputs, c.Run("sql", "INSERT INTO s3.s.t SELECT 1").Err)
	require.Contains(t, outputs[len(outputs)-1], "access denied")
	for _, j := range c.Jobs() {
		outputs = append(outputs, c.Run("job", j.ID, "-o", "json").Out)
	}
	secrets := []string{storeSecret, "X-Amz-Signature=", storeKey + "%2F"}
	for _, o := range outputs {
		for _, secret := range secrets {
			require.NotContains(t, o, secret)
		}
	}
	require.True(t, harness.MemoryHolds(t, c.Scheduler.PID(), []byte(storeSecret)), "the scan finds what is there")
	children := append(harness.Below(c.Scheduler.PID()), harness.Proc{PID: c.Executors[0].PID()})
	require.GreaterOrEqual(t, len(children), 2, "the plugin runs")
	for _, p := range children {
		require.False(t, harness.MemoryHolds(t, p.PID, []byte(storeSecret)), "memory of %+v", p)
		for _, f := range []string{"environ", "cmdline"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID, f))
			require.NoError(t, err)
			require.NotContains(t, string(b), storeSecret, "%s of %+v", f, p)
		}
	}
	c.Stop()
	require.NoError(t, filepath.WalkDir(c.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, readErr := os.ReadFile(path)
			require.NoError(t, readErr)
			for _, secret := range secrets {
				require.NotContains(t, string(b), secret, path)
			}
		}
		return err
	}))
}

// Whatever the store does to one request, whoever sends it, a statement has its one effect; names mean the same there as locally.
func TestObjects_FaultAtEveryRequest(t *testing.T) {
	t.Parallel()
	c, store := onObjects(t, 1, harness.Options{})
	const table = `s3.s."a b%2B+?#*[x]é''$"`
	c.SQL("CREATE SCHEMA s3.s; CREATE TABLE " + table + " (i BIGINT)")
	rows := 0
	for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodHead} {
		for _, fault := range []objectstest.Fault{
			{Status: http.StatusInternalServerError, Code: "InternalError"},
			{Apply: true, Status: http.StatusInternalServerError, Code: "InternalError"},
			{Status: http.StatusServiceUnavailable, Code: "SlowDown"},
			{Apply: true},
			{},
		} {
			for skip := range 3 {
				fault.Method, fault.Skip = method, skip
				store.Fail(fault)
			}
			c.SQL("INSERT INTO " + table + " SELECT i FROM range(10) r(i)")
			rows += 10
			require.Equal(t, fmt.Sprint(rows), c.Value("SELECT count(*) FROM "+table), "%+v", fault)
			c.SQL("DELETE FROM " + table + " WHERE i = 3")
			rows--
		}
	}
	require.Equal(t, fmt.Sprint(rows), c.Value("SELECT count(*) FROM "+table))
	require.Zero(t, uploads(t, store))
}

// An executor that is killed in the middle of an upload leaves nothing: the task runs elsewhere, and what was begun is swept when the job has ended.
func TestObjects_ExecutorKilledInTheMiddleOfAnUpload(t *testing.T) {
	t.Parallel()
	c, store := onObjects(t, 1, harness.Options{})
	c.SQL("CREATE SCHEMA s3.s; CREATE TABLE s3.s.t (a BIGINT, b DOUBLE) TBLPROPERTIES ('write.parquet.compression-codec'='uncompressed')")
	begun, killed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var parts atomic.Int32
	store.Fail(objectstest.Fault{
		Method: http.MethodPut, Times: 100,
		Match: func(r *http.Request) bool { // it never answers the second part, until its sender is gone
			if !r.URL.Query().Has("partNumber") || parts.Add(1) < 2 {
				return false
			}
			select {
			case <-killed:
				return false
			default:
			}
			once.Do(func() { close(begun) })
			<-killed
			return true
		},
	})
	r, err := c.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: "INSERT INTO s3.s.t SELECT i * 7919, random() FROM range(3000000) r(i)"})
	require.NoError(t, err)
	<-begun
	require.Positive(t, uploads(t, store))
	c.Executors[0].Kill()
	close(killed)
	c.Executors[0].Wait(t)
	c.RestartExecutor(0)
	harness.Eventually(t, "the job has ended", func() bool {
		j, err := c.Client().Raw().GetJob(harness.Context(t), &schedulerv1.GetJobRequest{JobId: r.GetJobId()})
		require.NoError(t, err)
		require.NotEqual(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetJob().GetState(), "%v", j.GetJob().GetError())
		return j.GetJob().GetState() == schedulerv1.JobState_JOB_STATE_SUCCESSFUL
	})
	require.Equal(t, "3000000", c.Value("SELECT count(*) FROM s3.s.t"))
	harness.Eventually(t, "no upload is left", func() bool { return uploads(t, store) == 0 })
	attempts := map[string]bool{}
	for _, k := range keys(t, store, "wh/s/t/data/") {
		attempts[path.Dir(k)] = true
	}
	require.Len(t, attempts, 1, "the files of the attempt that won")
}

// uploads is how many uploads in parts are open.
func uploads(t *testing.T, s *objectstest.Server) int {
	t.Helper()
	resp, err := http.Get(s.URL + "/" + objectstest.Bucket + "?uploads") //nolint:noctx // a test server of this process
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return strings.Count(string(b), "<Upload>")
}
