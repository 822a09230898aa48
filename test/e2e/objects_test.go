package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
var _ = bytes.Contains
var _ = context.Background
var _ = http.MethodPut
var _ = os.ReadFile
var _ = filepath.Join
var _ sync.Mutex
var _ = time.Now
var _ = schedulerv1.JobState_JOB_STATE_SUCCESSFUL
