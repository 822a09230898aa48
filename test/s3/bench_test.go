package s3_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// BenchmarkInsert times INSERT of the Parquet files of SIGNET_BENCH_DATA (a pattern) into a local table and into one on SeaweedFS, in turn, and the upload of the
// second one's files alone, by AWS's client in as many parts at a time. The goal: the INSERT into S3 takes at most 1.3 times the local one, besides that upload.
// Then the files of the first table in S3 are inserted from S3 into another one: the store copies them, and the executor's own bytes are counted.
//
//	SIGNET_BENCH_DATA='…/lineitem/*.parquet' go test -run '^$' -bench Insert -benchtime 3x ./test/s3
func BenchmarkInsert(b *testing.B) {
	data := os.Getenv("SIGNET_BENCH_DATA")
	if data == "" {
		b.Skip("SIGNET_BENCH_DATA is not set; test/bench/run.sh makes 10 million rows of TPC-H lineitem")
	}
	w := passing(b, true)
	w.SQL("CREATE SCHEMA lake.b; CREATE SCHEMA s3.b")
	var local, remote, upload, passed []float64
	var size int64
	var through traffic
	for i := range b.N + 1 { // the first is a warm-up
		l, r := w.timeInsert("lake", data, i), w.timeInsert("s3", data, i)
		u, files, bytes := w.timeUpload(b, fmt.Sprintf("wh/b/t%d/", i))
		b.Logf("local %.2f s, S3 %.2f s, upload of its %d files (%d MB) alone %.2f s", l, r, files, bytes/1e6, u)
		if size == 0 {
			size = w.export(b, "b/t0", "bench")
		}
		w.SQL(fmt.Sprintf("CREATE TABLE s3.b.t%d AS SELECT * FROM '%s' LIMIT 0", 1000+i, data))
		before, begin := moved(b, w.Cluster), time.Now()
		w.SQL(fmt.Sprintf("INSERT INTO s3.b.t%d SELECT * FROM 's3://raw/bench/*.parquet'", 1000+i))
		p := time.Since(begin).Seconds()
		through = moved(b, w.Cluster).minus(before)
		b.Logf("pass-through of %d MB in S3 %.2f s; the executor received %d bytes and sent %d, the store copied %d", size/1e6, p, through.Received, through.Sent, through.Copied)
		w.SQL(fmt.Sprintf("DROP TABLE s3.b.t%d", 1000+i))
		if i > 0 {
			passed = append(passed, p)
			local, remote, upload = append(local, l), append(remote, r), append(upload, u)
		}
		w.SQL(fmt.Sprintf("DROP TABLE lake.b.t%[1]d; DROP TABLE s3.b.t%[1]d", i))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(local), "s-local")
	b.ReportMetric(median(remote), "s-S3")
	b.ReportMetric(median(upload), "s-upload")
	b.ReportMetric(median(passed), "s-pass-through")
	b.ReportMetric(float64(through.Received+through.Sent)/float64(size), "executor-bytes/byte")
	b.ReportMetric((median(remote)-median(upload))/median(local), "(S3-upload)/local")
}

func median(x []float64) float64 {
	slices.SortFunc(x, cmp.Compare[float64])
	return x[len(x)/2]
}

// timeInsert is how many seconds the statement takes as its client sees it.
func (w *world) timeInsert(catalog, data string, i int) float64 {
	w.SQL(fmt.Sprintf("CREATE TABLE %s.b.t%d AS SELECT * FROM '%s' LIMIT 0", catalog, i, data))
	begin := time.Now()
	w.SQL(fmt.Sprintf("INSERT INTO %s.b.t%d SELECT * FROM '%s'", catalog, i, data))
	return time.Since(begin).Seconds()
}

// timeUpload uploads again what is below the prefix, as another object, and removes it.
func (w *world) timeUpload(b *testing.B, prefix string) (seconds float64, files int, bytes int64) {
	client := w.admin()
	list, err := client.ListObjectsV2(b.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(prefix + "data/")})
	require.NoError(b, err)
	dir := b.TempDir()
	for _, o := range list.Contents {
		got, err := client.GetObject(b.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: o.Key})
		require.NoError(b, err)
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(files)))
		require.NoError(b, err)
		n, err := f.ReadFrom(got.Body)
		require.NoError(b, err)
		require.NoError(b, f.Close())
		files, bytes = files+1, bytes+n
	}
	begin := time.Now()
	for i := range files {
		require.NoError(b, put(b.Context(), client, filepath.Join(dir, fmt.Sprint(i)), fmt.Sprintf("upload/%d", i)))
	}
	seconds = time.Since(begin).Seconds()
	for i := range files {
		_, err := client.DeleteObject(b.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(fmt.Sprintf("upload/%d", i))})
		require.NoError(b, err)
		require.NoError(b, os.Remove(filepath.Join(dir, fmt.Sprint(i))))
	}
	return seconds, files, bytes
}

// put uploads a file in parts as large and as many at a time as executors do.
func put(ctx context.Context, client *s3.Client, path, key string) error {
	const size, atATime = 16 << 20, 4
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	up, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	if err != nil {
		return err
	}
	parts := make([]types.CompletedPart, (st.Size()+size-1)/size)
	group, ctx2 := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i := range parts {
		group.Go(func() error {
			from := int64(i) * size
			n := aws.Int32(int32(i + 1)) //nolint:gosec // a few
			p, err := client.UploadPart(ctx2, &s3.UploadPartInput{
				Bucket: aws.String(bucket), Key: aws.String(key), UploadId: up.UploadId, PartNumber: n,
				Body: io.NewSectionReader(f, from, min(size, st.Size()-from)),
			})
			if err == nil {
				parts[i] = types.CompletedPart{PartNumber: n, ETag: p.ETag}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err = client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(bucket), Key: aws.String(key), UploadId: up.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return err
}
