package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

// onClouds are clusters with a catalog `cloud` whose tables are in another store than S3.
var onClouds = map[string]func(t *testing.T) (*harness.Cluster, *objectstest.Server){
	"gcs": func(t *testing.T) (*harness.Cluster, *objectstest.Server) {
		s := objectstest.StartGCS(t)
		config := fmt.Sprintf("  cloud:\n    type: sql\n    uri: sqlite://%s/cloud.db\n    warehouse: gs://%s/wh\n    properties: {gcs.service.host: %q}\n    secret: {gcs.jsonkey: {env: TEST_STORE_KEY}}\n",
			t.TempDir(), objectstest.Bucket, s.URL)
		return harness.New(t, harness.Options{Executors: 1, CatalogConfig: config, SchedulerEnv: []string{"TEST_STORE_KEY=" + s.GCSKey(t)}}), s
	},
}

// Statements work on tables in other stores than S3, with an executor that has no credentials, and what a store does to single requests changes nothing.
func TestClouds_Statements(t *testing.T) {
	t.Parallel()
	for name, on := range onClouds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := on(t)
			c.SQL(`CREATE SCHEMA cloud.s;
				CREATE TABLE cloud.s.t (id BIGINT, name VARCHAR, part INTEGER) PARTITIONED BY (part);
				INSERT INTO cloud.s.t SELECT i, 'n' || i, i % 3 FROM range(1000) r(i)`)
			s.Fail(objectstest.Fault{Method: "PUT", Apply: true, Times: 2}, objectstest.Fault{Method: "GET", Status: 503, Times: 2}, objectstest.Fault{Method: "HEAD", Status: 500})
			c.SQL(`CREATE TABLE cloud.s.copy AS SELECT id, name FROM cloud.s.t WHERE part = 1;
				DELETE FROM cloud.s.t WHERE id % 10 = 0;
				UPDATE cloud.s.t SET name = 'x' WHERE part = 2`)
			require.Equal(t, [][]string{{"900", "450000", "300"}}, c.SQL("SELECT count(*), sum(id), count(*) FILTER (name = 'x') FROM cloud.s.t"))
			require.Equal(t, "300", c.Value("SELECT count(*) FROM cloud.s.t JOIN cloud.s.copy USING (id)"))
			require.Zero(t, s.Pending())
			refused := c.Run("sql", "INSERT INTO cloud.s.nope SELECT 1")
			require.NotZero(t, refused.Code)
			for _, l := range []string{refused.Err, strings.Join(s.Log(), "\n")} {
				require.NotContains(t, l, "Signature=")
			}
		})
	}
}
