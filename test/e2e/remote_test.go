package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/test/harness"
)

// remoteSources is a cluster that may read s3://lake/raw, and the files of a directory on a web server. Only the scheduler has the store's keys.
func remoteSources(t *testing.T, executors int) (c *harness.Cluster, store *objectstest.Server, site, dir string) {
	t.Helper()
	dir = t.TempDir()
	web := httptest.NewServer(http.StripPrefix("/pub", http.FileServer(http.Dir(dir))))
	t.Cleanup(web.Close)
	site = web.URL + "/pub"
	store = objectstest.Start(t)
	keys := fmt.Sprintf("    properties: {s3.endpoint: %q}\n    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n", store.URL)
	c = harness.New(t, harness.Options{
		Executors: executors, SchedulerEnv: []string{"TEST_STORE_KEY=" + storeKey, "TEST_STORE_SECRET=" + storeSecret},
		CatalogConfig: fmt.Sprintf("  s3:\n    type: sql\n    uri: sqlite://%s/s3.db\n    warehouse: s3://%s/wh\n    add_files_paths: [\"s3://%[2]s/raw/add\"]\n%[3]s", t.TempDir(), objectstest.Bucket, keys),
		Config:        fmt.Sprintf("sources:\n  remote:\n  - prefix: s3://%s/raw\n%s  - prefix: %s\n", objectstest.Bucket, keys, site),
	})
	return c, store, site, dir
}

// parquetOf is a Parquet file with one row.
func parquetOf(t *testing.T, id int, name string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "one.parquet")
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String}}, nil)
	harness.WriteParquet(t, file, schema, fmt.Sprintf(`[{"id": %d, "name": %q}]`, id, name))
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	return body
}

func storeObject(t *testing.T, s *objectstest.Server, key string, body []byte) {
	t.Helper()
	_, err := s.Client(t).Put(t.Context(), key, objects.Bytes(body), objects.PutOptions{})
	require.NoError(t, err)
}

// X23: each name in an object store or on a web server gives its own rows, in every place where a local name may stand, and names and directories say what they say there.
func TestRemote_Sources(t *testing.T) {
	t.Parallel()
	c, s3, site, dir := remoteSources(t, 2)
	keys := []string{
		"test+1.parquet", "test 1.parquet", "test%2B1.parquet", "report 24.parquet", "report%2024.parquet", "t:12.parquet", "a//b.parquet", "a/b.parquet", "é/日本.parquet", "x'y.parquet", "[1].parquet",
		strings.Repeat("n", 300) + ".parquet", "col=a%20b/x.parquet", "col=c d/x.parquet",
	}
	for n, k := range keys {
		storeObject(t, s3, "raw/keys/"+k, parquetOf(t, n, k))
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (id BIGINT, name VARCHAR); CREATE SCHEMA s3.d; CREATE TABLE s3.d.t (id BIGINT, name VARCHAR)")
	var each []string // its rows beside its name, in one statement
	var want [][]string
	for n, k := range keys {
		each, want = append(each, fmt.Sprintf("SELECT %d AS n, id, name FROM %s", n, quote("s3://lake/raw/keys/"+k))), append(want, []string{fmt.Sprint(n), fmt.Sprint(n), k})
	}
	require.Equal(t, want, c.SQL(strings.Join(each, " UNION ALL ")+" ORDER BY 1"))
	c.SQL("INSERT INTO lake.d.t SELECT * FROM 's3://lake/raw/keys/*.parquet'; INSERT INTO s3.d.t SELECT id, name FROM read_parquet('s3://lake/raw/keys/**/*.parquet', hive_partitioning=false)")
	require.Equal(t, [][]string{{"9", "45"}}, c.SQL("SELECT count(*), sum(id) FROM lake.d.t"))
	require.Equal(t, [][]string{{"14", "91"}}, c.SQL("SELECT count(*), sum(id) FROM s3.d.t"))
	require.Equal(t, [][]string{{"12", "a b"}, {"13", "c d"}}, c.SQL("SELECT id, col FROM 's3://lake/raw/keys/col=*/x.parquet' ORDER BY 1"))
	require.Equal(t, [][]string{{"s3://lake/raw/keys/a//b.parquet"}, {"s3://lake/raw/keys/a/b.parquet"}},
		c.SQL("SELECT filename FROM read_parquet(['s3://lake/raw/keys/a/b.parquet', 's3://lake/raw/keys/a//b.parquet'], filename=true) ORDER BY 1"))

	require.NoError(t, os.Mkdir(filepath.Join(dir, "k=1"), 0o755))
	for name, text := range map[string]string{"a+b c.csv": "id,name\n1,x\n2,y\n", "k=1/z.csv": "id,name\n3,z\n", "none.csv": "", "l.json": `{"id": 9, "name": "j"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.parquet"), parquetOf(t, 77, "web"), 0o600))
	require.Equal(t, [][]string{{"77", "web"}}, c.SQL("SELECT * FROM '"+site+"/p.parquet'"))
	require.Equal(t, [][]string{{"1", "x"}, {"2", "y"}}, c.SQL("SELECT * FROM read_csv('"+site+"/a+b c.csv') ORDER BY 1"))
	require.Equal(t, [][]string{{"3", "1", site + "/k=1/z.csv"}}, c.SQL("SELECT id, k, filename FROM read_csv(['"+site+"/k=1/z.csv'], filename=true)"))
	c.SQL("INSERT INTO lake.d.t SELECT * FROM '" + site + "/a+b%20c.csv' UNION ALL SELECT id, name FROM '" + site + "/l.json' UNION ALL SELECT * FROM 's3://lake/raw/keys/test 1.parquet'")
	require.Equal(t, [][]string{{"13", "58"}}, c.SQL("SELECT count(*), sum(id) FROM lake.d.t"))

	for statement, text := range map[string]string{
		"SELECT * FROM 's3://lake/wh/d/t/data/x.parquet'":    "below none of the prefixes of sources.remote",
		"SELECT * FROM 's3://lake/raw/keys/none.parquet'":    "no such object",
		"SELECT * FROM 's3://lake/raw/keys/none*.parquet'":   "none matches it as a pattern",
		"INSERT INTO lake.d.t SELECT * FROM 's3://lake/raw'": "s3://lake/raw",
		"SELECT * FROM '" + site + "/*.csv'":                 "there are no patterns there",
		"SELECT * FROM '" + site + "/../x.csv'":              "a way up",
		"SELECT * FROM '" + site + "/missing.csv'":           "no such file",
		"SELECT * FROM 'http://127.0.0.1:1/x.csv'":           "below none of the prefixes of sources.remote",
	} {
		r := c.Run("sql", "--quiet", statement)
		require.NotZero(t, r.Code, statement)
		require.Contains(t, r.Err, text, statement)
	}
	for _, p := range append(harness.Below(c.Scheduler.PID()), harness.Proc{PID: c.Executors[0].PID()}) {
		require.False(t, harness.MemoryHolds(t, p.PID, []byte(storeSecret)), "memory of %+v", p)
	}
}

// S73: a source that changes while a statement reads it is a clear error, also where its size stays.
func TestRemote_ChangedSource(t *testing.T) {
	t.Parallel()
	c, s3, _, _ := remoteSources(t, 1)
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (id BIGINT, name VARCHAR)")
	old, other := parquetOf(t, 1, "a"), parquetOf(t, 2, "b")
	require.Len(t, other, len(old))
	storeObject(t, s3, "raw/x.parquet", old)
	s3.Fail(objectstest.Fault{Method: http.MethodGet, Match: func(r *http.Request) bool { // it is written anew after it was planned for, and before it is read
		if strings.HasSuffix(r.URL.Path, "/raw/x.parquet") {
			storeObject(t, s3, "raw/x.parquet", other)
		}
		return false
	}})
	c.Fail(1, "INSERT INTO lake.d.t SELECT * FROM 's3://lake/raw/x.parquet'", "s3://lake/raw/x.parquet", "has changed since the job was planned")
	require.Equal(t, "0", c.Value("SELECT count(*) FROM lake.d.t"))
}

// ADD FILES registers objects where they are, if the operator has given their place free and the table's catalog finds the same objects there.
func TestRemote_AddFiles(t *testing.T) {
	t.Parallel()
	c, s3, site, dir := remoteSources(t, 2)
	for n := range 5 {
		storeObject(t, s3, fmt.Sprintf("raw/add/k=%d/x y.parquet", n), parquetOf(t, n, "added"))
	}
	storeObject(t, s3, "raw/other/x.parquet", parquetOf(t, 100, "copied"))
	storeObject(t, s3, "raw/add/a%2Bb/x.parquet", parquetOf(t, 6, "odd"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.parquet"), parquetOf(t, 77, "web"), 0o600))
	c.SQL("CREATE SCHEMA s3.d; CREATE TABLE s3.d.t (id BIGINT, name VARCHAR); CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (id BIGINT, name VARCHAR)")
	for statement, text := range map[string]string{
		"ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/raw/other/x.parquet'":        "files of other places may not stay where they are",
		"ALTER TABLE s3.d.t ADD FILES FROM '" + site + "/p.parquet'":               "a file of a web server",
		"ALTER TABLE lake.d.t ADD FILES FROM 's3://lake/raw/add/k=0/x y.parquet'":  "not in the kind of store",
		"ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/raw/add/a%2Bb/x.parquet'":    "in several ways",
		"ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/raw/add/none/*.parquet'":     "none matches",
		"ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/wh/d/t/metadata/*.metadata'": "below none of the prefixes",
	} {
		r := c.Run("sql", "--quiet", statement)
		require.NotZero(t, r.Code, statement)
		require.Contains(t, r.Err, text, statement)
	}
	c.SQL("ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/raw/add/k=*/*.parquet'")
	require.Equal(t, [][]string{{"5", "10"}}, c.SQL("SELECT count(*), sum(id) FROM s3.d.t"))
	c.Fail(1, "ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/raw/add/k=1/x y.parquet'", "already")
	c.SQL("ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/raw/other/x.parquet' WITH (copy = true); ALTER TABLE s3.d.t ADD FILES FROM '" + site + "/p.parquet' WITH (copy = true)")
	c.SQL("ALTER TABLE lake.d.t ADD FILES FROM 's3://lake/raw/add/k=*/*.parquet' WITH (copy = true)")
	require.Equal(t, [][]string{{"7", "187"}}, c.SQL("SELECT count(*), sum(id) FROM s3.d.t"))
	require.Equal(t, [][]string{{"5", "10"}}, c.SQL("SELECT count(*), sum(id) FROM lake.d.t"))
	c.SQL("DELETE FROM s3.d.t WHERE id = 3")
	require.Equal(t, [][]string{{"6", "184"}}, c.SQL("SELECT count(*), sum(id) FROM s3.d.t"))
	require.Len(t, keys(t, s3, "raw/add/k="), 5)
}
