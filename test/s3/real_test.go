package s3_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
	"github.com/signet-io/signet/test/servers/weed"
)

// The tests of the client and of the stores that want a real server get one. They are run by `make test-s3` alone: they are built for it.
func TestRealServer(t *testing.T) {
	if os.Getenv("SIGNET_REQUIRE_SERVERS") == "" {
		t.Skip("make test-s3 runs it")
	}
	w := &world{server: weed.Start(t)}
	_, err := w.admin().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	cmd := exec.Command("go", "test", "-count=1", "-timeout", "10m", "-v", "-run", "^TestReal_", "./internal/objects", "./catalog/storage")
	cmd.Dir = harness.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "SIGNET_TEST_S3="+w.server.Endpoint, "SIGNET_TEST_S3_BUCKET="+bucket, "SIGNET_TEST_S3_KEY="+w.server.AccessKey, "SIGNET_TEST_S3_SECRET="+w.server.SecretKey)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out[max(0, len(out)-8000):])
	require.Contains(t, string(out), "--- PASS: TestReal_KeysAreLiteral")
	require.NotContains(t, string(out), "--- SKIP")
	t.Logf("%s", out)
}
