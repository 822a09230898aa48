package s3_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// A Delta table in an object store has what one in a directory has: the scheduler alone creates its log, each version once, and executors hold nothing but their attempt's prefix.
func TestDelta(t *testing.T) {
	for name, sessions := range map[string]bool{"sessions": true, "signed": false} {
		t.Run(name, func(t *testing.T) {
			w := passing(t, sessions)
			w.SQL("CREATE TABLE delta.s.t PARTITIONED BY (p) AS SELECT i, CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN 'a b' ELSE 'x:y/ü%' END AS p FROM range(300) r(i)")
			require.Equal(t, [][]string{{"s"}}, w.SQL("SHOW SCHEMAS FROM delta"))
			require.Equal(t, [][]string{{"t"}}, w.SQL("SHOW TABLES FROM delta.s"))
			var writers errgroup.Group
			for n := range 4 {
				writers.Go(func() error {
					for k := range 3 {
						w.SQL(fmt.Sprintf("INSERT INTO delta.s.t VALUES (%d, 'w%d')", 1000+10*n+k, n))
					}
					return nil
				})
			}
			require.NoError(t, writers.Wait())
			require.Equal(t, [][]string{{"312"}}, w.SQL("SELECT count(DISTINCT i) FROM delta.s.t"))
			w.SQL("DELETE FROM delta.s.t WHERE p = 'a b'; UPDATE delta.s.t SET i = -i WHERE i = 3; INSERT OVERWRITE delta.s.t REPLACE WHERE p = 'w1' SELECT 7::BIGINT, 'w1'")
			require.Equal(t, [][]string{{"210", "-3"}}, w.SQL("SELECT count(*), min(i) FROM delta.s.t"))
			require.Equal(t, [][]string{{"300"}}, w.SQL("SELECT count(*) FROM delta.s.t VERSION AS OF 0"))
			for _, k := range w.given() {
				require.NotContains(t, k.resource, "_delta_log")
				_, err := w.client(k).PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("delta/s/t/_delta_log/00000000000000009999.json")})
				require.True(t, denied(err), err)
			}
			w.SQL("DROP TABLE delta.s.t")
			left, err := w.admin().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String("delta/s/t/")})
			require.NoError(t, err)
			require.Empty(t, left.Contents)
			require.Empty(t, w.SQL("SHOW TABLES FROM delta.s"))
		})
	}
}
