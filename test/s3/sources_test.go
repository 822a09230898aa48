package s3_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/weed"
)

// X23, on a real store: names that escape, decode or glob wrongly would read another object, or none.
func TestSources_KeysAreLiteral(t *testing.T) {
	server := weed.Start(t)
	w := &world{server: server}
	admin := w.client(session{ID: server.AccessKey, Secret: server.SecretKey})
	_, err := admin.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	access := fmt.Sprintf("    properties: {s3.endpoint: %q}\n    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n", server.Endpoint)
	c := harness.New(t, harness.Options{
		Executors: 1, SchedulerEnv: []string{"TEST_STORE_KEY=" + server.AccessKey, "TEST_STORE_SECRET=" + server.SecretKey},
		CatalogConfig: fmt.Sprintf("  s3:\n    type: sql\n    uri: sqlite://%s/s3.db\n    warehouse: s3://%s/wh\n    add_files_paths: [\"s3://%[2]s/raw/add\"]\n%[3]s", t.TempDir(), bucket, access),
		Config:        fmt.Sprintf("sources:\n  remote:\n  - prefix: s3://%s/raw\n%s  - prefix: s3://nobucket/\n%[2]s", bucket, access),
	})
	keys := []string{
		"test+1.parquet", "test 1.parquet", "test%2B1.parquet", "report 24.parquet", "report%2024.parquet", "t:12.parquet", "é/日本.parquet", "x'y.parquet", "[1].parquet", "a&b=c;d.parquet", "{x}.parquet",
		"col=a%20b/x.parquet", "col=c d/x.parquet", "add/k=1/x y.parquet", "add/k=2/z+z.parquet",
	}
	var each []string
	var want [][]string
	for n, k := range keys {
		file := filepath.Join(t.TempDir(), "one.parquet")
		harness.WriteParquet(t, file, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil), fmt.Sprintf(`[{"id": %d}]`, n))
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = admin.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("raw/" + k), Body: bytes.NewReader(body)})
		require.NoError(t, err)
		each = append(each, fmt.Sprintf("SELECT %d AS n, id FROM '%s'", n, strings.ReplaceAll("s3://lake/raw/"+k, "'", "''")))
		want = append(want, []string{fmt.Sprint(n), fmt.Sprint(n)})
	}
	require.Equal(t, want, c.SQL(strings.Join(each, " UNION ALL ")+" ORDER BY 1"))
	require.Equal(t, fmt.Sprint(len(keys)), c.Value("SELECT count(DISTINCT id) FROM read_parquet('s3://lake/raw/**', hive_partitioning=false)"))
	require.Equal(t, [][]string{{"11", "a b"}, {"12", "c d"}}, c.SQL("SELECT id, col FROM 's3://lake/raw/col=*/x.parquet' ORDER BY 1"))
	c.SQL("CREATE SCHEMA s3.d; CREATE TABLE s3.d.t (id BIGINT); ALTER TABLE s3.d.t ADD FILES FROM 's3://lake/raw/add/*/*.parquet'; INSERT INTO s3.d.t SELECT id FROM 's3://lake/raw/test*.parquet'")
	require.Equal(t, [][]string{{"5", "30"}}, c.SQL("SELECT count(*), sum(id) FROM s3.d.t"))
	for name, text := range map[string]string{
		"s3://lake/raw/none.parquet": "no such object", "s3://lake/raw/none*.parquet": "none matches it", "s3://nobucket/x.parquet": "no such bucket", "s3://nobucket/*.parquet": "no such bucket",
		"s3://lake/wh/x.parquet": "below none of the prefixes", "s3://lake/raw/add": "a directory",
	} {
		r := c.Run("sql", "--quiet", "SELECT * FROM read_parquet('"+name+"')")
		require.NotZero(t, r.Code, name)
		require.Contains(t, r.Err, text, name)
	}
}
