package s3_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/weed"
)

// traffic is what executors have counted of their attempts that wrote.
type traffic struct{ Received, Sent, Copied int64 }

func (t traffic) minus(o traffic) traffic {
	return traffic{t.Received - o.Received, t.Sent - o.Sent, t.Copied - o.Copied}
}

// moved adds up what the executors of a cluster have logged.
func moved(t testing.TB, c *harness.Cluster) (sum traffic) {
	logs, err := filepath.Glob(filepath.Join(c.Dir, "executor-*.log"))
	require.NoError(t, err)
	for _, name := range logs {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "attempt has written") {
				continue
			}
			var one traffic
			if json.Unmarshal([]byte(line), &one) != nil {
				for field, into := range map[string]*int64{"received": &one.Received, "sent": &one.Sent, "copied": &one.Copied} {
					_, rest, _ := strings.Cut(line, field+"=")
					_, err := fmt.Sscan(rest, into)
					require.NoError(t, err, line)
				}
			}
			sum.Received, sum.Sent, sum.Copied = sum.Received+one.Received, sum.Sent+one.Sent, sum.Copied+one.Copied
		}
	}
	return sum
}

// passing is a cluster whose statements read what is below raw on its own store.
func passing(t testing.TB, sessions bool) *world {
	server := weed.Start(t)
	admin := (&world{server: server}).admin()
	_, err := admin.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("raw")})
	require.NoError(t, err)
	return startOn(t, server, 1, fmt.Sprintf("sources:\n  remote:\n  - prefix: s3://raw/\n    properties: {s3.endpoint: %q}\n    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n",
		server.Endpoint), sessions)
}

// export copies the data files of a table to where statements may read them, and answers how many bytes they have.
func (w *world) export(t testing.TB, table, to string) (bytes int64) {
	admin := w.admin()
	list, err := admin.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String("wh/" + table + "/data/")})
	require.NoError(t, err)
	for n, o := range list.Contents {
		_, err := admin.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: aws.String("raw"), Key: aws.String(fmt.Sprintf("%s/%d.parquet", to, n)), CopySource: aws.String(bucket + "/" + aws.ToString(o.Key))})
		require.NoError(t, err)
		bytes += aws.ToInt64(o.Size)
	}
	return bytes
}

// Rows that only pass through stay in the store: an executor reads what says where they are, and writes what says where they are now.
func TestPassThrough_MovesNoData(t *testing.T) {
	for name, sessions := range map[string]bool{"sessions": true, "signed": false} {
		t.Run(name, func(t *testing.T) {
			w := passing(t, sessions)
			w.SQL("CREATE SCHEMA s3.s; CREATE TABLE s3.s.made AS SELECT i, hash(i) % 1000000007 AS h, md5(i::VARCHAR) AS t, (i % 100)::DECIMAL(12,2) AS d FROM range(1500000) r(i)")
			size := w.export(t, "s/made", "x")
			require.Greater(t, size, int64(20<<20))
			sums := func(of string) [][]string {
				return w.SQL("SELECT count(*), sum(i), sum(h), sum(d), count(DISTINCT t), min(t), max(t) FROM " + of)
			}
			want := sums("s3.s.made")
			for n, from := range []string{"'s3://raw/x/*.parquet'", "s3.s.made"} {
				table := fmt.Sprintf("s3.s.t%d", n)
				w.SQL("CREATE TABLE " + table + " AS SELECT * FROM s3.s.made LIMIT 0")
				text := w.Value("EXPLAIN INSERT INTO " + table + " SELECT * FROM " + from)
				t.Log(text)
				before := moved(t, w.Cluster)
				w.SQL("INSERT INTO " + table + " SELECT * FROM " + from)
				got := moved(t, w.Cluster).minus(before)
				t.Logf("%s: %d bytes, of which the executor received %d and sent %d; the store copied %d", from, size, got.Received, got.Sent, got.Copied)
				require.Greater(t, got.Copied, size*9/10)
				require.Less(t, got.Received+got.Sent, size/20)
				require.Equal(t, want, sums(table))
			}
		})
	}
}

// What can be copied is, and what cannot is written anew: in one statement, of one file.
func TestPassThrough_Mixtures(t *testing.T) {
	w := passing(t, true)
	w.SQL("CREATE SCHEMA s3.s")
	w.SQL("CREATE TABLE s3.s.base AS SELECT i, md5(i::VARCHAR) AS t, sha256(i::VARCHAR) AS u, CASE WHEN i % 1000 = 7 THEN 'NaN'::DOUBLE ELSE i / 3 END AS x FROM range(800000) r(i)")
	size := w.export(t, "s/base", "x")
	run := func(sql string) traffic {
		before := moved(t, w.Cluster)
		w.SQL(sql)
		return moved(t, w.Cluster).minus(before)
	}
	same := func(a, b string) {
		t.Helper()
		text := "SELECT count(*), sum(i), count(DISTINCT t), max(u), min(t), count(*) FILTER (isnan(x)), sum(x) FILTER (NOT isnan(x)) FROM "
		require.Equal(t, w.SQL(text+a), w.SQL(text+b))
	}
	floats := size / 10 // of 8 bytes in some 80 that a row takes

	got := run("CREATE TABLE s3.s.ctas AS SELECT * FROM 's3://raw/x/*.parquet'")
	t.Logf("CTAS with a column of floats: %d bytes, %+v", size, got)
	require.Greater(t, got.Copied, size*9/10)
	require.Less(t, got.Received+got.Sent, floats*2, "floats are read, to count NaNs, and nothing else is")
	same("s3.s.base", "s3.s.ctas")
	require.Equal(t, "0", w.Value("SELECT count(*) FROM s3.s.ctas WHERE x > 1e9 AND NOT isnan(x)"))

	w.SQL("CREATE TABLE s3.s.turned (x DOUBLE, u VARCHAR, t VARCHAR, i BIGINT)")
	got = run("INSERT INTO s3.s.turned SELECT x, u, t, i FROM 's3://raw/x/*.parquet'")
	t.Logf("columns in another order: %+v", got)
	require.Zero(t, got.Copied, "chunks of other orders are short runs")
	same("s3.s.base", "s3.s.turned")

	got = run("INSERT INTO s3.s.ctas SELECT * FROM 's3://raw/x/*.parquet' WHERE i < 10")
	require.Zero(t, got.Copied)
	require.Equal(t, "800010", w.Value("SELECT count(*) FROM s3.s.ctas"))

	w.SQL("CREATE TABLE s3.s.parts (i BIGINT, t VARCHAR, u VARCHAR, x DOUBLE) PARTITIONED BY (truncate(500000, i))")
	text := w.Run("sql", "EXPLAIN INSERT INTO s3.s.parts SELECT * FROM 's3://raw/x/*.parquet'").Out
	require.Regexp(t, `Copied row groups: \d+ of 800000 rows \(.*of them by the store\), 0 of 1 files wholly`, text)
	got = run("INSERT INTO s3.s.parts SELECT * FROM 's3://raw/x/*.parquet'")
	t.Logf("a row group that is of two partitions: %+v", got)
	require.Greater(t, got.Copied, size/2)
	same("s3.s.base", "s3.s.parts")

	for range 3 {
		w.SQL("INSERT INTO s3.s.parts SELECT i + 800000, t, u, x FROM s3.s.base LIMIT 100000")
	}
	before := w.SQL("SELECT count(*), sum(i), min(t), max(u) FROM s3.s.parts")
	got = run("CALL s3.system.rewrite_data_files(table => 's.parts')")
	t.Logf("compaction: %+v", got)
	require.Greater(t, got.Copied, int64(5<<20))
	require.Equal(t, before, w.SQL("SELECT count(*), sum(i), min(t), max(u) FROM s3.s.parts"))

	w.SQL("DELETE FROM s3.s.ctas WHERE i % 400000 = 3")
	before = w.SQL("SELECT count(*), sum(i), min(t), max(u) FROM s3.s.ctas")
	run("CREATE TABLE s3.s.again AS SELECT * FROM s3.s.ctas")
	require.Equal(t, before, w.SQL("SELECT count(*), sum(i), min(t), max(u) FROM s3.s.again"))
	same("s3.s.ctas", "s3.s.again")
}

// A source of another store, or that is read by other keys, is streamed, and EXPLAIN says so.
func TestPassThrough_BetweenStores(t *testing.T) {
	one, other := weed.Start(t), weed.Start(t)
	admin := (&world{server: other}).admin()
	_, err := admin.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("raw")})
	require.NoError(t, err)
	w := startOn(t, one, 1, fmt.Sprintf("sources:\n  remote:\n  - prefix: s3://raw/\n    properties: {s3.endpoint: %q}\n    secret: {s3.access-key-id: {env: TEST_STORE_KEY}, s3.secret-access-key: {env: TEST_STORE_SECRET}}\n",
		other.Endpoint), false)
	w.SQL("CREATE SCHEMA s3.s; CREATE TABLE s3.s.base AS SELECT i, md5(i::VARCHAR) AS t, sha256(i::VARCHAR) AS u FROM range(300000) r(i)")
	list, err := w.admin().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String("wh/s/base/data/")})
	require.NoError(t, err)
	require.Len(t, list.Contents, 1)
	object, err := w.admin().GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: list.Contents[0].Key})
	require.NoError(t, err)
	body, err := io.ReadAll(object.Body)
	require.NoError(t, err)
	_, err = admin.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("raw"), Key: aws.String("x.parquet"), Body: bytes.NewReader(body)})
	require.NoError(t, err)
	w.SQL("CREATE TABLE s3.s.t AS SELECT * FROM s3.s.base LIMIT 0")
	text := w.Run("sql", "EXPLAIN INSERT INTO s3.s.t SELECT * FROM 's3://raw/x.parquet'").Out
	require.Contains(t, text, "by the executor, because its files are not in the same store: endpoints or regions differ")
	before := moved(t, w.Cluster)
	w.SQL("INSERT INTO s3.s.t SELECT * FROM 's3://raw/x.parquet'")
	got := moved(t, w.Cluster).minus(before)
	require.Zero(t, got.Copied)
	require.GreaterOrEqual(t, got.Sent, int64(len(body))*9/10)
	require.Equal(t, w.SQL("SELECT count(*), sum(i), max(t) FROM s3.s.base"), w.SQL("SELECT count(*), sum(i), max(t) FROM s3.s.t"))
}
