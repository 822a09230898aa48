package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/glue"
	"github.com/signet-io/signet/catalog/glue/gluetest"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

// lossy is Glue behind a network that loses every third change of a table before it arrives, and the answer to another third.
type lossy struct {
	srv     *gluetest.Server
	on      atomic.Bool
	updates atomic.Int64
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int64(2)
	if l.on.Load() && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateTable") {
		n = l.updates.Add(1) % 3
	}
	if n == 0 {
		panic(http.ErrAbortHandler)
	}
	if n == 1 {
		l.srv.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	l.srv.ServeHTTP(w, r)
}

// A catalog in AWS Glue with its tables in S3: statements of each kind, then many inserts at once while answers are lost, all rows once.
func TestGlue_Statements(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	net := &lossy{srv: gluetest.Start(t)}
	srv := httptest.NewServer(net)
	defer srv.Close()
	c := harness.New(t, harness.Options{
		Executors: 2, SchedulerEnv: []string{"TEST_KEY=canary-key", "TEST_SECRET=canary-secret"},
		CatalogConfig: fmt.Sprintf("  aws:\n    type: glue\n    warehouse: s3://%s/wh\n    properties: {glue.endpoint: %q, s3.endpoint: %q}\n    secret:\n"+
			"      glue: {access-key-id: {env: TEST_KEY}, secret-access-key: {env: TEST_SECRET}}\n      s3: {access-key-id: {env: TEST_KEY}, secret-access-key: {env: TEST_SECRET}}\n",
			objectstest.Bucket, srv.URL, store.URL),
	})
	c.SQL(`CREATE SCHEMA aws.demo;
		CREATE TABLE aws.demo.t (id BIGINT, name VARCHAR);
		INSERT INTO aws.demo.t SELECT i, 'n' || i FROM range(100) r(i);
		CREATE TABLE aws.demo.u AS SELECT * FROM aws.demo.t WHERE id < 50;
		UPDATE aws.demo.u SET name = 'x' WHERE id < 10;
		DELETE FROM aws.demo.u WHERE id >= 20;
		ALTER TABLE aws.demo.u ADD COLUMN more INTEGER;
		CREATE TABLE aws.demo.gone (id BIGINT);
		DROP TABLE aws.demo.gone`)
	require.Equal(t, "20,10", strings.Join(c.SQL("SELECT count(*), count(*) FILTER (name = 'x') FROM aws.demo.u")[0], ","))
	require.Equal(t, [][]string{{"t"}, {"u"}}, c.SQL("SHOW TABLES FROM aws.demo"))
	r := c.Run("sql", `CREATE TABLE aws.demo."Upper" (id BIGINT)`)
	require.NotZero(t, r.Code)
	require.Contains(t, r.Err, "lower case")

	net.on.Store(true)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := c.Run("sql", fmt.Sprintf("INSERT INTO aws.demo.t SELECT i, 'm' FROM range(%d, %d) r(i)", 100+i*10, 110+i*10))
			require.Zero(t, r.Code, r.Err)
		})
	}
	wg.Wait()
	net.on.Store(false)
	require.Equal(t, "180,16110", strings.Join(c.SQL("SELECT count(*), sum(id) FROM aws.demo.t")[0], ","))

	props := store.Props()
	stores, err := storage.NewOpener(storage.Root{Props: props, Source: objects.Static(props)})
	require.NoError(t, err)
	truth, err := glue.Open(t.Context(), glue.Options{
		Name: "aws", Warehouse: "s3://" + objectstest.Bucket + "/wh", Stores: stores, Properties: map[string]string{"glue.endpoint": net.srv.URL},
		Secrets: map[string]string{"glue.access-key-id": "a", "glue.secret-access-key": "b"},
	})
	require.NoError(t, err)
	tbl, err := truth.Load(t.Context(), catalog.Ident{"demo", "t"})
	require.NoError(t, err)
	require.Equal(t, "s3://"+objectstest.Bucket+"/wh/demo/t", tbl.Location)
	jobs := 0
	for k, v := range tbl.Metadata.Properties() {
		if strings.HasPrefix(k, "signet.landed.") {
			jobs += len(strings.Split(v, ","))
		}
	}
	require.Equal(t, 9, jobs, "each INSERT has landed once")
}
