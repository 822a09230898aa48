package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

// Delta tables in an object store: executors write and read their files by signed requests, the log is written by creating what is not there, and a drop leaves nothing.
func TestDelta_Objects(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	c := harness.New(t, harness.Options{
		Executors: 2, SchedulerEnv: []string{"TEST_STORE_KEY=" + storeKey, "TEST_STORE_SECRET=" + storeSecret},
		CatalogConfig: fmt.Sprintf("  d:\n    type: delta\n    root: s3://%s/wh\n    data_paths: ['s3://%s/more']\n    properties: {s3.endpoint: %q}\n"+
			"    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n", objectstest.Bucket, objectstest.Bucket, store.URL),
	})
	c.SQL(`CREATE TABLE d.s.t AS SELECT range AS id FROM range(1000)`)
	c.SQL(`INSERT INTO d.s.t SELECT 1000 + range AS id FROM range(1000)`)
	require.Equal(t, "1999000", c.Value(`SELECT sum(id) FROM d.s.t`))
	require.Equal(t, [][]string{{"t"}}, c.SQL(`SHOW TABLES FROM d.s`))
	require.Equal(t, [][]string{{"s"}}, c.SQL(`SHOW SCHEMAS FROM d`))
	place := `d."s3a://` + objectstest.Bucket + `/more/x"`
	c.SQL(`CREATE TABLE ` + place + ` AS SELECT id FROM d.s.t WHERE id < 10`)
	require.Equal(t, "10", c.Value(`SELECT count(*) FROM `+place+` AS x`))
	require.Equal(t, [][]string{{"s"}}, c.SQL(`SHOW SCHEMAS FROM d`), "what is not below the root is not listed")

	c.SQL(`DROP TABLE d.s.t`)
	require.Empty(t, keys(t, store, "wh/s/t/"))
	require.NotEmpty(t, keys(t, store, "more/x/_delta_log/"))
	c.Fail(1, `SELECT * FROM d.s.t`, "does not exist")
	c.SQL(`CREATE TABLE d.s.t (id BIGINT)`)
	require.Equal(t, "0", c.Value(`SELECT count(*) FROM d.s.t`))
	for _, key := range keys(t, store, "wh/") {
		require.True(t, strings.HasPrefix(key, "wh/s/t/_delta_log/"), key)
	}
}
