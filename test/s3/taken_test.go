package s3_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// denied says whether a store has refused a request, as opposed to having done it or failed.
func denied(err error) bool {
	var r *awshttp.ResponseError
	return errors.As(err, &r) && r.HTTPStatusCode() == 403
}

// The session that is in the memory of an executor while it writes reaches the prefix of its attempt, and nothing else of the store.
func TestTakenSession_ReachesItsPrefixAlone(t *testing.T) {
	w := start(t, 1)
	ctx := t.Context()
	w.SQL("CREATE SCHEMA s3.s; CREATE TABLE s3.s.t (a BIGINT, b DOUBLE) TBLPROPERTIES ('write.parquet.compression-codec'='uncompressed'); INSERT INTO s3.s.t SELECT i, i FROM range(10) r(i)")
	before := len(w.given())
	require.Positive(t, before)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run("sql", "INSERT INTO s3.s.t SELECT i, random() FROM range(8000000) r(i)")
	}()
	var taken session
	harness.Eventually(t, "an attempt writes with a session", func() bool {
		all := w.given()
		if len(all) > before {
			taken = all[len(all)-1]
		}
		return taken.Token != ""
	})
	require.True(t, harness.MemoryHolds(t, w.Executors[0].PID(), []byte(taken.Token)), "it is in the executor's memory, where it can be taken")
	require.False(t, harness.MemoryHolds(t, w.Executors[0].PID(), []byte("accessKey\":\""+w.server.AccessKey)))
	require.Regexp(t, `^wh/s/t/data/[0-9a-f-]{36}/\d+/\d+/[0-9a-f-]{36}/$`, taken.prefix())
	<-ended
	require.Equal(t, "8000010", w.Value("SELECT count(*) FROM s3.s.t"))

	own := taken.prefix()
	x, admin := w.client(taken), w.admin()
	list, err := admin.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String("wh/s/t/")})
	require.NoError(t, err)
	var metadata, other, mine string
	for _, o := range list.Contents {
		switch k := aws.ToString(o.Key); {
		case strings.HasPrefix(k, own):
			mine = k
		case strings.HasSuffix(k, ".metadata.json"):
			metadata = k
		case strings.HasSuffix(k, ".parquet"):
			other = k
		}
	}
	require.NotEmpty(t, mine)
	require.NotEmpty(t, metadata)
	require.NotEmpty(t, other)
	_, err = admin.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("other")})
	require.NoError(t, err)
	foreign, err := admin.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("wh/s/t/metadata/upload")})
	require.NoError(t, err)

	put := func(bucket, key string) func() error {
		return func() error {
			_, err := x.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: strings.NewReader("taken")})
			return err
		}
	}
	get := func(key string) func() error {
		return func() error {
			_, err := x.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
			return err
		}
	}
	require.NoError(t, put(bucket, own+"another.parquet")(), "its own prefix")
	require.NoError(t, get(mine)(), "its own file")

	parts := strings.Split(strings.TrimSuffix(own, "/"), "/")
	sibling := strings.Join(parts, "/")
	job := strings.Join(parts[:len(parts)-3], "/")
	for name, f := range map[string]func() error{
		"put into the metadata":       put(bucket, "wh/s/t/metadata/v9.metadata.json"),
		"put over the metadata":       put(bucket, metadata),
		"put over another job's file": put(bucket, other),
		"put beside the attempt":      put(bucket, sibling+"1/x"),
		"put the attempt itself":      put(bucket, sibling),
		"put into the job":            put(bucket, job+"/x"),
		"put into another attempt":    put(bucket, job+"/0/0/00000000-0000-4000-8000-000000000000/x"),
		"put into another table":      put(bucket, "wh/s/u/data/x"),
		"put at the root":             put(bucket, "x"),
		"put into another bucket":     put("other", own+"x"),
		"put above by ..":             put(bucket, own+"../../../../../metadata/x"),
		"get the metadata":            get(metadata),
		"get another job's file":      get(other),
		"list the bucket": func() error {
			_, err := x.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
			return err
		},
		"list the prefix": func() error {
			_, err := x.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(own)})
			return err
		},
		"list uploads": func() error {
			_, err := x.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: aws.String(bucket)})
			return err
		},
		"delete its own file": func() error {
			_, err := x.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(mine)})
			return err
		},
		"delete the metadata": func() error {
			_, err := x.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(metadata)})
			return err
		},
		"delete many": func() error { return deleteMany(ctx, x, metadata) },
		"copy the metadata to itself": func() error {
			_, err := x.CopyObject(ctx, &s3.CopyObjectInput{Bucket: aws.String(bucket), Key: aws.String(own + "copy"), CopySource: aws.String(bucket + "/" + metadata)})
			return err
		},
		"copy the metadata into its own upload": func() error {
			up, err := x.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String(own + "upload")})
			require.NoError(t, err)
			_, err = x.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: aws.String(bucket), Key: aws.String(own + "upload"), UploadId: up.UploadId, PartNumber: aws.Int32(1), CopySource: aws.String(bucket + "/" + metadata)})
			return err
		},
		"copy its own file to the metadata": func() error {
			_, err := x.CopyObject(ctx, &s3.CopyObjectInput{Bucket: aws.String(bucket), Key: aws.String("wh/s/t/metadata/copy"), CopySource: aws.String(bucket + "/" + mine)})
			return err
		},
		"begin an upload into the metadata": func() error {
			_, err := x.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("wh/s/t/metadata/m")})
			return err
		},
		"a part of another's upload": func() error {
			_, err := x.UploadPart(ctx, &s3.UploadPartInput{Bucket: aws.String(bucket), Key: aws.String("wh/s/t/metadata/upload"), UploadId: foreign.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("x")})
			return err
		},
		"abort another's upload": func() error {
			_, err := x.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("wh/s/t/metadata/upload"), UploadId: foreign.UploadId})
			return err
		},
		"tag the metadata": func() error {
			_, err := x.PutObjectTagging(ctx, &s3.PutObjectTaggingInput{Bucket: aws.String(bucket), Key: aws.String(metadata), Tagging: &types.Tagging{TagSet: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}})
			return err
		},
		"open the metadata to all": func() error {
			_, err := x.PutObjectAcl(ctx, &s3.PutObjectAclInput{Bucket: aws.String(bucket), Key: aws.String(metadata), ACL: types.ObjectCannedACLPublicRead})
			return err
		},
		"make a bucket": func() error {
			_, err := x.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("mine")})
			return err
		},
		"set the bucket's policy": func() error {
			_, err := x.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: aws.String(bucket), Policy: aws.String("{}")})
			return err
		},
		"remove the bucket": func() error {
			_, err := x.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String(bucket)})
			return err
		},
		"buckets of everybody": func() error {
			out, err := x.ListBuckets(ctx, &s3.ListBucketsInput{})
			if err == nil && len(out.Buckets) == 0 { // SeaweedFS lists what may be seen
				return &awshttp.ResponseError{ResponseError: forbidden()}
			}
			return err
		},
		"versions of the metadata": func() error {
			_, err := x.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: aws.String(bucket)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := f()
			require.Error(t, err)
			if name == "put above by .." { // such a key is none
				return
			}
			require.True(t, denied(err), err)
		})
	}
	require.Equal(t, "8000010", w.Value("SELECT count(*) FROM s3.s.t"), "nothing has changed")
}

// deleteMany is a batch, which answers 200 with an error for each key.
func deleteMany(ctx context.Context, x *s3.Client, key string) error {
	out, err := x.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: aws.String(bucket), Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String(key)}}}})
	if err != nil {
		return err
	}
	if len(out.Errors) > 0 && aws.ToString(out.Errors[0].Code) == "AccessDenied" {
		return &awshttp.ResponseError{ResponseError: forbidden(), RequestID: "batch"}
	}
	return nil
}

func forbidden() *smithyhttp.ResponseError {
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}}, Err: errors.New("AccessDenied")}
}
