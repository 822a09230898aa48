package s3_test

import (
	"encoding/json"
	"fmt"
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
